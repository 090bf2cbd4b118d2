"""The page of a histogram: what kinds of instructions a kernel and its loops execute, and which opcodes.

In: a report. Out: lines for people, and a page. Invariant: shares are of the kernel's instructions, those of a loop's
kinds of the loop's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from luthier_py import LaunchResult, Tool
from luthier_py.isa import InstructionClass
from luthier_py.report.columns import percent
from luthier_py.report.html import HtmlRow, HtmlTable, Page, render
from luthier_py.rewrite.tool import encoded

KINDS = {kind.value: kind.value.replace("_", " ").replace("lds", "LDS").replace("gds", "GDS").replace("alu", "ALU")
         for kind in InstructionClass}
"""As people read them."""
Numbers = Mapping[str, Any]


def parts_of(report: Numbers) -> Iterator[tuple[str, list[str]]]:
    """The kernel, and each loop with most instructions first: shares of kinds."""
    total = report["instructions"]
    if total:
        yield "kinds", _shares(report["kinds"], total)
    for row in _hottest(report):
        name = f"loop {row['header']:#x}, {percent(row['instructions'] / total)} of all"
        yield name, _shares(row["kinds"], row["instructions"])


def files_of(tool: Tool, launch: LaunchResult, report: Numbers) -> dict[str, bytes]:
    """Content by file name."""
    return {f"{tool.name}.html": encoded(render(_page(tool, launch, report)))}


def _page(tool: Tool, launch: LaunchResult, report: Numbers) -> Page:
    shape = ("work-groups x work-items", f"{launch.grid} x {launch.block}")
    facts = (shape if launch.launches == 1 else ("launches", str(launch.launches)),
             ("instructions", str(report["instructions"])))
    tables = [_kinds(report), _opcodes(report)]
    return Page(f"Opcodes of {tool.selection.short(launch.kernel)}", facts, tables,
                whole=tool.selection.whole(launch.kernel))


def _kinds(report: Numbers) -> HtmlTable:
    """A column for each kind, a row for the kernel and for each loop."""
    kinds = list(report["kinds"])
    rows = [("whole kernel", report), *((f"loop {row['header']:#x}", row) for row in _hottest(report))]
    made = [HtmlRow((name, str(row["instructions"]), *(percent(row["kinds"].get(kind, 0) / max(row["instructions"], 1))
                                                       for kind in kinds))) for name, row in rows]
    return HtmlTable("Kinds of instructions", ("part", "instructions", *map(KINDS.__getitem__, kinds)), tuple(made), 0)


def _opcodes(report: Numbers) -> HtmlTable:
    total, most = max(report["instructions"], 1), max(report["opcodes"].values(), default=1)
    rows = (HtmlRow((str(count), percent(count / total), opcode), count / most)
            for opcode, count in report["opcodes"].items())
    return HtmlTable("Opcodes", ("executions", "share", "opcode"), tuple(rows), 2)


def _hottest(report: Numbers) -> Sequence[Numbers]:
    return sorted(report["loops"], key=lambda row: -row["instructions"])


def _shares(kinds: Mapping[str, int], total: int) -> list[str]:
    return [f"{KINDS[kind]} {percent(count / total)}" for kind, count in kinds.items()]
