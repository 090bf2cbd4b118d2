"""Memory instructions: addresses from operands, and what is done there.

In: an instruction and its row of isa.semantics. Out: accesses, one or several. Sources: AMD Instinct MI200 ISA,
chapters 8 to 11.
"""

from __future__ import annotations

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import replace
from luthier_py.emulator.instructions.access import AccessCode, Move
from luthier_py.emulator.instructions.buffers import emit_formatted_buffer, vector_buffer
from luthier_py.emulator.instructions.crosslane import read_first_row, transpose
from luthier_py.emulator.instructions.images import image
from luthier_py.emulator.instructions.loads import Addresses
from luthier_py.emulator.instructions.operands import field, present, read_scalar, register, row_of
from luthier_py.emulator.instructions.scalar_memory import atomic_name, scalar_memory
from luthier_py.emulator.instructions.surfaces import beside_lanes, pass_to_lds
from luthier_py.emulator.instructions.transfers import block, broadcast, copy
from luthier_py.emulator.records.layout import PROPAGATION_ROW, SCALED_ROW, TEMPORARY_ROW, ZERO_ROW
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.instruction import Inst, Operand, OpFlag, Space
from luthier_py.isa.model.registers import M0
from luthier_py.isa.properties.accesses import scales_offset
from luthier_py.isa.semantics.algebra import F32, I32, I64, U32, U64, Prim, Type, popcount
from luthier_py.isa.semantics.cdna4 import TransposedLoad
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.images import ImageAtomic, ImageMove, ImageQuery
from luthier_py.isa.semantics.lds import ExchangeTwo, FromLds, LaneCount, LoadToLds, LoadTwo, StoreFromLds, StoreTwo
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, ScalarAtomic, ScalarLoad, ScalarStore, Store
from luthier_py.isa.semantics.transfers import BlockTransfer, LdsBroadcast, LdsCopy

MEMORY_ROWS = (Load, Store, Atomic, ScalarLoad, ScalarStore, ScalarAtomic, LoadTwo, StoreTwo, ExchangeTwo, FromLds,
               LaneCount, LoadToLds, StoreFromLds, TransposedLoad, FormatLoad, FormatStore, BlockTransfer,
               LdsCopy, LdsBroadcast, ImageMove, ImageAtomic, ImageQuery)


def memory(access: AccessCode, inst: Inst, row: object) -> None:
    """Emit one memory instruction; ``row``: of a type in MEMORY_ROWS."""
    if isinstance(row, ScalarLoad | ScalarStore | ScalarAtomic):
        scalar_memory(access, inst, row)
    elif isinstance(row, Load):
        _load(access, inst, row)
    elif isinstance(row, Store):
        _store(access, inst, row)
    elif isinstance(row, Atomic):
        _atomic(access, inst, row)
    elif isinstance(row, StoreFromLds):
        access.call(Move("load_b32", PROPAGATION_ROW), beside_lanes(access, inst, 1))
        vector_buffer(access, inst, Move("store_b32", PROPAGATION_ROW), 4)
    elif isinstance(row, FormatLoad | FormatStore):
        emit_formatted_buffer(access, inst, row)
    elif isinstance(row, LoadToLds):
        _load_to_lds(access, inst, row)
    elif isinstance(row, TransposedLoad):
        _emit_transposed_load(access, inst, row)
    elif isinstance(row, LaneCount):
        _count_lanes(access, inst, row)
    elif isinstance(row, ImageMove | ImageAtomic | ImageQuery):
        image(access, inst, row)
    elif isinstance(row, BlockTransfer):
        block(access, inst, row, _addresses(access, inst, 4))
    elif isinstance(row, LdsCopy):
        copy(access, inst, row, _addresses(access, inst, row.bytes))
    elif isinstance(row, LdsBroadcast):
        broadcast(access, inst)
    elif isinstance(row, FromLds):
        _from_lds(access, inst, row)
    elif isinstance(row, ExchangeTwo):
        _exchange_two(access, inst, row)
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


def _exchange_two(access: AccessCode, inst: Inst, row: ExchangeTwo) -> None:
    """Old values are saved until both are exchanged: the result may be where the second's data are."""
    target, kept = row_of(register(inst["vdst"])), PROPAGATION_ROW
    for number in (0, 1):
        where = _lds(access, inst, field(inst, f"offset{number}") * row.stride)
        data = row_of(register(inst[f"data{number}"]))
        move = Move(f"atomic_swap_u{32 * row.dwords}", data, ZERO_ROW, kept + number * row.dwords)
        access.call(move, where)

    def write(strip: LaneStrip) -> None:
        for word in range(2 * row.dwords):
            strip.write_row(target + word, strip.row(kept + word))

    access.w.put_off(write)


def _from_lds(access: AccessCode, inst: Inst, row: FromLds) -> None:
    offset, address = field(inst, "offset"), register(inst["addr"])
    if offset >> 15:
        raise Unsupported(f"{inst.op.mnemonic} that takes its second address from the register of the first")
    distance = 4 * ((offset & 0x7FFF) - ((offset & 0x4000) << 1))
    access.w.put_off_ahead(lambda strip: strip.write_row(SCALED_ROW, strip.row(row_of(address)) + distance))
    where = replace(_lds(access, inst, 0), row=SCALED_ROW)
    access.call(Move(f"load_b{row.atomic.bits}", PROPAGATION_ROW), where)
    name = f"{atomic_name(access, row.atomic)}{_flushes(access, inst, row.atomic)}"
    access.call(Move(name, PROPAGATION_ROW, ZERO_ROW, TEMPORARY_ROW), _lds(access, inst, 0))


def _count_lanes(access: AccessCode, inst: Inst, row: LaneCount) -> None:
    """One atomic of the lowest lane of EXEC, for all."""
    if field(inst, "gds"):
        raise Unsupported("global data share")
    w, target = access.w, row_of(register(inst["vdst"]))
    active = access.mask()
    count = popcount(active).to(U32)
    base = (w.scalars.read(M0) & 0xFFFF).to(U64) + field(inst, "offset")
    w.put_off(lambda strip: strip.write_row(TEMPORARY_ROW, strip.splat(count)))
    move = Move(f"atomic_{row.modify.name.lower()}_u32", TEMPORARY_ROW, ZERO_ROW, TEMPORARY_ROW + 1)
    access.call(move, Addresses("lds", base, ZERO_ROW, active & -active))
    before = read_first_row(w, TEMPORARY_ROW + 1)
    w.put_off(lambda strip: strip.write_row(target, strip.splat(before)))


def _element(bits: int, dwords: int, signed: bool) -> str:
    return f"b{32 * dwords}" if bits == 32 else f"{'i' if signed else 'u'}{bits}"


def _load(access: AccessCode, inst: Inst, row: Load) -> None:
    target = row_of(register(inst.find("vdst") or inst["vdata"]))
    element = _element(row.bits, row.dwords, row.signed)
    if not row.half:
        _vector(access, inst, Move(f"load_{element}", target), row.bytes)
        return
    _vector(access, inst, Move(f"load_{element}", TEMPORARY_ROW), row.bytes)

    def merge(strip: LaneStrip) -> None:
        old, new = strip.row(target), strip.row(TEMPORARY_ROW)
        loaded, kept = (new << 16, old & 0xFFFF) if row.half == "high" else (new & 0xFFFF, old & 0xFFFF0000)
        strip.write_row(target, loaded if access.w.settings.d16_clears else loaded | kept)

    access.w.put_off(merge)


def _load_to_lds(access: AccessCode, inst: Inst, row: LoadToLds) -> None:
    given = _element(row.bits, row.dwords, row.signed)
    _vector(access, inst, Move(f"load_{given}", PROPAGATION_ROW), row.bytes)
    pass_to_lds(access, inst, row.dwords)


def _emit_transposed_load(access: AccessCode, inst: Inst, row: TransposedLoad) -> None:
    target, loaded = row_of(register(inst["vdst"])), PROPAGATION_ROW
    _vector(access, inst, Move(f"load_b{32 * row.dwords}", loaded), 4 * row.dwords)
    access.w.settle()
    transpose(access.w, loaded, TEMPORARY_ROW, row)

    def write(strip: LaneStrip) -> None:
        for word in range(row.dwords):
            strip.write_row(target + word, strip.row(TEMPORARY_ROW + word))

    access.w.put_off(write)


def _store(access: AccessCode, inst: Inst, row: Store) -> None:
    source = row_of(register(inst.find("vdata") or inst["data0"]))
    if row.half == "high":
        data = source
        access.w.put_off_ahead(lambda strip: strip.write_row(TEMPORARY_ROW, strip.row(data) >> 16))
        source = TEMPORARY_ROW
    element = f"b{32 * row.dwords}" if row.bits == 32 else f"b{row.bits}"
    _vector(access, inst, Move(f"store_{element}", source), row.bytes)


def _atomic(access: AccessCode, inst: Inst, row: Atomic) -> None:
    data = row_of(register(inst.find("vdata") or inst["data0"]))
    second = inst.find("data1")
    other = row_of(register(second)) if second is not None else data + row.bits // 32
    if row.compare_first:
        data, other = other, data
    target = inst.find("vdst") or inst["vdata"] if OpFlag.ATOMIC_RETURN in inst.op.flags else None
    result = TEMPORARY_ROW if target is None else row_of(register(target))
    operation = f"{atomic_name(access, row)}{_flushes(access, inst, row)}"
    has_second = row.modify in (Modify.COMPARE_SWAP, Modify.MASK_OR, Modify.WRAP)
    _vector(access, inst, Move(operation, data, other if has_second else ZERO_ROW, result), row.bytes)


def _flushes(access: AccessCode, inst: Inst, row: Atomic) -> str:
    """Which denormals are zeros: the end of the operation's name."""
    mode = access.w.context.mode
    if row.modify is not Modify.ADD or (row.kind, row.bits) != ("f", 32):
        return ""
    if OpFlag.LDS not in inst.op.flags:
        return "" if access.w.settings.target.atomics_keep_denormals else "sr"
    return "s" * mode.flushes_sources(F32) + "r" * mode.flushes_results(F32)


def _vector(access: AccessCode, inst: Inst, move: Move, size: int) -> None:
    """Make the addresses, then move ``size`` bytes for each lane."""
    if OpFlag.FLAT not in inst.op.flags and OpFlag.VMEM in inst.op.flags:
        vector_buffer(access, inst, move, size)
    else:
        access.call(move, _addresses(access, inst, size))


def _addresses(access: AccessCode, inst: Inst, size: int) -> Addresses:
    """Of whatever has no resource."""
    private = bool(inst.op.spaces & Space.SCRATCH)
    if OpFlag.VMEM not in inst.op.flags:
        return _lds(access, inst, field(inst, "offset"))
    if private and not inst.op.spaces & Space.GLOBAL:
        return _scale_lane_offset(access, inst, _scratch(access, inst), size)
    kind = "flat" if private else "far"
    where = _global(access, inst, kind)
    if where.kind == "near" and inst.find("vaddr") is not None and access.w.settings.target.signed_lane_offsets:
        return _whole(access, where, kind, I32, size if scales_offset(inst) else 1)
    where = _scale_lane_offset(access, inst, where, size)
    return _whole(access, where, kind, U32, 1) if private and where.kind == "near" else where


def _lds(access: AccessCode, inst: Inst, offset: int) -> Addresses:
    if field(inst, "gds"):
        raise Unsupported("global data share")
    base, address = access.w.ops.constant(U64, offset), inst.find("addr")
    if address is None:
        base = base + (access.w.scalars.read(M0) & 0xFFFF).to(U64)
    return Addresses("lds", base, _address_row(access, address), access.mask())


def _address_row(access: AccessCode, operand: Operand | None) -> int:
    """Of an instruction without an operand for it: dwords, one for each lane."""
    if operand is not None:
        return row_of(register(operand))
    access.w.put_off_ahead(lambda strip: strip.write_row(SCALED_ROW, strip.ops.apply(Prim.LANE, U32) << 2))
    return SCALED_ROW


def _global(access: AccessCode, inst: Inst, kind: str) -> Addresses:
    base = access.w.ops.constant(U64, field(inst, "offset"))
    saddr = inst.find("saddr")
    if saddr is not None and present(saddr):
        kind, base = "near", read_scalar(saddr, 64, access.w.context) + base
    vaddr = inst.find("vaddr")
    return Addresses(kind if vaddr is not None else "near", base, _address_row(access, vaddr), access.mask())


def _scale_lane_offset(access: AccessCode, inst: Inst, addresses: Addresses, size: int) -> Addresses:
    """Where the offset of a lane counts elements of ``size`` bytes, as its cache policy says."""
    if not scales_offset(inst):
        return addresses
    if addresses.kind not in ("near", "private"):
        raise Unsupported("scale_offset without an offset of a lane")
    own = addresses.row
    access.w.put_off_ahead(lambda strip: strip.write_row(SCALED_ROW, strip.row(own) * size))
    return replace(addresses, row=SCALED_ROW)


def _whole(access: AccessCode, where: Addresses, kind: str, offset: Type, unit: int) -> Addresses:
    """With a scalar base: of flat instructions, since the sum may lie in an aperture; and where a lane's offset has a
    sign, or counts elements: that is no sum of 32 bits."""
    own, base = where.row, where.base
    wide = U64 if offset is U32 else I64
    access.w.put_off_ahead(lambda strip: strip.write_pair(
        SCALED_ROW, strip.splat(base) + (strip.row(own).as_(offset).to(wide) * unit).as_(U64)))
    return replace(where, kind=kind, base=access.w.ops.constant(U64, 0), row=SCALED_ROW)


def _scratch(access: AccessCode, inst: Inst) -> Addresses:
    base = access.w.ops.constant(U64, field(inst, "offset"))
    vaddr, saddr = inst.find("vaddr"), inst.find("saddr")
    if saddr is not None and present(saddr):
        base = base + read_scalar(saddr, 32, access.w.context).to(U64)
    row = row_of(register(vaddr)) if vaddr is not None and present(vaddr) else ZERO_ROW
    return Addresses("private", base, row, access.mask())
