"""Tables as plain text, and as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from luthier_py.base.errors import how_many

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # how they begin (OWASP, "CSV Injection")


def align_columns(header: Sequence[str], rows: Iterable[Sequence[Any]], left: int, first: int = 0) -> str:
    """Lines of columns as wide as they need to be; the ``first`` and the last ``left`` columns are texts, the others
    numbers. Empty columns of texts are left out."""
    cells = [list(map(str, row)) for row in (header, *rows)]
    texts = [*range(first), *range(len(header) - left, len(header))]
    empty = {at for at in texts if len(cells) > 1 and not any(row[at] for row in cells[1:])}
    left, first = (len([at for at in side if at not in empty]) for side in (texts[first:], texts[:first]))
    header, *rows = cells = [[cell for at, cell in enumerate(row) if at not in empty] for row in cells]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    adjust = [str.ljust] * first + [str.rjust] * (len(header) - first - left) + [str.ljust] * left
    lines = ("  ".join(put(cell, w) for put, cell, w in zip(adjust, row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def idle_line(count: int) -> Iterator[str]:
    """What a table of instructions says of those that it leaves out, as they did nothing."""
    if count:
        yield f"  {how_many(count, 'more instruction')} did not run"


def percent(part: float | None) -> str:
    """A share from 0 to 1 as ``12.5%``; ``-`` for None."""
    return "-" if part is None else f"{100 * part:.1f}%"


def comma_separated(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows with a header line, as RFC 4180 has it; None is empty. Texts that a spreadsheet would take for a formula
    get an apostrophe before them: they may come from a program."""
    return "".join(comma_separated_lines(list(rows[0]) if rows else [], rows))


def comma_separated_lines(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The same one by one, for rows that may lack some of the columns."""
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(map(_cell, columns))
    for row in rows:
        yield out.getvalue()
        out.seek(0)
        out.truncate()
        writer.writerow([_cell(row.get(column)) for column in columns])
    yield out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
