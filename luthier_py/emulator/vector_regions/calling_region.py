"""Vector instructions as calls: for code that is to be there soon, rather than run fast.

In: the items of a region. Out: a call for each, of a routine that does it for all lanes, and the routines. Compilers
repeat themselves: of a thousand vector instructions some forty differ in more than registers and constants, which are a
routine's parameters. So LLVM compiles forty loops instead of a thousand.

Invariant: a routine names nothing of the function that calls it; what cannot be written so becomes a loop in its place.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import partial

from luthier_py.base.records import dataclass, field, replace
from luthier_py.emulator.records.layout import VECTOR_ROWS, row_offset
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.emulator.vector_regions.lane_strip import FULL, LaneStrip
from luthier_py.emulator.vector_regions.region import EVERY_ROW, PutOff, Totals, VectorRegion
from luthier_py.isa.semantics.algebra import Type, Value

_NAME = re.compile(r"%[\w.]+")
_DEFINED = re.compile(r"^  (%[\w.]+) = |^([\w.]+):$", re.MULTILINE)
_PREFIX = "%r"  # of names inside, so that one from outside is seen


@dataclass(frozen=True, slots=True)
class _Routine:
    """One of items with a form. What it is passed, in pieces: text as it is, or a place in an item's rows (and 0) or
    in its scalars (and 1)."""

    name: str
    pieces: tuple[str | tuple[int, int], ...]

    def format_arguments(self, rows: tuple[int, ...], scalars: list[str], wave_size: int) -> str:
        """To a call."""
        return "".join(piece if isinstance(piece, str) else scalars[piece[0]] if piece[1] else
                       str(row_offset(rows[piece[0]], wave_size)) for piece in self.pieces)


@dataclass(slots=True)
class _Parameters:
    """Mutable: what a routine is given beside the wave; ``given`` are the types and texts of the call being written."""

    wave_size: int
    given: list[tuple[str, str]] = field(default_factory=list)
    _names: dict[int | tuple[str, str], str] = field(default_factory=dict)

    def row(self, row: int) -> str:
        """Where a row lies in the wave, as an i64."""
        return self._name(row, "i64", str(row_offset(row, self.wave_size)))

    def scalar(self, type: str, text: str) -> str:
        """A value of the caller, or a constant."""
        return text if text in self._names.values() else self._name((type, text), type, text)

    @property
    def declared(self) -> str:
        return "".join(f", {type} %p{number}" for number, (type, _) in enumerate(self.given))

    @property
    def passed(self) -> str:
        return "".join(f", {type} {text}" for type, text in self.given)

    def routine(self, name: str, rows: tuple[int, ...], scalars: list[str]) -> _Routine | None:
        """For other items of the form whose rows and scalars these are; None if it is given something else."""
        pieces: list[str | tuple[int, int]] = []
        for key, (type, text) in zip(self._names, self.given, strict=True):
            if isinstance(key, int) and key >= VECTOR_ROWS:
                pieces.append(f", {type} {text}")
            elif isinstance(key, int) and key in rows:
                pieces += [f", {type} ", (rows.index(key), 0)]
            elif not isinstance(key, int) and text in scalars:
                pieces += [f", {type} ", (scalars.index(text), 1)]
            else:
                return None
        return _Routine(name, tuple(pieces))

    def _name(self, key: int | tuple[str, str], type: str, text: str) -> str:
        if key not in self._names:
            self._names[key] = f"%p{len(self.given)}"
            self.given.append((type, text))
        return self._names[key]


class _RoutineStrip(LaneStrip):
    """A strip of lanes of a routine: rows and scalars are parameters."""

    def __init__(self, parameters: _Parameters, emitter: Emitter, wave_size: int, lane: str, pointer: str, wave: str,
                 label: str) -> None:
        super().__init__(emitter, wave_size, lane, pointer, wave, label)
        self._parameters = parameters
        self._mask_type = f"i{wave_size}"
        self._scalar_ops = LlvmOps(emitter)

    def address(self, row: int) -> str:
        return self._emitter.let(f"getelementptr i8, ptr {self._pointer}, i64 {self._parameters.row(row)}")

    def rows_of_wave(self, row: int) -> str:
        return self.before(f"getelementptr i8, ptr %wave, i64 {self._parameters.row(row)}")

    def set_mask(self, mask: str) -> None:
        super().set_mask(mask if mask == FULL else self._parameters.scalar(self._mask_type, mask))

    def lanes_of(self, mask: str) -> Value:
        return super().lanes_of(mask if mask == FULL else self._parameters.scalar(self._mask_type, mask))

    def literal(self, type: Type, value: int) -> Value:
        known = value & (1 << type.bits) - 1
        return self.splat(Value(self._scalar_ops, type, str(known)))

    def splat(self, scalar: Value) -> Value:
        assert isinstance(scalar.ops, LlvmOps)
        text = self._parameters.scalar(scalar.ops.name(scalar.type), str(scalar.ref))
        return super().splat(Value(scalar.ops, scalar.type, text))


class CallingRegion(VectorRegion):
    """Mutable: see the module."""

    def __init__(self, emitter: Emitter, wave: str, wave_size: int) -> None:
        super().__init__(emitter, wave, wave_size, even=False)
        self._routines: dict[str, str] = {}
        """Names by text."""
        self._known: dict[Hashable, _Routine] = {}
        """Those of items that have a form."""

    def _general(self, items: list[PutOff], given: Totals) -> Totals:
        found: Totals = {}
        for item in items:
            found |= self._emit_item(item, given | found)
        return found

    def _emit_item(self, item: PutOff, given: Totals) -> Totals:
        """One item, by a call or else by a loop."""
        if item.form is None:
            return self._outline_item(item, given)[0]
        scalars = [item.mask, *item.form.scalars(given)]
        key = item.form.form, item.mask == FULL, tuple(map(scalars.index, scalars))
        if (routine := self._known.get(key)) is not None:
            passed = routine.format_arguments(item.form.rows, scalars, self._wave_size)
            return self._emit_call(routine.name, item.masks, passed)
        totals, name, parameters = self._outline_item(item, given)
        routine = parameters.routine(name, item.form.rows, scalars) if name else None
        if routine is not None and tuple(totals) == item.masks:
            self._known[key] = routine
        return totals

    def _outline_item(self, item: PutOff, given: Totals) -> tuple[Totals, str, _Parameters]:
        """Also the name of its routine, empty if there is none, and its parameters."""
        parameters = _Parameters(self._wave_size)
        with self._emitter.divert_lines() as outside:
            inside, totals = self._body(replace(item, live=EVERY_ROW), given, parameters)
        if outside or _leaks(inside, parameters):
            return super()._general([item], given), "", parameters
        name = self._routine(inside, totals, parameters)
        return self._emit_call(name, tuple(totals), parameters.passed), name, parameters

    def _body(self, item: PutOff, given: Totals, parameters: _Parameters) -> tuple[list[str], Totals]:
        inner = Emitter(self._wave_size, _PREFIX)
        inner.declarations, inner.constants = self._emitter.declarations, self._emitter.constants
        region = VectorRegion(inner, self._wave, self._wave_size, even=False)
        totals = region.emit_loop([item], given, partial(_RoutineStrip, parameters))
        return inner.lines, totals

    def _routine(self, lines: list[str], totals: Totals, parameters: _Parameters) -> str:
        """The name of the routine with this body; written if there is none yet."""
        text = "\n".join((f"(ptr %wave{parameters.declared}) {{", *lines, *self._emit_return(totals), "}"))
        name = self._routines.get(text)
        if name is None:
            name = self._routines[text] = f"routine.{len(self._routines)}"
            self._emitter.functions.append(f"define internal {self._result(len(totals))} @{name}{text}")
        return name

    def _result(self, count: int) -> str:
        kind = f"i{self._wave_size}"
        return "void" if not count else kind if count == 1 else f"[{count} x {kind}]"

    def _emit_return(self, totals: Totals) -> list[str]:
        result, kind = self._result(len(totals)), f"i{self._wave_size}"
        if len(totals) < 2:
            return [f"  ret {result} {''.join(totals.values())}".rstrip()]
        lines, whole = [], "poison"
        for place, total in enumerate(totals.values()):
            lines.append(f"  %all.{place} = insertvalue {result} {whole}, {kind} {total}, {place}")
            whole = f"%all.{place}"
        return [*lines, f"  ret {result} {whole}"]

    def _emit_call(self, name: str, masks: tuple[int, ...], passed: str) -> Totals:
        emitter, result = self._emitter, self._result(len(masks))
        call = f"call {result} @{name}(ptr {self._wave}{passed})"
        if not masks:
            emitter.emit(call)
            return {}
        whole = emitter.let(call)
        if len(masks) == 1:
            return {masks[0]: whole}
        return {index: emitter.let(f"extractvalue {result} {whole}, {place}") for place, index in enumerate(masks)}


def _leaks(lines: list[str], parameters: _Parameters) -> bool:
    """Whether a routine would name something else than what is its own."""
    text = "\n".join(lines)
    known = {"%wave", *(f"%p{number}" for number in range(len(parameters.given)))}
    known |= {name or f"%{label}" for name, label in _DEFINED.findall(text)}
    return not known.issuperset(_NAME.findall(text))
