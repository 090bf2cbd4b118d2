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

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache, reduce
from operator import or_
from typing import NamedTuple

from luthier_py.analysis.cfg import solve
from luthier_py.analysis.changes import EXEC_BITS
from luthier_py.analysis.effects import SCALARS, Effect, Summary, pack, summarised
from luthier_py.analysis.lanes import Lanes
from luthier_py.analysis.program_effects import ProgramEffects
from luthier_py.ir import Instr
from luthier_py.isa import RegSet

KEPT_NODES = 64


class Live(NamedTuple):
    """Packed sets, as in `effects`; ``inactive`` has vector registers only."""

    active: int
    inactive: int


class Flowing(NamedTuple):
    """What is live at one end of a node: scalar registers, and vector registers for each state of a lane there."""

    scalars: int
    vectors: list[int]


class Passage(NamedTuple):
    """A segment as liveness goes through it: which of the states after it follow each state, and if that is active."""

    following: list[tuple[int, ...]]
    active: list[bool]
    summary: Summary
    start: int
    end: int


class Liveness:
    """The solution; sets inside a node are worked out when first asked for, and kept for a while."""

    def __init__(self, lanes: Lanes, effects: ProgramEffects, reads: Mapping[Instr, RegSet]) -> None:
        """``reads``: what others read before instructions, in the lanes that are active there."""
        self.graph, self.lanes, self.effects = effects.graph, lanes, effects
        self.reads: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by node and place
        for instr, regs in reads.items():
            index, place = self.graph.places[instr]
            self.reads[index][place] = pack(regs)
        self.ways = [self._ways(index) for index in range(len(self.graph.nodes))]
        self.heads = cache(self._heads)
        boundary: list[Flowing | None] = []
        for node in self.graph.nodes:
            live = effects.owned[node.function] if node.index in self.graph.leaves else EXEC_BITS
            boundary.append(Flowing(live & SCALARS, [live & ~SCALARS] * len(lanes.ends[node.index])))
        order = range(len(self.graph.nodes) - 1, -1, -1)
        self.ends = solve(order, self.graph.predecessors, boundary, _join, self._flow, self._along)
        self.inside = lru_cache(KEPT_NODES)(self._inside)

    def _ways(self, index: int) -> list[Passage]:
        """The segments of a node, the last one first."""
        effects, segments = self._effects_inside(index), self.lanes.segments[index]
        found = []
        after = self.lanes.ends[index]
        for segment in reversed(segments):
            number = {state: place for place, state in enumerate(after)}
            found.append(Passage(
                [tuple([number[state] for state in following]) for following in segment.next.values()],
                [state.active for state in segment.next], summarised(effects[segment.start : segment.end]),
                segment.start, segment.end,
            ))
            after = tuple(segment.next)
        return found

    def _effects_inside(self, index: int) -> Sequence[Effect]:
        found = self.effects.inside(index)
        for place, regs in self.reads.get(index, {}).items():
            found[place] = found[place]._replace(reads=found[place].reads | regs)
        return found

    def _flow(self, index: int, end: Flowing) -> Flowing:
        """From the end of a node to its head."""
        for way in self.ways[index]:
            end = _through(way, _before_change(way, end))
        return end

    def _along(self, index: int, predecessor: int, head: Flowing) -> Flowing:
        """What is live at the end of a predecessor of a node, from what is at the node's head."""
        vectors = head.vectors
        states = self.heads(index, predecessor)
        whole = _union(vectors) if -1 in states else 0
        return Flowing(head.scalars, [whole if state < 0 else vectors[state] for state in states])

    def _heads(self, index: int, predecessor: int) -> tuple[int, ...]:
        """For each state at the end of the predecessor the one at the head of the node, -1 for any."""
        number = {state: place for place, state in enumerate(self.lanes.segments[index][0].next)}
        return tuple(number.get(self.lanes.at_head(index, state), -1) for state in self.lanes.ends[predecessor])

    def _inside(self, index: int) -> tuple[Live, ...]:
        """Before each instruction of a node, and after its last one."""
        end = self.ends[index]
        assert end is not None  # every node has a boundary
        found: list[Live] = []
        effects = self._effects_inside(index)
        for way in self.ways[index]:
            end = _before_change(way, end)
            live = _joined(way, end)
            if not found:
                found.append(live)
            for each in reversed(effects[way.start : way.end]):
                live = Live(live.active & ~each.kills | each.reads | EXEC_BITS, live.inactive | each.wave_reads)
                found.append(live)
            end = _through(way, end)
        return tuple(reversed(found))

    def at_head(self, index: int) -> Live:
        """The first of `inside`, alone."""
        *others, first = self.ways[index]
        end = self.ends[index]
        assert end is not None
        for way in others:
            end = _through(way, _before_change(way, end))
        live, (reads, kills, wave_reads) = _joined(first, _before_change(first, end)), first.summary
        return Live((live.active | kills) ^ kills | reads | EXEC_BITS, live.inactive | wave_reads)

    def after_call(self, index: int) -> Live:
        """Where control goes on once the call at the end of a node has returned."""
        found = [self.at_head(following) for following in self.graph.after[index]]
        return Live(_union(live.active for live in found) | EXEC_BITS, _union(live.inactive for live in found))


def _before_change(way: Passage, after: Flowing) -> Flowing:
    """At the end of a segment, from what is live once its last instruction has changed the states."""
    vectors = after.vectors
    return Flowing(after.scalars, [
        vectors[following[0]] if len(following) == 1 else _union([vectors[state] for state in following])
        for following in way.following
    ])


def _through(way: Passage, end: Flowing) -> Flowing:
    """From the end of a segment to its start."""
    reads, kills, wave_reads = way.summary
    vector_reads = (reads | SCALARS) ^ SCALARS
    vectors = [
        (live | kills) ^ kills | vector_reads if active else live | wave_reads
        for live, active in zip(end.vectors, way.active, strict=True)
    ]
    return Flowing((end.scalars | kills) & SCALARS ^ kills & SCALARS | reads & SCALARS, vectors)


def _joined(way: Passage, end: Flowing) -> Live:
    lanes = list(zip(end.vectors, way.active, strict=True))
    return Live(end.scalars | _union(live for live, active in lanes if active),
                _union(live for live, active in lanes if not active))


def _join(a: Flowing, b: Flowing) -> Flowing:
    return Flowing(a.scalars | b.scalars, [x | y for x, y in zip(a.vectors, b.vectors, strict=True)])


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)
