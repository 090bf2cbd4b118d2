"""Parts of a function that tools name, and which of them to count to know how often all of them run.

In: runs of a function and how control flows between them. Out: Counting. Invariant: what follows from the counts is
exact for every wave that comes to its end.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.program import analysis, ir

if TYPE_CHECKING:
    from luthier_py.isa.columns import Columns


@dataclass(frozen=True, slots=True)
class Stretch:
    """Instructions of a block, which all run with one value of EXEC, or none does. Where the user chose some of them,
    these alone, perhaps with gaps."""

    block: ir.Block
    places: Sequence[int]
    """In the function's code (``Instr.at``), ascending; a range where there are no gaps."""

    @property
    def instrs(self) -> tuple[ir.Instr, ...]:
        """The instructions at ``places``, in their order."""
        return tuple(instrs_at(self.block.code, self.places))

    @property
    def first(self) -> ir.Instr:
        """The first of the instructions."""
        return ir.instr_at(self.block.code, self.places[0])

    @property
    def last(self) -> ir.Instr:
        """The last of the instructions."""
        return ir.instr_at(self.block.code, self.places[-1])

    def __len__(self) -> int:
        return len(self.places)

    def until(self, stop: int) -> Stretch:
        """What of it is at places before ``stop``."""
        return Stretch(self.block, self.places[: bisect_left(self.places, stop)])


def whole(block: ir.Block) -> Stretch:
    """All instructions that a block has; of a copy with a part those."""
    places = range(block.start, block.stop)
    gaps = len(places) != len(block.instrs)
    return Stretch(block, tuple(instr.at for instr in block.instrs) if gaps else places)


def instrs_at(code: Columns, places: Sequence[int]) -> Sequence[ir.Instr]:
    """Each is made when it is looked at, where there are no gaps."""
    if isinstance(places, range):
        return ir.Instrs(code, places.start, places.stop)
    return tuple(ir.instr_at(code, place) for place in places)


@dataclass(frozen=True, slots=True)
class Region:
    """Ranges of one function (`Stretch`) that a wave runs equally often until its end: what counts one counts all."""

    stretches: tuple[Stretch, ...]

    @property
    def instrs(self) -> tuple[ir.Instr, ...]:
        """The instructions of all stretches, one stretch after the other."""
        return tuple(instr for stretch in self.stretches for instr in stretch.instrs)


@dataclass(frozen=True, slots=True)
class RunEdge:
    """An edge, and the numbers of the runs that it leads from and to."""

    edge: analysis.Edge
    source: int
    target: int


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """What one counter counts, with Mutator.at_counted: each time that a region runs, that an edge is taken, or that a
    function is entered."""

    where: Region | analysis.Edge | ir.Function
    often: float
    """An estimate."""
    again: bool
    """Whether one wave may run it more than once."""
    steps: analysis.Steps | None = None
    """A register that shows how often it ran, where it is a loop of one block."""


@dataclass(frozen=True, slots=True)
class Following:
    """What follows from the values of some counters; numbers only."""

    spanning: analysis.Spanning
    counted: tuple[int, ...]  # the run that each counter is for
    runs: tuple[int, ...]     # the run that each stretch is of
    edges: tuple[int, ...]    # the pieces that are edges

    def weights(self, values: Sequence[int]) -> tuple[int, ...]:
        """What to add each time that something is counted, to get the sum of ``values`` (one for each stretch) over all
        executions; may be zero or negative."""
        of_runs = [0] * self.spanning.pieces
        for run, value in zip(self.runs, values, strict=True):
            of_runs[run] = value
        found = self.spanning.weights(of_runs)
        return tuple(found[run] for run in self.counted)

    def executions(self, counts: Sequence[int]) -> tuple[int, ...]:
        """The executions of each Stretch, from the counters' values."""
        found = self._derive_executions(counts)
        return tuple(found[run] for run in self.runs)

    def taken(self, counts: Sequence[int]) -> tuple[int, ...]:
        """How often each edge is taken, likewise."""
        found = self._derive_executions(counts)
        return tuple(found[edge] for edge in self.edges)

    def entered(self, counts: Sequence[int]) -> int:
        """How often the function was entered."""
        return self._derive_executions(counts)[-1]

    def _derive_executions(self, counts: Sequence[int]) -> list[int]:
        return self.spanning.executions(dict(zip(self.counted, counts, strict=True)))


@dataclass(frozen=True, slots=True)
class Counting:
    """How often each of ``stretches`` runs and each of ``edges`` is taken, from few counters."""

    counters: tuple[Counted, ...]
    stretches: tuple[Stretch, ...]
    edges: tuple[analysis.Edge, ...]
    following: Following


def regions(chosen: Sequence[Stretch | None], groups: Sequence[int]) -> list[Region]:
    """What is chosen of the runs of each group."""
    members: list[list[Stretch]] = [[] for _ in set(groups)]
    for stretch, group in zip(chosen, groups, strict=True):
        if stretch is not None:
            members[group].append(stretch)
    return [Region(tuple(each)) for each in members]


def plan_counting(
    function: ir.Function, chosen: Sequence[Stretch | None], flow: analysis.Flow, entered: bool,
    steps: Mapping[int, analysis.Steps],
    known: Collection[int] = (), edges: Sequence[RunEdge] = (),
) -> Counting:
    """Counters for what is chosen of each run, and for ``edges``: the rest cannot be counted. Being ``entered`` is a
    piece as well, the last one, if it can be counted: a kernel's wave does that once. The caller knows how often runs
    that begin at addresses in ``known`` run, so it costs nothing to count them."""
    runs = len(chosen)
    often = [0.0 if run is not None and run.first.pc in known else each
             for each, run in zip(analysis.estimate_frequencies(flow), chosen, strict=True)]
    often += [min(often[edge.source], often[edge.target]) for edge in edges]
    again = analysis.find_cyclic_pieces(flow)
    again += [again[edge.source] for edge in edges]
    wanted = [math.inf if run < runs and chosen[run] is None else estimate for run, estimate in enumerate(often)]
    tree = analysis.build_spanning_tree([*_through(flow, edges), [len(often)]], [*wanted, 0.0 if entered else math.inf])
    groups = tree.equally_often()
    together = regions(chosen, groups[:runs])
    counters: dict[int, Counted] = {}
    for piece in tree.counted:
        where = _place_counter(piece, function if entered else None, chosen, edges, together, groups)
        if isinstance(where, ir.Function):
            counters[piece] = Counted(where, 1.0, not function.kernel)
        elif where is not None:
            counters[piece] = Counted(where, often[piece], again[piece] or not function.kernel, steps.get(piece))
    stretches = {run: stretch for run, stretch in enumerate(chosen) if stretch is not None}
    following = Following(tree, tuple(counters), tuple(stretches), tuple(range(runs, len(often))))
    return Counting(tuple(counters.values()), tuple(stretches.values()), tuple(edge.edge for edge in edges), following)


def _place_counter(
    piece: int, function: ir.Function | None, chosen: Sequence[Stretch | None], edges: Sequence[RunEdge],
    together: Sequence[Region], groups: Sequence[int],
) -> Region | analysis.Edge | ir.Function | None:
    """Where to count a piece: an edge, too, in code that runs as often, if there is some. None: nowhere."""
    if piece == len(chosen) + len(edges):
        return function
    if piece < len(chosen):
        return together[groups[piece]] if chosen[piece] is not None else None
    alike = together[groups[piece]].stretches if groups[piece] < len(together) else ()
    return together[groups[piece]] if alike else edges[piece - len(chosen)].edge


def _through(flow: analysis.Flow, edges: Sequence[RunEdge]) -> list[Sequence[int]]:
    """The flow in which ``edges`` are pieces between runs."""
    runs, found = len(flow) - 1, [list(targets) for targets in flow]
    for number, edge in enumerate(edges, runs):
        if edge.target in found[edge.source]:
            found[edge.source].remove(edge.target)
        found[edge.source].append(number)
    return [*found[:-1], *([edge.target] for edge in edges), found[-1]]
