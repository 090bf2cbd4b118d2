"""Wait states, and waits for dependencies, where inserted code meets application code.

In: clones whose inner sequences (the application's own, each hook's own) are free of hazards. Out: the same with what
`isa.pending_hazards` misses. Invariant: on every path data hazards keep their distance, or what ends them is between;
nothing is inserted for the application's instructions alone, nor where all is there already. Where other instructions
replace some of the application's, its own pending hazards may have lost their distance: there all instructions are
looked at as if they were inserted.

What is pending is followed forward through the items, until no way into an item adds to it: by the application what
inserted instructions would meet, by these what anything would. In a slice only places are looked at that do something
to what is pending there, and wait states of the application only where its end may still owe them. Where nothing else
is to be followed, code from which inserted code is too far away is left out. Where code comes in that the clone does
not see (its entry, the return of a call) everything is pending that some item of any clone produces. Through a hook's
instructions only what comes from outside is followed, and their end owes what their last ones do."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from luthier_py.base.records import dataclass, replace
from luthier_py.isa import Inst, InstructionSet, OpFlag, OpInfo
from luthier_py.isa.build import MOST_IN_GROUP, group_size
from luthier_py.isa.columns import Columns
from luthier_py.isa.hazards.mitigated import Mitigated
from luthier_py.isa.hazards.patterns import touches
from luthier_py.isa.hazards.pending import NOTHING, Missing, PendingHazards, find_missing_mitigations, possible
from luthier_py.isa.hazards.wait_states import goes_on, only_waits, states_of
from luthier_py.rewrite.inject.items import Cause, Clone, Edit, Item, Label, Run, Single, Slice

_EDIT = Edit(Cause.WAIT)


@dataclass(frozen=True, slots=True)
class PendingByOrigin:
    """What is pending at a place: by the application alone, and by what was inserted, alone or together with it."""

    application: PendingHazards = NOTHING
    inserted: PendingHazards = NOTHING

    def __bool__(self) -> bool:
        return bool(self.application or self.inserted)

    def join(self, other: PendingByOrigin) -> PendingByOrigin:
        """What is pending where control may come from either place: for each hazard the longer distance."""
        return self.become(self.application.join(other.application), self.inserted.join(other.inserted))

    def behind(self, isa: InstructionSet, inst: Inst) -> PendingByOrigin:
        """What ``inst`` leaves of it."""
        return self.become(self.application.behind(isa, inst), self.inserted.behind(isa, inst))

    def become(self, application: PendingHazards, inserted: PendingHazards) -> PendingByOrigin:
        """Itself where that is the same, as it is nearly always."""
        same = application is self.application and inserted is self.inserted
        return self if same else PendingByOrigin(application, inserted)


NOTHING_PENDING = PendingByOrigin()


def insert_wait_states(isa: InstructionSet, clones: Sequence[Clone]) -> list[Clone]:
    """``clones`` may call each other."""
    owing = _CreatedHazards(isa, clones)
    calls = any(op.flags & OpFlag.CALL for op in owing.ops)
    outside = _anything(owing, clones) if calls or len(clones) > 1 else NOTHING_PENDING
    return [_insert_waits(isa, clone, _Walk(owing, clone, outside).waits()) for clone in clones]


class _CreatedHazards:
    """What instructions owe, worked out once for each (mutable: remembers it)."""

    def __init__(self, isa: InstructionSet, clones: Sequence[Clone]) -> None:
        self.isa = isa
        apart = set[tuple[Inst, bool]]().union(*(clone.apart for clone in clones))
        codes = set[Columns]().union(*(clone.codes for clone in clones))
        self.ops = {code.distinct.isa.op(row) for code in codes for row in np.unique(code.rows).tolist()}
        self.ops |= {inst.op for inst, _ in apart}
        self.inserted = possible(isa, self.ops)
        self.application = self.inserted.select_consumed_by(isa, (inst for inst, inserted in apart if inserted))
        self.longest = max((row.states for row in self.application.states), default=0)
        self.clause = any(row.clause for row in self.application.states)
        self._own: dict[tuple[Inst, bool], PendingHazards] = {}
        self.codes = {code: _Code(self, code) for code in codes}

    def own(self, inst: Inst, inserted: bool) -> PendingHazards:
        key = inst, inserted
        if key not in self._own:
            self._own[key] = (self.inserted if inserted else self.application).own(self.isa, inst)
        return self._own[key]


class _Code:
    """The application's code: where something is pending, and where what is pending becomes something else."""

    def __init__(self, owing: _CreatedHazards, code: Columns) -> None:
        self.owing, self.isa, self.code, rows = owing, owing.isa, code, owing.application
        begins = self.find_kinds(lambda inst: bool(owing.own(inst, False).patterns)) if rows.patterns else []
        self.always = sorted({*code.find_flagged(OpFlag.CALL | OpFlag.TERMINATOR), *begins})
        self.touched: dict[tuple[Mitigated, int], list[int]] = {}

    def find_kinds(self, said: Callable[[Inst], bool]) -> list[int]:
        """Places of the instructions of which ``said`` says so."""
        kinds = [kind for kind in self.code.used if said(self.code.distinct.inst(kind))]
        found: list[int] = np.flatnonzero(np.isin(self.code.kinds, kinds)).tolist()
        return found

    @cached_property
    def states(self) -> list[int]:
        """Wait states before each place."""
        own = np.ones(len(self.code), np.int64)
        for at in self.code.find_ops(only_waits):
            own[at] = states_of(self.code.inst(at))
        found: list[int] = np.append(0, np.cumsum(own)).tolist()
        return found

    @cached_property
    def broken(self) -> list[int]:
        """Where no clause continues."""
        return self.code.find_ops(_breaks_clauses(self.isa))

    def find_owing(self, start: int, stop: int) -> list[int]:
        """Where between two places instructions of the application owe wait states."""
        places = range(start, stop)
        return [at for at in places if self.owing.own(self.code.inst(at), False).states]

    def window(self, item: Slice) -> int:
        """The place from which the end of a slice may leave wait states pending; -1 if hazards from before it may be
        among them."""
        if not self.owing.longest:
            return item.stop
        start = bisect_right(self.states, self.states[item.stop] - self.owing.longest) - 1
        if self.owing.clause:
            number = bisect_left(self.broken, item.stop) - 1
            start = min(start, self.broken[number] if number >= 0 else -1)
        return start if start >= item.start else -1

    def find_next_relevant(self, at: int, pending: PendingByOrigin, owing: list[int]) -> int:
        """The first place from ``at`` on that does something; ``owing``: where wait states are owed at the end."""
        if pending.inserted.states or pending.application.states:
            return at
        found = min(_next(self.always, at), _next(owing, at))
        for key in pending.application.patterns.keys() | pending.inserted.patterns.keys():
            found = min(found, _next(self.find_pattern_changes(key[:2]), at))
        return found

    def find_pattern_changes(self, key: tuple[Mitigated, int]) -> list[int]:
        """Where a chain with so many links becomes another one, or is over."""
        if key not in self.touched:
            self.touched[key] = self.find_kinds(lambda inst: touches(self.isa, *key, inst))
        return self.touched[key]


@cache
def _breaks_clauses(isa: InstructionSet) -> Callable[[OpInfo], bool]:
    return lambda op: not goes_on(isa, op)


def _next(places: list[int], at: int) -> int:
    number = bisect_left(places, at)
    return places[number] if number < len(places) else sys.maxsize


MissingWaits = dict[Item, dict[int, Missing]]  # what is missing before instructions, by item and number in its code


def _insert_waits(isa: InstructionSet, clone: Clone, waits: MissingWaits) -> Clone:
    items: list[Item] = []
    for item in clone.items:
        for place, lacks in sorted(waits.get(item, {}).items()):
            assert not isinstance(item, Label)
            inst = item.inst if isinstance(item, Single) else item.inst(place)
            at = _before_group(item, place) if isinstance(item, Run) else place
            if isinstance(item, (Slice, Run)):
                *before, item = item.cut(at)
                items += before
            items += [Single(wait, edit=_EDIT) for wait in lacks.instructions(isa, inst)]
        items.append(item)
    return replace(clone, items=tuple(items))


def _before_group(item: Run, at: int) -> int:
    """The place of a wait before a hook's instruction: a group of memory instructions holds nothing else, and what is
    missing in it is pending from before it."""
    for start in range(max(at - MOST_IN_GROUP, item.start), at):
        if start + group_size(item.insts[start]) >= at:
            return start
    return at


class _Walk:
    """One clone, followed until nothing new is pending anywhere (mutable)."""

    def __init__(self, owing: _CreatedHazards, clone: Clone, outside: PendingByOrigin) -> None:
        self.owing, self.isa, self.items, self.outside = owing, owing.isa, clone.items, outside
        self.whole = clone.rewritten
        self.found: MissingWaits = {}
        self.alone: dict[tuple[int, int, int],
                         tuple[Run, PendingByOrigin]] = {}  # by instructions, from and to; the first one
        named = {item.jump for item in clone.items if isinstance(item, Single)} - {None}
        starts = [0, *(number for number, item in enumerate(clone.items) if number and item in named)]
        self.heads = {label: number for number in starts if isinstance(label := clone.items[number], Label)}
        self.stops = dict(pairwise([*starts, len(clone.items)]))
        self.into = dict.fromkeys(starts, NOTHING_PENDING)

    def waits(self) -> MissingWaits:
        self.into[0] = self.outside
        self.todo = sorted(self.into if self.whole or self.outside or self.owing.application.patterns else
                           self.find_near_pieces())
        self.queued = set(self.todo)
        while self.todo:
            start = heappop(self.todo)
            self.queued.remove(start)
            pending = self.into[start]
            for item in self.items[start : self.stops[start]]:
                if isinstance(item, Slice):
                    pending = self.through_slice(item, pending)
                elif isinstance(item, Run):
                    pending = self.through_run(item, pending)
                elif isinstance(item, Single):
                    pending = self.through(item, pending)
            if self.stops[start] < len(self.items):
                self.flow_into(self.stops[start], pending)
        return self.found

    def find_near_pieces(self) -> Collection[int]:
        """Heads of pieces with inserted code, and of those from whose ends it is not too far away: wait states that
        others owe are over before it."""
        reach = {start: self.owing.longest for start, stop in self.stops.items()
                 if any(isinstance(item, Run) or isinstance(item, Single) and item.inserted
                        for item in self.items[start:stop])}
        if 2 * len(reach) > len(self.stops):
            return self.into
        before: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for start in self.stops:
            for to, states in self.ways(start):
                before[to].append((start, states))
        found, work = set(reach), list(reach)
        while work:
            head = work.pop()
            for start, states in before[head] if reach[head] > 0 else ():
                found.add(start)
                if reach.get(start, 0) < reach[head] - states:
                    reach[start] = reach[head] - states
                    work.append(start)
        return found

    def ways(self, start: int) -> Iterator[tuple[int, int]]:
        """Pieces to which control may go from one, and how many wait states pass in it before that, at least; none as
        long as a clause may go on."""
        passed, broken = 0, not self.owing.clause
        for item in self.items[start : self.stops[start]]:
            if isinstance(item, Slice):
                passed += item.stop - item.start
                broken = broken or _next(self.owing.codes[item.code].broken, item.start) < item.stop
            elif isinstance(item, Single):
                passed += 1
                broken = broken or not goes_on(self.isa, item.inst.op)
                if item.jump is not None:
                    yield self.heads[item.jump], passed * broken
        yield self.stops[start], passed * broken

    def flow_into(self, start: int, pending: PendingByOrigin) -> None:
        old = self.into[start]
        new = old.join(pending)
        if new is not old:
            self.into[start] = new
            if start not in self.queued:
                self.queued.add(start)
                heappush(self.todo, start)

    def through(self, item: Single, pending: PendingByOrigin) -> PendingByOrigin:
        pending = self.step(item, 0, item.inst, item.inserted or self.whole, pending)
        if item.jump is not None:
            self.flow_into(self.heads[item.jump], pending)
        return _behind(item.inst, pending, self.outside)

    def through_slice(self, item: Slice, pending: PendingByOrigin) -> PendingByOrigin:
        code = self.owing.codes[item.code]
        if self.whole:
            for at in range(item.start, item.stop):
                inst = item.inst(at)
                pending = _behind(inst, self.step(item, at, inst, True, pending), self.outside)
            return pending
        window = code.window(item)
        if window >= 0:
            pending = PendingByOrigin(PendingHazards({}, pending.application.patterns), pending.inserted)
        owing = code.find_owing(max(item.start, window), item.stop)
        at = code.find_next_relevant(item.start, pending, owing)
        while at < item.stop:
            inst = item.inst(at)
            pending = _behind(inst, self.step(item, at, inst, False, pending), self.outside)
            at = code.find_next_relevant(at + 1, pending, owing)
        return pending

    def through_run(self, item: Run, pending: PendingByOrigin) -> PendingByOrigin:
        """What was pending before joins the pending hazards of a hook's instructions, unless something is missing or a
        chain continues."""
        before = pending
        for at in range(item.start, item.stop):
            if not before:
                break
            inst, both = item.inst(at), (before.inserted, before.application)
            if find_missing_mitigations(self.isa, both, inst) or any(
                each.extend_patterns(self.isa, inst) for each in both
            ):
                return self.along(item, pending)
            before = before.behind(self.isa, inst)
        key = id(item.insts), item.start, item.stop
        if key not in self.alone:
            self.alone[key] = item, self.along(item, NOTHING_PENDING)
        first, created = self.alone[key]
        if first is not item:
            for at, lacks in self.found.get(first, {}).items():
                self.record_missing_waits(item, at, lacks)
        return before.join(created)

    def record_missing_waits(self, item: Item, at: int, lacks: Missing) -> None:
        waits = self.found.setdefault(item, {})
        waits[at] = lacks.join(waits.get(at, lacks))

    def along(self, item: Run, pending: PendingByOrigin) -> PendingByOrigin:
        for at in range(item.start, item.stop):
            pending = self.step(item, at, item.inst(at), True, pending)
        return pending

    def step(self, item: Item, at: int, inst: Inst, inserted: bool, pending: PendingByOrigin) -> PendingByOrigin:
        """What is pending behind an instruction; notes what is missing before it."""
        isa, owing = self.isa, self.owing.own(inst, inserted)
        if not (owing or pending):
            return pending
        lacks = find_missing_mitigations(isa, (pending.inserted, *[pending.application] * inserted), inst)
        application, new = pending.application, pending.inserted
        if lacks:
            self.record_missing_waits(item, at, lacks)
            for wait in lacks.instructions(isa, inst):
                application, new = application.behind(isa, wait), new.behind(isa, wait)
        left = pending.become(application, new)
        return left.behind(isa, inst).join(_compute_new_hazards(isa, inst, inserted, owing, left))


def _behind(inst: Inst, pending: PendingByOrigin, outside: PendingByOrigin) -> PendingByOrigin:
    """What is pending where control continues in the code."""
    flags = inst.op.flags
    if flags & OpFlag.CALL:
        return outside
    return NOTHING_PENDING if flags & OpFlag.TERMINATOR and not flags & OpFlag.CONDITIONAL else pending


def _compute_new_hazards(isa: InstructionSet, inst: Inst, inserted: bool, owing: PendingHazards,
                         pending: PendingByOrigin) -> PendingByOrigin:
    """What an instruction owes, alone or as one more link of what came before."""
    application, new = pending.application.extend_patterns(isa, inst), pending.inserted.extend_patterns(isa, inst)
    if inserted:
        return NOTHING_PENDING.become(NOTHING, owing.join(application).join(new))
    return NOTHING_PENDING.become(owing.join(application), new)


def _anything(owing: _CreatedHazards, clones: Iterable[Clone]) -> PendingByOrigin:
    """All that items of ``clones`` owe right behind them, at once, whatever comes before them."""
    places = set[tuple[Inst, bool]]().union(*(clone.apart for clone in clones))
    for clone in clones:
        whole = clone.rewritten  # which looks at every item
        places |= {(code.distinct.inst(kind), whole) for code in clone.codes for kind in code.used}
    pending = PendingByOrigin(owing.application.unknown())
    while True:
        more = pending
        for inst, inserted in places:
            if made := _compute_new_hazards(owing.isa, inst, inserted, owing.own(inst, inserted), pending):
                more = more.join(made)
        if more == pending:
            return pending
        pending = more
