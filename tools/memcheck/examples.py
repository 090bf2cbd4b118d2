"""Lanes that did the same wrong, side by side, as one line.

In: rows of a report, one for each lane. Out: lines. Invariant: a line of several lanes names the first and the last,
and all between lie as regularly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
_NUMBER = re.compile(r"\d+")


def example_lines(rows: Sequence[Row]) -> list[str]:
    return [_line(run) for run in _runs(rows)]


def _runs(rows: Sequence[Row]) -> Iterator[list[Row]]:
    run: list[Row] = []
    for row in rows:
        if run and not _goes_on(run, row):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _goes_on(run: Sequence[Row], row: Row) -> bool:
    """Whether it is the next lane, as far from the last one as that is from the one before it."""
    last = run[-1]
    step = run[1]["address"] - run[0]["address"] if len(run) > 1 else row["address"] - last["address"]
    return (row["lane"] == last["lane"] + 1 and row["address"] - last["address"] == step
            and all(row[name] == last[name] for name in ("workgroup", "wave", "space"))
            and _NUMBER.sub("", row["what"], 1) == _NUMBER.sub("", last["what"], 1)
            and (len(run) == 1 or _number(row) - _number(last) == _number(run[1]) - _number(run[0])))


def _number(row: Row) -> int:
    """The first one in what is said, of bytes or of a multiple."""
    found = _NUMBER.search(row["what"])
    return int(found[0]) if found is not None else 0


def _line(run: Sequence[Row]) -> str:
    first, last = run[0], run[-1]
    where, what, lanes = f"{first['address']:#x}", first["what"], f"lane {first['lane']}"
    if len(run) > 1:
        lanes = f"lanes {first['lane']} to {last['lane']}"
        if step := run[1]["address"] - first["address"]:
            where += f" to {last['address']:#x} by {step}"
        if last["what"] != what:
            what = _NUMBER.sub(lambda found: f"{found[0]} to {_number(last)}", what, 1)
    space = " in LDS" * (first["space"] == "LDS")
    return f"{where}{space}: {what}; {lanes} of wave {first['wave']} of work-group {first['workgroup']}"
