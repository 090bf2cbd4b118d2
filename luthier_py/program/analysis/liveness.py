"""Which registers may still be read: liveness by lanes.

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
of a loop that others still run, is live while it is inactive: this is the bypass edge of a range with one EXEC. It ends
where its mask comes back into EXEC, and lanes that were outside before the `if` stay outside.

At s_endpgm nothing is live; where control may go to code that is not known, everything is that the kernel has. EXEC
always is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from luthier_py.isa.model.registers import SCALARS
from luthier_py.program.analysis.cfg import solve
from luthier_py.program.analysis.changes import EXEC_BITS
from luthier_py.program.analysis.effects import Effect, Summary, pack, summarise_effects
from luthier_py.program.analysis.lanes import Crossing, Lanes, only

if TYPE_CHECKING:
    from luthier_py.isa import RegSet
    from luthier_py.program.analysis.program_effects import ProgramEffects

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
    """A segment as liveness passes it: which of the states after it follow each state (None: itself), and whether
    the state is active."""

    following: list[tuple[int, ...]] | None
    active: list[bool]
    summary: Summary
    start: int
    end: int


class Liveness:
    """The solution; sets inside a node are computed at first use, and cached for a while."""

    def __init__(self, lanes: Lanes, effects: ProgramEffects, reads: Mapping[tuple[int, int], RegSet]) -> None:
        """``reads``: what others read before instructions, by node and place, in the lanes that are active there."""
        self.graph, self.lanes, self.effects = effects.graph, lanes, effects
        self.reads: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by node and place
        for (index, place), regs in reads.items():
            self.reads[index][place] = pack(regs)
        self._turns, self._entered = cache(_turns), cache(_map_end_states)
        self.ways = [self._ways(index) for index in range(len(self.graph.nodes))]
        boundary: list[Flowing | None] = []
        for node in self.graph.nodes:
            live = effects.owned[node.function] if node.index in self.graph.leaves else EXEC_BITS
            boundary.append(Flowing(live & SCALARS, [live & ~SCALARS] * len(lanes.crossings[node.index].ends)))
        self.ends, self.heads = solve(
            self.graph.predecessors, boundary, _join, self._flow, self._along, backward=True)
        self.inside = lru_cache(KEPT_NODES)(self._inside)

    def _ways(self, index: int) -> list[Passage]:
        """Through the segments of a node, the last one first."""
        turns, bounds = self._turns(self.lanes.crossings[index]), self.lanes.bounds(index)
        if index in self.reads:
            effects = self._effects_inside(index)
            summaries = [summarise_effects(effects[start:end]) for start, end in bounds]
        else:
            summaries = self.effects.summaries(index, bounds)
        return [Passage(*turn, summary, *bound)
                for turn, summary, bound in zip(turns, reversed(summaries), reversed(bounds), strict=True)]

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
        crossings = self.lanes.crossings
        entered = self._entered(crossings[predecessor], crossings[index], self.lanes.relevant[index])
        if entered is None:
            return head
        vectors = head.vectors
        whole = _union(vectors) if -1 in entered else 0
        return Flowing(head.scalars, [whole if state < 0 else vectors[state] for state in entered])

    def _inside(self, index: int) -> tuple[Live, ...]:
        """Before each instruction of a node, and after its last one."""
        end = self.ends[index]
        assert end is not None  # every node has a boundary
        found: list[Live] = []
        effects = self._effects_inside(index)
        for way in self.ways[index]:
            end = _before_change(way, end)
            live = _merge_lane_states(way, end)
            if not found:
                found.append(live)
            for each in reversed(effects[way.start : way.end]):
                live = Live(live.active & ~each.kills | each.reads | EXEC_BITS, live.inactive | each.wave_reads)
                found.append(live)
            end = _through(way, end)
        return tuple(reversed(found))

    def at_head(self, index: int) -> Live:
        """The first of `inside`, alone."""
        head, first = self.heads[index], self.ways[index][-1]
        assert head is not None  # every node has a boundary
        live, (reads, _, wave_reads) = _merge_lane_states(first, head), first.summary
        return Live(live.active | reads | EXEC_BITS, live.inactive | wave_reads)

    def at_heads(self, indices: Iterable[int]) -> Live:
        """What is live at the heads of several nodes, in whatever way a lane comes there."""
        found = [self.at_head(index) for index in indices]
        return Live(_union(live.active for live in found) | EXEC_BITS, _union(live.inactive for live in found))


def _turns(crossing: Crossing) -> list[tuple[list[tuple[int, ...]] | None, list[bool]]]:
    """`following` and `active` of the segments, the last one first."""
    found, after = [], crossing.ends
    for moves in reversed(crossing.segments):
        number = {state: place for place, state in enumerate(after)}
        following = [tuple([number[state] for state in each]) for each in moves.values()]
        same = following == [(place,) for place in range(len(after))]
        found.append((None if same else following, [state.active for state in moves]))
        after = tuple(moves)
    return found


def _map_end_states(before: Crossing, crossing: Crossing, relevant: int) -> list[int] | None:
    """For each state at the end of a node the one at the head of the next, -1 for any; None if all are the same."""
    number = {state: place for place, state in enumerate(crossing.segments[0])}
    found = [number.get(only(state, relevant), -1) for state in before.ends]
    return None if found == list(range(len(number))) else found


def _before_change(way: Passage, after: Flowing) -> Flowing:
    """At the end of a segment, from what is live once its last instruction has changed the states."""
    following, vectors = way.following, after.vectors
    if following is None:
        return after
    return Flowing(after.scalars, [
        vectors[states[0]] if len(states) == 1 else _union([vectors[state] for state in states])
        for states in following
    ])


def _through(way: Passage, end: Flowing) -> Flowing:
    """From the end of a segment to its start."""
    reads, kills, wave_reads = way.summary
    vector_reads = (reads | SCALARS) ^ SCALARS
    vectors = [
        (live | kills) ^ kills | vector_reads if active else live | wave_reads
        for live, active in zip(end.vectors, way.active, strict=True)
    ]
    return Flowing(((end.scalars | kills) ^ kills | reads) & SCALARS, vectors)


def _merge_lane_states(way: Passage, end: Flowing) -> Live:
    active, inactive = end.scalars, 0
    for live, is_active in zip(end.vectors, way.active, strict=True):
        if is_active:
            active |= live
        else:
            inactive |= live
    return Live(active, inactive)


def _join(a: Flowing, b: Flowing) -> Flowing:
    return Flowing(a.scalars | b.scalars, [x | y for x, y in zip(a.vectors, b.vectors, strict=True)])


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)
