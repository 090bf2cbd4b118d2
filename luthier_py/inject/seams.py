"""Wait states, and waits for dependencies, where inserted code meets application code.

In: clones whose inner sequences (the application's own, each hook's own) are free of hazards. Out: the same with what
`isa.owed` misses. Invariant: on every path data hazards keep their distance, or what ends them stands between; nothing
is inserted for the application's instructions alone, nor where all is there already.

What is owed is followed forward through the items, until no way into an item adds to it. In a slice it is worked out as
long as something inserted is owed, and then from where on its end may still owe: what lies between concerns nobody.
Where code comes in that the clone does not see (its entry, the return of a call) everything is owed that some item of
any clone produces. Through a hook's instructions only what comes from outside is followed, and their end owes what
their last ones do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from luthier_py.inject.items import Cause, Clone, Edit, Item, Label, Run, Single, Slice
from luthier_py.isa import Inst, InstructionSet, OpFlag, OpInfo
from luthier_py.isa.owed import NOTHING, Missing, Owed, Possible, missing, own, possible, unknown

_EDIT = Edit(Cause.WAIT)


@dataclass(frozen=True, slots=True)
class Debts:
    """What is owed at a place: by the application alone, and by what was inserted, alone or together with it."""

    application: Owed = NOTHING
    inserted: Owed = NOTHING

    def __bool__(self) -> bool:
        return bool(self.application or self.inserted)

    def join(self, other: Debts) -> Debts:
        return Debts(self.application.join(other.application), self.inserted.join(other.inserted))

    def behind(self, isa: InstructionSet, inst: Inst) -> Debts:
        """What ``inst`` leaves of it."""
        return Debts(self.application.behind(isa, inst), self.inserted.behind(isa, inst))


NO_DEBTS = Debts()


def settle(isa: InstructionSet, clones: Sequence[Clone]) -> list[Clone]:
    """``clones`` may call each other."""
    ops = set[OpInfo]().union(*(_ops(clone) for clone in clones))
    rows = possible(isa, ops)
    calls = any(op.flags & OpFlag.CALL for op in ops)
    outside = _anything(isa, clones, rows) if calls or len(clones) > 1 else NO_DEBTS
    return [_settled(isa, clone, _Walk(isa, clone, outside, rows).waits()) for clone in clones]


def _ops(clone: Clone) -> set[OpInfo]:
    copied = {code.distinct.isa.op(row) for code in clone.codes for row in np.unique(code.rows).tolist()}
    return copied | {inst.op for inst, _ in clone.apart}


Waits = dict[Item, dict[int, Missing]]  # what is missing before instructions, by item and number in its code


def _settled(isa: InstructionSet, clone: Clone, waits: Waits) -> Clone:
    items: list[Item] = []
    for item in clone.items:
        for at, lacks in sorted(waits.get(item, {}).items()):
            assert not isinstance(item, Label)
            inst = item.inst if isinstance(item, Single) else item.inst(at)
            if isinstance(item, (Slice, Run)):
                *before, item = item.cut(at)
                items += before
            items += [Single(wait, edit=_EDIT) for wait in lacks.instructions(isa, inst)]
        items.append(item)
    return replace(clone, items=tuple(items))


class _Walk:
    """One clone, followed until nothing new is owed anywhere (mutable)."""

    def __init__(self, isa: InstructionSet, clone: Clone, outside: Debts, rows: Possible) -> None:
        self.isa, self.items, self.outside, self.rows = isa, clone.items, outside, rows
        self.found: Waits = {}
        self.tails: dict[tuple[int, int, int], tuple[int, Debts]] = {}  # by instructions, from and to
        named = {item.jump for item in clone.items if isinstance(item, Single)} - {None}
        starts = [0, *(number for number, item in enumerate(clone.items) if number and item in named)]
        self.heads = {label: number for number in starts if isinstance(label := clone.items[number], Label)}
        self.stops = dict(pairwise([*starts, len(clone.items)]))
        self.into = dict.fromkeys(starts, NO_DEBTS)

    def waits(self) -> Waits:
        self.into[0] = self.outside
        self.todo = dict.fromkeys(self.into)  # in the order in which they stand
        while self.todo:
            start = next(iter(self.todo))
            del self.todo[start]
            debts = self.into[start]
            for item in self.items[start : self.stops[start]]:
                if isinstance(item, Slice):
                    debts = self.through_slice(item, debts)
                elif isinstance(item, Run):
                    debts = self.through_run(item, debts)
                elif isinstance(item, Single):
                    debts = self.through(item, debts)
            if self.stops[start] < len(self.items):
                self.flow_into(self.stops[start], debts)
        return self.found

    def flow_into(self, start: int, debts: Debts) -> None:
        old = self.into[start]
        new = old.join(debts)
        if new != old:
            self.into[start] = new
            self.todo[start] = None

    def through(self, item: Single, debts: Debts) -> Debts:
        debts = self.step(item, 0, item.inst, item.inserted, debts)
        if item.jump is not None:
            self.flow_into(self.heads[item.jump], debts)
        return _behind(item.inst, debts, self.outside)

    def through_slice(self, item: Slice, debts: Debts) -> Debts:
        window, alone = self.tail(item, False)
        for at in range(item.start, item.stop):
            if at <= window and not debts.inserted:
                return alone
            inst = item.inst(at)
            debts = _behind(inst, self.step(item, at, inst, False, debts), self.outside)
        return debts

    def through_run(self, item: Run, debts: Debts) -> Debts:
        """What was owed before joins what a hook's instructions owe among themselves, unless something is missing."""
        window, alone = self.tail(item, True)
        before = debts
        for at in range(item.start, item.stop if window >= 0 else item.start):
            if not before:
                return alone
            if missing(self.isa, (before.inserted, before.application), item.inst(at)):
                break
            before = before.behind(self.isa, item.inst(at))
        else:
            if window >= 0:
                return before.join(alone)
        for at in range(item.start, item.stop):
            debts = self.step(item, at, item.inst(at), True, debts)
        return debts

    def tail(self, item: Slice | Run, inserted: bool) -> tuple[int, Debts]:
        """From which instruction on the end may owe something of its own, and what; -1 where there is none such."""
        key = id(item.insts if isinstance(item, Run) else item.code), item.start, item.stop
        if key not in self.tails:
            count = self.rows.outlived(self.isa, map(item.inst, range(item.stop - 1, item.start - 1, -1)))
            debts, start = NO_DEBTS, item.stop - (count or 0)
            for at in range(start, item.stop):
                debts = _behind(item.inst(at), self.step(item, at, item.inst(at), inserted, debts), self.outside)
            self.tails[key] = -1 if count is None else start, debts
        return self.tails[key]

    def step(self, item: Item, at: int, inst: Inst, inserted: bool, debts: Debts) -> Debts:
        """What is owed behind an instruction; notes what is missing before it."""
        isa, owing = self.isa, own(self.isa, inst, self.rows)
        if not (owing or debts):
            return debts
        lacks = missing(isa, (debts.inserted, *[debts.application] * inserted), inst)
        application, new = debts.application, debts.inserted
        if lacks:
            waits = self.found.setdefault(item, {})
            waits[at] = lacks.join(waits.get(at, lacks))
            for wait in lacks.instructions(isa, inst):
                application, new = application.behind(isa, wait), new.behind(isa, wait)
        left = Debts(application, new)
        return left.behind(isa, inst).join(_made(isa, inst, inserted, owing, left))


def _behind(inst: Inst, debts: Debts, outside: Debts) -> Debts:
    """What is owed where control goes on in the code."""
    flags = inst.op.flags
    if flags & OpFlag.CALL:
        return outside
    return NO_DEBTS if flags & OpFlag.TERMINATOR and not flags & OpFlag.CONDITIONAL else debts


def _made(isa: InstructionSet, inst: Inst, inserted: bool, owing: Owed, debts: Debts) -> Debts:
    """What an instruction owes, alone or as one more link of what came before."""
    application, new = debts.application.carried(isa, inst), debts.inserted.carried(isa, inst)
    if inserted:
        return Debts(NOTHING, owing.join(application).join(new))
    return Debts(owing.join(application), new)


def _anything(isa: InstructionSet, clones: Iterable[Clone], rows: Possible) -> Debts:
    """All that items of ``clones`` owe right behind them, at once, whatever comes before them."""
    copied = {code.distinct.inst(kind) for clone in clones for code in clone.codes for kind in np.unique(code.kinds)}
    places = {(inst, False) for inst in copied}.union(*(clone.apart for clone in clones))
    debts = Debts(unknown(rows))
    while True:
        more = debts
        for inst, inserted in places:
            if made := _made(isa, inst, inserted, own(isa, inst, rows), debts):
                more = more.join(made)
        if more == debts:
            return debts
        debts = more
