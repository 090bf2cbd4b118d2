"""What the application may still read, lane by lane, from the original's bytes alone.

In: the graph, lanes and modes, and what claimed calls read. Out: Live at chosen points: ``active`` has the registers
that the wave may read, or whose value in a lane that is active there may be read; ``inactive`` the vector registers
whose value in a lane that is not active there may be read.

Invariant: take any run, any point, any lane and any register. If what the register holds there (in that lane) is used
later by anybody, it is in the set for what the lane is at the point. Seen from one lane the application is an automaton
over (place, masks that the lane is in), and this is ordinary liveness on it: a vector write kills in states where the
lane is active, and there alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from luthier_py.proof.code import SCALARS, within
from luthier_py.proof.effects import Effect, always_live, depends, effect, everything
from luthier_py.proof.graph import Graph, Node, solved
from luthier_py.proof.lanes import ON, Lanes, Segment, State
from luthier_py.proof.modes import Modes, sets_modes, stepped


class Live(NamedTuple):
    active: int
    inactive: int


class _Flow(NamedTuple):
    """At one end of a node: scalars, and vector registers for each state of a lane."""

    scalars: int
    vectors: dict[State, int]


Reads = Mapping[int, int]  # by number of the instruction before which something else reads registers


class Liveness:
    """The solution. ``reads`` and ``owned`` (what an index can reach) are by function."""

    def __init__(
        self, graph: Graph, modes: Sequence[Modes], reads: Sequence[Reads], owned: Sequence[int]
    ) -> None:
        self.graph, self.reads = graph, reads
        self.always = always_live(graph.bodies[0].code.isa.target) if graph.bodies else 0
        plain = Modes(-1)
        self.effects = [[effect(body.code.isa, inst, plain, owned[k]) for inst in body.code.insts]
                        for k, body in enumerate(graph.bodies)]
        self.special: list[dict[int, Effect]] = [{} for _ in graph.bodies]
        unusual = [body.code.those(lambda inst: depends(inst) or sets_modes(inst)) for body in graph.bodies]
        for node, start in zip(graph.nodes, modes, strict=True):
            if start.relative or start.skips or within(unusual[node.function], node.span):
                self._note_special(node, start, owned[node.function])
        self.lanes = Lanes(graph)
        self.summaries = [[self._summary(node, segment) for segment in segments]
                          for node, segments in zip(graph.nodes, self.lanes.segments, strict=True)]
        boundary: list[_Flow | None] = []
        for k, node in enumerate(graph.nodes):
            live = self.always
            if k in graph.leaves:
                live |= everything(graph.bodies[node.function].code.isa.target) & owned[node.function]
            boundary.append(_Flow(live & SCALARS, dict.fromkeys(self._ends(k), live & ~SCALARS)))
        order = range(len(graph.nodes) - 1, -1, -1)
        self.ends = solved(order, graph.predecessors, boundary, _join, self._through, self._along)

    def _note_special(self, node: Node, modes: Modes, owned: int) -> None:
        """Effects that are others than usual for what is known before them."""
        code, special = self.graph.bodies[node.function].code, self.special[node.function]
        for at in node.span:
            inst = code.inst(at)
            if modes.relative or modes.skips or not modes.some_lane and depends(inst):
                special[at] = effect(code.isa, inst, modes, owned)
            modes = stepped(code.isa, inst, modes)

    def _effects(self, function: int, start: int, stop: int) -> list[Effect]:
        """Of some instructions, backwards, with what claimed calls read before them."""
        usual, special, reads = self.effects[function], self.special[function], self.reads[function]
        kinds = self.graph.bodies[function].code.kinds
        found = [usual[kind] for kind in kinds[start:stop]]
        if special:
            found = [special.get(at, each) for at, each in enumerate(found, start)]
        if reads:
            for at in range(start, stop):
                if at in reads:
                    each = found[at - start]
                    found[at - start] = each._replace(reads=each.reads | reads[at])
        found.reverse()
        return found

    def _summary(self, node: Node, segment: Segment) -> Effect:
        """Of a whole segment; ``kills`` is what it does not write whole."""
        reads, keeps, far = 0, -1, 0
        for r, k, f in self._effects(node.function, segment.start, segment.stop):
            reads = reads & ~k | r
            keeps &= ~k
            if f:
                far |= f
        return Effect(reads, keeps, far)

    def _ends(self, k: int) -> Iterable[State]:
        return self.lanes.segments[k][-1].onward

    def _through(self, k: int, end: _Flow) -> _Flow:
        for segment, summary in zip(reversed(self.lanes.segments[k]), reversed(self.summaries[k]), strict=True):
            end = self._before(_unchanged(segment, end), summary)
        return end

    def _before(self, end: _Flow, summary: Effect) -> _Flow:
        reads, keeps, far = summary
        own = reads & ~SCALARS
        vectors = {state: live & keeps | own if state[1] & ON else live | far for state, live in end.vectors.items()}
        return _Flow(end.scalars & keeps | reads & SCALARS | self.always, vectors)

    def _along(self, k: int, target: int, head: _Flow) -> _Flow:
        whole = 0
        for live in head.vectors.values():
            whole |= live
        return _Flow(head.scalars, {state: head.vectors.get(self.lanes.arriving(k, state), whole)
                                    for state in self._ends(target)})

    def before(self, k: int, wanted: Iterable[int]) -> dict[int, Live]:
        """What is live before some instructions of a node, and not only for claimed calls that stand there."""
        left, found = set(wanted), {}
        node = self.graph.nodes[k]
        end = self.ends[k]
        assert end is not None
        for segment, summary in zip(reversed(self.lanes.segments[k]), reversed(self.summaries[k]), strict=True):
            end = _unchanged(segment, end)
            if left:
                active, inactive = _parts(end)
                at = segment.stop
                for r, kills, far in self._effects(node.function, segment.start, segment.stop):
                    at -= 1
                    if at in left:
                        left.discard(at)
                        own = self.special[node.function].get(at)
                        own = own or self.effects[node.function][self.graph.bodies[node.function].code.kinds[at]]
                        found[at] = Live(active & ~kills | own.reads | self.always, inactive | far)
                    active = active & ~kills | r | self.always
                    inactive |= far
            end = self._before(end, summary)
        return found


def _unchanged(segment: Segment, after: _Flow) -> _Flow:
    """At the end of a segment, from what is live once its last instruction has changed masks."""
    vectors = {}
    for state, onward in segment.onward.items():
        live = 0
        for following in onward:
            live |= after.vectors[following]
        vectors[state] = live
    return _Flow(after.scalars, vectors)


def _parts(end: _Flow) -> Live:
    active = inactive = 0
    for state, live in end.vectors.items():
        if state[1] & ON:
            active |= live
        else:
            inactive |= live
    return Live(end.scalars | active, inactive)


def _join(a: _Flow, b: _Flow) -> _Flow:
    return _Flow(a.scalars | b.scalars, {state: live | b.vectors[state] for state, live in a.vectors.items()})
