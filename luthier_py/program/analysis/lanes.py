"""Which masks a lane may be in at each point: the ways through a program as one lane sees it.

In: the supergraph. Out: :class:`Lanes`: for every node its segments, in which masks stay as they are, and for each
segment the states that a lane may be in. Invariant: whatever the input of a kernel, the state of each
lane is at each point one of those listed, and the next one is among those that its segment gives.

A state says which masks are known to have the lane, or not to have it. EXEC is always known. Masks
that cannot come to matter to EXEC any more are forgotten, so that there are as many states as nesting levels, not
as histories. Where there would be more than MOST_STATES, all but EXEC is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial, reduce
from itertools import pairwise
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, Inst, InstructionSet
from luthier_py.isa.semantics.readers.lane_bits import Assign, Bit, MaskSource, assignments, outcome
from luthier_py.program.analysis.cfg import Graph, solve

if TYPE_CHECKING:
    from luthier_py.program.analysis.changes import Changes

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
    """States at the head of a node; ``few``: there were too many once, and only EXEC is followed."""

    states: frozenset[LaneState]
    few: bool


Moves = dict[LaneState, tuple[LaneState, ...]]  # where lanes go from each state


@dataclass(frozen=True, slots=True, eq=False)
class Assigning:
    """What an instruction assigns, and to which masks as bits; one object for all that assign the same."""

    assigns: tuple[Assign, ...]
    masks: int


@dataclass(frozen=True, slots=True, eq=False)
class Matters:
    """Of the assignments of a node those to masks that may still come to matter to EXEC: which one it is of all, and
    the masks that do after it. ``before``: those at the head."""

    changes: tuple[tuple[int, Assigning, int], ...]
    before: int


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """A node as lanes go through it: segments, in which masks stay as they are. ``cuts``: which of the assignments end
    a segment, as EXEC changes there for some lane; what other masks do comes together at the end of a segment."""

    cuts: tuple[int, ...]
    segments: tuple[Moves, ...]  # the states after each of them of lanes that came in each of the states
    ends: tuple[LaneState, ...]
    out: States


class Lanes:
    """The solution. Nodes that do the same to the same states share their `Crossing`."""

    def __init__(self, isa: InstructionSet, graph: Graph, changes: Changes, foreign: int = 0) -> None:
        """``foreign``: masks that inserted code writes, of which nothing is known."""
        self._graph = graph
        self._places = [[place for place, _ in each] for each in changes]
        matters = _matters(graph, _shapes(isa, changes), foreign)
        crossing, kept = (cache(_compute_crossing),
                          cache(_project_states))  # code repeats itself, and nodes are visited again

        def flow(index: int, states: States) -> States:
            return crossing(matters[index], states.states).out

        def along(index: int, target: int, states: States) -> States:
            return kept(states.states, matters[target].before)

        starts = graph.kernels | graph.arrives
        boundary = [States(ANYTHING, False) if node.index in starts else None for node in graph.nodes]
        solved, _ = solve(graph.successors, boundary, _join, flow, along)
        heads = [States(ANYTHING, True) if states is None else states for states in solved]
        self.crossings = [crossing(each, head.states) for each, head in zip(matters, heads, strict=True)]
        # Masks that distinguish the states of `crossings` at the head of each node.
        self.relevant = [EXEC_BIT if head.few else each.before for each, head in zip(matters, heads, strict=True)]

    def bounds(self, index: int) -> list[tuple[int, int]]:
        """Where the segments of a node begin and end."""
        places = self._places[index]
        cuts = [0, *[places[cut] + 1 for cut in self.crossings[index].cuts], len(self._graph.nodes[index])]
        return list(pairwise(cuts))


def _shapes(isa: InstructionSet, changes: Changes) -> list[tuple[Assigning, ...]]:
    """What each node assigns."""
    distinct: dict[tuple[Assign, ...], Assigning] = {}
    kinds: dict[Inst, Assigning] = {}
    for inst in {inst for each in changes for _, inst in each}:
        found = assignments(inst, isa.wave_size)
        masks = reduce(or_, (1 << assign.mask for assign in found), 0)
        kinds[inst] = distinct.setdefault(found, Assigning(found, masks))
    return [tuple([kinds[inst] for _, inst in each]) for each in changes]


def _matters(graph: Graph, shapes: Sequence[tuple[Assigning, ...]], foreign: int) -> list[Matters]:
    """Liveness of mask bits: EXEC always is."""
    matters = cache(partial(_matters_inside, foreign))

    def flow(index: int, relevant: int) -> int:
        return matters(shapes[index], relevant).before

    boundary: list[int | None] = [EXEC_BIT] * len(graph.nodes)
    ends, _ = solve(graph.predecessors, boundary, int.__or__, flow, backward=True)
    return [matters(shape, end or EXEC_BIT) for shape, end in zip(shapes, ends, strict=True)]


def _matters_inside(foreign: int, assigns: tuple[Assigning, ...], relevant: int) -> Matters:
    """``relevant``: masks that may still come to matter to EXEC at the end of the node."""
    found: list[tuple[int, Assigning, int]] = []
    for number in range(len(assigns) - 1, -1, -1):
        each = assigns[number]
        if each.masks & relevant:
            found.append((number, each, relevant))
            relevant = _relevant_before(each, relevant) & ~foreign
    return Matters(tuple(reversed(found)), relevant)


def _relevant_before(assigning: Assigning, relevant: int) -> int:
    before = relevant & ~assigning.masks
    for assign in assigning.assigns:
        if relevant >> assign.mask & 1:
            for source in assign.sources:
                if source >= 0:
                    before |= 1 << source
    return before | EXEC_BIT


def _compute_crossing(matters: Matters, states: frozenset[LaneState]) -> Crossing:
    cuts, segments, moves = [], [], _make_identity_moves(states)
    for number, assigning, relevant in matters.changes:
        after = _after(assigning.assigns, relevant, states)
        moves, states = _compose_moves(moves, after.moves), after.states
        if after.changes_exec:
            cuts.append(number)
            segments.append(moves)
            moves = _make_identity_moves(states)
    return Crossing(tuple(cuts), (*segments, moves), tuple(sorted(states)), States(states, False))


def _make_identity_moves(states: Iterable[LaneState]) -> Moves:
    return {state: (state,) for state in sorted(states)}


def _compose_moves(first: Moves, second: Moves) -> Moves:
    return {state: second[each[0]] if len(each) == 1 else tuple({s for e in each for s in second[e]})
            for state, each in first.items()}


class After(NamedTuple):
    """Where lanes go from each state, all these states, and whether some lane becomes active, or inactive."""

    moves: Moves
    states: frozenset[LaneState]
    changes_exec: bool


def _after(assigns: tuple[Assign, ...], relevant: int, states: frozenset[LaneState]) -> After:
    moves = {state: transfer_lane_state(assigns, relevant, state) for state in states}
    if len({after for each in moves.values() for after in each}) > MOST_STATES:
        moves = {state: tuple({only(after, EXEC_BIT) for after in each}) for state, each in moves.items()}
    return After(moves, frozenset(after for each in moves.values() for after in each),
                 any(after.active != state.active for state, each in moves.items() for after in each))


def transfer_lane_state(assigns: tuple[Assign, ...], relevant: int, state: LaneState) -> tuple[LaneState, ...]:
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


def only(state: LaneState, masks: int) -> LaneState:
    """``state`` with all masks forgotten but those in the bit set ``masks``."""
    return LaneState(state.known & masks, state.value & masks)


def _project_states(states: frozenset[LaneState], masks: int) -> States:
    return States(frozenset([only(state, masks) for state in states]), False)


def _join(a: States, b: States) -> States:
    if a == b:
        return a
    states = a.states | b.states
    if a.few or b.few or len(states) > MOST_STATES:
        return States(frozenset(only(state, EXEC_BIT) for state in states), True)
    return States(states, False)
