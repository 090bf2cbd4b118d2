"""That inserted code and the application's keep the distance that the hardware wants, on every path of linked bytes.

In: the clones of functions that may call each other, and what of them is inserted. Out: nothing, or CheckFailed. What
the application's instructions owe each other was their compiler's business; a hazard that an inserted instruction is
part of must have met its wait.

Wait states lie between two instructions, so it looks as far as each row reaches, forward from what produces a hazard or
backward from what runs into one. Where a function is entered or a call returns, OUTSIDE means whatever any of the
clones has. Longer patterns are checked by `hazard_patterns`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache

import numpy as np

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import NO_REGS, Inst, InstructionSet, OpInfo, RegSet
from luthier_py.isa.hazards.wait_states import HAZARDS, Hazard, states_of
from luthier_py.proof.code import within
from luthier_py.proof.hazard_patterns import check_hazard_patterns, make_missing_wait_failure
from luthier_py.proof.linked import OUTSIDE, Linked

Sides = dict[Hazard, RegSet]
Near = tuple[int, int, RegSet]  # a place, the wait states between, what of the row's needs is met between


def check_distances(isa: InstructionSet, codes: Sequence[Linked]) -> None:
    """Raises CheckFailed."""
    sides = [_taking(isa, op) for op in {inst.op for code in codes for inst in code.insts}]
    produced, consumed = (set[Hazard]().union(*rows) for rows in zip(*sides, strict=True))
    if both := produced & consumed:
        _check_states(isa, codes, [row for row in HAZARDS if row in both])
    check_hazard_patterns(isa, codes)


@cache
def _taking(isa: InstructionSet, op: OpInfo) -> tuple[list[Hazard], list[Hazard]]:
    """Rows that an operation may be the producer of, and those that it may be the consumer of."""
    rows = [row for row in HAZARDS if row.where(isa.target)]
    return [row for row in rows if row.produced.takes_part(op)], [row for row in rows if row.consumed.takes_part(op)]


@lru_cache(maxsize=1 << 16)
def _produces(isa: InstructionSet, inst: Inst) -> Sides:
    """Of which rows an instruction is the producer, and with which registers."""
    return {row: regs for row in _taking(isa, inst.op)[0] if (regs := row.produced.registers(inst))}


@lru_cache(maxsize=1 << 16)
def _consumes(isa: InstructionSet, inst: Inst) -> Sides:
    """The same of consumers."""
    return {row: regs for row in _taking(isa, inst.op)[1] if (regs := row.consumed.registers(inst))}


def _check_states(isa: InstructionSet, codes: Sequence[Linked], rows: Sequence[Hazard]) -> None:
    called = len(codes) > 1 or any(code.calls for code in codes)
    every = {inst for code in codes for inst in code.insts} if called else ()
    anything = _either(_produces(isa, inst) for inst in every)
    new = {code.insts[kind] for code in codes for kind in code.used}
    inserted = _either(_produces(isa, inst) for inst in new) if called else {}
    part = {row for inst in new for row in (*_produces(isa, inst), *_consumes(isa, inst))}
    here = [row for row in rows if row in part]
    taking = {op: [[row for row in side if row in part] for side in _taking(isa, op)]
              for op in {inst.op for code in codes for inst in code.insts}}
    for code in codes if here else ():
        states = _States(isa, code, anything, taking)
        for row in here:
            states.check(row, inserted.get(row, NO_REGS))


def _either(several: Iterable[Sides]) -> Sides:
    found: Sides = {}
    for each in several:
        for row, regs in each.items():
            found[row] = found.get(row, NO_REGS) | regs
    return found


class _States:
    """Rows of `hazards` between the inserted instructions of a clone and others; ``anything`` is what other code may
    have produced; ``taking``: of operations, rows that they may be the producer of, and the consumer."""

    def __init__(self, isa: InstructionSet, code: Linked, anything: Sides,
                 taking: Mapping[OpInfo, Sequence[Sequence[Hazard]]]) -> None:
        self.isa, self.code, self.anything = isa, code, anything
        self.inserted: list[bool] = code.inserted.tolist()
        self.kinds: tuple[dict[Hazard, list[int]], ...] = (defaultdict(list), defaultdict(list))
        for kind, inst in enumerate(code.insts):
            for found, rows in zip(self.kinds, taking[inst.op], strict=True):
                for row in rows:
                    found[row].append(kind)

    def check(self, row: Hazard, inserted: RegSet) -> None:
        """``inserted``: what is inserted anywhere and produces ``row``. Of the application's producers and the inserted
        consumers it follows the fewer."""
        producing, consuming = (self.find_participants(kinds[row]) for kinds in self.kinds)
        others = [at for at in producing if not self.inserted[at]]
        new = [at for at in consuming if self.inserted[at]]
        for at in (OUTSIDE, *(at for at in producing if self.inserted[at])):
            self.forward(at, row, inserted if at == OUTSIDE else self.compute_produced(at).get(row, NO_REGS), consuming,
                         True)
        if len(others) < len(new):
            for at in (OUTSIDE, *others):
                self.forward(at, row, self.compute_produced(at).get(row, NO_REGS), new, False)
        else:
            for at in new:
                self.backward(at, row, producing)

    def find_participants(self, kinds: list[int]) -> list[int]:
        """Where instructions are of these kinds."""
        taking = np.zeros(len(self.code.insts), bool)
        taking[kinds] = True
        found: list[int] = np.flatnonzero(taking[self.code.kind]).tolist()
        return found

    def forward(self, start: int, row: Hazard, regs: RegSet, among: list[int], inserted: bool) -> None:
        """From a producer to those ``among`` the consumers that are too near; ``inserted``: it is."""
        for at, passed, between in self.behind(start, row, among) if regs else ():
            met = _consumes(self.isa, self.code.inst(at)).get(row)
            if met is not None and met.overlaps(regs) and not row.needs - regs - between:
                if inserted or self.inserted[at]:
                    raise self.fail(at, row, passed)

    def backward(self, start: int, row: Hazard, among: list[int]) -> None:
        met = _consumes(self.isa, self.code.inst(start)).get(row, NO_REGS)
        for at, passed, between in self.before(start, row, among) if met else ():
            made = self.compute_produced(at).get(row)
            if made is not None and made.overlaps(met) and not row.needs - made - between:
                raise self.fail(start, row, passed)

    def behind(self, start: int, row: Hazard, among: list[int]) -> Iterator[Near]:
        """Places so near behind ``start`` that ``row`` is not over; straight ahead only those ``among``."""
        if row.clause:
            return self.in_clause(start, row, self.code.after)
        if start == OUTSIDE or within(self.code.parting, range(start, start + row.states)):
            return self.near(start, row, self.code.after)
        return ((at, passed, NO_REGS) for at in within(among, range(start + 1, start + 1 + row.states))
                if (passed := self.states[at] - self.states[start + 1]) < row.states)

    def before(self, start: int, row: Hazard, among: list[int]) -> Iterator[Near]:
        """The same before it."""
        if row.clause:
            return self.in_clause(start, row, self.code.before)
        if within(self.code.meeting, range(start - row.states + 1, start + 1)):
            return self.near(start, row, self.code.before)
        return ((at, passed, NO_REGS) for at in within(among, range(start - row.states, start))
                if (passed := self.states[start] - self.states[at + 1]) < row.states)

    @cached_property
    def states(self) -> list[int]:
        """Wait states before each place."""
        of_kind = np.array([states_of(inst) for inst in self.code.insts], np.int64)
        found: list[int] = np.append(0, np.cumsum(of_kind[self.code.kind])).tolist()
        return found

    def compute_produced(self, at: int) -> Sides:
        return self.anything if at == OUTSIDE else _produces(self.isa, self.code.inst(at))

    def fail(self, at: int, row: Hazard, passed: int) -> CheckFailed:
        return make_missing_wait_failure(self.isa, self.code, at, f"{row.name}: {row.states - passed} wait states")

    def near(self, start: int, row: Hazard, ways: Callable[[int], Iterable[int]]) -> Iterator[Near]:
        """Places along ``ways`` with fewer wait states between than ``row`` wants."""
        nearest: dict[int, int] = {}
        work = [(place, 0) for place in ways(start)]
        while work:
            place, passed = work.pop()
            if passed >= nearest.get(place, row.states):
                continue
            nearest[place] = passed
            yield place, passed, NO_REGS
            if place != OUTSIDE:
                passed += states_of(self.code.inst(place))
                work += [(to, passed) for to in ways(place)] if passed < row.states else []

    def in_clause(self, start: int, row: Hazard, ways: Callable[[int], Iterable[int]]) -> Iterator[Near]:
        """Places with nothing between but what could be a producer, and the needs that are met there."""
        seen: set[tuple[int, RegSet]] = set()
        work = [(place, NO_REGS) for place in ways(start)]
        while work:
            place, between = work.pop()
            if (place, between) in seen:
                continue
            seen.add((place, between))
            yield place, 0, between
            if place != OUTSIDE and row.produced.takes_part(self.code.inst(place).op):
                between |= self.compute_produced(place).get(row, NO_REGS) & row.needs
                work += [(to, between) for to in ways(place)]
