"""Which registers loads that are on their way will still write.

In: the graph. Out: what is outstanding before each node, and `step_pending` for the way through one. Invariant: a
register that an outstanding operation may still write (for exports: read) is among its registers until every way
there has waited for it.

For each counter there are the registers of operations that finish in the order of their issue, youngest first, and
those of operations that finish in any order, which only a wait for 0 finishes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from luthier_py.isa import Counter, Inst, InstructionSet, OpFlag
from luthier_py.isa.encoding.waitcnt import counters_of, waits_for
from luthier_py.proof.code import within
from luthier_py.proof.effects import everything
from luthier_py.proof.graph import Graph, solve_dataflow

_COUNTERS = tuple(counter for counter in Counter if counter not in (Counter.VS, Counter.X))
_DEEPEST = 64  # no counter has more than six bits
Queue: TypeAlias = "tuple[tuple[int, ...], int]"  # in order, youngest first; in any order
Pending: TypeAlias = "tuple[Queue, ...]"          # by counter
_NONE: Queue = ((), 0)
NOTHING: Pending = (_NONE,) * len(_COUNTERS)


def moves(inst: Inst) -> bool:
    """Whether an instruction issues something that others wait for, or waits."""
    return bool(inst.op.counters) or OpFlag.WAIT in inst.op.flags


class _Step(NamedTuple):
    waits: tuple[tuple[int, int], ...]          # counter, count
    issues: tuple[tuple[int, int, bool], ...]   # counter, registers, in order


@lru_cache(maxsize=1 << 14)
def _step(isa: InstructionSet, inst: Inst) -> _Step | None:
    op = inst.op
    if not moves(inst):
        return None
    waits = tuple((_COUNTERS.index(counter), count) for counter, count in waits_for(isa.target, inst).items()
                  if counter in _COUNTERS)
    issues = []
    for number, counter in enumerate(_COUNTERS):
        if counter in op.counters:
            regs = inst.writes.bits & ~op.implicit_writes.bits
            regs |= inst.reads.bits if counter is Counter.EXP else 0
            issues.append((number, regs, _in_order(inst, counter)))
    return _Step(waits, tuple(issues)) if waits or issues else None


def _in_order(inst: Inst, counter: Counter) -> bool:
    """LLVM, SIInsertWaitcnts: counterOutOfOrder."""
    if counter is Counter.VM:
        return Counter.LGKM not in inst.op.counters  # FLAT may end in LDS or in memory
    return counter in (Counter.SAMPLE, Counter.BVH) or counter is Counter.LGKM and OpFlag.LDS in inst.op.flags


def step_pending(isa: InstructionSet, inst: Inst, pending: Pending) -> Pending:
    """Behind an instruction."""
    step = _step(isa, inst)
    if step is None:
        return pending
    found = list(pending)
    for number, count in step.waits:
        young, mixed = found[number]
        found[number] = (young[:count], mixed) if count else _NONE
    for number, regs, in_order in step.issues:
        young, mixed = found[number]
        found[number] = _trim_queue((regs, *young), mixed) if in_order else (young, mixed | regs)
    return tuple(found)


def _trim_queue(young: tuple[int, ...], mixed: int) -> Queue:
    if len(young) > _DEEPEST:
        young = (*young[:_DEEPEST - 1], young[_DEEPEST - 1] | young[_DEEPEST])
    while young and not young[-1]:
        young = young[:-1]
    return young, mixed


def collect_pending_registers(pending: Pending) -> int:
    """All registers that are outstanding."""
    found = 0
    for young, mixed in pending:
        found |= mixed
        for regs in young:
            found |= regs
    return found


def retire_registers(pending: Pending, counter: Counter, registers: int) -> Pending:
    """Without ``registers`` where a counter is waited for."""
    number = _COUNTERS.index(counter)
    young, mixed = pending[number]
    queue = tuple(each & ~registers for each in young), mixed & ~registers
    return (*pending[:number], queue, *pending[number + 1:])


def join_pending(a: Pending, b: Pending) -> Pending:
    """What is outstanding where two ways meet: all that is on either. ``a`` itself if they are equal."""
    return a if a == b else tuple(map(_both, a, b))


def _both(a: Queue, b: Queue) -> Queue:
    """Each register at the least of its ages."""
    if a == b:
        return a
    found, seen = [], 0
    for age in range(max(len(a[0]), len(b[0]))):
        regs = (a[0][age] if age < len(a[0]) else 0) | (b[0][age] if age < len(b[0]) else 0)
        found.append(regs & ~seen)
        seen |= regs
    return _trim_queue(tuple(found), a[1] | b[1])


def solve_pending(graph: Graph) -> list[Pending]:
    """Before each node."""
    counting = [body.code.those(moves) for body in graph.bodies]
    inside = [within(counting[node.function], node.span) for node in graph.nodes]

    def flow(k: int, pending: Pending) -> Pending:
        code = graph.bodies[graph.nodes[k].function].code
        for at in inside[k]:
            pending = step_pending(code.isa, code.inst(at), pending)
        return pending

    boundary: list[Pending | None] = [None] * len(graph.nodes)
    for k in graph.kernels:
        boundary[k] = NOTHING
    for k in graph.arrives:
        target = graph.bodies[graph.nodes[k].function].code.isa.target
        there = counters_of(target)
        boundary[k] = tuple(((), everything(target)) if counter in there else _NONE for counter in _COUNTERS)
    found = solve_dataflow(range(len(graph.nodes)), graph.successors, boundary, join_pending, flow)
    return [NOTHING if pending is None else pending for pending in found]
