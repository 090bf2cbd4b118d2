"""Memory instructions: addresses from operands, and what is done there.

In: an instruction and its row of isa.semantics. Out: accesses, one or several. Sources: AMD Instinct MI200 ISA,
chapters 8 to 11.
"""

from __future__ import annotations

from dataclasses import replace

from luthier_py.emulator.access import AccessCode, Move
from luthier_py.emulator.buffers import scalar_buffer_load, vector_buffer
from luthier_py.emulator.crosslane import transpose
from luthier_py.emulator.layout import PASSING_ROW, SCALED_ROW, TEMPORARY_ROW, ZERO_ROW
from luthier_py.emulator.loads import Addresses
from luthier_py.emulator.operands import field, read_scalar, row_of
from luthier_py.emulator.strip import LaneChunk
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst, Operand, OperandKind, OpFlag, Space
from luthier_py.isa.registers import M0, Reg
from luthier_py.isa.semantics.algebra import F32, U32, U64, Value
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.lds import LoadToLds, LoadTwo, StoreTwo
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, ScalarLoad, ScalarStore, Store

SCALE_OFFSET = 1 << 11  # of the cache policy
MEMORY_ROWS = (Load, Store, Atomic, ScalarLoad, ScalarStore, LoadTwo, StoreTwo, LoadToLds, TransposedLoad)


def memory(access: AccessCode, inst: Inst, row: object) -> None:
    if isinstance(row, ScalarLoad | ScalarStore):
        _scalar(access, inst, row)
    elif isinstance(row, Load):
        _load(access, inst, row)
    elif isinstance(row, Store):
        _store(access, inst, row)
    elif isinstance(row, Atomic):
        _atomic(access, inst, row)
    elif isinstance(row, LoadToLds):
        _load_to_lds(access, inst, row)
    elif isinstance(row, TransposedLoad):
        _transposed(access, inst, row)
    elif isinstance(row, LoadTwo):
        target = row_of(register(inst["vdst"]))
        _two(access, inst, row, "load", target, target + row.dwords)
    elif isinstance(row, StoreTwo):
        _two(access, inst, row, "store", *(row_of(register(inst[name])) for name in ("data0", "data1")))


def _two(access: AccessCode, inst: Inst, row: LoadTwo | StoreTwo, operation: str, first: int, second: int) -> None:
    """Both elements in one call, the one at the lower address first."""
    low, high = (field(inst, name) * row.stride for name in ("offset0", "offset1"))
    if high < low:
        low, high, first, second = high, low, second, first
    access.call(Move(f"{operation}_pb{32 * row.dwords}", first, second, distance=high - low), _lds(access, inst, low))


def _load(access: AccessCode, inst: Inst, row: Load) -> None:
    target = row_of(register(inst.find("vdst") or inst["vdata"]))
    element = f"b{32 * row.dwords}" if row.bits == 32 else f"{'i' if row.signed else 'u'}{row.bits}"
    if not row.half:
        _vector(access, inst, Move(f"load_{element}", target), row.dwords * row.bits // 8)
        return
    _vector(access, inst, Move(f"load_{element}", TEMPORARY_ROW), row.bits // 8)

    def merge(chunk: LaneChunk) -> None:
        old, new = chunk.row(target), chunk.row(TEMPORARY_ROW)
        merged = (old & 0xFFFF) | (new << 16) if row.half == "high" else (old & 0xFFFF0000) | (new & 0xFFFF)
        chunk.write_row(target, merged)

    access.w.put_off(merge)


def _load_to_lds(access: AccessCode, inst: Inst, row: LoadToLds) -> None:
    element, lanes = f"b{32 * row.dwords}", access.w.wave_size
    _vector(access, inst, Move(f"load_{element}", PASSING_ROW), 4 * row.dwords)
    access.w.settle()
    places = ", ".join(f"i32 {4 * row.dwords * lane}" for lane in range(lanes))
    addresses = PASSING_ROW + row.dwords
    access.w.emitter.emit(f"store <{lanes} x i32> <{places}>, ptr {access.w.row(addresses)}, align 64")
    base = (access.w.scalars.read(M0) & 0x3FFFF).to(U64) + field(inst, "offset")
    access.call(Move(f"store_{element}", PASSING_ROW), Addresses("lds", base, addresses, access.mask()))


def _transposed(access: AccessCode, inst: Inst, row: TransposedLoad) -> None:
    target = row_of(register(inst["vdst"]))
    _vector(access, inst, Move("load_b64", TEMPORARY_ROW), 8)
    access.w.settle()
    transpose(access.w, TEMPORARY_ROW, TEMPORARY_ROW + 2, row.bits)
    for word in range(2):
        def write(chunk: LaneChunk, word: int = word) -> None:
            chunk.write_row(target + word, chunk.row(TEMPORARY_ROW + 2 + word))

        access.w.put_off(write)


def _store(access: AccessCode, inst: Inst, row: Store) -> None:
    source = row_of(register(inst.find("vdata") or inst["data0"]))
    if row.half == "high":
        data = source
        access.w.put_off(lambda chunk: chunk.write_row(TEMPORARY_ROW, chunk.row(data) >> 16))
        source = TEMPORARY_ROW
    element = f"b{32 * row.dwords}" if row.bits == 32 else f"b{row.bits}"
    _vector(access, inst, Move(f"store_{element}", source), row.dwords * row.bits // 8)


def _atomic(access: AccessCode, inst: Inst, row: Atomic) -> None:
    data = row_of(register(inst.find("vdata") or inst["data0"]))
    second = inst.find("data1")
    other = row_of(register(second)) if second is not None else data + row.bits // 32
    if row.modify is Modify.COMPARE_SWAP and second is not None:
        data, other = other, data  # DS: the first is compared, the second stored
    target = inst.find("vdst") or inst["vdata"] if OpFlag.ATOMIC_RETURN in inst.op.flags else None
    result = TEMPORARY_ROW if target is None else row_of(register(target))
    operation = f"atomic_{row.modify.name.lower()}_{row.kind}{row.bits}{_flushes(access, inst, row)}"
    has_second = row.modify in (Modify.COMPARE_SWAP, Modify.MASK_OR, Modify.WRAP)
    _vector(access, inst, Move(operation, data, other if has_second else ZERO_ROW, result), row.bits // 8)


def _flushes(access: AccessCode, inst: Inst, row: Atomic) -> str:
    """Which denormals LDS flushes: the end of the operation's name."""
    mode = access.w.context.mode
    if OpFlag.LDS not in inst.op.flags or row.modify is not Modify.ADD or (row.kind, row.bits) != ("f", 32):
        return ""
    return "s" * mode.flushes_sources(F32) + "r" * mode.flushes_results(F32)


def _vector(access: AccessCode, inst: Inst, move: Move, size: int) -> None:
    """Make the addresses, then move ``size`` bytes for each lane."""
    private = bool(inst.op.spaces & Space.SCRATCH)
    if OpFlag.FLAT not in inst.op.flags and OpFlag.VMEM in inst.op.flags:
        vector_buffer(access, inst, move, size)
    elif OpFlag.VMEM not in inst.op.flags:
        access.call(move, _lds(access, inst, field(inst, "offset")))
    elif private and not inst.op.spaces & Space.GLOBAL:
        access.call(move, _scaled(access, inst, _scratch(access, inst), size))
    else:
        access.call(move, _scaled(access, inst, _global(access, inst, "flat" if private else "far"), size))


def _lds(access: AccessCode, inst: Inst, offset: int) -> Addresses:
    if field(inst, "gds"):
        raise Unsupported("global data share")
    return Addresses("lds", access.w.ops.constant(U64, offset), row_of(register(inst["addr"])), access.mask())


def _global(access: AccessCode, inst: Inst, kind: str) -> Addresses:
    base = access.w.ops.constant(U64, field(inst, "offset"))
    saddr = inst.find("saddr")
    if saddr is not None and present(saddr):
        kind, base = "near", read_scalar(saddr, 64, access.w.context) + base
    return Addresses(kind, base, row_of(register(inst["vaddr"])), access.mask())


def _scaled(access: AccessCode, inst: Inst, addresses: Addresses, size: int) -> Addresses:
    """Where the offset of a lane counts elements of ``size`` bytes, as its cache policy says."""
    if not scales_offset(inst):
        return addresses
    if addresses.kind not in ("near", "private") or size & size - 1:
        raise Unsupported("scale_offset without an offset of a lane, or of elements that are no power of two")
    own, place = addresses.row, size.bit_length() - 1
    access.w.settle()  # what is stored may not be live any more where this is put off
    access.w.put_off(lambda chunk: chunk.write_row(SCALED_ROW, chunk.row(own) << place))
    return replace(addresses, row=SCALED_ROW)


def scales_offset(inst: Inst) -> bool:
    return bool(field(inst, "cpol") & SCALE_OFFSET)


def _scratch(access: AccessCode, inst: Inst) -> Addresses:
    base = access.w.ops.constant(U64, field(inst, "offset"))
    vaddr, saddr = inst.find("vaddr"), inst.find("saddr")
    if saddr is not None and present(saddr):
        base = base + read_scalar(saddr, 32, access.w.context).to(U64)
    row = row_of(register(vaddr)) if vaddr is not None and present(vaddr) else ZERO_ROW
    return Addresses("private", base, row, access.mask())


def _scalar(access: AccessCode, inst: Inst, row: ScalarLoad | ScalarStore) -> None:
    offset = access.w.ops.constant(U64, field(inst, "offset"))
    soffset = inst.find("soffset")
    if soffset is not None and present(soffset):
        counted = read_scalar(soffset, 32, access.w.context).to(U64)
        offset = offset + (counted * row.bytes if scales_offset(inst) else counted)
    if isinstance(row, ScalarLoad) and row.buffer:
        scalar_buffer_load(access, inst, offset, row.dwords)
        return
    address = read_scalar(inst["sbase"], 64, access.w.context) + offset
    if isinstance(row, ScalarLoad) and row.bits < 32:
        _short_scalar_load(access, inst, address, row)
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


def _short_scalar_load(access: AccessCode, inst: Inst, address: Value, row: ScalarLoad) -> None:
    size, emitter = access.w.ops.constant(U64, row.bytes), access.w.emitter
    loaded = emitter.let(f"load i{row.bits}, ptr {access.resolve(address, size)}, align 1")
    wide = emitter.let(f"{'sext' if row.signed else 'zext'} i{row.bits} {loaded} to i32")
    access.w.scalars.write(register(inst["sdst"]).index, access.w.ops.value(U32, wide))


def register(operand: Operand) -> Reg:
    assert operand.reg is not None
    return operand.reg


def present(operand: Operand) -> bool:
    return operand.kind is not OperandKind.ABSENT
