"""The files of a report: CSV, a page with annotated disassembly and source, and a plot of the worst instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from luthier_py import LaunchResult, Tool
from luthier_py.report import plots
from luthier_py.report.annotated import Beside, build_listing, sort_by_annotated_lines, source_table
from luthier_py.report.columns import comma_separated, idle_line
from luthier_py.report.html import HtmlRow, HtmlTable, Page, Picture, render
from luthier_py.report.sources import SourceFolder
from luthier_py.rewrite.tool import encoded, loop_of

from .advice import advice_text
from .results import SUMS, ordered

COLUMNS = ("accesses", "cycles", "conflict-free", "conflicts", "worst")
Numbers = Mapping[str, Any]


def files_of(tool: Tool, launch: LaunchResult, report: Mapping[str, Any], worst: int, folder: SourceFolder
             ) -> dict[str, bytes]:
    """Content by file name; ``worst``: how many instructions the plot shows."""
    files = {f"{tool.name}.csv": encoded(comma_separated(report["instructions"]))}
    pictures = [_plot(report["instructions"], worst)] if plots.available() and worst > 0 else []
    for picture in pictures:
        files[f"{tool.name}.png"] = picture.image
    files[f"{tool.name}.html"] = encoded(render(_page(tool, launch, report, pictures, folder)))
    return files


def _plot(rows: list[dict[str, Any]], count: int) -> Picture:
    worst = ordered(rows, worst_first=True)[:count]
    parts = {name: [row[f"{name}_cycles".replace("-", "_")] for row in worst] for name in ("conflict-free", "conflict")}
    labels = [f"{row['pc']:#x} {row['instruction'].split()[0]}" for row in worst]
    title = "LDS cycles of the worst instructions"
    return Picture(title, plots.plot_stacked_bars(labels, parts, title, "cycles"))


def _page(tool: Tool, launch: LaunchResult, report: Mapping[str, Any], pictures: list[Picture], folder: SourceFolder
          ) -> Page:
    total, by_pc = report["total"], {row["pc"]: row for row in report["instructions"]}
    kernel, counted = tool.selection.short(launch.kernel), launch.notes
    shape = ("work-groups x work-items", f"{launch.grid} x {launch.block}")
    facts = (
        shape if report["launches"] == 1 else ("launches", str(report["launches"])),
        ("target", f"{report['target']}, banks of {report['bank_model']}"),
        *((name.replace("_", " "), str(number)) for name, number in total.items()),
    )
    files = _files(by_pc.values())
    sources = sort_by_annotated_lines(source_table(file, source, COLUMNS[:-1], _by_line(file, by_pc.values()))
                         for file in files if (source := folder.source(file)).lines)
    beside = {pc: Beside(_cells(row), heat)
              for (pc, row), heat in zip(by_pc.items(), _heats(by_pc.values()), strict=True)}
    listings = [build_listing(function, counted.lines, folder, COLUMNS, beside)
                for function in counted.reached(launch.kernel)]
    notes = [line[0].upper() + line[1:] + "." for line in advice_text(report)]
    notes += [] if plots.available() else ["Install luthier-py[plot] for a plot of the worst instructions."]
    notes += folder.not_shown(files)
    notes += [f"Left out: {row['instruction']} at {row['pc']:#x}, as {row['why']}." for row in report["left_out"]]
    ran = [row for row in by_pc.values() if row["accesses"]]
    notes += [f"{line.strip()}." for line in idle_line(len(by_pc) - len(ran))]
    panes = [pane for pane in (sources, listings) if pane]
    return Page(f"LDS bank conflicts of {kernel}", facts, [_summary(ran)], pictures, notes, panes,
                tool.selection.whole(launch.kernel))


def _summary(rows: Collection[Numbers]) -> HtmlTable:
    inside = any(map(loop_of, rows))
    found = tuple(
        HtmlRow((f"{row['pc']:#x}", *_cells(row), *[loop_of(row)] * inside,
                 f"{row['instruction']}  {row['source'] or ''}".rstrip()), heat, link=f"pc{row['pc']:x}")
        for row, heat in zip(rows, _heats(rows), strict=True)
    )  # fmt: skip
    columns = ("pc", *COLUMNS, *["loop"] * inside)
    return HtmlTable("LDS instructions", (*columns, "instruction"), found, code=len(columns))


def _by_line(file: str, rows: Iterable[Numbers]) -> dict[int, Beside]:
    """The sums of a source file's lines."""
    sums: dict[int, Counter[str]] = {}
    for row in rows:
        name, _, line = (row["source"] or "").rpartition(":")
        if name == file:
            sums.setdefault(int(line), Counter()).update({key: row[key] for key in SUMS})
    return {line: Beside(_cells({**row, "worst_way": 0})[:-1], heat)
            for (line, row), heat in zip(sums.items(), _heats(sums.values()), strict=True)}


def _files(rows: Iterable[Numbers]) -> list[str]:
    return sorted({row["source"].rpartition(":")[0] for row in rows if row["source"]})


def _cells(row: Numbers) -> tuple[str, ...]:
    numbers = (row["accesses"], row["cycles"], row["conflict_free_cycles"], row["conflict_cycles"])
    return (*map(str, numbers), f"{row['worst_way']}-way" if row["worst_way"] else "")


def _heats(rows: Collection[Numbers]) -> list[float]:
    """By what conflicts cost; where nothing conflicts, by all cycles."""
    cost = "conflict_cycles" if any(row["conflict_cycles"] for row in rows) else "cycles"
    most = max((row[cost] for row in rows), default=0)
    return [row[cost] / most if most else 0.0 for row in rows]
