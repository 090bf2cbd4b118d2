"""What faster code would be worth: curves of a kernel's time over that of its parts, their slopes, tables, a page.

In: facts of a campaign, from `causal/campaign`. Out: the same with gains and slopes, and files. Invariant: candidates
stand by their slopes, the steepest first, and where these are equal the hottest; a gain is the part of the launch's
time that would be saved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from luthier_py.base.names import demangle
from luthier_py.report import plots
from luthier_py.report.columns import align_columns, comma_separated, percent
from luthier_py.report.html import HtmlRow, HtmlTable, Page, Picture, render
from luthier_py.report.plain import Json
from luthier_py.report.sources import SourceFolder
from luthier_py.rewrite.tool import encoded

NO_LINE = "no line"
"""The name of code that has none."""
MOST_CURVES = 10
"""In a picture."""


def causal_summary(facts: Json) -> Json:
    """The facts with gains and slopes."""
    rows = [_with_gains(row, facts["cycles"]) for row in facts["candidates"]]
    return {**facts, "candidates": sorted(rows, key=lambda row: (-row["slope"], -row["share"], row["name"]))}


def _with_gains(row: Json, cycles: float) -> Json:
    curve = [{**point, "gain": 1 - point["cycles"] / cycles if cycles else 0.0} for point in row["curve"]]
    return {**row, "curve": curve, "slope": slope([(point["speedup"] / 100, point["gain"]) for point in curve])}


def slope(points: Iterable[tuple[float, float]]) -> float:
    """The slope of the line through the origin that is nearest to the points (least squares)."""
    pairs = list(points)
    return sum(x * y for x, y in pairs) / sum(x * x for x, _ in pairs)


def causal_text(facts: Json) -> str:
    """The table."""
    methods = {"model": "by the model's costs", "delays": "by delays in other code"}
    head = (f"{facts['file']}: {demangle(facts['kernel'])} on {facts['target']}, {facts['cycles']:g} cycles; saved if "
            f"code were faster by so much, {methods[facts['method']]}")
    names = _names(facts)
    table = align_columns(_columns(facts), ((*_cells(row), names[row["name"]]) for row in facts["candidates"]), left=1)
    left = [f"not tried: {', '.join(facts['left_out'])}"] if facts["left_out"] else []
    lines = ["no source lines are known: compile with -g, or give --by block"] if _has_no_lines(facts) else []
    return "\n".join([head, table, *left, *lines])


def _has_no_lines(facts: Json) -> bool:
    """Whether lines were requested, and there are none."""
    rows = facts["candidates"]
    return any(row["name"] == NO_LINE for row in rows) and not any(row["line"] for row in rows)


def _names(facts: Json) -> dict[str, str]:
    """How candidates are shown: with where they begin, files below the folder that all are in, if it is not /."""
    lines = {row["name"]: row["line"] for row in facts["candidates"]}
    folders = [os.path.dirname(line) for line in lines.values() if line]
    above = os.path.commonpath(folders) if folders and len({each[:1] == "/" for each in folders}) == 1 else ""
    shown = {name: line and (os.path.relpath(line, above) if above.strip("/") else line)
             for name, line in lines.items()}
    return {name: line if name == lines[name] else f"{name} [{line}]" if line else name for name, line in shown.items()}


def _columns(facts: Json) -> tuple[str, ...]:
    speedups = [f"{point['speedup']}%" for point in facts["candidates"][0]["curve"]]
    return ("slope", *speedups, "issued", "if this were faster")


def _cells(row: Json) -> tuple[str, ...]:
    return (f"{row['slope']:.3f}", *(percent(point["gain"]) for point in row["curve"]), percent(row["share"]))


def causal_files(facts: Json) -> dict[str, bytes]:
    """Files by suffix: points as CSV, the table, and a page."""
    rows = [{"name": row["name"], "line": row["line"], "share": row["share"], "slope": row["slope"], **point}
            for row in facts["candidates"] for point in row["curve"]]
    return {"csv": encoded(comma_separated(rows)), "txt": encoded(f"{causal_text(facts)}\n"),
            "html": encoded(render(_page(facts)))}


def _page(facts: Json) -> Page:
    title = f"Causal profile of {demangle(facts['kernel'])}"
    folder = SourceFolder(Path(os.environ.get("LUTHIER_SOURCES", ".")))
    names = _names(facts)
    rows = tuple(HtmlRow((*_cells(row), names[row["name"]], _source(row, folder)), row["slope"])
                 for row in facts["candidates"])
    columns = (*_columns(facts), "source")
    table = HtmlTable("Candidates", columns, rows, len(columns) - 1, "Slope: of the line through the origin nearest to "
                      "the curve. Issued: part of the cycles for which executed instructions are issued.")
    about = (("launch", facts["file"]), ("target", facts["target"]), ("cycles", f"{facts['cycles']:g}"),
             ("method", facts["method"]), ("not tried", ", ".join(facts["left_out"]) or "nothing"))
    return Page(title, about, [table], _pictures(facts["candidates"][:MOST_CURVES], names, title))


def _source(row: Json, folder: SourceFolder) -> str:
    file, _, line = (row["line"] or "").rpartition(":")
    return folder.source(file).line(int(line)).strip() if file else ""


def _pictures(rows: Sequence[Json], names: Mapping[str, str], title: str) -> list[Picture]:
    if not plots.available():
        return []
    lines = {names[row["name"]]: [(0.0, 0.0), *((point["speedup"], 100 * point["gain"]) for point in row["curve"])]
             for row in rows}
    return [Picture(title, plots.curves(lines, title, "faster by, in percent", "time of the launch saved, in percent"))]
