"""Paths of a function, and where on them tools add and count.

In: a program and a function of it. Out: FunctionPaths. Invariant: what a wave runs between entering the function and
leaving it, calls stepped over, falls into paths in one way only; none is open when a call is made that may end the
wave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from luthier_py.base.records import dataclass
from luthier_py.program import analysis, ir
from luthier_py.rewrite.tool.chosen.counting import Stretch
from luthier_py.rewrite.tool.chosen.running import flow_of_runs


@dataclass(frozen=True, slots=True)
class Onward:
    """How control gets on from a run: by an edge, or (None) by its last instruction, which leaves the function or calls
    what may end the wave."""

    run: Stretch
    edge: analysis.Edge | None


@dataclass(frozen=True, slots=True)
class FunctionPaths:
    """``ways``: of the arcs of ``paths``, whose nodes are ``runs``."""

    function: ir.Function
    runs: tuple[Stretch, ...]
    ways: tuple[Onward, ...]
    paths: analysis.Paths
    adding: analysis.Adding

    def along(self, number: int) -> tuple[tuple[Stretch, ...], tuple[Onward, ...]]:
        """The runs of a path, and the ways from each to the next; the last one is that by which the path ends."""
        first, arcs = self.paths.along(number)
        nodes = (first, *(self.paths.arcs[arc][1] for arc in arcs[:-1]))
        return tuple(self.runs[node] for node in nodes), tuple(self.ways[arc] for arc in arcs)


def paths_of(program: ir.Program, function: ir.Function) -> FunctionPaths:
    """All paths of a function that may be edited."""
    runs, flow = flow_of_runs(program, function)
    edges: defaultdict[ir.Block, list[analysis.Edge]] = defaultdict(list)
    for edge in analysis.edges_of(function):
        edges[edge.source].append(edge)
    firsts = {run.block: number for number, run in reversed([*enumerate(runs)])}
    arcs, ways, calls = list[tuple[int, int]](), list[Onward](), list[int]()
    for number, run in enumerate(runs):
        for to, way in _onward(run, flow[number], edges[run.block], firsts):
            if way is None and to != analysis.OUTSIDE:
                calls.append(len(arcs))
            arcs.append((number, to))
            ways.append(Onward(run, way))
    found = analysis.paths(len(runs), arcs, flow[-1], calls)
    return FunctionPaths(function, tuple(runs), tuple(ways), found, found.place_increments(_often(arcs, flow)))


def _onward(run: Stretch, targets: Sequence[int], edges: Iterable[analysis.Edge], firsts: dict[ir.Block, int]) -> list[
        tuple[int, analysis.Edge | None]]:
    if analysis.OUTSIDE in targets:
        return [(targets[0], None)]
    return [(firsts[edge.target], edge) for edge in edges]


def _often(arcs: Iterable[tuple[int, int]], flow: analysis.Flow) -> list[float]:
    runs = analysis.estimate_frequencies(flow)
    return [runs[a] if b == analysis.OUTSIDE else min(runs[a], runs[b]) for a, b in arcs]
