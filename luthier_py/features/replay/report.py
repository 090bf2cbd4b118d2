"""Replayed launches as text: what ran, what it counted, where memory differs. Facts come from `replay/facts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group
from rich.text import Text

from luthier_py.base.errors import how_many, printable
from luthier_py.base.names import demangle
from luthier_py.features.run.cycles import cycles_text
from luthier_py.report.plain import Json


def replay_table(rows: Sequence[Json]) -> Group:
    """Lines for each replay; rows with an ``error`` have none. ``rows``: of `session.facts.replay_facts`."""
    return Group(*(Text(printable(line)) for row in rows if "error" not in row for line in _lines(row)))


def _lines(row: Json) -> Iterator[str]:
    grid, block = (" x ".join(map(str, row[name])) for name in ("grid", "block"))
    yield f"{row['file']}: {demangle(row['kernel'])}, {grid} work-groups of {block}, on {row['device']}"
    yield from (f"  {line}" for line in row["text"].splitlines())
    yield from (f"  report -> {file}" for file in row["files"])
    if (executed := row["device_instructions"]) is not None:
        yield f"  {executed} wave instructions executed{_describe_comparison(row)}"
    if (cycles := row["device_cycles"]) is not None:
        yield f"  {cycles_text(cycles['cycles'], cycles['imbalance'], cycles['wave_imbalance'])}"
    if row["verdict"] is not None:
        yield from (f"  {line}" for line in row["verdict"]["text"].splitlines())
    if row["same"]:
        near = f" within {row['tolerance']:g}" if row["tolerance"] else ""
        yield f"  the same{near}: {row['compared_bytes']} bytes in {how_many(row['pages'], 'page')}"
    yield from (f"  different: {each['text']}" for each in row["differences"])
    if row["unrecorded_pages"]:
        many = how_many(len(row["unrecorded_pages"]), "page")
        yield f"  different: it came to {many} that the recorded launch did not, from {row['unrecorded_pages'][0]} on"
    yield from (f"  different: there is no variable {name} of that size" for name in row["missing_variables"])


def _describe_comparison(row: Json) -> str:
    executed, of_tool = row["device_instructions"], row["tool_instructions"]
    share = "," if of_tool is None else f", {of_tool} of them the tool's; the others"
    own, recorded = executed - (of_tool or 0), row["recorded_instructions"]
    return f"{share} {'as' if own == recorded else f'not {recorded} as'} recorded"
