"""What the numbers of a tool's reports are, declared once: which add up, which are greatest, which distinguish rows.

In: a declaration, which has the report's shape, and reports of launches. Out: one report of several launches; what a
number is, by the way to it. Invariant: what a declaration does not name is the first launch's, and no amount: names,
texts, settings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from luthier_py.base.records import dataclass, replace
from luthier_py.program.analysis.lines import line_order

AnyReport = Mapping[str, Any]


class OfSeveral(Enum):
    """What becomes of a number that several launches, or several rows of a line, have."""

    SUM = "sum"
    MOST = "greatest"
    LEAST = "least"
    SAME = "the same in each launch"
    ANY = "whether any"
    FIRST = "the first as an example"
    SO_FAR = "sum over all launches so far"
    WORKED_OUT = "worked out of the others"


_ADDED: Mapping[OfSeveral, Callable[[Sequence[Any]], Any]] = {
    OfSeveral.SUM: sum, OfSeveral.MOST: max, OfSeveral.LEAST: min, OfSeveral.ANY: any, OfSeveral.SO_FAR: max,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, or with FIRST and ANY something else. ``what``: of what, in words. ``work``: of WORKED_OUT, from its
    row and the whole report; None where the tool alone can compute it, so that several launches have none.
    """

    adding: OfSeveral
    what: str = ""
    more_is_better: bool = False
    work: Callable[[AnyReport, AnyReport], Any] | None = None

    def of(self, what: str) -> Amount:
        """The same, said in words."""
        return replace(self, what=what)

    def together(self, values: Sequence[Any]) -> Any:
        """The value for several launches; None is what is not known."""
        known = [value for value in values if value is not None]
        if self.adding is OfSeveral.FIRST:
            return next(filter(None, known), values[0])
        if self.adding is OfSeveral.WORKED_OUT and self.work is None:
            return values[0] if all(value == values[0] for value in values) else None
        return _ADDED[self.adding](known) if known and self.adding in _ADDED else values[0]

    def add_values(self, one: float, other: float) -> float | None:
        """What two numbers are together; None where that is nothing."""
        if self.adding is OfSeveral.WORKED_OUT:
            return None
        found: float = max(one, other) if self.adding is OfSeveral.SAME else _ADDED[self.adding]([one, other])
        return found

    @property
    def is_amount(self) -> bool:
        """Whether it says how much there is of something in the reported launches."""
        return self.adding not in (OfSeveral.FIRST, OfSeveral.ANY, OfSeveral.SO_FAR)


@dataclass(frozen=True, slots=True)
class CountsBy:
    """Sums by names that no declaration lists, as a histogram has them. ``most_first``: in order of the sums, else of
    the names."""

    what: str = ""
    most_first: bool = False

    def together(self, values: Sequence[Mapping[Any, int]]) -> dict[Any, int]:
        """The value for several launches."""
        total: Counter[Any] = Counter()
        for value in values:
            total.update(value)
        return dict(total.most_common() if self.most_first else sorted(total.items()))


@dataclass(frozen=True, slots=True)
class RowsBy:
    """A list of rows, which ``keys`` distinguish, in order of coming, or ascending by these."""

    keys: tuple[str, ...]
    columns: Amounts
    ascending: bool = False

    def together(self, tables: Sequence[Sequence[AnyReport]], whole: AnyReport) -> list[dict[str, Any]]:
        """The value for several launches."""
        alike: dict[tuple[Any, ...], list[AnyReport]] = {}
        for row in (row for table in tables for row in table):
            key = tuple(tuple(value) if isinstance(value, list) else value for value in map(row.get, self.keys))
            alike.setdefault(key, []).append(row)
        order = sorted(alike, key=lambda key: [_place(value) for value in key]) if self.ascending else alike
        return [_together(self.columns, alike[key], whole) for key in order]


def _place(value: Any) -> Any:
    """Texts may be source lines."""
    return line_order(value) if value is None or isinstance(value, str) else value


Declaration = Amount | CountsBy | RowsBy | Mapping[str, Any]
"""A mapping is one of more declarations, by name; ``*`` is any name that it has not."""
Amounts = Mapping[str, Declaration]
SUM, MOST, LEAST, SAME, ANY, FIRST, SO_FAR = (Amount(each) for each in OfSeveral if each is not OfSeveral.WORKED_OUT)


def worked_out(work: Callable[[AnyReport, AnyReport], Any], what: str = "", more_is_better: bool = False) -> Amount:
    """What follows from other numbers of its row, and of the whole report."""
    return Amount(OfSeveral.WORKED_OUT, what, more_is_better, work)


def share(part: str, whole: str, what: str = "", more_is_better: bool = False, nothing: float | None = None) -> Amount:
    """One number of a row over another; ``nothing`` where that is 0."""
    return worked_out(lambda row, _: row[part] / row[whole] if row[whole] else nothing, what, more_is_better)


def combined(declared: Amounts, reports: Sequence[AnyReport]) -> dict[str, Any]:
    """One report of several launches."""
    return _together(declared, reports, reports[0])


def _together(declared: Amounts, parts: Sequence[AnyReport], whole: AnyReport) -> dict[str, Any]:
    found = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        found[name] = _merge_values(_of(declared, name), [part[name] for part in parts if name in part], whole)
    for name, kind in declared.items():
        if isinstance(kind, Amount) and kind.work is not None and name in found:
            found[name] = kind.work(found, whole)
    return found


def _of(declared: Amounts, name: str) -> Declaration:
    kind: Declaration = declared.get(name, declared.get("*", SAME))
    return kind


def _merge_values(kind: Declaration, values: Sequence[Any], whole: AnyReport) -> Any:
    if isinstance(kind, RowsBy):
        return kind.together(values, whole)
    if isinstance(kind, (Amount, CountsBy)):
        return kind.together(values)
    there = [value for value in values if value is not None]
    return _together(kind, there, whole) if there else None


def declared_at(declared: Declaration, way: Sequence[str]) -> Declaration:
    """What a report has where these keys and indices lead."""
    for key in way:
        if isinstance(declared, RowsBy):
            declared = declared.columns
        elif isinstance(declared, Mapping):
            declared = _of(declared, key)
    return declared


def amount_at(declared: Declaration, way: Sequence[str]) -> Amount:
    """What a number of a report is."""
    found = declared_at(declared, way)
    return found if isinstance(found, Amount) else SUM if isinstance(found, CountsBy) else SAME


def main_rows(declared: Amounts) -> str | None:
    """The name of a report's first list of rows."""
    return next((name for name, kind in declared.items() if isinstance(kind, RowsBy)), None)


def declared_numbers(declared: Declaration, way: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """The name of each number, what becomes of several, and what it is of."""
    if isinstance(declared, Amount):
        yield ".".join(way), declared.adding.value, declared.what
    elif isinstance(declared, CountsBy):
        yield f"{'.'.join(way)}.*", OfSeveral.SUM.value, declared.what
    else:
        inner = declared.columns if isinstance(declared, RowsBy) else declared
        for name, kind in inner.items():
            yield from declared_numbers(kind, (*way, *["*"] * isinstance(declared, RowsBy), name))
