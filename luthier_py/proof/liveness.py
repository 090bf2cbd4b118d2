"""What the application may still read, lane by lane, from the original's bytes alone.

In: the graph and modes, what claimed calls read, and the registers that matter. Out: Live at chosen points: ``active``
has the registers that the wave may read, or whose value in a lane that is active there may be read; ``inactive`` the
vector registers whose value in a lane that is not active there may be read.

Invariant: take any run, any point, any lane and any register. If what the register holds there (in that lane) is used
later by anybody, it is in the set for what the lane is at the point. Seen from one lane the application is an automaton
over (place, masks that the lane is in), and this is ordinary liveness on it: a vector write kills in states where the
lane is active, and there alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from luthier_py.isa import Inst
from luthier_py.isa.model.registers import SCALARS
from luthier_py.proof.code import within
from luthier_py.proof.effects import NO_EFFECT, Effect, always_live, depends, effect, everything, may_touch
from luthier_py.proof.graph import Graph, solve_dataflow
from luthier_py.proof.lanes import ON, Lanes, Segment, State
from luthier_py.proof.modes import Modes, sets_modes, step_modes


class Live(NamedTuple):
    """Registers that are live at one point, as bits of a RegSet; scalars are in ``active`` alone."""

    active: int
    inactive: int


class _Flow(NamedTuple):
    """At one end of a node: scalars, and vector registers for each state of a lane."""

    scalars: int
    vectors: dict[State, int]


Reads = Mapping[int, int]  # by number of the instruction before which something else reads registers


class _Uses(NamedTuple):
    """The instructions of a function that touch a needed register, ascending: numbers, what they do themselves, what
    is read before them, too."""

    places: list[int]
    own: list[Effect]
    effects: list[Effect]

    def within(self, start: int, stop: int) -> slice:
        return slice(bisect_left(self.places, start), bisect_left(self.places, stop))


class Liveness:
    """The solution, of the registers in ``needed``. ``reads`` and ``owned`` (what an index can reach) are by
    function."""

    def __init__(
        self, graph: Graph, modes: Sequence[Modes], reads: Sequence[Reads], owned: Sequence[int], needed: int,
        foreign: int, most: int,
    ) -> None:
        """``foreign``: masks that calls write; ``most``: states of a lane at one place."""
        self.graph, self.needed = graph, needed
        self.always = always_live(graph.bodies[0].code.isa.target)
        self.uses = [self._uses(k, modes, reads[k], owned[k]) for k in range(len(graph.bodies))]
        self.lanes = Lanes(graph, foreign, most) if needed & ~SCALARS else None
        self.segments = self.lanes.segments if self.lanes is not None else [
            (Segment(node.span.start, node.span.stop, {}),) for node in graph.nodes]
        self.summaries = [summaries for k in range(len(graph.bodies)) for summaries in self._summaries(k)]
        boundary: list[_Flow | None] = []
        for k, node in enumerate(graph.nodes):
            live = self.always
            if k in graph.leaves:
                live |= everything(graph.bodies[node.function].code.isa.target) & owned[node.function] & needed
            boundary.append(_Flow(live & SCALARS, dict.fromkeys(self._ends(k), live & ~SCALARS)))
        order = range(len(graph.nodes) - 1, -1, -1)
        self.ends = solve_dataflow(order, graph.predecessors, boundary, _join, self._through, self._along)

    @property
    def complete(self) -> bool:
        """Whether no other bound of the states is more precise."""
        return self.lanes is None or self.lanes.complete

    def _uses(self, function: int, modes: Sequence[Modes], reads: Reads, owned: int) -> _Uses:
        code, needed, plain = self.graph.bodies[function].code, self.needed, Modes(-1)
        usual = [NO_EFFECT] * len(code.insts)
        for kind in np.flatnonzero(code.match(may_touch, needed)).tolist():
            usual[kind] = _only(effect(code.isa, code.insts[kind], plain, owned), needed)
        touching = np.fromiter((each != NO_EFFECT for each in usual), bool, len(usual))
        special = self._special(function, modes, owned)
        places = set(np.flatnonzero(touching[code.kind]).tolist()) | special.keys() | reads.keys()
        ordered = sorted(places)
        own = [special[at] if at in special else usual[code.kinds[at]] for at in ordered]
        effects = [each._replace(reads=each.reads | reads[at] & needed) if at in reads else each
                   for at, each in zip(ordered, own, strict=True)]
        return _Uses(ordered, own, effects)

    def _special(self, function: int, modes: Sequence[Modes], owned: int) -> dict[int, Effect]:
        """Effects that are others than usual for what is known before them."""
        code, special = self.graph.bodies[function].code, dict[int, Effect]()
        unusual = code.those(_is_unusual)
        for k in self.graph.nodes_of(function):
            node, now = self.graph.nodes[k], modes[k]
            if not (now.relative or now.skips or within(unusual, node.span)):
                continue
            for at in node.span:
                inst = code.inst(at)
                if now.relative or now.skips or not now.some_lane and depends(inst):
                    special[at] = _only(effect(code.isa, inst, now, owned), self.needed)
                now = step_modes(code.isa, inst, now)
        return special

    def _summaries(self, function: int) -> Iterator[list[Effect]]:
        """Of whole segments of a function's nodes; ``kills`` is what one does not write whole."""
        uses, nodes = self.uses[function], self.graph.nodes_of(function)
        stops = np.array([segment.stop for k in nodes for segment in self.segments[k]], np.int64)
        cuts = iter(pairwise([0, *np.searchsorted(uses.places, stops).tolist()]))
        for k in nodes:
            yield [_summarise(uses.effects[first:last]) if first < last else _NOTHING
                   for first, last in islice(cuts, len(self.segments[k]))]

    def _ends(self, k: int) -> Iterable[State]:
        return self.segments[k][-1].onward

    def _through(self, k: int, end: _Flow) -> _Flow:
        last = self.segments[k][-1]
        for segment, summary in zip(reversed(self.segments[k]), reversed(self.summaries[k]), strict=True):
            end = end if segment is last else _transfer_mask_change(segment, end)
            end = end if summary is _NOTHING else self._before(end, summary)
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
        lanes = self.lanes
        return _Flow(head.scalars, {} if lanes is None else {
            state: head.vectors.get(lanes.project_to_head(k, state), whole) for state in self._ends(target)})

    def before(self, k: int, wanted: Iterable[int]) -> dict[int, Live]:
        """What is live before some instructions of a node, and not only for claimed calls that stand there."""
        left, found = sorted(wanted), dict[int, Live]()
        uses = self.uses[self.graph.nodes[k].function]
        end = self.ends[k]
        assert end is not None
        for segment, summary in zip(reversed(self.segments[k]), reversed(self.summaries[k]), strict=True):
            end = _transfer_mask_change(segment, end)
            if left and left[-1] >= segment.start:
                active, inactive = _parts(end)
                here = uses.within(segment.start, segment.stop)
                rows = zip(uses.places[here], uses.own[here], uses.effects[here], strict=True)
                for at, own, (r, kills, far) in reversed(list(rows)):
                    while left and left[-1] > at:
                        found[left.pop()] = Live(active, inactive)
                    if left and left[-1] == at:
                        found[left.pop()] = Live(active & ~kills | own.reads | self.always, inactive | far)
                    active = active & ~kills | r | self.always
                    inactive |= far
                while left and left[-1] >= segment.start:
                    found[left.pop()] = Live(active, inactive)
            end = self._before(end, summary)
        return found


_NOTHING = Effect(0, -1, 0)


def _summarise(effects: Sequence[Effect]) -> Effect:
    reads, keeps, far = 0, -1, 0
    for r, k, f in reversed(effects):
        reads = reads & ~k | r
        keeps &= ~k
        far |= f
    return Effect(reads, keeps, far)


def _is_unusual(inst: Inst) -> bool:
    return depends(inst) or sets_modes(inst)


def _only(each: Effect, needed: int) -> Effect:
    return Effect(*(bits & needed for bits in each))


def _transfer_mask_change(segment: Segment, after: _Flow) -> _Flow:
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
