"""What tables and records say, as data.

In: words of a table, records, and what was noted of the program. Out: rows by key. Invariant: several launches' tables
become one by adding what they count; keys stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import LaunchResult, Variable

from .actions import Action
from .expressions import Kind
from .tables import AGGREGATIONS, Row, with_average

Key = tuple["str | int", ...]
HEXADECIMAL = ("addr", "pc", "exec")


@dataclass(frozen=True, slots=True)
class Table:
    """Where an action counts in one program. ``fixed``: what is known of the key of each row."""

    counters: Variable
    fixed: tuple[Key, ...]


def table_of(action: Action, table: Table | None, launch: LaunchResult) -> dict[str, Any]:
    """One table of a report; empty where the action is done nowhere."""
    words = launch[table.counters] if table is not None else (0,)
    rows = list(_rows(action, table, words)) if table is not None else []
    return _table(action, rows, words[0])


def merged(action: Action, tables: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One of those of several launches."""
    found, merge, lost = dict[tuple[Any, ...], Row](), AGGREGATIONS[action.kind].merge, 0
    for table in tables:
        lost += table["lost"]
        for row in table.get("all", table["rows"]):
            key = tuple(value for name, value in row.items() if name not in merge and name != "avg")
            if key not in found:
                found[key] = dict(row)
                continue
            known = found[key]
            known.update({name: how(known.get(name), row.get(name)) for name, how in merge.items()
                          if name in known or name in row})
    rows = [with_average(row) if "avg" in row else row for row in found.values()]
    return _table(action, rows, lost)


def _table(action: Action, rows: list[Row], lost: int) -> dict[str, Any]:
    found = {"action": action.text, "keys": list(action.columns), "rows": rows, "lost": lost, "room": action.slots}
    if action.kind != "top":
        return found
    others = action.columns[:-1]
    by_key: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: -row["count"]):
        by_key.setdefault(tuple(row[name] for name in others), []).append(row)
    return {**found, "rows": [row for each in by_key.values() for row in each[: action.detail]], "all": rows}


def _rows(action: Action, table: Table, words: Sequence[int]) -> Iterator[Row]:
    how = action.detail if action.kind == "quantize" else action.is_of_floats
    how = float(how) if action.kind == "quantize" and action.is_of_floats else how
    for number, fixed in enumerate(table.fixed):
        for numbers, row in sorted(action.layout.rows(words, number)):
            known = dict(zip((name for name, _ in action.fixed), fixed, strict=True))
            others = dict(zip((name for name, _ in action.keys), numbers, strict=True))
            key = {name: known[name] if name in known else others[name] for name in action.columns}
            for each in AGGREGATIONS[action.kind].decode(row, how):
                yield {**key, **each}


def record_text(action: Action, record: Any, known: Mapping[str, str]) -> str:
    """A line of ``trace`` or ``printf``; ``known``: of the site that it is of."""
    values = [known.get(each.value.name, "?") if each.kind is Kind.TEXT and each.value is not None
              else record[field].item() for field, each in zip(action.fields, action.arguments, strict=True)]
    if action.detail is not None:
        return str(action.detail % tuple(values))
    shown = (f"{name}={value:#x}" if name in HEXADECIMAL else f"{name}={value}"
             for name, value in zip(action.columns, values, strict=True))
    return f"0x{int(record['pc']):x} {known.get('line', '?')}: {' '.join(shown)}"
