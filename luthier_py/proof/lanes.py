"""Which masks a lane may be in: the ways through the application as one lane sees it.

In: the graph. Out: Lanes: each node cut into segments in which masks stay, and for each the states that a lane may be
in. Invariant: whatever a kernel's input, each lane is in one of the states listed, and its next one is one of
`onward`.

A state is two sets of masks as bits: those of which it is known whether the lane is in them, and those it is in. EXEC
is always known. Masks that cannot come to matter to EXEC any more are forgotten, and where there would be more states
than `most`, all masks but EXEC are. More states are not always more precise: masks remembered at one place make too
many at the next one. So there are several bounds, whose solutions are all right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np

from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, Inst, InstructionSet
from luthier_py.proof.code import within
from luthier_py.proof.graph import Graph, solve_dataflow
from luthier_py.proof.masks import ONE, ZERO, Bit, Change, change

MOST = (64, 16, 1024)  # bounds in the order in which they are tried
ON = 1 << EXEC
State = tuple[int, int]  # known, in
Onward = Mapping[State, tuple[State, ...]]
EITHER: frozenset[State] = frozenset({(ON, ON), (ON, 0)})
Known = tuple[frozenset[State], bool]  # states; whether there were too many once


@dataclass(frozen=True, slots=True)
class Segment:
    """Instructions up to ``stop``, the last of which may change masks."""

    start: int
    stop: int
    onward: Onward


class Lanes:
    """The solution."""

    def __init__(self, graph: Graph, foreign: int, most: int) -> None:
        """``foreign``: masks that calls write, of which nothing is known."""
        self.foreign, self.most = foreign, most
        self.graph = graph
        self.complete = True
        """Whether there were never too many states."""
        # By change (which live on), masks, and states: what these become, and all of that.
        self.moves: dict[tuple[int, int, frozenset[State]], tuple[Onward, frozenset[State]]] = {}
        self.only = cache(_only)
        found = [{kind: made for kind in np.flatnonzero(body.code.match(_changes, body.code.isa)).tolist()
                  if (made := change(body.code.isa, body.code.insts[kind]))} for body in graph.bodies]
        writing = [body.code.those(_changes, body.code.isa) for body in graph.bodies]
        changes: list[list[tuple[int, Change]]] = []
        for node in graph.nodes:
            kinds = graph.bodies[node.function].code.kinds
            part = within(writing[node.function], node.span)
            changes.append([(at, found[node.function][kinds[at]]) for at in part])
        self.wanted = self._solve_needed_masks(changes)
        self.changes = [self._that_matter(k, each) for k, each in enumerate(changes)]
        starts = graph.kernels | graph.arrives
        boundary: list[Known | None] = [(EITHER, False) if k in starts else None
                                        for k in range(len(graph.nodes))]
        heads = solve_dataflow(range(len(graph.nodes)), graph.successors, boundary, self._join, self._through,
                               self._along)
        self.heads: list[Known] = [(EITHER, True) if head is None else head for head in heads]
        self.segments = [self._segments(k) for k in range(len(graph.nodes))]

    def _solve_needed_masks(self, changes: list[list[tuple[int, Change]]]) -> list[int]:
        """Masks that may come to matter to EXEC, at the head of each node."""
        def flow(k: int, wanted: int) -> int:
            for _, each in reversed(changes[k]):
                wanted = compute_needed_before(each, wanted) & ~self.foreign
            return wanted

        count = len(self.graph.nodes)
        ends = solve_dataflow(range(count - 1, -1, -1), self.graph.predecessors, [ON] * count, int.__or__, flow)
        return [flow(k, end or ON) for k, end in enumerate(ends)]

    def _that_matter(self, k: int, changes: list[tuple[int, Change]]) -> list[tuple[int, Change, int]]:
        """Those of a node, each with the masks that matter behind it."""
        wanted = ON
        for following in self.graph.successors[k]:
            wanted |= self.wanted[following]
        found = []
        for at, each in reversed(changes):
            before = compute_needed_before(each, wanted) & ~self.foreign
            if before != wanted or each.written & wanted:
                found.append((at, each, wanted))
            wanted = before
        return found[::-1]

    def _through(self, k: int, known: Known) -> Known:
        states = known[0]
        for _, each, wanted in self.changes[k]:
            _, states = self.apply_change(each, wanted, states)
        return states, False

    def _along(self, k: int, target: int, known: Known) -> Known:
        return self.only(known[0], self.wanted[target]), False

    def project_to_head(self, k: int, state: State) -> State:
        """The state of a node's head that a lane in ``state`` is in when it comes there."""
        wanted = ON if self.heads[k][1] else self.wanted[k]
        return state[0] & wanted, state[1] & wanted

    def apply_change(self, each: Change, wanted: int, states: frozenset[State]) -> tuple[Onward, frozenset[State]]:
        """What a change makes of each of ``states``, and the union of all that; ``wanted``: masks that matter behind
        it. Cached by the identity of ``each``, which has to live as long as this object."""
        key = id(each), wanted, states
        if key not in self.moves:
            onward = self._compute_onward(each, wanted, states)
            self.moves[key] = onward, _union(onward)
        return self.moves[key]

    def _compute_onward(self, each: Change, wanted: int, states: Iterable[State]) -> Onward:
        onward = {state: next_states(each, state, wanted) for state in states}
        if len(_union(onward)) <= self.most:
            return onward
        self.complete = False
        return {state: tuple(_only(after, ON)) for state, after in onward.items()}

    def _join(self, a: Known, b: Known) -> Known:
        states = a[0] | b[0]
        if a[1] or b[1] or len(states) > self.most:
            self.complete = False
            return _only(states, ON), True
        return states, False

    def _segments(self, k: int) -> tuple[Segment, ...]:
        span, states = self.graph.nodes[k].span, self.heads[k][0]
        found, start = [], span.start
        for at, each, wanted in self.changes[k]:
            onward, states = self.apply_change(each, wanted, states)
            found.append(Segment(start, at + 1, onward))
            start = at + 1
        return (*found, Segment(start, span.stop, {state: (state,) for state in states}))


def _changes(inst: Inst, isa: InstructionSet) -> bool:
    return change(isa, inst) is not None


def compute_needed_before(each: Change, wanted: int) -> int:
    """Masks that matter before a change, of those that do behind it."""
    if not each.written & wanted:
        return wanted | ON
    read = each.read if wanted & each.written & ~each.lost else 0
    return wanted & ~each.written | read | ON


def next_states(each: Change, state: State, wanted: int) -> tuple[State, ...]:
    """The next states of a lane; two where its bit of EXEC is not known."""
    known, has = state
    bits = each.compute(tuple(_bit(state, source) for source in each.sources))
    known &= ~each.lost
    for target, bit in zip(each.targets, bits, strict=True):
        mask = 1 << target
        known = known & ~mask if bit is None else known | mask
        has = has | mask if bit else has & ~mask
    known &= wanted
    has &= known
    if known & ON:
        return ((known, has),)
    return (known | ON, has), (known | ON, has | ON)


def _bit(state: State, source: int) -> Bit:
    if source < 0:
        return 0 if source == ZERO else 1 if source == ONE else None
    return state[1] >> source & 1 if state[0] >> source & 1 else None


def _union(onward: Onward) -> frozenset[State]:
    return frozenset(state for after in onward.values() for state in after)


def _only(states: Iterable[State], masks: int) -> frozenset[State]:
    return frozenset((known & masks, has & masks) for known, has in states)
