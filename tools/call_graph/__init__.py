"""Counts calls and the instructions of each function, by the calls that lead to it: a call graph and flame graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luthier_py import LaunchResult, Mutator, Tool, Variable, WaveVariable, hook, ptr, u32, u64
from luthier_py.intrinsics import atomic_add
from luthier_py.program.analysis import source_frames
from luthier_py.program.ir import Ending, Function
from luthier_py.rewrite.tool import Counting
from luthier_py.tools.call_graph.contexts import Contexts, contexts
from luthier_py.tools.call_graph.forms import dot, folded, graphml, speedscope
from luthier_py.tools.call_graph.results import AMOUNTS, Part, Parts, part_of, result

MOST = 1 << 20  # counters


@hook
def enter(context: u32, n: u32) -> u32:
    return context + n


@hook
def leave(context: u32, n: u32) -> u32:
    return context - n


@hook(lanes="one")
def count(counts: ptr[u64]) -> None:
    atomic_add(counts, u64(1))


@hook(lanes="one")
def count_context(counts: ptr[u64], context: u32, counters: u32) -> None:
    atomic_add(counts + context * counters, u64(1))


class CallGraph(Tool):
    """Calls between functions, and executed instructions by the calls that lead to them, for flame graphs."""

    name = "call_graph"
    cacheable = True
    amounts = AMOUNTS

    context = WaveVariable(u32)

    def instrument(self, m: Mutator) -> Parts:
        functions = m.functions()
        countings = {function: m.counting(function) for function in functions}
        found, apart = self.numbered(m, countings)
        sizes = {f: len(countings[f].counters) * found.many[f.address] for f in functions}
        counts = Variable(u64, max(sum(sizes.values()), 2), name="CallGraph.counts")
        frames, parts, first = source_frames(m.program.obj), list[Part](), 0
        for function, counting in countings.items():
            self.count_function(m, counting, counts, first, found.many[function.address])
            self.follow(m, function, found)
            parts.append(part_of(m.program, function, counting, first, frames))
            first += sizes[function]
        return Parts(tuple(parts), found, apart, counts)

    @staticmethod
    def numbered(m: Mutator, countings: Mapping[Function, Counting]) -> tuple[Contexts, bool]:
        """Contexts, and whether they are counted separately: not where that takes too many counters."""
        functions = tuple(countings)
        chosen = {site.instr for function in functions for site in m.calls(function)}
        for apart in (True, False):
            found = contexts(m.program, functions, lambda site: site.instr in chosen, apart)
            if sum(len(countings[f].counters) * found.many[f.address] for f in functions) <= MOST:
                break
        return found, apart

    def count_function(self, m: Mutator, counting: Counting, counts: Variable, first: int, many: int) -> None:
        counters = len(counting.counters)
        for number, counted in enumerate(counting.counters, first):
            if many > 1:
                m.at_counted(counted, count_context, counts[number], self.context, counters)
            else:
                m.at_counted(counted, count, counts[number])

    def follow(self, m: Mutator, function: Function, found: Contexts) -> None:
        """The context is the callee's from behind all else at the call to before all else at what it returns to."""
        for site in m.calls(function):
            n, block = found.adds.get(site.instr.pc, 0), m.program.block_of(site.instr)
            if n:
                m.before(site.instr, enter, self.context, n, into=self.context, priority=-1)
            if n and not (block.ending is Ending.NO_RETURN and site.instr == block.instrs[-1]):
                m.after(site.instr, leave, self.context, n, into=self.context, priority=1)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Parts = launch.notes
        return result(notes, launch[notes.counts])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [self.headline(launch), f"  {'instructions':>12} {'with callees':>12} {'calls':>8}  function"]
        for row in report["functions"]:
            lines.append(f"  {row['exclusive']:>12} {row['inclusive']:>12} {row['calls']:>8}  {row['function']}")
        lines += [f"  {row['caller']} at {row['pc']:#x} calls {row['callee']} {row['count']} times"
                  for row in report["calls"]]
        lines += [] if report["apart"] else [f"  callers are not told apart: that takes more than {MOST} counters"]
        return "\n".join(lines)

    def files(self, launch: LaunchResult, report: dict[str, Any]) -> Mapping[str, bytes]:
        return {
            **super().files(launch, report),
            f"{self.name}.folded": folded(report),
            f"{self.name}.speedscope.json": speedscope(report, f"{launch.kernel} {launch.index}"),
            f"{self.name}.dot": dot(report),
            f"{self.name}.graphml": graphml(report),
        }
