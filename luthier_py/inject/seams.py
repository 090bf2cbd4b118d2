"""Wait states where inserted code meets application code.

In: a clone whose inner sequences (the application's own, each fragment's own) are free of hazards.
Out: the same clone with `s_nop`s. Invariant: on every path the data hazards of `isa.hazards` keep their distance;
nothing is inserted between two of the application's instructions, nor where the distance is there already.

What is owed is followed forward through the items, until no way into an item adds to it. Where code comes in that
the clone does not see (its entry, the return of a call) everything is owed that some item of any clone produces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from luthier_py.inject.model import Clone, Item
from luthier_py.isa import Inst, InstructionSet, OpFlag
from luthier_py.isa.hazards import Owed, joined, missing, passed, produced, waited

NOP_STATES = 16  # s_nop waits for SIMM16[3:0] + 1 states (AMD ISA, SOPP)


@dataclass(frozen=True, slots=True)
class Debts:
    """What is owed at a place, by who owes it."""

    application: Owed = field(default_factory=dict)
    inserted: Owed = field(default_factory=dict)

    def join(self, other: Debts) -> Debts:
        return Debts(joined(self.application, other.application), joined(self.inserted, other.inserted))


def settle(isa: InstructionSet, clones: Sequence[Clone]) -> None:
    """Insert what is missing (mutates ``clones``, which may call each other)."""
    outside = _anything(isa, clones) if len(clones) > 1 else Debts()
    for clone in clones:
        _settle(isa, clone, _waits(isa, clone, outside))


def _settle(isa: InstructionSet, clone: Clone, waits: Mapping[Item, int]) -> None:
    if not waits:
        return
    out: list[Item] = []
    first: dict[Item, Item] = {}  # who waits -> the first nop before it
    for item in clone.items:
        nops = [Item(isa.make("s_nop", states - 1)) for states in _pieces(waits.get(item, 0))]
        if nops:
            first[item] = nops[0]
        out += [*nops, item]
    for item in out:
        if isinstance(item.jump, Item):
            item.jump = first.get(item.jump, item.jump)
    clone.labels.update({address: first[item] for address, item in clone.labels.items() if item in first})
    clone.items = out


def _pieces(states: int) -> list[int]:
    whole, rest = divmod(states, NOP_STATES)
    return [NOP_STATES] * whole + [rest] * bool(rest)


def _waits(isa: InstructionSet, clone: Clone, outside: Debts) -> dict[Item, int]:
    """The wait states that items need before them."""
    targets = {item: item.jump if isinstance(item.jump, Item) else clone.labels[item.jump]
               for item in clone.items if item.jump is not None}
    own = [produced(isa, item.inst) for item in clone.items]
    into = dict.fromkeys(targets.values(), Debts())
    into[clone.items[0]] = outside
    runs = _runs(clone.items, into)
    todo = dict.fromkeys(runs)  # in the order in which they stand
    waits: dict[Item, int] = {}
    while todo:
        head = next(iter(todo))
        del todo[head]
        debts = into[head]
        for number in runs[head]:
            item = clone.items[number]
            states, debts = _through(isa, item, own[number], debts)
            if states:
                waits[item] = max(states, waits.get(item, 0))
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


def _through(isa: InstructionSet, item: Item, own: Owed, debts: Debts) -> tuple[int, Debts]:
    """Wait states before an item, and what is owed behind it; ``own`` is what it owes itself."""
    if not (own or debts.application or debts.inserted):
        return 0, debts
    inst = item.inst
    states = missing(isa, debts.inserted, inst)
    if item.inserted:
        states = max(states, missing(isa, debts.application, inst))
    application, inserted = (_behind(isa, owed, inst, states) for owed in (debts.application, debts.inserted))
    if item.inserted:
        return states, Debts(application, joined(inserted, own))
    return states, Debts(joined(application, own), inserted)


def _behind(isa: InstructionSet, owed: Owed, inst: Inst, states: int) -> Owed:
    return passed(isa, waited(owed, states) if states else owed, inst)


def _anything(isa: InstructionSet, clones: Iterable[Clone]) -> Debts:
    """All that items of ``clones`` owe right behind them, at once."""
    debts = Debts()
    for item in (item for clone in clones for item in clone.items):
        own = produced(isa, item.inst)
        if own:
            debts = debts.join(Debts(inserted=own) if item.inserted else Debts(own))
    return debts
