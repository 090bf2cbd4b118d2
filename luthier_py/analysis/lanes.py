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
from functools import cache
from typing import NamedTuple

from luthier_py.analysis.cfg import Graph, solve
from luthier_py.analysis.changes import Changes
from luthier_py.isa import EXEC, Inst, InstructionSet
from luthier_py.isa.semantics.readers.lane_bits import Assign, Bit, MaskSource, assignments, outcome

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
class LaneSegment:
    """Instructions ``start`` to ``end`` of a node, of which only the last one changes EXEC, and the states after it of
    lanes that came in each of the states."""

    start: int
    end: int
    next: Mapping[LaneState, tuple[LaneState, ...]]


Moves = dict[LaneState, tuple[LaneState, ...]]


class Lanes:
    """The solution. ``heads`` are the states in which lanes come to a node, ``ends`` those in which they leave it."""

    def __init__(self, isa: InstructionSet, graph: Graph, changes: Changes) -> None:
        kinds = {inst: _assigned(inst, isa.wave_size) for inst in {inst for each in changes for _, inst in each}}
        assigns = [[(place, *kinds[inst]) for place, inst in each] for each in changes]
        self.relevant = _relevant(graph, assigns)
        self._after, self._kept = cache(_after), cache(_kept)  # code repeats itself, and nodes are visited again
        self._changes = [_changes(each, end) for each, end in zip(assigns, self._ends(graph), strict=True)]
        boundary = [
            States(ANYTHING, False) if node.index in graph.kernels | graph.arrives else None for node in graph.nodes
        ]
        solved = solve(range(len(graph.nodes)), graph.successors, boundary, _join, self._flow, self._along)
        self.heads = [States(ANYTHING, True) if states is None else states for states in solved]
        self.segments = [self._segments(graph, index) for index in range(len(graph.nodes))]
        self.ends = [tuple({to for each in parts[-1].next.values() for to in each}) for parts in self.segments]

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
            found = self._after(change.assigns, change.relevant, found).states
        return States(found, False)

    def _along(self, index: int, target: int, states: States) -> States:
        return States(self._kept(states.states, self.relevant[target]), False)

    def at_head(self, index: int, state: LaneState) -> LaneState:
        """The state of `heads` that a lane is in when it comes to a node in ``state``."""
        return _only(state, EXEC_BIT if self.heads[index].few else self.relevant[index])

    def _segments(self, graph: Graph, index: int) -> tuple[LaneSegment, ...]:
        """Cut where EXEC changes for some lane; what other masks do comes together at the end of a segment."""
        found, start, states = [], 0, self.heads[index].states
        moves: Moves = {state: (state,) for state in states}
        for change in self._changes[index]:
            after = self._after(change.assigns, change.relevant, states)
            moves, states = _composed(moves, after.moves), after.states
            if after.changes_exec:
                found.append(LaneSegment(start, change.place + 1, moves))
                start, moves = change.place + 1, {state: (state,) for state in states}
        found.append(LaneSegment(start, len(graph.nodes[index]), moves))
        return tuple(found)


def _composed(first: Moves, second: Moves) -> Moves:
    return {state: second[each[0]] if len(each) == 1 else tuple({s for e in each for s in second[e]})
            for state, each in first.items()}


def _assigned(inst: Inst, wave_size: int) -> tuple[tuple[Assign, ...], int]:
    found = assignments(inst, wave_size)
    return found, sum({1 << assign.mask for assign in found})


Assigned = tuple[int, tuple[Assign, ...], int]  # place, what is assigned, to which masks as bits


def _relevant(graph: Graph, assigns: Sequence[Sequence[Assigned]]) -> list[int]:
    """Masks that may still come to matter to EXEC, at the head of each node: liveness of mask bits."""

    def flow(index: int, relevant: int) -> int:
        for _, each, masks in reversed(assigns[index]):
            if masks & relevant:
                relevant = _relevant_before(each, masks, relevant)
        return relevant

    boundary: list[int | None] = [EXEC_BIT] * len(graph.nodes)
    ends = solve(range(len(graph.nodes) - 1, -1, -1), graph.predecessors, boundary, int.__or__, flow)
    return [flow(index, end or EXEC_BIT) for index, end in enumerate(ends)]


def _relevant_before(assigns: Sequence[Assign], masks: int, relevant: int) -> int:
    before = relevant & ~masks
    for assign in assigns:
        if relevant >> assign.mask & 1:
            before |= sum({1 << source for source in assign.sources if source >= 0})
    return before | EXEC_BIT


def _changes(assigns: Sequence[Assigned], relevant: int) -> tuple[Change, ...]:
    """The assignments of a node that matter, in order."""
    found: list[Change] = []
    for place, each, masks in reversed(assigns):
        if masks & relevant:
            found.append(Change(place, each, relevant))
            relevant = _relevant_before(each, masks, relevant)
    return tuple(reversed(found))


class After(NamedTuple):
    """Where lanes go from each state, all these states, and whether some lane becomes active, or inactive."""

    moves: Moves
    states: frozenset[LaneState]
    changes_exec: bool


def _after(assigns: tuple[Assign, ...], relevant: int, states: frozenset[LaneState]) -> After:
    moves = {state: _next(assigns, relevant, state) for state in states}
    if len({after for each in moves.values() for after in each}) > MOST_STATES:
        moves = {state: tuple({_only(after, EXEC_BIT) for after in each}) for state, each in moves.items()}
    return After(moves, frozenset(after for each in moves.values() for after in each),
                 any(after.active != state.active for state, each in moves.items() for after in each))


def _next(assigns: tuple[Assign, ...], relevant: int, state: LaneState) -> tuple[LaneState, ...]:
    """States that a lane may be in after a change; two if EXEC is not known."""
    known, value = state
    for assign in assigns:
        bit = outcome(assign.table, tuple([_bit(state, source) for source in assign.sources]))
        mask = 1 << assign.mask
        known = known & ~mask if bit is None else known | mask
        value = value | mask if bit else value & ~mask
    known &= relevant
    value &= known
    if known & EXEC_BIT:
        return (LaneState(known, value),)
    known |= EXEC_BIT
    return LaneState(known, value), LaneState(known, value | EXEC_BIT)


def _bit(state: LaneState, source: MaskSource) -> Bit:
    return state.value >> source & 1 if source >= 0 and state.known >> source & 1 else None


def _only(state: LaneState, masks: int) -> LaneState:
    return LaneState(state.known & masks, state.value & masks)


def _kept(states: frozenset[LaneState], masks: int) -> frozenset[LaneState]:
    return frozenset(_only(state, masks) for state in states)


def _join(a: States, b: States) -> States:
    if a == b:
        return a
    states = a.states | b.states
    if a.few or b.few or len(states) > MOST_STATES:
        return States(frozenset(_only(state, EXEC_BIT) for state in states), True)
    return States(states, False)
