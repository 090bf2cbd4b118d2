"""When instructions of a wave issue in the cycle model: in order, each as soon as what it reads and writes is ready.

In: the instructions of a block, one by one, with what they cost. Out: offsets, in cycles since the block began.
Invariant: what addresses and waits decide is not in it; the caller moves ``at`` on for that, or begins again.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.timing.costs import InstructionCost
from luthier_py.isa.timing.cycles import Work


@dataclass(frozen=True, slots=True)
class PendingResult:
    """Results that are not there yet: registers, as bits, and the offset at which they are."""

    registers: int
    ready: int
    accumulator: int = 0  # registers whose readers that only accumulate on them go on at ``chained``
    chained: int = 0


class IssueOrder:
    """Mutable. ``at``: the offset from which on the next instruction can issue."""

    def __init__(self) -> None:
        self.at = 0
        self._pending: list[PendingResult] = []

    def issue(self, inst: Inst, cost: InstructionCost) -> int:
        """The offset at which ``inst`` does."""
        start = self._begins(inst, cost.work)
        self.at = start + cost.held
        self._pending = [each for each in self._pending if each.ready > self.at]
        if start + cost.ready > self.at and inst.writes:
            target = inst.find("vdst") if cost.work is Work.MATRIX else None
            accumulator = target.reg.bits if target is not None and target.reg is not None else 0
            self._pending.append(
                PendingResult(inst.writes.bits, start + cost.ready, accumulator, start + cost.chained))
        return start

    @property
    def settled(self) -> int:
        """When all results are there."""
        return max([self.at, *(each.ready for each in self._pending)])

    def begin_here(self) -> None:
        """Offsets are those from ``at`` on."""
        passed, self.at = self.at, 0
        self._pending = [PendingResult(each.registers, each.ready - passed, each.accumulator, each.chained - passed)
                         for each in self._pending]

    def _begins(self, inst: Inst, work: Work) -> int:
        touched, start = inst.reads.bits | inst.writes.bits, self.at
        source = inst.find("src2") if work is Work.MATRIX else None
        accumulated = source.reg.bits if source is not None and source.reg is not None else 0
        for each in self._pending:
            if accumulated and each.accumulator == accumulated:
                others = sum(operand.reg.bits for operand in map(inst.find, ("src0", "src1"))
                             if operand is not None and operand.reg is not None)
                start = max(start, each.ready if others & each.registers else each.chained)
            elif touched & each.registers:
                start = max(start, each.ready)
        return start
