"""Counts how often control takes each way of each conditional branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add
from luthier_py.program.analysis import Edge
from luthier_py.rewrite.tool import SUM, RowsBy


@dataclass(frozen=True, slots=True)
class Edges:
    """Those of one program, and their counts."""

    edges: tuple[Edge, ...]
    functions: tuple[str, ...]
    counts: Variable


@hook(lanes="one")
def count(total: ptr[u64]) -> None:
    atomic_add(total, u64(1))


class BranchEdges(Tool):
    """Executions of both ways of each conditional branch, by wave."""

    name = "branch_edges"
    cacheable = True
    amounts = {"edges": RowsBy(("branch", "target", "taken"), {"count": SUM.of("executions by waves")})}

    def instrument(self, m: Mutator) -> Edges:
        found = [(edge, function.name) for function in m.functions() for edge in m.edges(function) if edge.splits]
        counts = Variable(u64, max(len(found), 1), name="BranchEdges.counts")
        for number, (edge, _) in enumerate(found):
            m.at_edge(edge, count, counts[number])
        return Edges(tuple(edge for edge, _ in found), tuple(name for _, name in found), counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Edges = launch.notes
        rows = zip(notes.edges, notes.functions, launch[notes.counts], strict=False)
        return {"edges": [{
            "function": name, "branch": edge.instr.pc, "target": edge.target.address, "taken": edge.taken,
            "count": times,
        } for edge, name, times in rows]}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [self.headline(launch)]
        for row in report["edges"]:
            way = "taken" if row["taken"] else "falls through"
            lines.append(f"  0x{row['branch']:x} -> 0x{row['target']:x} {way:13} {row['count']:>12}")
        return "\n".join(lines)
