"""Numbers made of whole tables when a run is over: columns, put beside each other by their keys.

In: tables of a report. Out: columns. Invariant: a number alone is the same at every key; where a table of counts
has no row its count is 0, and where another has none there is no row in what is made of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from typing import Any

from .actions import Action
from .tables import AGGREGATIONS, BUCKET

Number = int | float
Key = tuple[Any, ...]
NUMBERS: Mapping[str, str] = {name: name for name in ("sum", "avg", "min", "max")}
COUNTED = "count"  # the number of all other tables, and a column of these
_FROM_NOTHING = ("sum", COUNTED)


@dataclass(frozen=True, slots=True)
class Column:
    """``keys``: their names; one number has none. ``otherwise``: the number of keys without a row, if that is known.
    ``picked``: only these rows are shown, and in this order."""

    keys: tuple[str, ...]
    rows: Mapping[Key, Number]
    otherwise: Number | None = None
    picked: bool = False

    def at(self, key: Key) -> Number | None:
        return self.rows.get(key if self.keys else (), self.otherwise)


def single(number: Number | None) -> Column:
    return Column((), {} if number is None else {(): number}, number)


def keys_of(action: Action) -> tuple[str, ...]:
    """What names the rows of its table."""
    return (*action.columns, *(BUCKET if action.kind in ("hist", "quantize") else ()))


def column_of(action: Action, table: Mapping[str, Any], name: str = "") -> Column:
    """A column of its table, or the one that the action is for."""
    name, keys = name or NUMBERS.get(action.kind, COUNTED), keys_of(action)
    rows = {tuple(row[key] for key in keys): row[name] for row in table.get("all", table["rows"])
            if row.get(name) is not None}
    otherwise = 0 if name in _FROM_NOTHING else None
    return Column(keys, rows, otherwise) if keys else single(rows.get((), otherwise))


def columns_of(action: Action) -> Iterator[str]:
    """Names of the numbers in its rows."""
    yield COUNTED
    yield from (name for name in AGGREGATIONS[action.kind].merge if name != COUNTED)
    yield from ("avg",) if action.kind == "avg" else ()


def places(columns: Sequence[Column]) -> Iterable[Key]:
    """Keys of rows that stand beside each other."""
    chosen = [column for column in columns if column.picked][:1] or [column for column in columns if column.keys]
    return dict.fromkeys(key for column in chosen or columns for key in column.rows)


def joined(how: Callable[..., Number], *columns: Column) -> Column:
    """``how`` of the numbers that they have at each key."""
    def made(numbers: Sequence[Number | None]) -> Number | None:
        return None if None in numbers else how(*numbers)

    keys = next((column.keys for column in columns if column.keys), ())
    rows = {key: made([column.at(key) for column in columns]) for key in places(columns)}
    otherwise = made([column.at(()) if not column.keys else column.otherwise for column in columns])
    known = otherwise if otherwise is not None and isfinite(otherwise) else None
    return Column(keys, {key: number for key, number in rows.items() if number is not None}, known,
                  any(column.picked for column in columns))


def greatest(most: int, column: Column) -> Column:
    """Rows with the greatest numbers; what is no number comes last."""
    rows = sorted(column.rows.items(), key=lambda row: -inf if row[1] != row[1] else row[1], reverse=True)
    return replace(column, rows=dict(rows[:most]), picked=True)


def over_rows(how: Callable[[Sequence[Number]], Number | None]) -> Callable[[Column], Column]:
    return lambda column: single(how(list(column.rows.values())))


def _or_nan(how: Callable[[Any, Any], Number]) -> Callable[[Any, Any], Number]:
    return lambda a, b: how(a, b) if b else nan


OPERATORS: Mapping[str, Callable[[Any, Any], Number]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": _or_nan(operator.truediv),
    "FloorDiv": _or_nan(operator.floordiv), "Mod": _or_nan(operator.mod),
}  # fmt: skip
"""By the name of Python's node. What is divided by 0 is no number."""
EACH: Mapping[str, Callable[[Any], Number]] = {
    "abs": abs, "float": float, "int": lambda x: int(x) if isfinite(x) else x,
}
OVER_ROWS: Mapping[str, Callable[[Column], Column]] = {
    "sum": over_rows(sum), "len": over_rows(len), "min": over_rows(lambda rows: min(rows, default=None)),
    "max": over_rows(lambda rows: max(rows, default=None)),
    "avg": over_rows(lambda rows: sum(rows) / len(rows) if rows else None),
}
