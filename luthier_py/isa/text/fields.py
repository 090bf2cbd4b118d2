"""Texts of many instructions, from their fields alone.

In: a row and field values. Out: the text that the Printer gives for the instruction that they make. How: each place of
a row's template looks at few fields. Which, is watched when it is filled, and what it was filled with is cached by the
values of those fields, so that most instructions are put together from what was met before. Invariant: a place that
read only some fields is filled the same wherever these have the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from luthier_py.isa.encoding.constants import LITERAL, LITERAL64
from luthier_py.isa.encoding.instruction import Inst, OpInfo
from luthier_py.isa.text.modifiers import Line
from luthier_py.isa.text.printer import Printer

FieldText = Callable[[Line], str]
FieldValues = tuple[int | None, ...]  # of all fields, and the literal behind them


class Watched:
    """An Inst that notes which of its fields were looked at; the literal's number is one more than the last field's."""

    def __init__(self, inst: Inst) -> None:
        self.inst = inst
        self.op = inst.op
        self.seen: set[int] = set()
        self.fields = _Noted(inst.fields, self.see)
        self.operands = _Noted(inst.operands, self.see)

    def see(self, place: int) -> None:
        """Note that field ``place`` was looked at, and the literal with it where the field says that one follows."""
        self.seen.add(place)
        if self.inst.fields[place] in (LITERAL, LITERAL64):  # the operand may be the literal
            self.seen.add(len(self.inst.fields))

    @property
    def literal(self) -> int | None:
        """The literal dword, or dwords, behind the encoding; noted as looked at."""
        self.seen.add(len(self.inst.fields))
        return self.inst.literal


class _Noted(Sequence[Any]):
    def __init__(self, values: Sequence[Any], see: Callable[[int], None]) -> None:
        self._values = values
        self._see = see

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        for one in range(len(self._values))[place] if isinstance(place, slice) else (place,):
            self._see(one)
        return self._values[place]


class _WatchedLine(Line):
    """A Line that looks at no more fields than it must to find one by its name."""

    def value(self, name: str, default: int = 0) -> int:
        names = [info.name for info in self.inst.op.operands]
        return self.inst.fields[names.index(name)] if name in names else default


class _Place:
    """Mutable: one place of a row's template, with what it was filled with so far."""

    __slots__ = ("_key", "_part", "_texts", "_watches")

    def __init__(self, part: FieldText) -> None:
        self._part = part
        self._watches: tuple[int, ...] = ()
        self._key: Callable[[FieldValues], Any] = _nothing
        self._texts: dict[Any, str] = {}

    def fill(self, values: Sequence[FieldValues], make: Callable[[int], Inst], printer: Printer) -> list[str]:
        """For each of ``values``; ``make`` gives the instruction of a number."""
        found: list[str | None] = list(map(self._texts.get, map(self._key, values)))
        for number in [number for number, text in enumerate(found) if text is None]:
            text = self._texts.get(self._key(values[number]))
            found[number] = self._compute_text(values[number], make(number), printer) if text is None else text
        return [text or "" for text in found]

    def _compute_text(self, values: FieldValues, inst: Inst, printer: Printer) -> str:
        watched = Watched(inst)
        text = self._part(_WatchedLine(watched, printer.target))  # type: ignore[arg-type]  # all that handlers ask for
        more = watched.seen.difference(self._watches)
        if more:
            self._watches += tuple(sorted(more))
            self._key = itemgetter(*self._watches)
            self._texts.clear()
        self._texts[self._key(values)] = text
        return text


def _nothing(values: FieldValues) -> None:
    """The key of a place that looks at no field."""


class FieldPrinter:
    """Prints one target's instructions, from cached texts for those like others that it has printed."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._rows: dict[int, tuple[str | _Place, ...]] = {}

    def texts(self, op: OpInfo, values: Sequence[FieldValues], make: Callable[[int], Inst]) -> list[str]:
        """Texts of instructions of one row; ``make`` gives the one of a number, where it is needed."""
        parts = self._rows.get(op.row)
        if parts is None:
            parts = self._rows[op.row] = tuple(self._parts(op))
        columns = [[part] * len(values) if isinstance(part, str) else part.fill(values, make, self._printer)
                   for part in parts]
        return list(map("".join, zip(*columns, strict=True)))

    def _parts(self, op: OpInfo) -> Iterator[str | _Place]:
        for part in self._printer.parts(op):
            yield part if isinstance(part, str) else _Place(part)
