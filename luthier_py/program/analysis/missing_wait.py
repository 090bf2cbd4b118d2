"""Waits that are missing: registers used while a load is still to write them, LDS left unfinished at a barrier.

In: a program. Out: a :class:`MissingWait` for each instruction. Invariant: it is reported where some path leads
there without a wait; loads that come in order may follow each other into one register. Flat accesses are taken for
such of memory. Which lanes are off is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.isa import NO_REGS, Counter, InstructionSet, OpFlag, RegSet
from luthier_py.isa.encoding.waitcnt import waits_for
from luthier_py.isa.properties.barriers import BarrierPart, barrier_part
from luthier_py.program.analysis.cfg import Graph, solve, supergraph
from luthier_py.program.analysis.waits import COUNTERS, Pending, Waits

if TYPE_CHECKING:
    from luthier_py.program.ir import Instr, Program

DONE = 64  # an age that no access to LDS has which is on its way


@dataclass(frozen=True, slots=True)
class MissingWait:
    """``reads`` and ``writes``: registers of ``instr`` that loads are still to write; ``lds``: it comes to a barrier
    behind accesses to LDS that may not be done."""

    instr: Instr
    reads: RegSet = NO_REGS
    writes: RegSet = NO_REGS
    lds: bool = False


def missing_waits(program: Program) -> tuple[MissingWait, ...]:
    """Missing waits by function and address; those at barriers last."""
    graph = supergraph(program)
    waits = Waits(program.isa, graph, flat_as_memory=True)
    found = [each for function in program.functions if not function.incomplete
             for instr in function.instrs if (each := _of_registers(waits.before(instr), instr)) is not None]
    return (*found, *_at_barriers(program.isa, graph))


def _of_registers(pending: Pending, instr: Instr) -> MissingWait | None:
    registers, inst = pending.registers, instr.inst
    if not registers or OpFlag.WAIT in inst.op.flags or not registers.overlaps(inst.named):
        return None
    registers = RegSet(registers.bits & inst.named.bits)  # which ones an index chooses is not known
    writes = RegSet(inst.writes.bits & registers.bits)
    if writes:
        writes = RegSet(writes.bits & ~_in_turn(pending, inst.op.counters).bits)
    reads = RegSet(inst.reads.bits & registers.bits)
    return MissingWait(instr, reads, writes) if reads or writes else None


def _in_turn(pending: Pending, counters: Counter) -> RegSet:
    """Registers that nothing but loads will write which come before one that raises ``counters``."""
    found, others = 0, 0
    for counter, queue in zip(COUNTERS, pending.queues, strict=True):
        ordered = queue.registers & ~queue.unordered
        found |= ordered if counter in counters else 0
        others |= queue.unordered if counter in counters else queue.registers
    return RegSet(found & ~others)


def _at_barriers(isa: InstructionSet, graph: Graph) -> Iterator[MissingWait]:
    boundary = [DONE if index in graph.kernels | graph.arrives else None for index in range(len(graph.nodes))]

    def through(index: int, age: int) -> int:
        for instr in graph.nodes[index].instrs:
            age = _age_after(isa, instr, age)
        return age

    starts, _ = solve(graph.successors, boundary, min, through)
    for node, start in zip(graph.nodes, starts, strict=True):
        age = DONE if start is None else start
        for instr in node.instrs:
            if age < DONE and BarrierPart.COMES in barrier_part(instr.inst):
                yield MissingWait(instr, lds=True)
            age = _age_after(isa, instr, age)


def _age_after(isa: InstructionSet, instr: Instr, age: int) -> int:
    """How many that raise the counter have come after the last access to LDS."""
    op = instr.op
    if OpFlag.WAIT in op.flags:
        return DONE if age >= waits_for(isa.target, instr.inst).get(Counter.LGKM, DONE) else age
    if Counter.LGKM not in op.counters:
        return age
    accesses = OpFlag.LDS in op.flags and instr.memory is not None  # permutations do not
    return 0 if accesses else min(age + 1, DONE)
