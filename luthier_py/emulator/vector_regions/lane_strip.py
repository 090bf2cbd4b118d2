"""Regions: runs of vector instructions, written as one loop over strips of lanes.

In: vector instructions, put off one by one. Out: what they do in the body of a loop, which does all of them for STRIP
lanes, with vector registers in SSA values between their first load and last store. Host code stays
small (a strip is two AVX2 registers) and values stay in registers; nothing here crosses strips.

Invariant: instructions of a region look at no other strip, and scalar code emitted while a region
is open comes before its loop. So scalar operands are taken when an instruction is put off, and
masks that the region computes (``pending``) settle it before scalar code may see them.

EXEC is applied late: a value stays as computed, with the mask it was computed under, and is
merged with the old value only for a reader under another mask, or for the final store.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.base.records import dataclass
from luthier_py.emulator.records.layout import STRIP, VECTOR_ROWS, WAVE, row_offset
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.emulator.vector_regions.vectors import VectorOps
from luthier_py.isa.semantics.algebra import BOOL, U32, U64, Type, Value, select

FULL = "-1"
_NUMBERS = "<" + ", ".join(f"i32 {i}" for i in range(STRIP)) + ">"
_BITS = "<" + ", ".join(f"i32 {1 << i}" for i in range(STRIP)) + ">"


@dataclass(slots=True)
class RowCell:
    """A vector register in the loop body: ``value`` in the lanes of ``mask``, ``before`` in the others."""

    value: Value
    mask: str                # FULL, or the scalar mask's name
    before: RowCell | None     # None with another mask than FULL: still in memory
    written: bool


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """Of memory, by one instruction: each lane ``size`` bytes, and as many ``distance`` bytes behind if it is not 0.

    The address is ``base`` (an i64) and what is in ``row``, or in a pair of rows if it is far; ``kind``: see native.
    """

    kind: str
    base: str
    row: int
    site: str
    size: int
    distance: int
    stores: bool


@dataclass(frozen=True, slots=True)
class StripPlace:
    """``pointer``: to the first lane's element; the others follow it, or are the same. In private memory dwords of
    lanes follow each other, and dwords of an element have a stride of ``row_bytes``; elsewhere that is 0. Where the
    i1 ``overlaps`` holds, elements have a stride of a dword, whatever their size, or halves of a byte."""

    pointer: str
    follows: bool
    row_bytes: int = 0
    overlaps: str = ""


class LaneStrip:
    """What an instruction of a region sees while its share of the loop body is written."""

    def __init__(self, emitter: Emitter, wave_size: int, lane: str, pointer: str, wave: str, label: str) -> None:
        self.label = label
        """Of the basic block that is being written; the loop's own at first."""
        self._wave = wave
        self._lds: tuple[str, str] | None = None
        self._before: dict[str, str] = {}
        self._shared: dict[tuple[object, ...], str] = {}
        self.ops = VectorOps(emitter, STRIP)
        self.ops.lane_numbers = self._number_lanes
        self.mask = FULL
        """EXEC of the instruction being written."""
        self._emitter = emitter
        self._wave_size = wave_size
        self._cells: dict[int, RowCell] = {}
        self._pairs: dict[int, tuple[Value, tuple[object, object]]] = {}
        self._splats: dict[tuple[object, Type], Value] = {}
        self._masks: dict[str, Value] = {}
        self.results: dict[int, Value] = {}
        self.given: dict[int, str] = {}
        """Masks that the region computed before this loop, as scalars."""
        self.before_loop: list[str] = []
        self._lane = lane        # name of the loop's first lane, i64
        self._pointer = pointer  # name of the pointer to that lane in row 0

    def row(self, row: int) -> Value:
        """One dword of every lane; lanes outside EXEC may hold anything if this instruction's EXEC wrote it."""
        cell = self._cell(row)
        if cell.mask not in (FULL, self.mask):
            cell = self._merge_cell(row, cell)
        return cell.value

    def place_of(self, access: LaneAccess) -> StripPlace | None:
        """Where the strip's elements lie, if all lanes make the access and it is known to be allowed."""
        return None

    def whole_row(self, row: int) -> Value:
        """One dword of every lane, right in all lanes."""
        cell = self._cell(row)
        return (cell if cell.mask == FULL else self._merge_cell(row, cell)).value

    def pair(self, row: int) -> Value:
        """Two rows as one u64."""
        low, high = self.row(row), self.row(row + 1)
        known = self._pairs.get(row)
        if known is None or known[1] != (low.ref, high.ref):
            known = self._pairs[row] = self.ops.join_halves(low, high), (low.ref, high.ref)
        return known[0]

    def write_row(self, row: int, value: Value) -> None:
        """In the lanes of EXEC."""
        before = self._cells.get(row)
        if before is not None and before.mask == self.mask:
            before = before.before
        self._cells[row] = RowCell(value.as_(U32), self.mask, None if self.mask == FULL else before, True)

    def write_pair(self, row: int, value: Value) -> None:
        """Write 64 bits to a row (the low half) and the next one, in the lanes of EXEC."""
        value = value.as_(U64)
        low, high = self.ops.halves(value)
        self.write_row(row, low)
        self.write_row(row + 1, high)
        self._pairs[row] = value, (low.ref, high.ref)

    def splat(self, scalar: Value) -> Value:
        """A scalar in every lane, made once, before the loop."""
        key = scalar.ref, scalar.type
        if key not in self._splats:
            body, self._emitter.lines = self._emitter.lines, self.before_loop
            self._splats[key] = self.ops.splat(scalar)
            self._emitter.lines = body
        return self._splats[key]

    def literal(self, type: Type, value: int) -> Value:
        """A constant that the instruction names, in every lane."""
        return self.ops.constant(type, value)

    def place(self, label: str) -> None:
        """Begin a basic block inside the loop's body."""
        self._emitter.place(label)
        self.label = label

    def before(self, expression: str) -> str:
        """A value worked out before the loop, once."""
        if expression not in self._before:
            body, self._emitter.lines = self._emitter.lines, self.before_loop
            self._before[expression] = self._emitter.let(expression)
            self._emitter.lines = body
        return self._before[expression]

    def emit_once(self, write: Callable[[], str], *key: object) -> str:
        """What ``write`` gives, written once for all instructions that ask for ``key`` where every strip comes by."""
        if key not in self._shared:
            self._shared[key] = write()
        return self._shared[key]

    def rows_of_wave(self, row: int) -> str:
        """Pointer to a row of all lanes."""
        return self.before(f"getelementptr i8, ptr {self._wave}, i64 {row_offset(row, self._wave_size)}")

    def lds_bounds(self) -> tuple[str, str]:
        """Address and bytes of the work-group's LDS."""
        if self._lds is None:
            places = (WAVE["lds"], WAVE["lds_bytes"])
            fields = [self.before(f"getelementptr i8, ptr {self._wave}, i64 {place}") for place in places]
            begin, size = (self.before(f"load i64, ptr {field}") for field in fields)
            self._lds = begin, size
        return self._lds

    def mask_of_lanes(self) -> str:
        """EXEC with only this strip's lanes, as i64."""
        mask = self.mask
        if self._wave_size == 32 and mask != FULL:
            mask = self._emitter.let(f"zext i32 {mask} to i64")
        lanes = self._emitter.let(f"shl i64 {(1 << STRIP) - 1}, {self._lane}")
        return self._emitter.let(f"and i64 {mask}, {lanes}")

    def lanes_of(self, mask: str) -> Value:
        """This strip's lanes of a scalar mask, as BOOL."""
        if mask == FULL:
            return self.ops.constant(BOOL, 1)
        if mask not in self._masks:
            kind = f"i{self._wave_size}"
            lane = self._lane if self._wave_size == 64 else self._emitter.let(f"trunc i64 {self._lane} to {kind}")
            moved = self._emitter.let(f"lshr {kind} {mask}, {lane}")
            word = moved if self._wave_size == 32 else self._emitter.let(f"trunc {kind} {moved} to i32")
            everywhere = self.ops.splat(Value(LlvmOps(self._emitter), U32, word))
            picked = self._emitter.let(f"and <{STRIP} x i32> {everywhere.ref}, {_BITS}")
            self._masks[mask] = self.ops.let(BOOL, f"icmp ne <{STRIP} x i32> {picked}, zeroinitializer")
        return self._masks[mask]

    def set_mask(self, mask: str) -> None:
        """EXEC of what is written next."""
        self.mask = mask

    def result(self, index: int) -> Value:
        """A lane mask that the region has computed."""
        return self.results[index] if index in self.results else self.lanes_of(self.given[index])

    def write_mask(self, index: int, value: Value) -> None:
        """A lane mask result; lanes outside EXEC give 0."""
        self.results[index] = value if self.mask == FULL else value & self.lanes_of(self.mask)

    def finish(self, live: int) -> None:
        """Store the rows that were written and can be read again."""
        kept = [row for row in sorted(self._cells)
                if self._cells[row].written and (row >= VECTOR_ROWS or live >> row & 1)]
        for row in kept:
            str(self._cells[row].value.ref)  # a value that is written at its first use may read another row
        for row in kept:
            cell = self._cells[row]
            whole = cell if cell.mask == FULL else self._merge_cell(row, cell)
            # Volatile keeps LLVM from making a masked store of a merge: ten times slower on AMD's hosts.
            value, place = f"<{STRIP} x i32> {whole.value.ref}", self.address(row)
            self._emitter.emit(f"store volatile {value}, ptr {place}, align 64")

    def _cell(self, row: int) -> RowCell:
        if row not in self._cells:
            self._cells[row] = self._load_row(row)
        return self._cells[row]

    def _merge_cell(self, row: int, cell: RowCell) -> RowCell:
        """What was written under one mask after the other, over what was there before."""
        parts = [cell]
        while (before := parts[-1].before) is not None and before.mask != FULL:
            parts.append(before)
        value = (before or self._load_row(row)).value
        for part in reversed(parts):
            value = select(self.lanes_of(part.mask), part.value, value)
        self._cells[row] = RowCell(value, FULL, None, cell.written)
        return self._cells[row]

    def _load_row(self, row: int) -> RowCell:
        value = self.ops.let(U32, f"load <{STRIP} x i32>, ptr {self.address(row)}, align 64")
        return RowCell(value, FULL, None, False)

    def address(self, row: int) -> str:
        """Pointer to this strip of a row."""
        return self._emitter.let(f"getelementptr i8, ptr {self._pointer}, i64 {row_offset(row, self._wave_size)}")

    def _number_lanes(self) -> str:
        first = self.ops.splat(Value(LlvmOps(self._emitter), U32, self._emitter.let(f"trunc i64 {self._lane} to i32")))
        return self._emitter.let(f"add <{STRIP} x i32> {_NUMBERS}, {first.ref}")


StripWrite = Callable[[LaneStrip], None]
