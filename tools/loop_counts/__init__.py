"""Counts how often each loop is entered, and how often it goes round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.analysis import Loop
from luthier_py.intrinsics import atomic_add


@dataclass(frozen=True, slots=True)
class Loops:
    """Those of one program; of each that is counted its entries and its turns."""

    loops: tuple[Loop, ...]
    functions: tuple[str, ...]
    not_counted: tuple[tuple[str, int, str], ...]
    """Of each that is not: its function, its header's address, and why."""
    counts: Variable


class LoopCounts(Tool):
    """Entries, turns and mean trip count of each natural loop, by wave."""

    name = "loop_counts"

    @hook(lanes="one")
    def count(total: ptr[u64]) -> None:
        atomic_add(total, u64(1))

    def instrument(self, m: Mutator) -> Loops:
        found = [(loop, function.name, why_not(loop)) for function in m.functions() for loop in m.loops(function)]
        counted = [(loop, name) for loop, name, why in found if not why]
        counts = Variable(u64, max(2 * len(counted), 1), name="LoopCounts.counts")
        for number, (loop, _) in enumerate(counted):
            m.at_loop_entry(loop, self.count, counts[2 * number])
            m.at_back_edge(loop, self.count, counts[2 * number + 1])
        left = tuple((name, loop.header.address, why) for loop, name, why in found if why)
        return Loops(tuple(loop for loop, _ in counted), tuple(name for _, name in counted), left, counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Loops = launch.notes
        counts = launch[notes.counts]
        return {"loops": [{
            "function": name, "header": loop.header.address, "depth": loop.depth, "blocks": len(loop.blocks),
            "entries": counts[2 * number], "turns": counts[2 * number + 1],
            "trips": 1 + counts[2 * number + 1] / counts[2 * number] if counts[2 * number] else 0.0,
        } for number, (loop, name) in enumerate(zip(notes.loops, notes.functions, strict=True))],
            "not_counted": [{"function": name, "header": header, "why": why}
                            for name, header, why in notes.not_counted]}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows = [f"  {'  ' * row['depth']}0x{row['header']:x} entered {row['entries']}, {row['trips']:.2f} trips each"
                for row in report["loops"]]
        left = [f"  0x{row['header']:x} is not counted: {row['why']}" for row in report["not_counted"]]
        return "\n".join([self.headline(launch), *rows, *left])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return list(report["loops"])


def why_not(loop: Loop) -> str:
    """Why the loop is not counted; empty where it is."""
    return "its function begins with it, so that no edge leads into it" if loop.begins else ""
