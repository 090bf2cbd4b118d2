"""That inserted code and the application's keep the distance that the hardware wants, on every path of linked bytes.

In: the clones of functions that may call each other, and what of them is inserted. Out: nothing, or CheckFailed. What
the application's instructions owe each other was their compiler's business; a hazard that an inserted instruction is
part of must have met its wait.

Wait states lie between two instructions, so it looks around inserted ones alone, as far as each row reaches, forward
from those that produce a hazard and backward from those that run into one. Where a function is entered or a call
returns, OUTSIDE stands for whatever any of the clones has. What is longer is `chained`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial

from luthier_py.errors import CheckFailed
from luthier_py.isa import NO_REGS, Inst, InstructionSet, RegSet
from luthier_py.isa.hazards import HAZARDS, Hazard, Side, states_of
from luthier_py.proof.chained import check_chains, missing
from luthier_py.proof.linked import OUTSIDE, Linked

Sides = dict[Hazard, RegSet]


def check_distances(isa: InstructionSet, codes: Sequence[Linked]) -> None:
    """Raises CheckFailed."""
    ops = {inst.op for code in codes for inst in code.insts}
    rows = [row for row in HAZARDS if row.where(isa.target)
            and any(map(row.produced.takes_part, ops)) and any(map(row.consumed.takes_part, ops))]
    if rows:
        _check_states(isa, codes, rows)
    check_chains(isa, codes)


def _sides(rows: Sequence[Hazard], side: Callable[[Hazard], Side], inst: Inst) -> Sides:
    """Of which rows an instruction is such a side, and with which registers."""
    return {row: regs for row in rows if side(row).takes_part(inst.op) and (regs := side(row).registers(inst))}


def _check_states(isa: InstructionSet, codes: Sequence[Linked], rows: Sequence[Hazard]) -> None:
    produces = cache(partial(_sides, rows, lambda row: row.produced))
    consumes = cache(partial(_sides, rows, lambda row: row.consumed))
    called = len(codes) > 1 or any(code.calls for code in codes)
    anything = _either(map(produces, {inst for code in codes for inst in code.insts})) if called else {}
    inserted = _either(produces(code.insts[kind]) for code in codes for kind in code.used) if called else {}
    for code in codes:
        states = _States(isa, code, produces, consumes, anything)
        states.forward(OUTSIDE, inserted)
        for at in code.new:
            inst = code.inst(at)
            states.forward(at, produces(inst))
            states.backward(at, consumes(inst))


def _either(several: Iterable[Sides]) -> Sides:
    found: Sides = {}
    for each in several:
        for row, regs in each.items():
            found[row] = found.get(row, NO_REGS) | regs
    return found


class _States:
    """Rows of `hazards` between the inserted instructions of a clone and others; ``anything`` is what other code may
    have produced."""

    def __init__(
        self, isa: InstructionSet, code: Linked, produces: Callable[[Inst], Sides], consumes: Callable[[Inst], Sides],
        anything: Sides,
    ) -> None:
        self.isa, self.code, self.produces, self.consumes, self.anything = isa, code, produces, consumes, anything

    def forward(self, start: int, made: Sides) -> None:
        for row, regs in made.items():
            for at, passed, between in self.within(start, row, self.code.after):
                met = self.consumes(self.code.inst(at)).get(row)
                if met is not None and met.overlaps(regs) and not row.needs - regs - between:
                    raise self.fail(at, row, passed)

    def backward(self, start: int, met: Sides) -> None:
        for row, regs in met.items():
            for at, passed, between in self.within(start, row, self.code.before):
                made = self.produced(at).get(row)
                if made is not None and made.overlaps(regs) and not row.needs - made - between:
                    raise self.fail(start, row, passed)

    def produced(self, at: int) -> Sides:
        return self.anything if at == OUTSIDE else self.produces(self.code.inst(at))

    def fail(self, at: int, row: Hazard, passed: int) -> CheckFailed:
        return missing(self.isa, self.code, at, f"{row.name}: {row.states - passed} wait states")

    def within(
        self, start: int, row: Hazard, ways: Callable[[int], Iterable[int]]
    ) -> Iterator[tuple[int, int, RegSet]]:
        """Places that lie so near along ``ways`` that ``row`` is not over between, the wait states that are, and what
        of the row's needs has been met between."""
        nearest: dict[tuple[int, RegSet], int] = {}
        work = [(place, 0, NO_REGS) for place in ways(start)]
        while work:
            place, passed, between = work.pop()
            if passed >= nearest.get((place, between), row.states):
                continue
            nearest[place, between] = passed
            yield place, passed, between
            if place == OUTSIDE:
                continue
            inst = self.code.inst(place)
            if not row.clause:
                passed += states_of(inst)
            elif not row.produced.takes_part(inst.op):
                continue  # the clause ends
            elif row.needs:
                between |= self.produced(place).get(row, NO_REGS) & row.needs
            if passed < row.states:
                work += [(to, passed, between) for to in ways(place)]
