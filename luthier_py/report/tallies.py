"""A report's numbers under names that two runs share, whatever tool made it.

In: reports of launches of one kernel, as data, and what their tool declares (`tool.amounts`). Out: numbers by section,
thing and name. Invariant: every number of a report is there, however deep. Where nothing is declared whole numbers are
counts and add up, those called worst, most, longest or max are greatest values, and a number with a fraction, which is
a mean or a share, is included only where it is the only one. Not there: addresses, which name things of one build only,
and examples (`FIRST`), which are of no amount.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass, field
from luthier_py.report.plain import flat, is_number
from luthier_py.rewrite.tool import Amount, Declaration, RowsBy, amount_at, declared_at

KERNEL, LINES, OPCODES = "kernel", "by source line", "by opcode"
ADDRESSES = {"pc", "other_pc", "branch", "target", "header", "region", "from", "to", "address"}
ADDRESS_LISTS = {"blocks", "sources"}
ADDRESS_TEXT = re.compile("0x[0-9a-f]+")
FIRST = "first"  # the key of examples in reports, or in their rows
GREATEST, LEAST = {"worst", "most", "longest", "max"}, {"min"}  # first words of names
CONSTANT = {"wave_size", "clock_bits", "room", "depth", "blocks", "judged"}  # of a kernel, whatever it is launched with
BOUNDS = {"low", "high"}  # of an interval, whose name they are
RUNNING = "total"  # a number of this name is the sum over all launches so far, of whatever kernel (NVBit's tools)
BY_LINE = "sources"  # rows by their source lines
MAIN = {"lines", "rows", BY_LINE}  # what has all there is by source line, whatever lists stand beside it


class NumberName(NamedTuple):
    """``thing``: a source line, an opcode; empty where the section has one thing only. ``number``: what of it."""

    section: str
    thing: str
    number: str

    @property
    def by_line(self) -> bool:
        """Whether ``thing`` is a source line, as ``file:line``."""
        return self.section.endswith(LINES)


def combine_numbers(name: str, one: float, other: float) -> float | None:
    """What two numbers are together that no tool declares, by their name; None for means of different things."""
    last = name.rpartition(".")[2]
    word = last.partition("_")[0]
    if last in CONSTANT or word in GREATEST:
        return max(one, other)
    if word in LEAST:
        return min(one, other)
    return None if isinstance(one, float) or isinstance(other, float) else one + other


@dataclass(slots=True)
class AddedUp:
    """Mutable: numbers that are added up. ``kernel``: what is in it has no name for that."""

    kernel: str = ""
    numbers: dict[NumberName, float | None] = field(default_factory=dict)
    """None: means of different things."""

    def add(self, name: NumberName, value: Any, kind: Amount | None = None) -> None:
        """``kind``: what the tool says of the number."""
        if not is_number(value) or kind is not None and not kind.is_amount:
            return
        if name not in self.numbers:
            self.numbers[name] = value
        elif (so_far := self.numbers[name]) is not None:
            self.numbers[name] = (combine_numbers(name.number or name.thing, so_far, value) if kind is None
                                  else kind.add_values(so_far, value))

    def result(self) -> dict[NumberName, float]:
        """The sums by name, without numbers that are means of different things."""
        return {name: value for name, value in self.numbers.items() if value is not None}


def tally(reports: Iterable[Any], kernel: str = "", amounts: Declaration | None = None) -> dict[NumberName, float]:
    """The numbers of all launches of a kernel together; ``amounts``: what the tool declares."""
    found = AddedUp(kernel)
    for report in reports:
        _add(found, "", report if isinstance(report, Mapping) else {"report": report}, amounts)
    return found.result()


def _add(
    found: AddedUp, within: str, part: Mapping[str, Any], amounts: Declaration | None, keys: Sequence[str] = ()
) -> None:
    """``within``: a section for the numbers of a part of a report; ``keys``: columns that name the rows of its lists.
    """
    for key, value in part.items():
        kind = None if amounts is None else declared_at(amounts, (key,))
        if kind is None and (key == FIRST or key == RUNNING and is_number(value)):
            continue
        inside = f"{within} {key}".lstrip()
        if key == BY_LINE and isinstance(value, Mapping) and all(isinstance(row, Mapping) for row in value.values()):
            _add_rows(found, inside, within, [{"source": source, **row} for source, row in value.items()], kind, keys)
        elif isinstance(value, Mapping):
            _add(found, inside, value, kind)
        elif isinstance(value, list):
            if key not in ADDRESS_LISTS:
                plain = {str(at): each for at, each in enumerate(value) if not isinstance(each, Mapping)}
                _add(found, inside, plain, kind)
            main = key in MAIN or not MAIN & part.keys()
            section = within if within and key == "rows" else inside
            prefix = within if main else inside
            _add_rows(found, section, prefix, [each for each in value if isinstance(each, Mapping)], kind, keys)
        else:
            name = NumberName(within, key, "") if within else NumberName(KERNEL, "", key)
            found.add(name, value, None if kind is None else amount_at(kind, ()))


def _add_rows(
    found: AddedUp, section: str, prefix: str, rows: Iterable[Mapping[str, Any]], kind: Declaration | None,
    keys: Sequence[str],
) -> None:
    """Add rows by source line and by opcode, as far as rows name these; others in their order, which two builds have in
    common."""
    order: Counter[str] = Counter()
    for row in _in_order(rows, kind):
        words = " ".join(_words(row, found.kernel, keys))
        name = f"{words} #{order[words]}".lstrip()
        order[words] += 1
        names = {f"{prefix} {what}".lstrip(): thing for what, thing in _places(row, keys)} or {section: name}
        for part, thing in names.items():
            for number, value in numbers_of(row).items():
                if number not in BOUNDS and number not in keys:
                    amount = None if kind is None else amount_at(kind, ("0", *number.split(".")))
                    found.add(NumberName(part, thing, number), value, amount)
        title = name.removesuffix(" #0") if "action" in row else f"{section} {name}"
        nested = {key: value for key, value in row.items() if isinstance(value, list) and key != "keys"}
        _add(found, title, nested, None if kind is None else declared_at(kind, ("0",)), row.get("keys", ()))


def _in_order(rows: Iterable[Mapping[str, Any]], kind: Declaration | None) -> Iterable[Mapping[str, Any]]:
    """By the keys that the tool declares: a report may have the costliest first, which is another one in each run."""
    if not isinstance(kind, RowsBy):
        return rows
    keyed = [([(isinstance(value, str), value) for value in map(row.get, kind.keys)], row) for row in rows]
    if not all(isinstance(value, (int, str)) for keys, _ in keyed for _, value in keys):
        return [row for _, row in keyed]
    return [row for _, row in sorted(keyed, key=lambda each: each[0])]


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Those of a row by name, nested ones by the way to them: amounts, no addresses and no examples."""
    told = {name: value for name, value in row.items() if name not in ADDRESSES and name != FIRST}
    return {name: value for name, value in flat(told).items() if is_number(value)}


def _places(row: Mapping[str, Any], keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The line and the opcode of a row, unless it has more keys than these."""
    source, instruction = row.get("source") or row.get("line"), row.get("instruction")
    if isinstance(source, str) and source and not set(keys) - {"line"}:
        yield LINES, _without_folder(source)
    if isinstance(instruction, str) and instruction.strip() and not keys:
        yield OPCODES, " :: ".join(half.split()[0] for half in instruction.split(" :: "))


def _words(row: Mapping[str, Any], kernel: str, keys: Sequence[str]) -> Iterator[str]:
    for name, value in row.items():
        if isinstance(value, bool):
            yield name if value else f"not {name}"
        elif name in BOUNDS or name in keys and not isinstance(value, str):
            yield f"{name} {value}"
        elif isinstance(value, str) and demangle(value) != kernel and not ADDRESS_TEXT.fullmatch(value):
            yield _without_folder(value) if name in ("source", "line") else demangle(value)


def _without_folder(place: str) -> str:
    return place.rpartition("/")[2]
