"""The files of a report: CSV, a page with annotated source, and the roofline as a plot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from luthier_py import LaunchResult, Tool
from luthier_py.base.names import shorten_name
from luthier_py.isa.timing.peaks import Peaks
from luthier_py.report import plots
from luthier_py.report.annotated import Beside, sort_by_annotated_lines, source_table
from luthier_py.report.columns import comma_separated
from luthier_py.report.html import HtmlRow, HtmlTable, Page, Picture, render
from luthier_py.report.sources import SourceFile, SourceFolder
from luthier_py.rewrite.tool import encoded

from .limits import limits_of
from .rows import LEVELS, doubts, flat, limit_cells, limit_text, peaks_for, ran, shown, title

COLUMNS = ("instructions", "flops", "loaded", "stored", "atomic", "LDS", "flops/byte", "of peak", "limit")
MOST = 12  # points of the plot
LABEL = 36  # characters of their names
Numbers = Mapping[str, Any]


def files_of(tool: Tool, launch: LaunchResult, report: Numbers, folder: SourceFolder) -> dict[str, bytes]:
    """Content by file name."""
    files = {f"{tool.name}.csv": encoded(comma_separated(flat(dict(report))))}
    computes = bool(report["total"]["intensity"])  # a kernel that computes nothing has no place in the plot
    pictures = [_plot(tool.selection.short(launch.kernel), report)] if computes and plots.available() else []
    for picture in pictures:
        files[f"{tool.name}.png"] = picture.image
    files[f"{tool.name}.html"] = encoded(render(_page(tool, launch, report, pictures, folder)))
    return files


def _plot(kernel: str, report: Numbers) -> Picture:
    """Where the kernel and what has most of its flops stand; a peak of a type only where the kernel computes in it."""
    peaks, types = peaks_for(report), report["total"]["flops_by_type"]
    parts = [(f"loop {title(row)}" if level == "loops" and not row["source"] else _short(title(row)), row)
             for level in ("regions", "loops", "lines") for row in ran(report, level)]
    rows = [(kernel if len(kernel) <= LABEL else "the kernel", report["total"]),
            *sorted(parts, key=lambda part: -part[1]["flops"])]
    points = {name: row["intensity"] for name, row in rows if row["intensity"]}
    roofs = {f"{type}, {rate} flops a cycle": rate for type, rate in peaks.flops.items() if type in types}
    heading = f"Roofline of a compute unit of {report['target']}"
    slope = f"vector cache, {peaks.bytes} bytes a cycle"
    return Picture(heading, plots.roofline((slope, peaks.bytes), roofs, dict(list(points.items())[:MOST]), heading))


def _page(tool: Tool, launch: LaunchResult, report: Numbers, pictures: list[Picture], folder: SourceFolder) -> Page:
    total, kernel, peaks = report["total"], tool.selection.short(launch.kernel), peaks_for(report)
    shape = ("work-groups x work-items", f"{launch.grid} x {launch.block}")
    facts = [shape if report["launches"] == 1 else ("launches", str(report["launches"])), ("target", report["target"]),
             *((f"{type} flops", str(count)) for type, count in total["flops_by_type"].items()),
             ("flops per byte of global memory", shown(total["intensity"])),
             *((name.replace("_", " "), str(total[name])) for name in ("instructions", "global_bytes", "lds_bytes")),
             *([("cycles, with the tool", str(report["cycles"]))] if report["cycles"] else [])]
    tables = [_table(level, rows, peaks) for level in LEVELS[:-1] if (rows := ran(report, level))]
    files = _files(report["lines"])
    sources = sort_by_annotated_lines(_source(file, source, report["lines"], peaks) for file in files
                         if (source := folder.source(file)).lines)
    told = limit_text(limits_of(total, peaks))
    notes = [f"{line[0].upper()}{line[1:]}." for line in (told, *doubts(report)) if line]
    notes += folder.not_shown(files)
    assumed = f" Assumed are {peaks.assumed}." if peaks.assumed else ""
    if report["total"]["intensity"]:
        notes.append(f"The plot's peaks are the cycle model's for {peaks.model}: docs/time-model.md has sources."
                     f"{assumed}")
    else:
        notes.append("There are no flops that are known to work on global memory, and so no plot.")
    if not sources:
        tables += [_table("lines", rows, peaks) for rows in [ran(report, "lines")] if rows]
    panes = [sources] if sources else []
    return Page(f"Roofline of {kernel}", tuple(facts), tables, pictures, notes, panes,
                tool.selection.whole(launch.kernel))


def _files(rows: Iterable[Numbers]) -> list[str]:
    """Those of the lines; of what has most instructions first."""
    found: Counter[str] = Counter()
    for row in rows:
        found[_place(row)[0]] += row["instructions"]
    return [file for file, _ in found.most_common() if file]


def _table(level: str, rows: Sequence[Numbers], peaks: Peaks) -> HtmlTable:
    most = max((row["flops"] for row in rows), default=0)
    found = tuple(HtmlRow((title(row), *_cells(row, peaks)), row["flops"] / most if most else 0.0) for row in rows)
    return HtmlTable(level.capitalize(), (level.removesuffix("s"), *COLUMNS), found, code=0)


def _source(file: str, source: SourceFile, rows: Iterable[Numbers], peaks: Peaks) -> HtmlTable:
    """A source file with what its lines did; what is known only to lie between two lines is at the first of them, and
    marked there."""
    here = [(lines, row) for row in rows for name, lines in [_place(row)] if name == file]
    most = max((row["flops"] + row["global_bytes"] for _, row in here), default=0)
    beside: dict[int, Beside] = {}
    between: dict[int, list[HtmlRow]] = {}
    for lines, row in here:
        first, *last = map(int, lines.split("-"))
        if last:
            cells = (lines, *_cells(row, peaks), f"in between: lines {lines}")
            between.setdefault(first, []).append(HtmlRow(cells))
        else:
            beside[first] = Beside(_cells(row, peaks), (row["flops"] + row["global_bytes"]) / most if most else 0.0)
    return source_table(file, source, COLUMNS, beside, between)


def _place(row: Numbers) -> tuple[str, str]:
    """The file and the lines of a row; nothing of what has none."""
    file, _, lines = row["source"].rpartition(":")
    return file, lines


def _short(name: str) -> str:
    return shorten_name(name.rpartition("/")[2], name, LABEL)


def _cells(row: Numbers, peaks: Peaks) -> tuple[str, ...]:
    names = ("instructions", "flops", "bytes_loaded", "bytes_stored", "bytes_atomic", "lds_bytes")
    return (*(str(row[name]) for name in names), shown(row["intensity"]), *limit_cells(limits_of(row, peaks)))
