"""Tables of scripts as text: numbers by key, histograms with bars.

In: a table of a report. Out: lines. Invariant: intervals are half-open; a bar is as long as its count is beside the
largest one of its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from luthier_py.report.columns import align_columns

BAR = 40
MOST_PLACES = 4
_UNITS = ("", "K", "M", "G", "T", "P", "E")
_WHOLE = 1 << 10


def table_text(table: Mapping[str, Any]) -> Iterator[str]:
    yield f"{table['action']}:"
    keys, rows = table["keys"], table["rows"]
    if not rows:
        yield "    nothing"
    if rows and "low" in rows[0]:
        for key, group in groupby(rows, key=lambda row: [row[name] for name in keys]):
            yield from _histogram(_key_text(keys, key), list(group))
    elif rows:
        yield from numbers_text(keys, rows)
    if table["lost"]:
        yield f"    {table['lost']} more are lost: there was no room for their keys; keys={2 * table['room']} has more"


def not_done(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Where actions could not be done, by opcode and reason."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        opcode = row["instruction"].partition(" ")[0]
        found.setdefault((row["action"], opcode, row["why"]), []).append(f"0x{row['pc']:x}")
    for (action, opcode, reason), places in found.items():
        more = f" and at {len(places) - MOST_PLACES} more" if len(places) > MOST_PLACES else ""
        yield f"  {action} is not done at {opcode} ({', '.join(places[:MOST_PLACES])}{more}): {reason}"


def numbers_text(keys: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Rows in columns, those of keys first."""
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in keys]
    cells = [[*map(cell, [row[name] for name in keys]), *(cell(row.get(name, "")) for name in columns)]
             for row in rows]
    if columns != ["count"] or keys:
        cells.insert(0, [*keys, *columns])
    header, *others = cells
    yield from (f"    {line}" for line in align_columns(header, others, left=0, first=len(keys)).split("\n"))


def cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def _key_text(keys: Sequence[str], key: Sequence[Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(keys, key, strict=True))


def _histogram(title: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if title:
        yield f"  {title}"
    labels = [_interval(row["low"], row["high"]) for row in rows]
    width, count = max(map(len, labels)), max(len(str(row["count"])) for row in rows)
    largest = max(row["count"] for row in rows)
    for label, row in zip(labels, rows, strict=True):
        bar = "@" * (row["count"] * BAR // largest)
        yield f"    {label:{width}} {row['count']:>{count}} |{bar:{BAR}}|"


def _interval(low: Any, high: Any) -> str:
    if low is None and high is None:
        return "no number"
    if isinstance(low, int) and high == low + 1:
        return f"[{low}]"
    if low is None:
        return f"(..., {_short(high)})"
    return f"[{_short(low)}, {'...' if high is None else _short(high)})"


def _short(number: Any) -> str:
    if isinstance(number, float):
        return f"{number:.6g}"
    unit = 0
    while number and number % _WHOLE == 0 and unit + 1 < len(_UNITS):
        number, unit = number // _WHOLE, unit + 1
    return f"{number}{_UNITS[unit]}"
