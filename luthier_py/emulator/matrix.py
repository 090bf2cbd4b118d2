"""Matrix instructions: one support function for each shape.

In: an MFMA instruction. Out: a call; and the IR of the function called, which works on chunks of a
row of D: one element of A for all lanes, times a chunk of B. Products are added in the order of the
depth, each step rounded once; hardware does not say what it does. Scales are multiplied into elements, which are f32
then: what overflows there is infinite. EXEC does not matter. On MI200 those of f16 and
bf16 take and give denormals as zeros (MIOpen, "MI200 MFMA behavior specifics").
"""

from __future__ import annotations

from collections.abc import Sequence

from luthier_py.emulator.emitter import Emitter, LlvmOps
from luthier_py.emulator.layout import CHUNK, TEMPORARY_ROW
from luthier_py.emulator.operands import field, read_scalar, row_of
from luthier_py.emulator.wave_code import WaveCode
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst
from luthier_py.isa.registers import RegFile
from luthier_py.isa.semantics.algebra import F16, F32, F64, I8, I32, U8, U16, U32, U64, Type, Value, concat, fma
from luthier_py.isa.semantics.floats import flush_denormals
from luthier_py.isa.semantics.matrix import WAVE, Matrix, MixedMatrix, SparseMatrix
from luthier_py.isa.semantics.small_floats import SMALLER, SmallFloat, eight_bits

_RESULT = {"i8": I32, "f64": F64}  # others: f32
_FLUSHED, _FNUZ = "_flushed", "_fnuz"  # ends of the names of functions that flush denormals, that have such floats
_ELEMENT_BITS = {"f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6,
                 "fp4": 4, "f64": 64}
_XF32_BITS = 0xFFFFE000
SCALE_ROW = TEMPORARY_ROW + 2  # of scales that are scalars; below it is the addend that is a constant


def matrix(w: WaveCode, inst: Inst, shape: Matrix) -> None:
    """Call the function of the shape."""
    if field(inst, "cbsz") or field(inst, "abid") or field(inst, "blgp"):
        raise Unsupported(f"{inst.op.mnemonic} with cbsz, abid or blgp")
    _call(w, inst, shape)


def mixed(w: WaveCode, inst: Inst, row: MixedMatrix) -> None:
    """Call the function of the shape with the kinds that the instruction says."""
    shape = row.of(field(inst, "cbsz"), field(inst, "blgp"))
    if shape is None:
        raise Unsupported(f"{inst.op.mnemonic} with formats that there are not (cbsz, blgp)")
    if not row.scaled:
        _call(w, inst, shape)
        return
    scales = []
    for number, name in enumerate(("scale_src0", "scale_src1")):
        byte = field(inst, f"src{number}_modifiers") >> 2 & 3  # op_sel, and op_sel_hi above it
        scales += [("ptr", _scale(w, inst, name, SCALE_ROW + number)), ("i32", str(8 * byte))]
    _call(w, inst, shape, "scaled", scales)


def _scale(w: WaveCode, inst: Inst, name: str, row: int) -> str:
    """Its row: its own, or one that holds a scalar in every lane."""
    operand = inst[name]
    if operand.reg is not None and operand.reg.file is not RegFile.SGPR:
        w.settle()
        return _place(w, inst, name)
    value = read_scalar(operand, 32, w.context)
    w.settle()
    vector = f"<{WAVE} x i32>"
    first = w.emitter.let(f"insertelement {vector} poison, i32 {value.ref}, i64 0")
    whole = w.emitter.let(f"shufflevector {vector} {first}, {vector} poison, {vector} zeroinitializer")
    w.emitter.emit(f"store {vector} {whole}, ptr {w.row(row)}, align 64")
    return w.row(row)


def _call(w: WaveCode, inst: Inst, shape: Matrix, family: str = "matrix", more: Sequence[tuple[str, str]] = ()) -> None:
    w.settle()
    pointers = [_place(w, inst, name) for name in ("src0", "src1")]
    stride = 4 * w.wave_size
    if inst["src2"].reg is None:
        pointers.append(_constant(w, inst, shape))
        stride = 0
    else:
        pointers.append(_place(w, inst, "src2"))
    arguments = [("ptr", pointer) for pointer in (*pointers, _place(w, inst, "vdst"))]
    w.emitter.support("void", _function(w, family, shape), [*arguments, ("i64", str(stride)), *more])


def sparse(w: WaveCode, inst: Inst, row: SparseMatrix) -> None:
    """Call the function of the shape."""
    if inst["idx"].reg is None or inst["idx"].reg.file is RegFile.SGPR:
        raise Unsupported(f"{inst.op.mnemonic} with an index that is in no vector register")
    w.settle()
    pointers = [("ptr", _place(w, inst, name)) for name in ("src0", "src1", "idx", "vdst")]
    shift = row.first_bit(field(inst, "cbsz"), field(inst, "abid"))
    w.emitter.support("void", _function(w, "sparse", row.dense), [*pointers, ("i32", str(shift))])


def _function(w: WaveCode, family: str, shape: Matrix) -> str:
    name = f"{family}_{shape.name}"
    if w.settings.target.half_matrices_flush and shape.kind in ("f16", "bf16"):
        return name + _FLUSHED
    return name + _FNUZ if w.settings.target.fnuz_floats and shape.kind in ("fp8", "bf8") else name


def _place(w: WaveCode, inst: Inst, name: str) -> str:
    reg = inst[name].reg
    assert reg is not None
    return w.row(row_of(reg))


def _constant(w: WaveCode, inst: Inst, shape: Matrix) -> str:
    """A row (two for f64) that holds an inline constant in every lane."""
    for i in range(2 if shape.kind == "f64" else 1):
        bits = inst["src2"].value >> 32 * i & 0xFFFFFFFF
        pointer = w.row(TEMPORARY_ROW + i)
        w.emitter.emit(f"store <{WAVE} x i32> splat (i32 {bits}), ptr {pointer}, align 64")
    return w.row(TEMPORARY_ROW)


def matrix_function(name: str) -> str:
    """IR of (a, b, c, d, stride of c's rows in bytes)."""
    return _MatrixFunction(name, _shape(name)).text()


def scaled_function(name: str) -> str:
    """IR of (a, b, c, d, stride of c's rows in bytes, then for A and for B the scale's row and first bit)."""
    return _ScaledFunction(name, _shape(name)).text()


def sparse_function(name: str) -> str:
    """IR of (a, b, index, d, first bit of the index)."""
    return _SparseFunction(name, _shape(name)).text()


def _shape(name: str) -> Matrix:
    return Matrix.named(name.split("_", 2)[2].removesuffix(_FLUSHED).removesuffix(_FNUZ))


class _MatrixFunction:
    """Writes one shape's function."""

    arguments = "ptr %a, ptr %b, ptr %c, ptr %d, i64 %stride"

    def __init__(self, name: str, shape: Matrix) -> None:
        self.name = name
        self.shape = shape
        self.flushes = name.endswith(_FLUSHED)
        self.fnuz = name.endswith(_FNUZ)
        self.emitter = Emitter()
        self.ops = LlvmOps(self.emitter, CHUNK)
        self.type = _RESULT.get(shape.kind, F32)
        self.bytes = self.type.bits // 8

    def text(self) -> str:
        self.emitter.place("entry")
        self._widen("a", self.shape.per_lane)
        self._widen("b", self.shape.per_lane)
        self._keep_addends()
        return self._multiply(self.arguments)

    def _multiply(self, arguments: str) -> str:
        for register in range(self.shape.result_registers):
            for lane in range(0, WAVE, CHUNK):
                self._write(register, lane, self._product(register, lane))
        self.emitter.emit("ret void")
        self.emitter.define(f"void @{self.name}({arguments})")
        return self.emitter.module()

    def _widen(self, name: str, per_lane: int) -> None:
        """%a.wide or %b.wide: elements of each lane in the type of D."""
        element = self.ops.name(self.type).split("x ")[1].rstrip(">")
        self.emitter.emit(f"%{name}.wide = alloca [{per_lane * WAVE} x {element}], align 64")
        for number in range(per_lane):
            for lane in range(0, WAVE, CHUNK):
                value, place = self._widened(name, number, lane), self._wide(name, number, lane)
                self.emitter.emit(f"store {self.ops.name(self.type)} {value.ref}, ptr {place}, align 4")

    def _keep_addends(self) -> None:
        """%addends: C, copied where it is neither a constant nor D itself, since it may overlap D."""
        emitter = self.emitter
        size = self.shape.result_registers * self.type.bits // 8 * WAVE
        copy = emitter.let(f"alloca [{size} x i8], align 64")
        moved = emitter.let("icmp ne ptr %c, %d")
        rows = emitter.let("icmp ne i64 %stride, 0")
        emitter.branch(emitter.let(f"and i1 {moved}, {rows}"), "copy", "multiply")
        emitter.place("copy")
        arguments = [("ptr", copy), ("ptr", "%c"), ("i64", str(size)), ("i1", "false")]
        emitter.call("void", "llvm.memcpy.p0.p0.i64", arguments)
        emitter.begin("multiply")
        emitter.emit(f"%addends = phi ptr [ %c, %entry ], [ {copy}, %copy ]")

    def _at(self, pointer: str, offset: int | str) -> str:
        return self.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def _wide(self, name: str, number: int, lane: int) -> str:
        return self._at(f"%{name}.wide", (number * WAVE + lane) * self.bytes)

    def _load(self, type: Type, pointer: str) -> Value:
        return self.ops.let(type, f"load {self.ops.name(type)}, ptr {pointer}, align 4")

    def _widened(self, name: str, number: int, lane: int) -> Value:
        """Element ``number`` of a chunk of lanes of A or B, in the type of D."""
        kind = self.shape.kinds[name == "b"]
        bits = _ELEMENT_BITS[kind]
        row, place = divmod(number * bits, 32)
        word = self._load(U32, self._at(f"%{name}", row * 4 * WAVE + 4 * lane))
        if kind == "f64":
            return concat(self._load(U32, self._at(f"%{name}", 4 * WAVE + 4 * lane)), word).as_(F64)
        if kind in ("f32", "xf32"):
            return (word & _XF32_BITS if kind == "xf32" else word).as_(F32)
        if kind in ("fp8", "bf8"):
            return self._small(eight_bits(kind, self.fnuz), word >> place, name, number, lane)
        if kind in SMALLER:
            code = word >> place
            if place + bits > 32:
                code = code | self._load(U32, self._at(f"%{name}", (row + 1) * 4 * WAVE + 4 * lane)) << 32 - place
            return self._small(SMALLER[kind], code, name, number, lane)
        if kind == "bf16":
            return self._flushed((word & 0xFFFF0000 if place else word << 16).as_(F32))
        if kind == "f16":
            return self._flushed((word >> place).to(U16).as_(F16)).to(F32)
        return (word >> place).to(U8).as_(I8).to(I32)

    def _small(self, format: SmallFloat, code: Value, name: str, number: int, lane: int) -> Value:
        return format.widened(code)

    def _flushed(self, value: Value) -> Value:
        return flush_denormals(value) if self.flushes else value

    def _product(self, register: int, lane: int) -> Value:
        """A chunk of D."""
        places = [self.shape.result(register, lane + i) for i in range(CHUNK)]
        total = self._addend(register, lane)
        for k in range(self.shape.depth):
            of_a, of_b = self.shape.kinds
            lanes_a = [self.shape.source(row, k, block, of_a)[0] for row, _, block in places]
            lanes_b = [self.shape.source(column, k, block, of_b)[0] for _, column, block in places]
            first, second = (self.shape.source(0, k, 0, kind)[1] for kind in self.shape.kinds)
            a, b = self._lanes("a", first, lanes_a), self._lanes("b", second, lanes_b)
            total = a * b + total if self.type == I32 else fma(a, b, total)
        return self._flushed(total)

    def _lanes(self, name: str, element: int, lanes: list[int]) -> Value:
        """An element of the given lanes: one for all, a chunk as it lies, or a chunk rearranged."""
        if len(set(lanes)) == 1:
            scalar = LlvmOps(self.emitter)
            pointer = self._wide(name, element, lanes[0])
            return self.ops.splat(scalar.let(self.type, f"load {scalar.name(self.type)}, ptr {pointer}, align 4"))
        first = lanes[0] // CHUNK * CHUNK
        chunk = self._load(self.type, self._wide(name, element, first))
        if lanes == list(range(first, first + CHUNK)):
            return chunk
        vector = self.ops.name(self.type)
        picked = f"<{CHUNK} x i32> <" + ", ".join(f"i32 {lane - first}" for lane in lanes) + ">"
        return self.ops.let(self.type, f"shufflevector {vector} {chunk.ref}, {vector} poison, {picked}")

    def _addend(self, register: int, lane: int) -> Value:
        words = self.type.bits // 32
        parts = []
        for i in range(words):
            row = self.emitter.let(f"mul i64 %stride, {register * words + i}")
            base = self._at("%addends", row)
            if words == 2:  # a constant's second half is a row of its own
                constant = self.emitter.let("icmp eq i64 %stride, 0")
                extra = self.emitter.let(f"select i1 {constant}, i64 {4 * WAVE * i}, i64 0")
                base = self._at(base, extra)
            parts.append(self._load(U32, self._at(base, 4 * lane)))
        whole = parts[0] if words == 1 else concat(parts[1], parts[0])
        return self._flushed(whole.as_(self.type))

    def _write(self, register: int, lane: int, value: Value) -> None:
        words = self.type.bits // 32
        bits = value.as_(U64 if words == 2 else U32)
        for i in range(words):
            word = bits if words == 1 else (bits >> 32 * i).to(U32)
            place = self._at("%d", (register * words + i) * 4 * WAVE + 4 * lane)
            self.emitter.emit(f"store {self.ops.name(U32)} {word.ref}, ptr {place}, align 4")


class _ScaledFunction(_MatrixFunction):
    """Elements of A and B are scaled one by one, in f32."""

    arguments = _MatrixFunction.arguments + ", ptr %scale.a, i32 %bit.a, ptr %scale.b, i32 %bit.b"

    def _small(self, format: SmallFloat, code: Value, name: str, number: int, lane: int) -> Value:
        group, inside = divmod(lane, self.shape.rows)
        kind, groups = self.shape.kinds[name == "b"], WAVE // self.shape.rows
        block = next(k // 32 for k in range(self.shape.depth)
                     if self.shape.source(0, k, 0, kind) == (group * self.shape.rows, number))
        assert block < groups
        word = self._load(U32, self._at(f"%scale.{name}", 4 * (block * self.shape.rows + inside)))
        shift = self.ops.splat(Value(LlvmOps(self.emitter), U32, f"%bit.{name}"))
        return format.scaled(code, ((word >> shift) & 0xFF) << 23)


class _SparseFunction(_MatrixFunction):
    """A lane's pair of elements of A meets four elements of B in the lanes of the same group."""

    def text(self) -> str:
        emitter = self.emitter
        emitter.place("entry")
        self._widen("a", self.shape.per_lane // 2)
        self._widen("b", self.shape.per_lane)
        emitter.emit(f"%kept = alloca [{4 * WAVE} x i8], align 64")  # D may be where the index is
        arguments = [("ptr", "%kept"), ("ptr", "%index"), ("i64", str(4 * WAVE)), ("i1", "false")]
        emitter.call("void", "llvm.memcpy.p0.p0.i64", arguments)
        emitter.emit("%addends = getelementptr i8, ptr %d, i64 0")
        emitter.emit(f"%stride = add i64 0, {4 * WAVE}")
        return self._multiply("ptr %a, ptr %b, ptr %index, ptr %d, i32 %shift")

    def _product(self, register: int, lane: int) -> Value:
        """A chunk of D: of one row, in all of whose lanes A's elements and their indices are the same."""
        row, first, _ = self.shape.result(register, lane)
        total = self._addend(register, lane)
        for group in range(WAVE // self.shape.rows):
            lane_a = row + group * self.shape.rows
            word = self.emitter.let(f"load i32, ptr {self._at('%kept', 4 * lane_a)}, align 4")
            indices = self.emitter.let(f"lshr i32 {word}, %shift")
            for element in range(self.shape.per_lane // 2):
                a = self._lanes("a", element, [lane_a])
                moved = self.emitter.let(f"lshr i32 {indices}, {2 * element}")
                which = self.emitter.let(f"zext i32 {self.emitter.let(f'and i32 {moved}, 3')} to i64")
                skipped = self.emitter.let(f"mul i64 {which}, {WAVE * self.bytes}")
                place = self._at(self._wide("b", element // 2 * 4, first + group * self.shape.rows), skipped)
                b = self._load(self.type, place)
                total = a * b + total if self.type == I32 else fma(a, b, total)
        return self._flushed(total)
