"""What a tool may look at: kernels, functions, and of their code what the user chose.

In: a program, its facts, the user's selection. Out: instructions, blocks and other parts of code. Invariant: all that
is given is chosen; of a block that is cut it is a part, perhaps with gaps.
"""

from __future__ import annotations

from collections.abc import Iterable

from luthier_py.base.errors import Location
from luthier_py.base.records import replace
from luthier_py.program import analysis, ir
from luthier_py.rewrite.tool.arguments.expected import each, expect
from luthier_py.rewrite.tool.chosen.choice import Choice
from luthier_py.rewrite.tool.chosen.counting import Counting, Region, Stretch, plan_counting, regions, whole
from luthier_py.rewrite.tool.chosen.filters import compile_filter
from luthier_py.rewrite.tool.chosen.running import comes_back, edges_of_runs, flow_of_runs, runs_of, steps_of_runs
from luthier_py.rewrite.tool.chosen.selection import Selection
from luthier_py.rewrite.tool.chosen.spare import spare_scalars
from luthier_py.rewrite.tool.edits import Refusal


class ChosenCode:
    """Of one program. Kernels that cannot be edited are recorded as refused (mutable in that alone)."""

    def __init__(self, program: ir.Program, facts: analysis.Facts, selection: Selection | None = None) -> None:
        self.program = program
        self.facts = facts
        self._choice = Choice(program, Selection() if selection is None else selection)
        self._refused: dict[str, Refusal] = {}

    @property
    def kernels(self) -> tuple[ir.Kernel, ...]:
        """Kernels that can be edited with all that they reach; the others are recorded as refused, with the reason."""
        return tuple(kernel for kernel in self.program.kernels if not self._refuses(kernel))

    def functions(self, kernel: ir.Kernel | None = None) -> tuple[ir.Function, ...]:
        """The functions that a kernel reaches, its own body among them; without a kernel, those of all, each once.

        Kernels share the functions that they call: what is inserted there runs for each of them.
        """
        if kernel is not None:
            expect(kernel, ir.Kernel)
            return self.program.reachable(kernel.function)
        return ir.by_address({f for k in self.kernels for f in self.program.reachable(k.function)})

    def _refuses(self, kernel: ir.Kernel) -> bool:
        broken = [f for f in self.program.reachable(kernel.function) if f.incomplete]
        if broken:
            where = Location(kernel.name, broken[0].address)
            self._refused[kernel.name] = Refusal(kernel.name, f"{broken[0].name}: {broken[0].incomplete}", where)
        return bool(broken)

    def instrs(self, function: ir.Function, where: str = "") -> tuple[ir.Instr, ...]:
        """The function's instructions; ``where`` is a filter, as in "memory & width >= 8" (docs/filters.md)."""
        expect(function, ir.Function)
        expect(where, str, name="where")
        return tuple(filter(compile_filter(where, self.program), filter(self._choice.takes, function.instrs)))

    def blocks(self, function: ir.Function) -> tuple[ir.Block, ...]:
        """The function's blocks; where only a part of one is chosen, a copy with that part, which may have gaps."""
        expect(function, ir.Function)
        cut = self._cut(map(whole, function.blocks))
        return tuple(p.block if len(p) == len(p.block.instrs) else replace(p.block, instrs=p.instrs) for p in cut)

    def stretches(self, block: ir.Block) -> tuple[Stretch, ...]:
        """The block cut where EXEC changes: within a stretch the same lanes are active."""
        expect(block, ir.Block)
        places, ends = range(block.start, block.stop), self.facts.stretches(block)
        return self._cut(Stretch(block, places[start:end]) for start, end in ends)

    def runs(self, block: ir.Block) -> tuple[Stretch, ...]:
        """The block cut behind calls that may end the wave: a run is executed as a whole or not at all."""
        expect(block, ir.Block)
        return self._cut(runs_of(self.program, block))

    def regions(self, function: ir.Function) -> tuple[Region, ...]:
        """The runs of a function, those together that are executed equally often."""
        expect(function, ir.Function)
        runs, flow = flow_of_runs(self.program, function)
        groups = analysis.build_spanning_tree(flow, [0.0] * len(runs)).equally_often()
        return tuple(region for region in regions([*map(self._part, runs)], groups) if region.stretches)

    def counting(self, function: ir.Function, known: Iterable[int] = (), edges: bool = False) -> Counting:
        """The fewest counters, in code that runs seldom, from which the executions of all stretches follow, and of
        ``edges``. The tool knows how often runs are executed that begin at ``known`` addresses: these cost nothing."""
        expect(function, ir.Function)
        runs, flow = flow_of_runs(self.program, function)
        steps = steps_of_runs(function, runs) if self._choice.takes_all(function) else {}
        ways = edges_of_runs(runs, self.edges(function)) if expect(edges, bool, name="edges") else ()
        starts = frozenset(each(known, int, "known"))
        return plan_counting(function, [*map(self._part, runs)], flow, not comes_back(function), steps, starts, ways)

    def spare_scalars(self, kernels: Iterable[ir.Kernel]) -> int:
        """Scalar registers that wave variables can take before fewer waves run at once or hooks are short."""
        found = (spare_scalars(self.program, self.facts, kernel) for kernel in each(kernels, ir.Kernel, "kernels"))
        return max(0, min(found, default=0))

    def components(self) -> tuple[tuple[ir.Kernel, ...], ...]:
        """Kernels that share functions together: a wave variable has one register in all of them."""
        return analysis.group_sharing_kernels(self.program, self.kernels)

    def _cut(self, stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
        """The chosen part of each stretch."""
        return tuple(part for part in map(self._part, stretches) if part is not None)

    def _part(self, stretch: Stretch) -> Stretch | None:
        """What is chosen of it."""
        chosen = self._choice.among(stretch.places, stretch.block.code)
        if chosen is stretch.places:
            return stretch
        return Stretch(stretch.block, chosen) if chosen else None

    def edges(self, function: ir.Function) -> tuple[analysis.Edge, ...]:
        """The ways from block to block, those that leave instructions which the user chose; of a conditional branch the
        way where it is taken first."""
        expect(function, ir.Function)
        return tuple(edge for edge in analysis.edges_of(function) if self._choice.takes(edge.instr))

    def loops(self, function: ir.Function) -> tuple[analysis.Loop, ...]:
        """The natural loops of a function by their headers, outer ones before those inside of them."""
        expect(function, ir.Function)
        return tuple(loop for loop in analysis.loops_of(function) if self._part(whole(loop.header)) is not None)

    def calls(self, function: ir.Function) -> tuple[ir.CallSite, ...]:
        """Where a function calls others: ``before`` and ``after`` (once it has returned) take the ``instr`` of each."""
        expect(function, ir.Function)
        return tuple(site for site in self.program.calls(function) if self._choice.takes(site.instr))
