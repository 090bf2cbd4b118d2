"""The files of a report: CSV, a page with annotated disassembly and source, and a plot of the worst instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from luthier_py import LaunchResult, Tool
from luthier_py.ir import Function
from luthier_py.report import plots
from luthier_py.report.columns import comma_separated
from luthier_py.report.html import HtmlRow, HtmlTable, Page, Picture, render
from luthier_py.report.sources import SourceFile, SourceFolder
from luthier_py.tool import encoded

from .advice import advice_text
from .results import Sites

COLUMNS = ("accesses", "cycles", "conflict-free", "conflicts", "worst")
Numbers = Mapping[str, Any]


def files_of(tool: Tool, launch: LaunchResult, report: Mapping[str, Any], worst: int, folder: SourceFolder
             ) -> dict[str, bytes]:
    """Content by file name; ``worst``: how many instructions the plot shows."""
    files = {f"{tool.name}.csv": encoded(comma_separated(report["instructions"]))}
    pictures = [_plot(report["instructions"], worst)] if plots.available() and worst > 0 else []
    for picture in pictures:
        files[f"{tool.name}.png"] = picture.png
    files[f"{tool.name}.html"] = encoded(render(_page(tool, launch, report, pictures, folder)))
    return files


def _plot(rows: Iterable[Numbers], count: int) -> Picture:
    worst = sorted(rows, key=lambda row: (-row["conflict_cycles"], row["pc"]))[:count]
    parts = {name: [row[f"{name}_cycles".replace("-", "_")] for row in worst] for name in ("conflict-free", "conflict")}
    labels = [f"{row['pc']:#x} {row['instruction'].split()[0]}" for row in worst]
    title = "LDS cycles of the worst instructions"
    return Picture(title, plots.stacked_bars(labels, parts, title, "cycles"))


def _page(tool: Tool, launch: LaunchResult, report: Mapping[str, Any], pictures: list[Picture], folder: SourceFolder
          ) -> Page:
    total, by_pc = report["total"], {row["pc"]: row for row in report["instructions"]}
    kernel, counted = tool.selection.shown(launch.kernel), launch.notes
    shape = ("work-groups x work-items", f"{launch.grid} x {launch.block}")
    facts = (
        shape if report["launches"] == 1 else ("launches", str(report["launches"])),
        ("target", f"{report['target']}, banks of {report['bank_model']}"),
        *((name.replace("_", " "), str(number)) for name, number in total.items()),
    )
    files = _files(by_pc.values())
    sources = [_source(file, source, by_pc.values()) for file in files if (source := folder.source(file)).lines]
    listings = [_listing(folder, counted, function, by_pc) for function in counted.reached(launch.kernel)]
    notes = [line[0].upper() + line[1:] + "." for line in advice_text(report)]
    notes += [] if plots.available() else ["Install luthier-py[plot] for a plot of the worst instructions."]
    notes += [f"Source {file} is not shown: {why}; -O sources=FOLDER says where sources are."
              for file in files if (why := folder.source(file).missing)]
    notes += [f"Not counted: {row['instruction']} at {row['pc']:#x}." for row in report["not_counted"]]
    panes = [pane for pane in (sources, listings) if pane]
    return Page(f"LDS bank conflicts of {kernel}", facts, [_summary(by_pc.values())], pictures, notes, panes)


def _summary(rows: Iterable[Numbers]) -> HtmlTable:
    most = _most(rows)
    found = tuple(
        HtmlRow((f"{row['pc']:#x}", *_cells(row), f"{row['instruction']}  {row['source'] or ''}"), _heat(row, most),
            link=f"pc{row['pc']:x}")
        for row in rows
    )  # fmt: skip
    return HtmlTable("LDS instructions", ("pc", *COLUMNS, "instruction"), found, code=len(COLUMNS) + 1)


def _listing(folder: SourceFolder, counted: Sites, function: Function, by_pc: Mapping[int, Numbers]) -> HtmlTable:
    """The function's disassembly, with its source lines as headings; branches lead to where they go."""
    rows, most, before = [], _most(by_pc.values()), None
    here = {instr.pc for instr in function.instrs}
    for instr in function.instrs:
        source, numbers = counted.lines.at(instr.pc), by_pc.get(instr.pc)
        if source is not None and source != before:
            rows.append(HtmlRow((f"{source}  {folder.source(source.file).line(source.line)}",), heading=True))
        before = source or before
        cells = _cells(numbers) if numbers else ("",) * len(COLUMNS)
        heat = _heat(numbers, most) if numbers else 0.0
        text, target = counted.program.isa.text(instr.inst, instr.pc), instr.inst.branch_target(instr.pc)
        jump = f"pc{target:x}" if target in here else ""
        line = str(source) if source is not None else ""
        rows.append(HtmlRow((f"{instr.pc:#x}", *cells, text), heat, name=f"pc{instr.pc:x}", jump=jump, line=line))
    return HtmlTable(f"Disassembly of {function.name}", ("pc", *COLUMNS, "instruction"), tuple(rows), len(COLUMNS) + 1)


def _source(file: str, source: SourceFile, rows: Iterable[Numbers]) -> HtmlTable:
    """A source file with the sums of its lines."""
    sums: dict[int, Counter[str]] = {}
    for row in rows:
        name, _, line = (row["source"] or "").rpartition(":")
        if name == file:
            numbers = {key: row[key] for key in ("accesses", "cycles", "conflict_free_cycles", "conflict_cycles")}
            sums.setdefault(int(line), Counter()).update(numbers)
    most = max((line["conflict_cycles"] for line in sums.values()), default=0)
    found = []
    for number, shown in enumerate(source.lines, start=1):
        line = sums.get(number)
        cells = _cells(line)[:-1] if line else ("",) * (len(COLUMNS) - 1)
        heat = line["conflict_cycles"] / most if line and most else 0.0
        found.append(HtmlRow((str(number), *cells, shown), heat, line=f"{file}:{number}"))
    return HtmlTable(f"Source {file}", ("line", *COLUMNS[:-1], "text"), tuple(found), len(COLUMNS))


def _files(rows: Iterable[Numbers]) -> list[str]:
    return sorted({row["source"].rpartition(":")[0] for row in rows if row["source"]})


def _cells(row: Numbers) -> tuple[str, ...]:
    numbers = (row["accesses"], row["cycles"], row["conflict_free_cycles"], row["conflict_cycles"])
    return (*map(str, numbers), f"{row['worst_way']}-way" if row["worst_way"] else "")


def _most(rows: Iterable[Numbers]) -> int:
    return max((row["conflict_cycles"] for row in rows), default=0)


def _heat(row: Numbers, most: int) -> float:
    return row["conflict_cycles"] / most if most else 0.0
