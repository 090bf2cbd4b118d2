"""Scalar memory instructions: loads, stores and atomics of one address for the wave.

In: an instruction and its row of isa.semantics. Out: accesses. Stores and atomics that may be out of a resource's
range go as one lane of the vector's support functions, which takes part where it is inside. Sources: AMD Instinct MI200
ISA, chapter 8; Vega ISA, 12.6 (S_ATOMIC, S_BUFFER_STORE, S_SCRATCH).
"""

from __future__ import annotations

from luthier_py.emulator.instructions.access import AccessCode, Move
from luthier_py.emulator.instructions.buffers import scalar_buffer_load, scalar_buffer_room, short_load
from luthier_py.emulator.instructions.loads import Addresses
from luthier_py.emulator.instructions.operands import field, present, read_scalar, register
from luthier_py.emulator.records.layout import PROPAGATION_ROW, TEMPORARY_ROW, ZERO_ROW
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.properties.accesses import scales_offset
from luthier_py.isa.semantics.algebra import U32, U64, Value
from luthier_py.isa.semantics.memory import Atomic, Modify, ScalarAtomic, ScalarLoad, ScalarStore


def atomic_name(access: AccessCode, row: Atomic) -> str:
    """Of the support function's operation."""
    row = row.where(access.w.settings.target.numbers_win)
    return f"atomic_{row.modify.name.lower()}_{row.kind}{row.bits}"


def scalar_memory(access: AccessCode, inst: Inst, row: ScalarLoad | ScalarStore | ScalarAtomic) -> None:
    """Emit one scalar load, store or atomic: its offset is the sum of the immediate one and ``soffset``, in bytes or in
    units that the row or the instruction says."""
    offset = access.w.ops.constant(U64, field(inst, "offset"))
    soffset = inst.find("soffset")
    if soffset is not None and present(soffset):
        counted = read_scalar(soffset, 32, access.w.context).to(U64)
        offset = offset + counted * (row.bytes if scales_offset(inst) else row.unit)
    if isinstance(row, ScalarLoad) and row.buffer:
        scalar_buffer_load(access, inst, offset, row)
    elif isinstance(row, ScalarAtomic):
        _atomic(access, inst, row, offset)
    elif isinstance(row, ScalarStore) and row.buffer:
        _store_to_buffer(access, inst, row, offset)
    else:
        _move(access, inst, row, read_scalar(inst["sbase"], 64, access.w.context) + offset)


def _move(access: AccessCode, inst: Inst, row: ScalarLoad | ScalarStore, address: Value) -> None:
    if isinstance(row, ScalarLoad) and row.bits < 32:
        pointer = access.resolve(address, access.w.ops.constant(U64, row.bytes))
        access.w.scalars.write(register(inst["sdst"]).index, short_load(access.w, pointer, row))
        return
    address = address & ~3
    pointer = access.resolve(address, access.w.ops.constant(U64, 4 * row.dwords), isinstance(row, ScalarStore))
    data = register(inst.find("sdst") or inst["sdata"]).index
    if isinstance(row, ScalarLoad):
        access.load_words(pointer, data, row.dwords)
        return
    for i in range(row.dwords):
        place = access.w.emitter.let(f"getelementptr i8, ptr {pointer}, i64 {4 * i}")
        access.w.emitter.emit(f"store i32 {access.w.scalars.read(data + i).ref}, ptr {place}, align 4")
    access.w.note_change()


def _store_to_buffer(access: AccessCode, inst: Inst, row: ScalarStore, offset: Value) -> None:
    """Dword by dword; those outside the range are left out."""
    base, room = scalar_buffer_room(access, inst, offset & ~3)
    data = register(inst["sdata"]).index
    for i in range(row.dwords):
        _put(access, TEMPORARY_ROW, data + i, 1)
        inside = (room >= 4 * (i + 1)).to(U64)
        access.support(Move("store_b32", TEMPORARY_ROW), Addresses("near", base + 4 * i, ZERO_ROW, inside))


def _atomic(access: AccessCode, inst: Inst, row: ScalarAtomic, offset: Value) -> None:
    """As of lane 0; what is out of a resource's range gives 0."""
    w, dwords = access.w, row.atomic.bits // 32
    if row.buffer:
        address, room = scalar_buffer_room(access, inst, offset & ~(row.bytes - 1))
        inside = (room >= row.bytes).to(U64)
    else:
        address, inside = read_scalar(inst["sbase"], 64, w.context) + offset & ~3, w.ops.constant(U64, 1)
    data = register(inst.find("sdst") or inst["sdata"]).index
    compares = row.atomic.modify is Modify.COMPARE_SWAP
    _put(access, PROPAGATION_ROW, data, dwords * (1 + compares))
    result = TEMPORARY_ROW
    for word in range(dwords):
        w.emitter.emit(f"store i32 0, ptr {w.row(result + word)}, align 4")
    second = PROPAGATION_ROW + dwords if compares else ZERO_ROW
    move = Move(atomic_name(access, row.atomic), PROPAGATION_ROW, second, result)
    access.support(move, Addresses("near", address, ZERO_ROW, inside))
    if OpFlag.ATOMIC_RETURN in inst.op.flags:
        for word in range(dwords):
            w.scalars.write(data + word, w.ops.let(U32, f"load i32, ptr {w.row(result + word)}, align 4"))


def _put(access: AccessCode, row: int, first: int, dwords: int) -> None:
    """Scalar registers to lane 0 of rows."""
    w = access.w
    w.settle()
    for word in range(dwords):
        w.emitter.emit(f"store i32 {w.scalars.read(first + word).ref}, ptr {w.row(row + word)}, align 4")
