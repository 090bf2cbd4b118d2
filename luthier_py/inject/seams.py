"""Wait states, and waits for dependencies, where inserted code meets application code.

In: a clone whose inner sequences (the application's own, each fragment's own) are free of hazards.
Out: the same clone with what `isa.owed` misses. Invariant: on every path data hazards keep their distance, or what
ends them stands between; nothing is inserted for the application's instructions alone, nor where all is there already.

What is owed is followed forward through the items, until no way into an item adds to it. Where code comes in that
the clone does not see (its entry, the return of a call) everything is owed that some item of any clone produces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from luthier_py.inject.model import Clone, Item
from luthier_py.isa import InstructionSet, OpFlag
from luthier_py.isa.chains import possible
from luthier_py.isa.hazards_cured import Cured
from luthier_py.isa.owed import NOTHING, Missing, Owed, missing, own, unknown


@dataclass(frozen=True, slots=True)
class Debts:
    """What is owed at a place: by the application alone, and by what was inserted, alone or together with it."""

    application: Owed = NOTHING
    inserted: Owed = NOTHING

    def __bool__(self) -> bool:
        return bool(self.application or self.inserted)

    def join(self, other: Debts) -> Debts:
        return Debts(self.application.join(other.application), self.inserted.join(other.inserted))


def settle(isa: InstructionSet, clones: Sequence[Clone]) -> None:
    """Insert what is missing (mutates ``clones``, which may call each other)."""
    calls = any(item.inst.op.flags & OpFlag.CALL for clone in clones for item in clone.items)
    rows = possible(isa, {item.inst.op for clone in clones for item in clone.items})
    outside = _anything(isa, clones, rows) if calls or len(clones) > 1 else Debts()
    for clone in clones:
        _settle(isa, clone, _waits(isa, clone, outside, rows))


def _settle(isa: InstructionSet, clone: Clone, waits: Mapping[Item, Missing]) -> None:
    if not waits:
        return
    out: list[Item] = []
    first: dict[Item, Item] = {}  # who waits -> the first wait before it
    for item in clone.items:
        new = [Item(inst) for inst in waits[item].instructions(isa, item.inst)] if item in waits else []
        if new:
            first[item] = new[0]
        out += [*new, item]
    for item in out:
        if isinstance(item.jump, Item):
            item.jump = first.get(item.jump, item.jump)
    clone.labels.update({address: first[item] for address, item in clone.labels.items() if item in first})
    clone.items = out


def _waits(isa: InstructionSet, clone: Clone, outside: Debts, rows: frozenset[Cured]) -> dict[Item, Missing]:
    """What items need before them."""
    targets = {item: item.jump if isinstance(item.jump, Item) else clone.labels[item.jump]
               for item in clone.items if item.jump is not None}
    owing = [own(isa, item.inst, rows) for item in clone.items]
    into = dict.fromkeys(targets.values(), Debts())
    into[clone.items[0]] = outside
    runs = _runs(clone.items, into)
    todo = dict.fromkeys(runs)  # in the order in which they stand
    waits: dict[Item, Missing] = {}
    while todo:
        head = next(iter(todo))
        del todo[head]
        debts = into[head]
        for number in runs[head]:
            item = clone.items[number]
            lacks, debts = _through(isa, item, owing[number], debts)
            if lacks:
                waits[item] = lacks.join(waits.get(item, lacks))
            if item in targets:
                _flow_into(targets[item], debts, into, todo)
            flags = item.inst.op.flags
            if flags & OpFlag.CALL:
                debts = outside
            elif flags & OpFlag.TERMINATOR and not flags & OpFlag.CONDITIONAL:
                debts = Debts()
        if runs[head].stop < len(clone.items):
            _flow_into(clone.items[runs[head].stop], debts, into, todo)
    return waits


def _runs(items: Sequence[Item], heads: Collection[Item]) -> dict[Item, range]:
    """Stretches of items that are entered at their heads only."""
    starts = [number for number, item in enumerate(items) if item in heads]
    return {items[a]: range(a, b) for a, b in pairwise([*starts, len(items)])}


def _flow_into(head: Item, debts: Debts, into: dict[Item, Debts], todo: dict[Item, None]) -> None:
    old = into[head]
    new = old.join(debts)
    if new != old:
        into[head] = new
        todo[head] = None


def _through(isa: InstructionSet, item: Item, owing: Owed, debts: Debts) -> tuple[Missing, Debts]:
    """What is missing before an item, and what is owed behind it; ``owing`` is what it owes itself."""
    if not (owing or debts):
        return Missing(), debts
    inst = item.inst
    lacks = missing(isa, (debts.inserted, *[debts.application] * item.inserted), inst)
    application, inserted = debts.application, debts.inserted
    for wait in lacks.instructions(isa, inst) if lacks else ():
        application, inserted = application.behind(isa, wait), inserted.behind(isa, wait)
    behind = Debts(application.behind(isa, inst), inserted.behind(isa, inst))
    return lacks, behind.join(_made(isa, item, owing, Debts(application, inserted)))


def _made(isa: InstructionSet, item: Item, owing: Owed, debts: Debts) -> Debts:
    """What an item owes, alone or as one more link of what came before."""
    application, inserted = debts.application.carried(isa, item.inst), debts.inserted.carried(isa, item.inst)
    if item.inserted:
        return Debts(NOTHING, owing.join(application).join(inserted))
    return Debts(owing.join(application), inserted)


def _anything(isa: InstructionSet, clones: Iterable[Clone], rows: frozenset[Cured]) -> Debts:
    """All that items of ``clones`` owe right behind them, at once, whatever comes before them."""
    items = [item for clone in clones for item in clone.items]
    debts = Debts(unknown(rows))
    while True:
        more = debts
        for item in items:
            if made := _made(isa, item, own(isa, item.inst, rows), debts):
                more = more.join(made)
        if more == debts:
            return debts
        debts = more
