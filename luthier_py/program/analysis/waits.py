"""Loads that are on their way: which registers they will still write, and what to wait for.

In: the supergraph. Out: a :class:`Pending` before every instruction. Invariant: a register that an outstanding
operation may still write (for exports: read) is pending; it stops being so only when every path has waited for it.

Operations that raise a counter either finish in the order in which they were issued, or in any order: scalar loads,
messages, and FLAT, which counts on two counters (LLVM: SIInsertWaitcnts, counterOutOfOrder). The former are recorded
by age, the number of later ones of their kind: `counter <= n` leaves at most n of them, so those of age n and more
are done, whatever else is outstanding. The latter only a wait for 0 finishes. Where paths meet a register has the
least of its ages.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from luthier_py.base.records import dataclass
from luthier_py.isa import Counter, Inst, InstructionSet, OpFlag, OpInfo, RegSet
from luthier_py.isa.encoding.waitcnt import counters_of, encode_waitcnt, waits_for
from luthier_py.program.analysis.cfg import Graph, solve
from luthier_py.program.analysis.effects import everything, pack

if TYPE_CHECKING:
    from luthier_py.program.ir import Instr

# VS counts stores, which write no register; X_CNT says nothing about results.
COUNTERS = (Counter.VM, Counter.LGKM, Counter.EXP, Counter.SAMPLE, Counter.BVH, Counter.KM, Counter.ASYNC,
            Counter.TENSOR)
KEPT_NODES = 64
OLDEST = 63  # ages from here on are not distinguished; no counter has more than six bits


class Queue(NamedTuple):
    """Packed sets of registers: by age, and those of operations that finish in any order."""

    ages: tuple[int, ...]
    unordered: int

    @property
    def registers(self) -> int:
        found = self.unordered
        for regs in self.ages:
            found |= regs
        return found


EMPTY = Queue((), 0)
Queues = tuple[Queue, ...]  # one for each of COUNTERS
NONE_PENDING: Queues = (EMPTY,) * len(COUNTERS)


@dataclass(frozen=True, slots=True)
class Pending:
    """What is outstanding at one point."""

    queues: Queues

    @property
    def registers(self) -> RegSet:
        """Registers that are not to be read or written before a wait."""
        found = 0
        for queue in self.queues:
            found |= queue.registers
        return RegSet(found)

    def of(self, *counters: Counter) -> RegSet:
        """The same for some counters only."""
        found = 0
        for counter in counters:
            found |= self.queues[COUNTERS.index(counter)].registers if counter in COUNTERS else 0
        return RegSet(found)

    def after(self, isa: InstructionSet, inst: Inst) -> Pending:
        """What is outstanding once ``inst`` has been issued."""
        return Pending(_after(_event(isa, inst), self.queues)) if _counts(inst.op) else self

    def join(self, other: Pending) -> Pending:
        """What may be outstanding where two paths meet."""
        return Pending(_join(self.queues, other.queues))

    def counts_for(self, regs: RegSet) -> dict[Counter, int]:
        """The highest counts whose wait makes ``regs`` ready; empty if they are."""
        wanted, counts = pack(regs), {}
        for counter, queue in zip(COUNTERS, self.queues, strict=True):
            if queue.unordered & wanted:
                counts[counter] = 0
            elif queue.registers & wanted:
                counts[counter] = next(age for age, regs in enumerate(queue.ages) if regs & wanted)
        return counts

    def immediate_for(self, isa: InstructionSet, regs: RegSet) -> int | None:
        """The immediate of the s_waitcnt that makes ``regs`` ready; None if they are."""
        counts = self.counts_for(regs)
        return encode_waitcnt(isa.target, counts) if counts else None


def wait_for(isa: InstructionSet, pending: Pending, regs: RegSet) -> tuple[Inst, ...]:
    """The instructions that make ``regs`` ready: one s_waitcnt, or one per counter of a target that splits them."""
    counts = pending.counts_for(regs) if regs else {}
    return _make_wait_insts(isa, tuple(counts.items())) if counts else ()


@cache
def _make_wait_insts(isa: InstructionSet, counts: tuple[tuple[Counter, int], ...]) -> tuple[Inst, ...]:
    return tuple(isa.waits(dict(counts)))


class Waits:
    """The solution; what is pending inside a node is computed at first use, then cached."""

    def __init__(self, isa: InstructionSet, graph: Graph, flat_as_memory: bool = False) -> None:
        """``flat_as_memory``: FLAT is taken to end in memory, and so in order, as compilers may know that it does."""
        self.graph = graph
        self.events = graph.where(lambda distinct: distinct.match_ops(_counts),
                                  lambda distinct, kind: _event(isa, distinct.inst(kind), flat_as_memory))
        unknown = Queue((), everything(isa))
        boundary: list[Queues | None] = [None] * len(graph.nodes)
        for index in graph.kernels:
            boundary[index] = NONE_PENDING
        for index in graph.arrives:
            boundary[index] = tuple(unknown if counter in counters_of(isa.target) else EMPTY for counter in COUNTERS)
        inside = [tuple([event for _, event in each]) for each in self.events]
        after = cache(_after_all)  # code repeats itself
        states, _ = solve(graph.successors, boundary, _join, lambda index, queues: after(inside[index], queues))
        self.starts = [boundary[i] or NONE_PENDING if state is None else state for i, state in enumerate(states)]
        self.inside = lru_cache(KEPT_NODES)(self._inside)

    def before(self, instr: Instr) -> Pending:
        """What is outstanding when an instruction of the graph is issued."""
        node, place = self.graph.places[instr]
        return Pending(self.inside(node)[place] if place else self.starts[node])

    def _inside(self, index: int) -> tuple[Queues, ...]:
        """Before each instruction of a node, and after its last one."""
        found, events = [self.starts[index]], dict(self.events[index])
        for place in range(len(self.graph.nodes[index])):
            found.append(_after(events[place], found[-1]) if place in events else found[-1])
        return tuple(found)

    def after_call(self, index: int) -> Queues:
        """Where control continues once the call at the end of a node has returned."""
        found = NONE_PENDING
        for following in self.graph.after[index]:
            found = _join(found, self.starts[following])
        return found


class Event(NamedTuple):
    """What an instruction does to queues, which go by their place in COUNTERS."""

    waits: tuple[tuple[int, int], ...]         # place, count
    issues: tuple[tuple[int, int, bool], ...]  # place, registers, whether operations finish in order


def _counts(op: OpInfo) -> bool:
    return bool(op.counters) or OpFlag.WAIT in op.flags


def _event(isa: InstructionSet, inst: Inst, flat_as_memory: bool = False) -> Event:
    op = inst.op
    flat = flat_as_memory and Counter.VM in op.counters and Counter.LGKM in op.counters
    waits = tuple((COUNTERS.index(counter), count) for counter, count in waits_for(isa.target, inst).items()
                  if counter in COUNTERS)
    issues = []
    for place, counter in enumerate(COUNTERS):
        if counter in op.counters:
            written = pack(inst.writes - op.implicit_writes)
            regs = written | pack(inst.reads) if counter is Counter.EXP else written
            regs = 0 if flat and counter is Counter.LGKM else regs
            issues.append((place, regs, flat or _in_order(inst, counter)))
    return Event(waits, tuple(issues))


def _after_all(events: tuple[Event, ...], queues: Queues) -> Queues:
    for event in events:
        queues = _after(event, queues)
    return queues


def _after(event: Event, queues: Queues) -> Queues:
    """What is pending after an instruction."""
    found = list(queues)
    for place, count in event.waits:
        found[place] = _apply_wait(found[place], count)
    for place, regs, in_order in event.issues:
        found[place] = _apply_issue(found[place], regs, in_order)
    return tuple(found)


def _in_order(inst: Inst, counter: Counter) -> bool:
    """Whether an operation finishes after all earlier ones that raise this counter and finish in order."""
    op = inst.op
    if counter is Counter.VM:
        return Counter.LGKM not in op.counters  # FLAT may end in LDS or in memory
    if counter in (Counter.SAMPLE, Counter.BVH):
        return True
    return counter is Counter.LGKM and OpFlag.LDS in op.flags


def _apply_wait(queue: Queue, count: int) -> Queue:
    return Queue(queue.ages[:count], queue.unordered) if count else EMPTY


def _apply_issue(queue: Queue, regs: int, in_order: bool) -> Queue:
    if not in_order:
        return Queue(queue.ages, queue.unordered | regs)
    if not regs and not queue.ages:
        return queue
    ages = [regs, *((age | regs) ^ regs for age in queue.ages)]
    if len(ages) > OLDEST + 1:
        ages[OLDEST] |= ages.pop()
    while ages and not ages[-1]:
        ages.pop()
    return Queue(tuple(ages), queue.unordered)


def _join(a: Queues, b: Queues) -> Queues:
    if a == b:
        return a
    return tuple(
        Queue(_youngest([x.ages, y.ages]), x.unordered | y.unordered) for x, y in zip(a, b, strict=True)
    )


def _youngest(queues: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """Registers of several queues, each at its least age; ages without registers at the end are left out."""
    listed = list(queues)
    found: list[int] = []
    seen = 0
    for age in range(max(map(len, listed))):
        regs = 0
        for ages in listed:
            regs |= ages[age] if age < len(ages) else 0
        if age > OLDEST:
            found[OLDEST] |= regs & ~seen
        else:
            found.append(regs & ~seen)
        seen |= regs
    while found and not found[-1]:
        found.pop()
    return tuple(found)
