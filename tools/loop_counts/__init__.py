"""Counts how often each loop is entered, and its iterations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add
from luthier_py.program.analysis import Loop, line_of_loop, source_lines
from luthier_py.rewrite.tool import SAME, SUM, InstrPlaces, Omission, RowsBy, left_out_lines, left_out_rows, worked_out

BEGINS = "its function begins with this loop, so that no edge leads into it"


@dataclass(frozen=True, slots=True)
class Loops:
    """Those of one program; of each that is counted its entries and its turns."""

    loops: tuple[Loop, ...]
    functions: tuple[str, ...]
    sources: tuple[str, ...]
    """Their lines."""
    left_out: tuple[Omission, ...]
    """The first instructions of their headers."""
    counts: Variable


@hook(lanes="one")
def count(total: ptr[u64]) -> None:
    atomic_add(total, u64(1))


class LoopCounts(Tool):
    """Entries, turns and mean trip count of each natural loop, by wave."""

    name = "loop_counts"
    cacheable = True
    amounts = {"loops": RowsBy(("header",), {
        "depth": SAME.of("loops around it, and itself"), "blocks": SAME, "entries": SUM.of("entries by waves"),
        "turns": SUM.of("back edges by waves"),
        "trips": worked_out(lambda row, _: trips(row["entries"], row["turns"]), "turns of an entry, and one")})}

    def instrument(self, m: Mutator) -> Loops:
        found = [(loop, function.name) for function in m.functions() for loop in m.loops(function)]
        counted = [(loop, name) for loop, name in found if not loop.begins]
        counts = Variable(u64, max(2 * len(counted), 1), name="LoopCounts.counts")
        for number, (loop, _) in enumerate(counted):
            m.at_loop_entry(loop, count, counts[2 * number])
            m.at_back_edge(loop, count, counts[2 * number + 1])
        places = InstrPlaces(m.program)
        for loop in (loop for loop, _ in found if loop.begins):
            places.leave_out(loop.header.instrs[0], BEGINS)
        lines = source_lines(m.program.obj)
        sources = tuple(str(line_of_loop(loop, lines) or "") for loop, _ in counted)
        return Loops(tuple(loop for loop, _ in counted), tuple(name for _, name in counted), sources, places.left_out,
                     counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Loops = launch.notes
        counts = launch[notes.counts]
        return {"loops": [{
            "function": name, "header": loop.header.address, "source": source, "depth": loop.depth,
            "blocks": len(loop.blocks), "entries": counts[2 * number], "turns": counts[2 * number + 1],
            "trips": trips(*counts[2 * number : 2 * number + 2]),
        } for number, (loop, name, source) in enumerate(zip(notes.loops, notes.functions, notes.sources, strict=True))],
            "left_out": left_out_rows(notes.left_out)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows = [f"  {'  ' * row['depth']}0x{row['header']:x} entered {row['entries']}, {row['trips']:.2f} trips each"
                f"  {row['source']}".rstrip() for row in report["loops"]]
        return "\n".join([self.headline(launch), *rows, *left_out_lines(report["left_out"])])


def trips(entries: int, turns: int) -> float:
    """Iterations of the loop each time that it is entered."""
    return 1 + turns / entries if entries else 0.0
