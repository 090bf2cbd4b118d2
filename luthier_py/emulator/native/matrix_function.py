"""The support functions of matrix instructions: one for each shape.

In: a function's name, which says shape and options. Out: its IR. It works on strips of a row of D: one element of A for
all lanes, times a strip of B. Products are added in the order of the shape, each step rounded once in the type of C
(f32 where that is narrower); results of 16 bits are rounded once more. Hardware does not say what it does. Integers
wrap, or saturate after each stage. Scales are multiplied into elements, which are f32 then: what overflows there is
infinite. Invariant: A, B, the index and what D may overlap of C are read before D is written. EXEC does not matter.
"""

from __future__ import annotations

from dataclasses import fields

from luthier_py.base.records import dataclass
from luthier_py.emulator.records.layout import STRIP
from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    F64,
    I32,
    U16,
    U32,
    U64,
    Type,
    Value,
    add_sat,
    concat,
    fma,
)
from luthier_py.isa.semantics.cdna4 import from_bf16, to_bf16
from luthier_py.isa.semantics.floats import flush_denormals
from luthier_py.isa.semantics.matrix import (
    BITS,
    BroadcastMatrix,
    ElementProduct,
    Matrix,
    MatrixLayout,
    SparseMatrix,
)
from luthier_py.isa.semantics.small_floats import SMALLER, UE5M3, SmallFloat, eight_bits
from luthier_py.isa.semantics.wave_matrices import WaveTile

_TYPES = {"i32": I32, "f64": F64}  # others: f32
_XF32_BITS = 0xFFFFE000
_HALF_KINDS = ("f16", "bf16")
Arguments = list[tuple[str, str]]  # types and names


@dataclass(frozen=True, slots=True)
class MatrixOptions:
    """What else there is to a function."""

    flushed: bool = False  # denormals of f16 and bf16 are zeros
    fnuz: bool = False     # formats of such floats
    clamped: bool = False  # integers saturate
    signs: bool = False    # A, B and C have modifiers
    negated: int = 0       # A, B and C, a bit each: f64
    scaled: bool = False   # by CDNA 4's words
    fewer: int = 0         # elements of the depth to a byte of RDNA's words of scales
    formats: int = 0       # of scales of A, and 4 * of B: as matrix_a_scale_fmt has them

    @property
    def name(self) -> str:
        """The options that are set, as the end of a function's name (``_clamped1_negated5``); empty without any."""
        return "".join(f"_{field.name}{int(getattr(self, field.name))}"
                       for field in fields(self) if getattr(self, field.name))

    @staticmethod
    def parse_name(words: str) -> MatrixOptions:
        """The options whose :attr:`name` is ``words``."""
        found = {}
        for word in filter(None, words.split("_")):
            name = word.rstrip("0123456789")
            found[name] = int(word[len(name):])
        return MatrixOptions(**found)  # type: ignore[arg-type]


def function_name(layout: MatrixLayout, options: MatrixOptions) -> str:
    """Which :func:`matrix_function` reads."""
    return f"matrix_{layout.name}_with{options.name}"


def matrix_function(name: str) -> str:
    """IR of (a, b, c, d, stride of c's rows in bytes, and what ``_extras`` has)."""
    shape, _, options = name.removeprefix("luthier_matrix_").partition("_with")
    return MatrixFunction(name, _layout(shape), MatrixOptions.parse_name(options)).text()


def _layout(name: str) -> MatrixLayout:
    if name[0] == "w":
        return WaveTile.parse_name(name)
    if name[0] == "s":
        return SparseMatrix(Matrix.parse_name(name[2:]))
    return BroadcastMatrix.parse_name(name) if name[0] == "c" else Matrix.parse_name(name)


def is_sparse(layout: MatrixLayout) -> bool:
    """Whether only half of the elements of A are there, and an index says which (V_SMFMAC, V_SWMMAC)."""
    return isinstance(layout, SparseMatrix) or isinstance(layout, WaveTile) and layout.matrix.sparse


def in_halves(layout: MatrixLayout) -> bool:
    """C and D of 16 bits lie in one half of their registers, which the instruction says."""
    return isinstance(layout, WaveTile) and layout.replicated and layout.outcome in _HALF_KINDS


class MatrixFunction:
    """Writes one function."""

    def __init__(self, name: str, layout: MatrixLayout, options: MatrixOptions) -> None:
        self.name = name
        self.layout, self.options = layout, options
        self.row_bytes = 4 * layout.lanes
        self.emitter = Emitter()
        self.ops = LlvmOps(self.emitter, STRIP)
        self.type = _TYPES.get(layout.addend, F32)
        self.bytes = self.type.bits // 8

    def _extras(self) -> Arguments:
        found: Arguments = []
        if is_sparse(self.layout):
            found += [("ptr", "index"), ("i32", "shift")]
        if in_halves(self.layout):
            found += [("i32", "half")]
        if self.options.signs:
            found += [("i32", "flip.a"), ("i32", "flip.b"), ("i32", "keep.c"), ("i32", "flip.c")]
        if self.options.scaled:
            found += [("ptr", "scale.a"), ("i32", "bit.a"), ("ptr", "scale.b"), ("i32", "bit.b")]
        if self.options.fewer:
            found += [("ptr", "scale.a"), ("ptr", "scale.b")]
        return found

    def text(self) -> str:
        """IR of a module that defines the function."""
        self.emitter.place("entry")
        for side, count in zip("ab", self.layout.elements, strict=True):
            self._widen(side, count)
        if is_sparse(self.layout):
            self._keep("kept", "%index", self._index_words * self.row_bytes)
        self._keep_addends()
        for register in range(self._registers(self.layout.outcome)):
            for lane in range(0, self.layout.lanes, STRIP):
                self._write(register, lane)
        self.emitter.emit("ret void")
        arguments = [("ptr", "a"), ("ptr", "b"), ("ptr", "c"), ("ptr", "d"), ("i64", "stride"), *self._extras()]
        self.emitter.define(f"void @{self.name}({', '.join(f'{type} %{name}' for type, name in arguments)})")
        return self.emitter.module()

    def _registers(self, kind: str) -> int:
        """Of C or D, without those of an f64's upper half."""
        packed = BITS[kind] == 16 and not in_halves(self.layout)
        return self.layout.results // 2 if packed else self.layout.results

    @property
    def _index_words(self) -> int:
        bits = [step.selector[1] for step in self.layout.products() if step.selector is not None]
        return max(bits) // 32 + 1

    # What is read first.

    def _widen(self, side: str, count: int) -> None:
        """%a.wide or %b.wide: elements of each lane in the type of the sums."""
        element = self.ops.name(self.type).split("x ")[1].rstrip(">")
        self.emitter.emit(f"%{side}.wide = alloca [{count * self.layout.lanes} x {element}], align 64")
        for number in range(count):
            for lane in range(0, self.layout.lanes, STRIP):
                value, place = self._load_widened(side, number, lane), self._wide(side, number, lane)
                self.emitter.emit(f"store {self.ops.name(self.type)} {value.ref}, ptr {place}, align 4")

    def _keep(self, name: str, source: str, size: int) -> None:
        self.emitter.emit(f"%{name} = alloca [{size} x i8], align 64")
        self._copy(f"%{name}", source, size)

    def _copy(self, target: str, source: str, size: int) -> None:
        arguments = [("ptr", target), ("ptr", source), ("i64", str(size)), ("i1", "false")]
        self.emitter.call("void", "llvm.memcpy.p0.p0.i64", arguments)

    def _keep_addends(self) -> None:
        """%addends: C, copied where it is neither a constant nor D itself word by word, since it may overlap D."""
        emitter = self.emitter
        registers = self._registers(self.layout.addend)
        size = registers * self.type.bits // 32 * self.row_bytes
        copy = emitter.let(f"alloca [{size} x i8], align 64")
        moved = emitter.let("icmp ne ptr %c, %d") if registers == self._registers(self.layout.outcome) else "true"
        rows = emitter.let("icmp ne i64 %stride, 0")
        emitter.branch(emitter.let(f"and i1 {moved}, {rows}"), "copy", "multiply")
        emitter.place("copy")
        self._copy(copy, "%c", size)
        emitter.begin("multiply")
        emitter.emit(f"%addends = phi ptr [ %c, %entry ], [ {copy}, %copy ]")

    def _at(self, pointer: str, offset: int | str) -> str:
        return self.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def _wide(self, side: str, number: int, lane: int) -> str:
        return self._at(f"%{side}.wide", (number * self.layout.lanes + lane) * self.bytes)

    def _load(self, type: Type, pointer: str) -> Value:
        return self.ops.let(type, f"load {self.ops.name(type)}, ptr {pointer}, align 4")

    def _argument(self, name: str) -> Value:
        return self.ops.splat(Value(LlvmOps(self.emitter), U32, f"%{name}"))

    def _load_widened(self, side: str, number: int, lane: int) -> Value:
        """Element ``number`` of a strip of lanes of A or B, in the type of the sums."""
        kind = self.layout.kinds[side == "b"]
        bits = BITS[kind]
        row, place = divmod(number * bits, 32)
        word = self._load(U32, self._at(f"%{side}", row * self.row_bytes + 4 * lane))
        if kind == "f64":
            high = self._load(U32, self._at(f"%{side}", self.row_bytes + 4 * lane))
            return self._apply_negation(concat(high, word).as_(F64), side == "b")
        if kind in ("fp8", "bf8"):
            return self._small(eight_bits(kind, self.options.fnuz), word >> place, side, number, lane)
        if kind in SMALLER:
            code = word >> place
            if place + bits > 32:
                code = code | self._load(U32, self._at(f"%{side}", (row + 1) * self.row_bytes + 4 * lane)) << 32 - place
            return self._small(SMALLER[kind], code, side, number, lane)
        if self.type == I32:
            typed = word.as_(I32) if kind[0] == "i" else word
            return ((typed << 32 - bits - place) >> 32 - bits).as_(I32)
        if self.options.signs:
            word = word ^ self._argument(f"flip.{side}")
        if kind in ("f32", "xf32"):
            return (word & _XF32_BITS if kind == "xf32" else word).as_(F32)
        return self._half(word, kind, place)

    def _half(self, word: Value, kind: str, place: int) -> Value:
        half = (word >> place).to(U16)
        return self._apply_flushing(half.as_(F16)).to(F32) if kind == "f16" else self._apply_flushing(from_bf16(half))

    def _apply_negation(self, value: Value, number: int) -> Value:
        return -value if self.options.negated >> number & 1 else value

    def _apply_flushing(self, value: Value) -> Value:
        return flush_denormals(value) if self.options.flushed else value

    def _small(self, format: SmallFloat, code: Value, side: str, number: int, lane: int) -> Value:
        if self.options.fewer:
            return self._scale_by_row(format, code, side, number, lane)
        if not self.options.scaled:
            return format.widen(code)
        assert isinstance(self.layout, Matrix)
        size, kind = self.layout.rows, self.layout.kinds[side == "b"]
        group, inside = divmod(lane, size)
        block = next(k // 32 for k in range(self.layout.depth)
                     if self.layout.source(0, k, 0, kind) == (group * size, number))
        word = self._load(U32, self._at(f"%scale.{side}", 4 * (block * size + inside)))
        return format.widen_scaled(code, ((word >> self._argument(f"bit.{side}")) & 0xFF) << 23)

    def _scale_by_row(self, format: SmallFloat, code: Value, side: str, number: int, lane: int) -> Value:
        """A byte for each few elements of the depth lies in the lane of the row or column."""
        assert isinstance(self.layout, WaveTile)
        k, turn = self.layout.depth_of(side == "b", number, lane)
        row, place = divmod(8 * (k // self.options.fewer), 32)
        word = self._load(U32, self._at(f"%scale.{side}", row * self.row_bytes + 4 * (lane % 16 + 16 * turn)))
        byte = (word >> place) & 0xFF
        numbers = {1: UE5M3, 2: eight_bits("fp8", False)}.get(self.options.formats >> 2 * (side == "b") & 3)
        return format.widen_scaled(code, byte << 23) if numbers is None else format.widen(code) * numbers.widen(byte)

    # Sums.

    def _sum(self, number: int, lane: int) -> Value:
        """A strip of D."""
        places = [self.layout.result(number, lane + i) for i in range(STRIP)]
        total, steps = self._addend(number, lane), list(self.layout.products())
        if self.type != I32:
            for step in steps:
                total = fma(*self._factors(step, places), total)
            return self._apply_flushing(total)
        stages = self.layout.matrix.stages if isinstance(self.layout, WaveTile) else 1
        for stage in range(stages):
            part = self.ops.constant(I32, 0)
            for step in steps[len(steps) * stage // stages : len(steps) * (stage + 1) // stages]:
                a, b = self._factors(step, places)
                part = a * b + part
            total = add_sat(total, part) if self.options.clamped else total + part
        return total

    def _factors(self, step: ElementProduct, places: list[tuple[int, int, int]]) -> tuple[Value, Value]:
        a = self._lanes("a", [self.layout.locate_left(step.a, row, block) for row, _, block in places])
        of_b = [self.layout.locate_right(step.b, column, block) for _, column, block in places]
        if step.selector is None:
            return a, self._lanes("b", of_b)
        (index_lane, _) = self.layout.locate_left((step.selector[0], 0), places[0][0], 0)
        word, bit = divmod(step.selector[1], 32)
        bits = self.emitter.let(f"load i32, ptr {self._at('%kept', word * self.row_bytes + 4 * index_lane)}, align 4")
        bits = self.emitter.let(f"lshr i32 {self.emitter.let(f'lshr i32 {bits}, %shift')}, {bit}")
        which = self.emitter.let(f"zext i32 {self.emitter.let(f'and i32 {bits}, 3')} to i64")
        skipped = self.emitter.let(f"mul i64 {which}, {self.layout.lanes * self.bytes}")
        return a, self._load(self.type, self._at(self._wide("b", of_b[0][1], of_b[0][0]), skipped))

    def _lanes(self, side: str, places: list[tuple[int, int]]) -> Value:
        """An element of the given lanes: one for all, a strip as it lies, or a strip rearranged."""
        lanes, element = [lane for lane, _ in places], places[0][1]
        if len(set(lanes)) == 1:
            scalar = LlvmOps(self.emitter)
            pointer = self._wide(side, element, lanes[0])
            return self.ops.splat(scalar.let(self.type, f"load {scalar.name(self.type)}, ptr {pointer}, align 4"))
        first = lanes[0] // STRIP * STRIP
        strip = self._load(self.type, self._wide(side, element, first))
        if lanes == list(range(first, first + STRIP)):
            return strip
        vector = self.ops.name(self.type)
        picked = f"<{STRIP} x i32> <" + ", ".join(f"i32 {lane - first}" for lane in lanes) + ">"
        return self.ops.let(self.type, f"shufflevector {vector} {strip.ref}, {vector} poison, {picked}")

    def _addend(self, number: int, lane: int) -> Value:
        kind = self.layout.addend
        if kind == "f64":
            return self._apply_negation(self._double(number, lane), 2)
        halves = kind in _HALF_KINDS
        packed = halves and not in_halves(self.layout)
        word = self._load(U32, self._at(self._addends_row(number // 2 if packed else number), 4 * lane))
        if self.options.signs:
            word = (word & self._argument("keep.c")) ^ self._argument("flip.c")
        if not halves:
            return self._apply_flushing(word.as_(self.type)) if self.type == F32 else word.as_(self.type)
        return self._half(word if packed else word >> self._argument("half"), kind, 16 * (number % 2) if packed else 0)

    def _addends_row(self, register: int) -> str:
        return self._at("%addends", self.emitter.let(f"mul i64 %stride, {register}"))

    def _double(self, number: int, lane: int) -> Value:
        """The second half of a constant is a row of its own, though its rows have no stride."""
        constant = self.emitter.let("icmp eq i64 %stride, 0")
        extra = self.emitter.let(f"select i1 {constant}, i64 {self.row_bytes}, i64 0")
        low = self._load(U32, self._at(self._addends_row(2 * number), 4 * lane))
        high = self._load(U32, self._at(self._at(self._addends_row(2 * number + 1), extra), 4 * lane))
        return concat(high, low).as_(F64)

    # Results.

    def _write(self, register: int, lane: int) -> None:
        kind = self.layout.outcome
        if kind == "f64":
            bits = self._sum(register, lane).as_(U64)
            self._store(2 * register, lane, bits.to(U32))
            self._store(2 * register + 1, lane, (bits >> 32).to(U32))
        elif kind not in _HALF_KINDS:
            self._store(register, lane, self._sum(register, lane).as_(U32))
        elif in_halves(self.layout):
            old = self._load(U32, self._at("%d", register * self.row_bytes + 4 * lane))
            shift = self._argument("half")
            value = self._round_sum(self._sum(register, lane)) << shift
            self._store(register, lane, (old & ~(self.ops.constant(U32, 0xFFFF) << shift)) | value)
        else:
            low, high = (self._round_sum(self._sum(2 * register + i, lane)) for i in range(2))
            self._store(register, lane, low | high << 16)

    def _round_sum(self, value: Value) -> Value:
        return (value.to(F16).as_(U16) if self.layout.outcome == "f16" else to_bf16(value)).to(U32)

    def _store(self, register: int, lane: int, value: Value) -> None:
        place = self._at("%d", register * self.row_bytes + 4 * lane)
        self.emitter.emit(f"store {self.ops.name(U32)} {value.ref}, ptr {place}, align 4")
