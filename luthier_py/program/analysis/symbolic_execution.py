"""Walks along what is launch-invariant of a kernel, each for all waves of a domain at once, and for many turns of a
loop at once.

In: what is launch-invariant, where a walk begins, and what is known there. Out: :class:`Walked`. Invariant: it is what
each wave of the domain executes; `Varies` is raised where no one way is that of all.

Turns of a loop are one more axis of the domain. Where a walk comes back to the head of a loop, registers have changed
by some steps. Were they to do so in each of so many turns, what they hold would be a sum like any other: one turn is
walked with these sums, and if it takes one way in the whole domain, and ends with each sum a step further, that is what
all turns do, by induction. How many turns there are is guessed: of one wave by doubling, of a domain from waves at its
corner, as if the number was a sum of multiples of ids. A wrong guess fails the walk that proves it.
Guesses are walks, too: a walk makes as many of them as cost some times what it stands for, turn by turn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

from luthier_py.base.records import dataclass, field, replace
from luthier_py.isa import EXEC, Reg, RegFile
from luthier_py.isa.semantics.readers.evaluate import Dword
from luthier_py.isa.semantics.readers.launch_values import DomainEvaluator
from luthier_py.isa.semantics.readers.sums import (
    ADDRESSES,
    TURNS,
    Axis,
    Depends,
    DomainValue,
    Extent,
    Sum,
    Sums,
    axes_of,
    combine_terms,
    lanewise,
)
from luthier_py.program.analysis.initial_values import InitialState, Varies
from luthier_py.program.analysis.launch_invariant import Deciding, LaunchInvariants, evaluate_results
from luthier_py.program.analysis.post_dominance import EXIT

MOST_TURNS = 1 << 40  # no counter of 32 bits is that patient
FEW_TURNS = 4  # are walked one by one first
GUESSES = 128   # stops for which a walk that has just begun guesses

Values: TypeAlias = "Mapping[Dword, Sum | Depends]"
Turns: TypeAlias = "tuple[tuple[Axis, Extent], ...]"


@dataclass(slots=True)
class Walked:
    """Executions by where pieces begin, and active lanes by where ranges do, in one wave and in one turn of loops
    that were walked as a whole; by those loops. Mutable."""

    executions: dict[Turns, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    lanes: dict[Turns, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, other: Walked) -> None:
        """Add the counts of another walk to these, loop by loop."""
        for mine, theirs in ((self.executions, other.executions), (self.lanes, other.lanes)):
            for turns, found in theirs.items():
                mine[turns].update(found)


class TooLong(Exception):
    """More pieces would be walked than that is worth."""


@dataclass(slots=True)
class ExecutionLimits:
    """Where walks go, of one domain of waves. ``stops``: walked so far, by all of them, of ``most``. Mutable."""

    launch_invariants: LaunchInvariants
    initial_state: InitialState
    stops: int
    most: int

    def stop(self) -> None:
        """Count one more straight-line piece; raises TooLong (no LuthierError) beyond ``most``."""
        self.stops += 1
        if self.stops > self.most:
            raise TooLong


@dataclass(frozen=True, slots=True)
class LoopSummary:
    """What is held at its head, and by how much each turn changes it; nothing is said of what has no step."""

    head: int
    values: Values
    steps: Mapping[Dword, int]

    def further(self, count: Extent) -> Values:
        """After so many turns; `Depends` is what has no step."""
        found: dict[Dword, Sum | Depends] = {}
        for place, known in self.values.items():
            if isinstance(known, Sum) and place in self.steps:
                step = self.steps[place]
                base = lanewise(lambda value, by=step * count.base: value + by, known.base)
                found[place] = combine_terms(32, base, (known, 1), (Sum(0, count.terms), step))
            else:
                found[place] = Depends(axes_of(known) | {axis for axis, _ in count.terms})
        return found

    def at(self, where: Mapping[Axis, int]) -> LoopSummary:
        """For those alone that are there in the domain, and at its start along other axes."""
        found: dict[Dword, Sum | Depends] = {}
        for place, known in self.values.items():
            if isinstance(known, Sum):
                moved = sum(factor * where.get(axis, 0) for axis, factor in known.terms)
                terms = tuple(term for term in known.terms if term[0] in ADDRESSES)
                known = combine_terms(32, lanewise(lambda value, by=moved: value + by, known.base), (Sum(0, terms), 1))
            found[place] = known
        return replace(self, values=found)


class Walk:
    """Mutable: how far it has come. ``sides``: of a domain of waves, and of turns of loops."""

    def __init__(self, limits: ExecutionLimits, sides: Mapping[Axis, Extent],
                 values: Mapping[Dword, DomainValue]) -> None:
        self._limits, self._sides, self._values = limits, sides, dict(values)
        self._sums = Sums(sides, limits.launch_invariants.lanes)
        self._evaluator = DomainEvaluator(self._sums)
        self._turns: Turns = tuple((axis, side) for axis, side in sides.items() if axis in TURNS)
        self._arrivals: dict[int, Values | None] = {}  # at heads of loops, from outer ones to those inside
        self._rounds = Counter[int]()  # since turns were walked as a whole
        self._stands_for = self._guessed = 0  # stops: those of each turn, and those that were walked for guesses
        self.tally = Walked()

    def go(self) -> None:
        """Walk from the start to the end; raises Varies."""
        at = self._limits.launch_invariants.first
        while at != EXIT:
            self._arrive(at)
            at = self._pass(at)

    def _turn(self, head: int) -> None:
        """Once round a loop."""
        at = self._pass(head)
        while at != head:
            if at == EXIT:
                raise Varies(frozenset())
            self._arrive(at)
            at = self._pass(at)

    def _collect_deciding_values(self, head: int) -> Values | None:
        """What decides anything from here on, if all of it is known."""
        wanted, found = self._limits.launch_invariants.stops[head].wanted, dict[Dword, Sum | Depends]()
        for place, known in self._values.items():
            if _bits(place) & wanted:
                if known is None:
                    return None
                found[place] = known
        return found

    def _arrive(self, at: int) -> None:
        if at not in self._limits.launch_invariants.heads:
            return
        while at in self._arrivals and next(reversed(self._arrivals)) != at:
            self._arrivals.popitem()
        before, now = self._arrivals.get(at), self._collect_deciding_values(at)
        if before is not None and now is not None:
            self._rounds[at] += 1
            if self._rounds[at] >= FEW_TURNS and self._rounds[at].bit_count() == 1:  # seldom, if nothing comes of it
                now = self._try_leap(at, before, now)
        self._arrivals[at] = now

    def _try_leap(self, head: int, before: Values, now: Values) -> Values:
        """As `_leap`, as long as it is worth it."""
        most, begun = self._limits.most, self._limits.stops
        self._limits.most = min(most, begun + 2 * self._stands_for + GUESSES - self._guessed)
        try:
            return self._leap(head, before, now)
        except TooLong:
            if self._limits.stops > most:
                raise
            return now
        finally:
            self._limits.most = most
            self._guessed += self._limits.stops - begun

    def _leap(self, head: int, before: Values, now: Values) -> Values:
        """Over all turns that go one way, if they change registers as the last one did."""
        steps = {place: _step(before.get(place), known) for place, known in now.items() if isinstance(known, Sum)}
        loop = LoopSummary(head, now, {place: step for place, step in steps.items() if step is not None})
        count = self._count(loop) if len(loop.steps) == len(steps) and len(self._turns) < len(TURNS) else None
        if count is None:
            return now
        try:
            walk = self._prove_loop(loop, self._sides, count)
        except Varies as varies:
            wide = frozenset(axis for axis in varies.axes if self._sides.get(axis, Extent(1)) != Extent(1))
            if wide:
                raise Varies(wide) from None  # it does so later, too, but for loops that no wave leaves
            return now
        self.tally.add(walk.tally)
        self._stands_for += count.base * walk._stands_for
        self._rounds[head] = 0
        self._values = dict(loop.further(count))
        return loop.further(count)

    def _count(self, loop: LoopSummary) -> Extent | None:
        """A guess: nothing where it is not worth a walk."""
        wide = [axis for axis, side in self._sides.items() if side != Extent(1)]
        first = self._count_at(loop, {}, FEW_TURNS)
        more = {axis: self._count_at(loop, {axis: 1}, first) - first for axis in wide}
        terms = tuple((axis, factor) for axis, factor in more.items() if factor)
        span = self._sums.span(terms)
        return None if span is None or first + span[0] < 0 or first + span[1] < FEW_TURNS else Extent(first, terms)

    def _count_at(self, loop: LoopSummary, where: Mapping[Axis, int], near: int) -> int:
        """Of a single wave."""
        loop, sides = loop.at(where), dict.fromkeys(self._sides, Extent(1))

        def holds(count: int) -> bool:
            try:
                self._prove_loop(loop, sides, Extent(count))
            except Varies:
                return False
            return count <= MOST_TURNS

        return greatest(holds, near)

    def _prove_loop(self, loop: LoopSummary, sides: Mapping[Axis, Extent], count: Extent) -> Walk:
        """One turn that is all of them; raises Varies."""
        axis = TURNS[len(self._turns)]
        start, end = (loop.further(Extent(turns, ((axis, 1),))) for turns in (0, 1))
        walk = Walk(self._limits, {**sides, axis: count}, start)
        walk._turn(loop.head)
        for place, known in end.items():
            found = walk._values.get(place)
            if found is None or isinstance(known, Sum) and found != known:
                raise Varies(frozenset())
        return walk

    def _pass(self, at: int) -> int:
        stop = self._limits.launch_invariants.stops[at]
        self._limits.stop()
        self._stands_for += 1
        self.tally.executions[self._turns][stop.pc] += 1
        for part in stop.parts:
            if part.known:
                self.tally.lanes[self._turns][part.pc] += self._active().bit_count()
            for step in part.steps:
                self._do(step)
        way = 0
        if stop.branch is not None:
            way = 0 if _number(self._evaluator.decision(stop.branch, self._read)) else len(stop.ways) - 1
        return stop.ways[way]

    def _do(self, step: Deciding) -> None:
        found = evaluate_results(step.inst, self._read, self._evaluator, self._limits.initial_state)
        new: dict[Dword, DomainValue] = {}
        for place in step.results:
            known = found.get(place)
            if place[0] is not RegFile.SGPR and place not in step.whole:
                known = self._evaluator.merge_lanes(known, self._values.get(place), self._read)
            new[place] = known
        self._values.update(new)
        for half in range(self._limits.launch_invariants.lanes // 32):
            if (RegFile.SGPR, EXEC + half) in new:
                _number(new[RegFile.SGPR, EXEC + half])

    def _read(self, file: RegFile, index: int) -> DomainValue:
        return self._values.get((file, index))

    def _active(self) -> int:
        return _number(self._evaluator.mask(EXEC, self._read))


def greatest(holds: Callable[[int], bool], near: int) -> int:
    """The greatest number that holds, or 0, if all that are less do, too; found by few tries where it is ``near``."""
    step = 1
    if holds(near):
        least, most = near, near + step
        while holds(most):
            step *= 2
            least, most = most, most + step
    else:
        least, most = near - step, near
        while least > 0 and not holds(least):
            step *= 2
            least, most = least - step, least
    least = max(least, 0)
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if holds(middle) else (least, middle)
    return least


@cache
def _bits(place: Dword) -> int:
    return Reg(*place).bits


def _number(known: DomainValue) -> int:
    """The same for all waves of the domain; raises Varies where it is not."""
    if isinstance(known, Sum) and not known.terms and isinstance(known.base, int):
        return known.base
    raise Varies(frozenset() if known is None else axes_of(known))


def _step(before: Sum | Depends | None, now: Sum) -> int | None:
    """What was added in each lane."""
    if not isinstance(before, Sum) or before.terms != now.terms:
        return None
    added = lanewise(lambda a, b: (b - a) % (1 << 32), before.base, now.base)
    if isinstance(added, int):
        return added
    return added[0] if len(set(added)) == 1 else None
