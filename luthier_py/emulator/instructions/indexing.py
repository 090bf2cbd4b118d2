"""Registers named at run time: S_SET_GPR_IDX regions, S_MOVREL and V_MOVREL.

In: an instruction whose operands are relative to M0. Out: the same instruction on temporary rows,
with the rows meant copied in before and out after. Source: AMD Instinct MI200 ISA, 3.8 and 12.4.
Invariant: whatever the index is, only rows of the wave's VGPRs are touched.
"""

from __future__ import annotations

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import replace
from luthier_py.emulator.instructions.operands import read_scalar, register
from luthier_py.emulator.instructions.routes import INDEX_ROLES, collect_written_operands
from luthier_py.emulator.instructions.wave_code import Index, WaveCode
from luthier_py.emulator.records.layout import TEMPORARY_ROW
from luthier_py.isa.encoding.instruction import Access, Inst, Operand
from luthier_py.isa.model.registers import M0, RegFile, vgpr
from luthier_py.isa.semantics.algebra import U32, U64, Value
from luthier_py.isa.semantics.control import Indexing

_COPIES = TEMPORARY_ROW + 8  # two rows for each of three sources and the destination


def index_mode(w: WaveCode, inst: Inst, row: Indexing) -> None:
    """Open, change or close a region, or move a scalar register."""
    if row is Indexing.OFF:
        w.index = None
    elif row is Indexing.ON:
        roles = next(operand.value for operand in inst.operands if operand.name != "src0")
        offset = read_scalar(inst["src0"], 32, w.context) & 0xFF
        w.scalars.write(M0, (w.scalars.read(M0) & 0xFFFF0F00) | offset | (roles & 15) << 12)
        w.index = Index(roles & 15, offset.to(U64))
    elif row is Indexing.READ_SCALAR:
        source, target = inst["src0"].reg, inst["sdst"].reg
        assert source is not None and target is not None
        place = _scalar_place(w, source.index, w.scalars.read(M0))
        type = U32 if target.dwords == 1 else U64
        w.scalars.flush()
        w.scalars.write(target.index, w.ops.let(type, f"load {w.ops.name(type)}, ptr {place}, align 4"))
    elif row is Indexing.WRITE_SCALAR:
        target = inst["sdst"].reg
        assert target is not None
        value = read_scalar(inst["src0"], 32 * target.dwords, w.context)
        place = _scalar_place(w, target.index, w.scalars.read(M0))
        w.scalars.flush()
        w.emitter.emit(f"store i{32 * target.dwords} {value.ref}, ptr {place}, align 4")
        w.scalars.forget()
    elif row is Indexing.MOVE_SCALAR:
        if inst["src0"].reg is None:
            raise Unsupported(f"a source of {inst.op.mnemonic} that is no register")
        source, target = register(inst["src0"]), register(inst["sdst"])
        offsets = w.scalars.read(M0)
        read = _scalar_place(w, source.index, offsets & 0x3FF)
        written = _scalar_place(w, target.index, offsets >> 16 & 0x3FF)
        w.scalars.flush()
        moved = w.emitter.let(f"load i32, ptr {read}, align 4")
        w.emitter.emit(f"store i32 {moved}, ptr {written}, align 4")
        w.scalars.forget()
    else:
        raise Unsupported(f"the emulator does not know {inst.op.mnemonic}")


def _scalar_place(w: WaveCode, first: int, offset: Value) -> str:
    """Pointer to the SGPR that ``first`` + ``offset`` names, limited to the SGPRs and VCC."""
    number = (offset + first) & 127
    w.settle()
    place = w.emitter.let(f"mul i64 {number.to(U64).ref}, 4")
    return w.emitter.let(f"getelementptr i8, ptr %wave, i64 {place}")


def index_of(role: str, offset: Value) -> Index:
    """Of one instruction, of which one operand is relative."""
    return Index(1 << INDEX_ROLES[role], offset.to(U64))


def mark_written_operands(inst: Inst) -> Inst:
    """The instruction with all that it writes (see routes) as such."""
    written = collect_written_operands(inst)
    operands = tuple(replace(operand, access=operand.access | Access.WRITE) if operand in written else operand
                     for operand in inst.operands)
    return Inst(inst.op, inst.fields, inst.literal, inst.raw, operands)


def replace_relative_operands(w: WaveCode, inst: Inst, index: Index) -> Inst:
    """``inst`` with relative operands replaced by copies in temporary rows."""
    operands = []
    for operand in inst.operands:
        role = INDEX_ROLES.get(operand.name)
        if role is None or not _relative(operand, index, role) or operand.reg is None:
            operands.append(operand)
            continue
        for word in range(operand.reg.dwords):
            _copy(w, _place(w, operand.reg.index + word, index), _locate_copy(w, role, word), None)
        operands.append(replace(operand, reg=vgpr(_COPIES + 2 * role, operand.reg.dwords)))
    return Inst(inst.op, inst.fields, inst.literal, inst.raw, tuple(operands))


def write_back(w: WaveCode, inst: Inst, index: Index) -> None:
    """Copy a relative destination from its temporary rows, in the lanes of EXEC."""
    for operand in inst.operands:
        role = INDEX_ROLES.get(operand.name)
        if role is not None and _relative(operand, index, role) and Access.WRITE in operand.access and operand.reg:
            mask = w.exec()
            w.settle()
            for word in range(operand.reg.dwords):
                _copy(w, _locate_copy(w, role, word), _place(w, operand.reg.index + word, index), str(mask.ref))


def _relative(operand: Operand, index: Index, role: int) -> bool:
    return bool(operand.reg is not None and operand.reg.file is RegFile.VGPR and index.roles >> role & 1)


def _place(w: WaveCode, row: int, index: Index) -> str:
    number = (index.offset + row) & 255
    bytes_ = w.emitter.let(f"mul i64 {number.ref}, {4 * w.wave_size}")
    return w.emitter.let(f"getelementptr i8, ptr {w.row(0)}, i64 {bytes_}")


def _locate_copy(w: WaveCode, role: int, word: int) -> str:
    return w.row(_COPIES + 2 * role + word)


def _copy(w: WaveCode, source: str, target: str, mask: str | None) -> None:
    w.settle()
    lanes = w.wave_size
    vector = f"<{lanes} x i32>"
    value = w.emitter.let(f"load {vector}, ptr {source}, align 64")
    if mask is not None:
        active = w.emitter.let(f"bitcast i{lanes} {mask} to <{lanes} x i1>")
        old = w.emitter.let(f"load {vector}, ptr {target}, align 64")
        value = w.emitter.let(f"select <{lanes} x i1> {active}, {vector} {value}, {vector} {old}")
    w.emitter.emit(f"store volatile {vector} {value}, ptr {target}, align 64")
