"""A report's numbers under names that two runs share, whatever tool made it.

In: reports of launches of one kernel, as data. Out: numbers by section, thing and name. Invariant: whole numbers are
counts and add up; those called worst, most, longest or max are greatest values; a number with a fraction, which is a
mean or a share, is kept only where it stands for itself. Addresses name things of one build only, and so nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from luthier_py.tool.names import demangled

KERNEL, LINES, OPCODES = "kernel", "by source line", "by opcode"
ADDRESSES = {"pc", "branch", "target", "header"}
GREATEST = ("worst", "most", "longest", "max")
RUNNING = "total"  # a number of this name is the sum over all launches so far, of whatever kernel (NVBit's tools)


class NumberName(NamedTuple):
    """``thing``: a source line, an opcode; empty where the section has one thing only. ``number``: what of it."""

    section: str
    thing: str
    number: str


@dataclass(slots=True)
class AddedUp:
    """Mutable: numbers that are added up."""

    numbers: dict[NumberName, float] = field(default_factory=dict)
    mixed: set[NumberName] = field(default_factory=set)
    """Means of different things."""

    def add(self, name: NumberName, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return
        so_far = self.numbers.get(name)
        if so_far is None:
            self.numbers[name] = value
        elif name.number.rpartition(".")[2].startswith(GREATEST):
            self.numbers[name] = max(so_far, value)
        elif isinstance(so_far, float) or isinstance(value, float):
            self.mixed.add(name)
        else:
            self.numbers[name] = so_far + value

    def result(self) -> dict[NumberName, float]:
        return {name: value for name, value in self.numbers.items() if name not in self.mixed}


def tally(reports: Iterable[Any], kernel: str = "") -> dict[NumberName, float]:
    """Of all launches of a kernel together; what is in the kernel itself has no name for that."""
    found = AddedUp()
    for report in reports:
        for key, value in (report if isinstance(report, Mapping) else {"report": report}).items():
            if isinstance(value, list):
                _add_rows(found, key, [row for row in value if isinstance(row, Mapping)], kernel)
            elif isinstance(value, Mapping):
                for number, inner in flat(value):
                    found.add(NumberName(key, number, ""), inner)
            elif key != RUNNING:
                found.add(NumberName(KERNEL, "", key), value)
    return found.result()


def _add_rows(found: AddedUp, key: str, rows: Iterable[Mapping[str, Any]], kernel: str) -> None:
    """By source line and by opcode, as far as rows tell; others in their order, which two builds have in common."""
    order: dict[str, int] = {}
    for row in rows:
        numbers = [(name, value) for name, value in flat(row) if name not in ADDRESSES]
        sections = {}
        if source := row.get("source") or row.get("line"):
            sections[LINES] = str(source).rpartition("/")[2]
        if instruction := row.get("instruction"):
            sections[OPCODES] = instruction.split()[0]
        if not sections:
            named = " ".join(_words(row, kernel))
            order[named] = order.get(named, -1) + 1
            sections[key] = f"{named} #{order[named]}".lstrip()
        for section, thing in sections.items():
            for name, value in numbers:
                found.add(NumberName(section, thing, name), value)


def _words(row: Mapping[str, Any], kernel: str) -> Iterator[str]:
    for name, value in row.items():
        if isinstance(value, bool):
            yield name if value else f"not {name}"
        elif isinstance(value, str) and demangled(value) != kernel:
            yield value


def flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """What is nested under names with points."""
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner
