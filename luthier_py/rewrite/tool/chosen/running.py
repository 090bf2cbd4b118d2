"""Runs of a function: ranges of blocks that are executed as a whole or not at all.

In: a program and a function of it. Out: its runs, and how control gets from one to the next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, repeat

from luthier_py.program import analysis, ir
from luthier_py.rewrite.tool.chosen.counting import RunEdge, Stretch


def runs_of(program: ir.Program, block: ir.Block) -> list[Stretch]:
    """The block cut behind calls that may end the wave."""
    return _runs(block, _find_ending_calls(program, program.function_of(block.instrs[0])))


def flow_of_runs(program: ir.Program, function: ir.Function) -> tuple[list[Stretch], analysis.Flow]:
    """All runs of a function, and how control gets from one to the next."""
    ending = _find_ending_calls(program, function)
    runs = {block.address: _runs(block, ending) for block in function.blocks}
    first = dict(zip(runs, accumulate(map(len, runs.values()), initial=0), strict=False))
    flow, may_end = [], set(ending)
    for block in function.blocks:
        number = first[block.address]
        flow += [[each, analysis.OUTSIDE] for each in range(number + 1, number + len(runs[block.address]))]
        following = [first[address] for address in block.successors]
        flow.append(following if following and block.stop - 1 not in may_end else [*following, analysis.OUTSIDE])
    return [*chain.from_iterable(runs.values())], [*flow, [first[entry] for entry in function.entries]]


def edges_of_runs(runs: Sequence[Stretch], edges: Iterable[analysis.Edge]) -> list[RunEdge]:
    """Edges, between runs."""
    first = {run.block: number for number, run in reversed([*enumerate(runs)])}
    last = {run.block: number for number, run in enumerate(runs)}
    return [RunEdge(edge, last[edge.source], first[edge.target]) for edge in edges]


def _find_ending_calls(program: ir.Program, function: ir.Function) -> list[int]:
    """Where calls are that may end the wave, ascending."""
    return [site.instr.at for site in program.calls(function) if _may_end(program, site)]


def _may_end(program: ir.Program, site: ir.CallSite) -> bool:
    reached = {f for target in site.targets for f in program.reachable(target)}
    return site.unknown or any(b.ending is ir.Ending.END for f in reached for b in f.blocks)


def _runs(block: ir.Block, ending: Sequence[int]) -> list[Stretch]:
    """``ending``: calls that may end the wave."""
    start, stop = block.start, block.stop
    inside = ending[bisect_left(ending, start) : bisect_left(ending, stop - 1)]
    cuts = [at + 1 for at in inside]
    return list(map(Stretch, repeat(block), map(range, [start, *cuts], [*cuts, stop])))


def steps_of_runs(function: ir.Function, runs: Sequence[Stretch]) -> dict[int, analysis.Steps]:
    """Steps of loops that do not begin at a place where another one does."""
    loops = analysis.steps_of(function)
    found: dict[int, analysis.Steps] = {}
    places: set[ir.Instr] = set()
    for number, run in enumerate(runs) if loops else ():
        steps = loops.get(run.block.address)
        here = set(steps.before) if steps is not None else set()
        if steps is not None and not here & places:
            found[number] = steps
            places |= here
    return found


def starts_of(function: ir.Function) -> tuple[int, ...]:
    """The addresses of which control passes one whenever the function is entered: that of the last entry, where others
    only lead to it, else those of all (kernels of Tensile whose arguments are preloaded)."""
    *others, last = function.entries
    return (last,) if all(_leads_to(function, entry, last) for entry in others) else function.entries


def _leads_to(function: ir.Function, entry: int, to: int) -> bool:
    """Whether control leads from an entry to an address, and nowhere else."""
    address, seen = entry, set[int]()
    while address not in (to, *seen) and len(function.block(address).successors) == 1:
        seen.add(address)
        address = function.block(address).successors[0]
    return address == to


def comes_back(function: ir.Function) -> bool:
    """Whether a function that was entered once may run the first instruction again, or that of another entry."""
    starts = starts_of(function)
    inside = [block for block in function.blocks if block.address not in function.entries or len(starts) > 1]
    return any(start in block.successors for block in inside for start in starts)
