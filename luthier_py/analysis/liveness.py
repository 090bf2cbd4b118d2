"""Which registers may still be read: liveness that knows lanes.

In: the supergraph, and the states of lanes on it. Out: :class:`Liveness`. For each point there are two sets:

    active    registers that the wave may read (scalar), or whose value in a lane that is active *here* may be read
    inactive  vector registers whose value in a lane that is inactive *here* may be read

Invariant: take any run, any point of it, any lane and any vector register. If what the register holds in that lane
is used later, by whatever lane, the register is in the set for what the lane is at the point. So a hook that runs
under the EXEC of the place, or part of it, may destroy whatever is not in `active`; one that widens EXEC, whatever is
in neither set. For a scalar register: if it is read before it is written whole, it is in `active`.

Why this holds: seen from one lane a program is an automaton whose states are (place, masks that the lane is in); see
`lanes`. While EXEC stays, an active lane reads and writes, an inactive one does neither, except for instructions
that ignore EXEC. The sets are the least solution of ordinary liveness on this automaton, joined at each place over its
states. A vector write kills in active states only, so what a lane brings into an `if` that it skips, or out
of a loop that others still run, is live while it is inactive: this is the bypass edge of a stretch. It ends
where its mask comes back into EXEC, and lanes that were outside before the `if` stay outside.

At s_endpgm nothing is live; where control may go to code that is not known, everything is that the kernel has. EXEC
always is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import NamedTuple

from luthier_py.analysis.cfg import Graph, Node, solve
from luthier_py.analysis.effects import SCALARS, Effect, effect, everything, pack
from luthier_py.analysis.execution import EXEC_BITS, ExecState, step
from luthier_py.analysis.lanes import Lanes, LaneState, Segment
from luthier_py.ir import Function, Instr
from luthier_py.isa import InstructionSet, RegSet


class Live(NamedTuple):
    """Packed sets, as in `effects`; ``inactive`` has vector registers only."""

    active: int
    inactive: int


class Flowing(NamedTuple):
    """What is live at one end of a node: scalar registers, and vector registers for each state of a lane."""

    scalars: int
    vectors: Mapping[LaneState, int]


class Summary(NamedTuple):
    """Instructions in a row: what they read before they write it, what they do not write, what inactive lanes read."""

    reads: int
    keeps: int
    wave_reads: int


class Liveness:
    """The solution; sets inside a node are worked out when first asked for, then kept."""

    def __init__(
        self, isa: InstructionSet, graph: Graph, states: Sequence[ExecState], reads: Mapping[Instr, RegSet],
        owned: Mapping[Function, int],
    ) -> None:
        """``reads``: what others read before instructions, in the lanes that are active there. ``owned``: registers."""
        self.graph = graph
        self.effects = [
            _effects(isa, graph.nodes[index], state, reads, owned) for index, state in enumerate(states)
        ]
        self.lanes = Lanes(isa, graph)
        self.summaries = [
            [_summary(each[segment.start : segment.end]) for segment in segments]
            for each, segments in zip(self.effects, self.lanes.segments, strict=True)
        ]
        boundary: list[Flowing | None] = []
        for node in graph.nodes:
            live = everything(isa) & owned[node.function] if node.index in graph.leaves else EXEC_BITS
            ends = self.lanes.segments[node.index][-1].next
            boundary.append(Flowing(live & SCALARS, dict.fromkeys(ends, live & ~SCALARS)))
        order = range(len(graph.nodes) - 1, -1, -1)
        self.ends = solve(order, graph.predecessors, boundary, _join, self._flow, self._along)
        self.inside = cache(self._inside)

    def _flow(self, index: int, end: Flowing) -> Flowing:
        """From the end of a node to its head."""
        for segment, summary in self._backwards(index):
            end = _through(summary, _before_change(segment, end))
        return end

    def _backwards(self, index: int) -> Iterator[tuple[Segment, Summary]]:
        return zip(reversed(self.lanes.segments[index]), reversed(self.summaries[index]), strict=True)

    def _along(self, index: int, predecessor: int, head: Flowing) -> Flowing:
        """What is live at the end of a predecessor of a node, from what is at the node's head."""
        whole = _union(head.vectors.values())
        ends = self.lanes.segments[predecessor][-1].next
        return Flowing(head.scalars, {s: head.vectors.get(self.lanes.at_head(index, s), whole) for s in ends})

    def _inside(self, index: int) -> tuple[Live, ...]:
        """Before each instruction of a node, and after its last one."""
        end = self.ends[index]
        assert end is not None  # every node has a boundary
        found: list[Live] = []
        for segment, summary in self._backwards(index):
            end = _before_change(segment, end)
            live = _joined(end)
            if not found:
                found.append(live)
            for each in reversed(self.effects[index][segment.start : segment.end]):
                live = Live(live.active & ~each.kills | each.reads | EXEC_BITS, live.inactive | each.wave_reads)
                found.append(live)
            end = _through(summary, end)
        return tuple(reversed(found))

    def after_call(self, index: int) -> Live:
        """Where control goes on once the call at the end of a node has returned."""
        found = [self.inside(following)[0] for following in self.graph.after[index]]
        return Live(_union(live.active for live in found) | EXEC_BITS, _union(live.inactive for live in found))


def _before_change(segment: Segment, after: Flowing) -> Flowing:
    """At the end of a segment, from what is live once its last instruction has changed the states."""
    vectors = {state: _union(after.vectors[s] for s in following) for state, following in segment.next.items()}
    return Flowing(after.scalars, vectors)


def _through(summary: Summary, end: Flowing) -> Flowing:
    """From the end of a segment to its start."""
    reads, vector_reads = summary.reads & SCALARS, summary.reads & ~SCALARS
    vectors = {
        state: live & summary.keeps | vector_reads if state.active else live | summary.wave_reads
        for state, live in end.vectors.items()
    }
    return Flowing(end.scalars & summary.keeps | reads | EXEC_BITS, vectors)


def _summary(effects: Sequence[Effect]) -> Summary:
    reads, keeps, wave_reads = 0, -1, 0
    for each in reversed(effects):
        reads = reads & ~each.kills | each.reads
        keeps &= ~each.kills
        wave_reads |= each.wave_reads
    return Summary(reads, keeps, wave_reads)


def _joined(end: Flowing) -> Live:
    active = _union(live for state, live in end.vectors.items() if state.active)
    return Live(end.scalars | active, _union(live for state, live in end.vectors.items() if not state.active))


def _join(a: Flowing, b: Flowing) -> Flowing:
    return Flowing(a.scalars | b.scalars, {state: live | b.vectors[state] for state, live in a.vectors.items()})


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)


def _effects(
    isa: InstructionSet, node: Node, state: ExecState, reads: Mapping[Instr, RegSet], owned: Mapping[Function, int]
) -> tuple[Effect, ...]:
    found = []
    for instr in node.instrs:
        each = effect(isa, instr.inst, state, owned[node.function])
        if instr in reads:
            each = each._replace(reads=each.reads | pack(reads[instr]))
        found.append(each)
        state = step(isa, instr.inst, state)
    return tuple(found)
