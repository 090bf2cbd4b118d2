"""Matrix instructions: calls of one support function for each shape.

In: an instruction and its row. Out: a call (see matrix_function). EXEC does not matter: the manuals of CDNA say so,
that of RDNA 3 (7.9) does not speak of it. On MI200 those of f16 and bf16 take and give denormals as zeros (MIOpen,
"MI200 MFMA behavior specifics").
"""

from __future__ import annotations

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.instructions.operands import field, read_scalar, row_of
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.native.matrix_function import Arguments, MatrixOptions, function_name
from luthier_py.emulator.records.layout import TEMPORARY_ROW
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.registers import RegFile
from luthier_py.isa.properties.lost_denormals import loses_products
from luthier_py.isa.semantics.algebra import U32
from luthier_py.isa.semantics.matrix import BroadcastMatrix, Matrix, MatrixLayout, MixedMatrix, SparseMatrix

SCALE_ROW = TEMPORARY_ROW + 2  # of scales that are scalars; below it is the addend that is a constant


def matrix(w: WaveCode, inst: Inst, row: Matrix) -> None:
    """Put off nothing: everything before it is written first."""
    cbsz, abid, blgp = (field(inst, name) for name in ("cbsz", "abid", "blgp"))
    if row.kind == "f64" and w.settings.target.negates_doubles:
        negated, blgp = blgp, 0
    else:
        negated = 0
    if not (cbsz or abid or blgp):
        call(w, inst, row, _options(w, row, negated=negated))
        return
    broadcast = BroadcastMatrix(row, cbsz, abid, blgp)
    if not broadcast.exists or row.kind == "f64" or negated:
        raise Unsupported(f"{inst.op.mnemonic} with cbsz, abid or blgp that it does not have")
    call(w, inst, broadcast, _options(w, row))


def emit_mixed_matrix(w: WaveCode, inst: Inst, row: MixedMatrix) -> None:
    """With the kinds that the instruction says."""
    shape = row.of(field(inst, "cbsz"), field(inst, "blgp"))
    if shape is None:
        raise Unsupported(f"{inst.op.mnemonic} with formats that there are not (cbsz, blgp)")
    if not row.scaled:
        call(w, inst, shape, _options(w, shape))
        return
    scales: Arguments = []
    for number, name in enumerate(("scale_src0", "scale_src1")):
        byte = field(inst, f"src{number}_modifiers") >> 2 & 3  # op_sel, and op_sel_hi above it
        scales += [("ptr", scale(w, inst, name, SCALE_ROW + number)), ("i32", str(8 * byte))]
    call(w, inst, shape, _options(w, shape, scaled=True), scales)


def sparse(w: WaveCode, inst: Inst, row: SparseMatrix) -> None:
    """D is C."""
    shift = row.first_bit(field(inst, "cbsz"), field(inst, "abid"))
    index = vector_place(w, inst, "idx")
    call(w, inst, row, _options(w, row.matrix), [("ptr", index), ("i32", str(shift))], addend="vdst")


def scale(w: WaveCode, inst: Inst, name: str, row: int, dwords: int = 1) -> str:
    """Its rows: its own, or ones that hold a scalar in every lane."""
    operand = inst[name]
    if operand.reg is not None and operand.reg.file is not RegFile.SGPR:
        w.settle()
        return place(w, inst, name)
    value = read_scalar(operand, 32 * dwords, w.context)
    w.settle()
    vector = f"<{w.wave_size} x i32>"
    for number in range(dwords):
        word = value if dwords == 1 else (value >> 32 * number).to(U32)
        first = w.emitter.let(f"insertelement {vector} poison, i32 {word.ref}, i64 0")
        whole = w.emitter.let(f"shufflevector {vector} {first}, {vector} poison, {vector} zeroinitializer")
        w.emitter.emit(f"store {vector} {whole}, ptr {w.row(row + number)}, align 64")
    return w.row(row)


def vector_place(w: WaveCode, inst: Inst, name: str) -> str:
    """Of an index, which must be there for each lane."""
    reg = inst[name].reg
    if reg is None or reg.file is RegFile.SGPR:
        raise Unsupported(f"{inst.op.mnemonic} with an index that is in no vector register")
    return place(w, inst, name)


def call(w: WaveCode, inst: Inst, layout: MatrixLayout, options: MatrixOptions, extras: Arguments | None = None,
         addend: str = "src2", constant: int | None = None) -> None:
    """``constant``: bits of the addend in a lane, if it is one."""
    w.settle()
    stride = 4 * w.wave_size
    if inst[addend].reg is None:
        _keep_constant(w, inst[addend].value if constant is None else constant, layout.addend == "f64")
        pointer, stride = w.row(TEMPORARY_ROW), 0
    else:
        pointer = place(w, inst, addend)
    pointers = [place(w, inst, "src0"), place(w, inst, "src1"), pointer, place(w, inst, "vdst")]
    arguments = [*(("ptr", each) for each in pointers), ("i64", str(stride)), *(extras or [])]
    w.emitter.support("void", function_name(layout, options), arguments)


def _options(w: WaveCode, shape: Matrix, negated: int = 0, scaled: bool = False) -> MatrixOptions:
    target = w.settings.target
    flushed = loses_products(target, shape.kind)
    fnuz = target.fnuz_floats and shape.kind in ("fp8", "bf8")
    return MatrixOptions(flushed=flushed, fnuz=fnuz, negated=negated, scaled=scaled)


def place(w: WaveCode, inst: Inst, name: str) -> str:
    """A pointer to an operand's rows."""
    reg = inst[name].reg
    assert reg is not None
    return w.row(row_of(reg))


def _keep_constant(w: WaveCode, value: int, double: bool) -> None:
    """A row (two for f64) that holds an inline constant in every lane."""
    for i in range(2 if double else 1):
        bits = value >> 32 * i & 0xFFFFFFFF
        pointer = w.row(TEMPORARY_ROW + i)
        w.emitter.emit(f"store <{w.wave_size} x i32> splat (i32 {bits}), ptr {pointer}, align 64")
