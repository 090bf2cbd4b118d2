"""A study's summary as text, as one HTML page, and as pictures. The facts come from `study/summary`."""

from __future__ import annotations

from typing import Any

from rich.table import Table as RichTable

from luthier_py.base.records import replace
from luthier_py.features.faults.report import FAULT_HEADER, fault_cells, fault_text
from luthier_py.report.columns import align_columns
from luthier_py.report.html import HtmlRow, HtmlTable, Page, Picture, render
from luthier_py.report.plain import Json
from luthier_py.report.plots import available, plot_grouped_bars, plot_stacked_bars, ranges
from luthier_py.rewrite.tool import encoded

NAMES = ("program", "arguments", "tool", "device", "stack")
HEADER = ("runs", "launches", "seconds", "least", "most", "x bare", *NAMES, "status")
TEXTS = 6  # of the header's columns, at its end
WELL = ("ok", "nothing observed")
NO_PLOTS = "Install luthier-py[study] for plots."


def study_files(facts: Json) -> dict[str, bytes]:
    """Files by name: the summary as text and as a page, and a PNG for each figure."""
    pictures = study_pictures(facts) if available() else {}
    page = render(study_page(facts, pictures))
    return {
        "summary.txt": encoded(f"{study_text(facts)}\n"),
        "index.html": encoded(page),
        **{f"{name}.png": picture.image for name, picture in pictures.items()},
    }


def study_text(facts: Json) -> str:
    """All tables, one after the other."""
    parts = [facts["title"], align_columns(HEADER, map(_cells, facts["groups"]), left=TEXTS)]
    parts += [f"{each['of']}: {fault_text(each)}" for each in facts["campaigns"]]
    for figure in facts["figures"]:
        rows = [(*_numbers(figure, row["values"]), row["bar"]) for row in figure["rows"]]
        parts.append(f"{_format_heading(figure)}\n{align_columns((*figure['parts'], ''), rows, left=1)}")
    for table in facts["tables"]:
        rows = [(*map(_text, row["values"]), row["of"]) for row in table["rows"]]
        left = 1 + _texts_at_end(table)
        parts.append(f"{table['title']}\n{align_columns((*table['columns'], ''), rows, left=left)}")
    parts.append("\n".join(study_verdict(facts)))
    return "\n\n".join(parts)


def study_verdict(facts: Json) -> list[str]:
    """The last lines: how many runs came to what, and whether repeats agree."""
    statuses = ", ".join(f"{count} {status}" for status, count in facts["statuses"].items())
    lines = [*facts["failures"], *(f"repeats differ: {text}" for text in facts["differences"])]
    lines += [f"figure {one['name']}: no run has {name}" for one in facts["figures"] for name in one["missing"]]
    repeated = any(group["runs"] > 1 and not group["parts"] for group in facts["groups"])
    agree = "" if not repeated or facts["differences"] else "; all counts and outputs are equal in all repeats"
    return [*lines, f"verdict: {facts['runs']} runs: {statuses}{agree}"]


def shortcomings(facts: Json) -> list[str]:
    """What a study was to find and has not found, a line for each kind."""
    lines = []
    well = sum(facts["statuses"].get(status, 0) for status in WELL)
    if well < facts["runs"]:
        lines.append(f"{facts['runs'] - well} of {facts['runs']} runs did not end well")
    if any(figure["missing"] for figure in facts["figures"]):
        lines.append("no run has what some figure shows")
    if facts["differences"]:
        lines.append("counts or outputs differ between repeats")
    return lines


def study_pictures(facts: Json) -> dict[str, Picture]:
    """Pictures by name; a figure without data has none."""
    made = {}
    timed = [group for group in facts["groups"] if group["median_seconds"] is not None]
    if timed:
        telling = [c for c in NAMES if c == "program" or len({group[c] for group in timed}) > 1]
        names = [" ".join(filter(None, (group[column] for column in telling))) for group in timed]
        numbers = [(g["least_seconds"], g["median_seconds"], g["most_seconds"]) for g in timed]
        title = "Wall time: median, least and most of the repeats"
        made["seconds"] = Picture(title, ranges(names, numbers, title, "seconds"))
    for figure in facts["figures"]:
        if figure["rows"]:
            labels = [row["bar"] for row in figure["rows"]]
            parts = {name: [row["values"][at] for row in figure["rows"]] for at, name in enumerate(figure["parts"])}
            unit = figure["unit"] or ("%" if figure["share"] else "")
            bars = plot_stacked_bars if figure["stack"] else plot_grouped_bars
            made[figure["name"]] = Picture(figure["title"], bars(labels, parts, figure["title"], unit))
    return made


def study_page(facts: Json, pictures: dict[str, Picture]) -> Page:
    """The page with all tables. ``pictures``: by the name of their figure, as `study_pictures` makes them; a figure
    without one becomes a table."""
    tables = [HtmlTable("Runs", _texts_first(HEADER, TEXTS), tuple(map(_run_row, facts["groups"])), code=0)]
    tables += [HtmlTable(f"Faults: {each['of']}", ("", *FAULT_HEADER), tuple(map(HtmlRow, fault_cells(each))), code=0)
               for each in facts["campaigns"]]
    for figure in facts["figures"]:
        numbers = _figure_table(figure)
        if figure["name"] in pictures:  # which has its title in it
            numbers = replace(numbers, title=f"Numbers of {figure['name']}")
            pictures = {**pictures, figure["name"]: replace(pictures[figure["name"]], table=numbers)}
        else:
            tables.append(numbers)
    for table in facts["tables"]:
        found = (HtmlRow((row["of"], *map(_text, row["values"]))) for row in table["rows"])
        tables.append(HtmlTable(table["title"], ("", *table["columns"]), tuple(found), code=0))
    shown = [picture for name, picture in pictures.items() if name != "seconds"]
    shown += [pictures["seconds"]] if "seconds" in pictures else []
    statuses = tuple((status, str(count)) for status, count in facts["statuses"].items())
    notes = [*study_verdict(facts), *([] if pictures else [NO_PLOTS])]
    return Page(facts["title"], (("runs", str(facts["runs"])), *statuses), tables, shown, notes)


def _figure_table(figure: Json) -> HtmlTable:
    rows = (HtmlRow((row["bar"], *_numbers(figure, row["values"]))) for row in figure["rows"])
    return HtmlTable(_format_heading(figure), ("", *figure["parts"]), tuple(rows), code=0)


def plan_table(facts: list[Json]) -> RichTable:
    """The runs of a study that has not been carried out."""
    table = RichTable(*facts[0], box=None, pad_edge=False)
    for row in facts:
        table.add_row(*map(str, row.values()))
    return table


def _cells(group: Json) -> tuple[Any, ...]:
    seconds = (group[f"{name}_seconds"] for name in ("median", "least", "most"))
    times = ("-" if value is None else f"{value:.3f}" for value in seconds)
    ratio = "-" if group["ratio"] is None else f"{group['ratio']:.2f}"
    statuses = group["statuses"]
    status = next(iter(statuses)) if len(statuses) == 1 else ", ".join(f"{n} {name}" for name, n in statuses.items())
    return (group["runs"], group["launches"], *times, ratio, *(group[name] for name in NAMES), status)


def _run_row(group: Json) -> HtmlRow:
    """As hot as runs of it did not end well."""
    well = sum(count for status, count in group["statuses"].items() if status in WELL)
    return HtmlRow(tuple(map(str, _texts_first(_cells(group), TEXTS))), heat=1 - well / group["runs"])


def _texts_first(cells: tuple[Any, ...], texts: int) -> tuple[Any, ...]:
    """A page has names on the left, where text has numbers."""
    return cells[-texts:] + cells[:-texts]


def _format_heading(figure: Json) -> str:
    unit = figure["unit"] or ("%" if figure["share"] else "")
    return f"{figure['title']} ({unit})" if unit else str(figure["title"])


def _numbers(figure: Json, values: list[float]) -> list[str]:
    return [f"{value:.1f}" if figure["share"] else _text(value) for value in values]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else str(value)


def _texts_at_end(table: Json) -> int:
    """How many of the last columns hold text."""
    count = 0
    for at in reversed(range(len(table["columns"]))):
        if not any(isinstance(row["values"][at], str) for row in table["rows"]):
            break
        count += 1
    return count
