"""Which masks a lane may be in at each point: the ways through a program as one lane sees it.

In: the supergraph. Out: :class:`Lanes`: for every node its segments, in which masks stay as they are, and for each
segment the states that a lane may be in. Invariant: whatever the input of a kernel, the state of each
lane is at each point one of those listed, and the next one is among those that `next` gives.

A state says which masks are known to have the lane, or not to have it. EXEC is always known. Masks
that cannot come to matter to EXEC any more are forgotten, so that there are as many states as nesting levels, not
as histories. Where there would be more than MOST_STATES, all but EXEC is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from luthier_py.analysis.cfg import Graph, solve
from luthier_py.analysis.masks import UNKNOWN, ZERO, Assign, Bit, Source, assignments
from luthier_py.isa import EXEC, InstructionSet

MOST_STATES = 16
EXEC_BIT = 1 << EXEC


class LaneState(NamedTuple):
    """Bit sets over the names of masks; ``value`` is 0 where a mask is not known."""

    known: int
    value: int

    @property
    def active(self) -> bool:
        return bool(self.value & EXEC_BIT)


ACTIVE, INACTIVE = LaneState(EXEC_BIT, EXEC_BIT), LaneState(EXEC_BIT, 0)
ANYTHING = frozenset({ACTIVE, INACTIVE})


class States(NamedTuple):
    """States at the head of a node; ``few``: there were too many once, and only EXEC is kept."""

    states: frozenset[LaneState]
    few: bool


@dataclass(frozen=True, slots=True)
class Change:
    """The instruction at ``place`` of a node assigns to masks; of those in ``relevant`` is the state kept after it."""

    place: int
    assigns: tuple[Assign, ...]
    relevant: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Instructions ``start`` to ``end`` of a node, and where a lane goes from each of its states after the last one."""

    start: int
    end: int
    next: Mapping[LaneState, tuple[LaneState, ...]]


class Lanes:
    """The solution. ``heads`` are the states in which lanes come to a node."""

    def __init__(self, isa: InstructionSet, graph: Graph) -> None:
        assigns = [
            [(place, found) for place, instr in enumerate(node.instrs) if (found := assignments(isa, instr.inst))]
            for node in graph.nodes
        ]
        self.relevant = _relevant(graph, assigns)
        self._changes = [_changes(each, end) for each, end in zip(assigns, self._ends(graph), strict=True)]
        boundary = [
            States(ANYTHING, False) if node.index in graph.kernels | graph.arrives else None for node in graph.nodes
        ]
        solved = solve(range(len(graph.nodes)), graph.successors, boundary, _join, self._flow, self._along)
        self.heads = [States(ANYTHING, True) if states is None else states for states in solved]
        self.segments = [self._segments(graph, index) for index in range(len(graph.nodes))]

    def _ends(self, graph: Graph) -> Iterable[int]:
        """Masks that matter at the end of each node."""
        for node in graph.nodes:
            found = EXEC_BIT
            for successor in graph.successors[node.index]:
                found |= self.relevant[successor]
            yield found

    def _flow(self, index: int, states: States) -> States:
        found = states.states
        for change in self._changes[index]:
            found = _all(_after(change, found))
        return States(found, False)

    def _along(self, index: int, target: int, states: States) -> States:
        return States(frozenset(_only(state, self.relevant[target]) for state in states.states), False)

    def at_head(self, index: int, state: LaneState) -> LaneState:
        """The state of `heads` that a lane is in when it comes to a node in ``state``."""
        return _only(state, EXEC_BIT if self.heads[index].few else self.relevant[index])

    def _segments(self, graph: Graph, index: int) -> tuple[Segment, ...]:
        found, start, states = [], 0, self.heads[index].states
        for change in self._changes[index]:
            following = _after(change, states)
            found.append(Segment(start, change.place + 1, following))
            start, states = change.place + 1, _all(following)
        length = len(graph.nodes[index].instrs)
        found.append(Segment(start, length, {state: (state,) for state in states}))
        return tuple(found)


def _relevant(graph: Graph, assigns: Sequence[Sequence[tuple[int, tuple[Assign, ...]]]]) -> list[int]:
    """Masks that may still come to matter to EXEC, at the head of each node: liveness of mask bits."""

    def flow(index: int, relevant: int) -> int:
        for _, each in reversed(assigns[index]):
            relevant = _relevant_before(each, relevant)
        return relevant

    boundary: list[int | None] = [EXEC_BIT] * len(graph.nodes)
    ends = solve(range(len(graph.nodes) - 1, -1, -1), graph.predecessors, boundary, int.__or__, flow)
    return [flow(index, end or EXEC_BIT) for index, end in enumerate(ends)]


def _relevant_before(assigns: Sequence[Assign], relevant: int) -> int:
    before = relevant
    for assign in assigns:
        before &= ~(1 << assign.mask)
    for assign in assigns:
        if relevant >> assign.mask & 1:
            before |= sum({1 << source for source in (assign.first, assign.second) if source >= 0})
    return before | EXEC_BIT


def _changes(assigns: Sequence[tuple[int, tuple[Assign, ...]]], relevant: int) -> tuple[Change, ...]:
    """The assignments of a node that matter, in order."""
    found: list[Change] = []
    for place, each in reversed(assigns):
        before = _relevant_before(each, relevant)
        if before != relevant or any(relevant >> assign.mask & 1 for assign in each):
            found.append(Change(place, each, relevant))
        relevant = before
    return tuple(reversed(found))


Moves = dict[LaneState, tuple[LaneState, ...]]


def _after(change: Change, states: Iterable[LaneState]) -> Moves:
    """Where lanes go from each state."""
    moves = {state: _next(change, state) for state in states}
    if len(_all(moves)) <= MOST_STATES:
        return moves
    return {state: tuple({_only(after, EXEC_BIT) for after in each}) for state, each in moves.items()}


def _all(moves: Moves) -> frozenset[LaneState]:
    return frozenset(after for each in moves.values() for after in each)


def _next(change: Change, state: LaneState) -> tuple[LaneState, ...]:
    """States that a lane may be in after a change; two if EXEC is not known."""
    known, value = state
    for assign in change.assigns:
        bit = assign.function(_bit(state, assign.first), _bit(state, assign.second))
        mask = 1 << assign.mask
        known = known & ~mask if bit is None else known | mask
        value = value | mask if bit else value & ~mask
    known &= change.relevant
    value &= known
    if known & EXEC_BIT:
        return (LaneState(known, value),)
    known |= EXEC_BIT
    return LaneState(known, value), LaneState(known, value | EXEC_BIT)


def _bit(state: LaneState, source: Source) -> Bit:
    if source < 0:
        return None if source == UNKNOWN else int(source != ZERO)
    return state.value >> source & 1 if state.known >> source & 1 else None


def _only(state: LaneState, masks: int) -> LaneState:
    return LaneState(state.known & masks, state.value & masks)


def _join(a: States, b: States) -> States:
    states = a.states | b.states
    if a.few or b.few or len(states) > MOST_STATES:
        return States(frozenset(_only(state, EXEC_BIT) for state in states), True)
    return States(states, False)
