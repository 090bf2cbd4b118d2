"""Blocks of registers, copies between memory and LDS, and an element of LDS for all lanes.

In: a row of isa.semantics.transfers, and where lanes find memory. Out: accesses. Copies that run
beside the wave are done at once, as every load is.
"""

from __future__ import annotations

from luthier_py.base.records import replace
from luthier_py.emulator.instructions.access import AccessCode, Move
from luthier_py.emulator.instructions.loads import Addresses
from luthier_py.emulator.instructions.operands import field, register, row_of
from luthier_py.emulator.records.layout import PROPAGATION_ROW, TEMPORARY_ROW, ZERO_ROW, SurfaceRefusal
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.model.registers import M0
from luthier_py.isa.semantics.algebra import BOOL, U32, U64, Kind, Type, Value, select
from luthier_py.isa.semantics.transfers import BLOCK, DATA_TYPES, BlockTransfer, LdsCopy


def block(access: AccessCode, inst: Inst, row: BlockTransfer, where: Addresses) -> None:
    """Register by register; the address may be in one of them, so it is copied first."""
    w, kept = access.w, TEMPORARY_ROW
    data = row_of(register(inst.find("vdata") or inst["vdst"]))

    def keep(strip: LaneStrip) -> None:
        for word in (0, 1):
            strip.write_row(kept + word, strip.row(where.row + word))

    w.put_off_ahead(keep)
    chosen = w.scalars.read(M0)
    masks = [select(((chosen >> number) & 1).ne(0), where.mask, 0) for number in range(BLOCK)]
    for number, mask in enumerate(masks):
        place = replace(where, base=where.base + 4 * number, row=kept, mask=mask)
        access.support(Move("store_b32" if row.stores else "load_b32", data + number), place)


def copy(access: AccessCode, inst: Inst, row: LdsCopy, where: Addresses) -> None:
    """Emit a copy of ``row.bytes`` for each active lane, from memory at ``where`` to LDS or the other way; the LDS
    address is a VGPR plus the immediate offset."""
    lds_row = row_of(register(inst["vdata"] if row.stores else inst["vdst"]))
    lds = Addresses("lds", access.w.ops.constant(U64, field(inst, "offset")), lds_row, where.mask)
    source, target = (lds, where) if row.stores else (where, lds)
    given = "u8" if row.bytes == 1 else f"b{8 * row.bytes}"
    access.support(Move(f"load_{given}", PROPAGATION_ROW), source)
    access.support(Move(f"store_b{8 * row.bytes}", PROPAGATION_ROW), target)


def broadcast(access: AccessCode, inst: Inst) -> None:
    """One dword is read if any lane is active; what is in it is for lanes that need not be."""
    w, target = access.w, row_of(register(inst["vdst"]))
    m0, active = w.scalars.read(M0), access.mask()
    kind = (m0 >> 16) & 7
    unknown = w.ops.constant(BOOL, 1)
    for number in DATA_TYPES:
        unknown = unknown & kind.ne(number)
    access.refuse_where(unknown & active.ne(0), SurfaceRefusal.DATA_TYPE)
    reader = select(active.ne(0), w.ops.constant(U64, 1), 0)
    where = Addresses("lds", (m0 & 0xFFFF).to(U64), ZERO_ROW, reader)
    access.support(Move("load_b32", TEMPORARY_ROW), where)
    pointer = w.row(TEMPORARY_ROW)
    whole = w.ops.let(U32, f"load i32, ptr {pointer}, align 4")
    value = whole
    for number, (bits, signed) in DATA_TYPES.items():
        value = select(kind.eq(number), _extend_word(whole, bits, signed), value)
    _write_quads(access, target, value, active)


def _extend_word(word: Value, bits: int, signed: bool) -> Value:
    narrow = word.to(Type(Kind.SINT if signed else Kind.UINT, bits))
    return narrow.to(Type(narrow.type.kind, 32)).as_(U32) if bits < 32 else word


def _write_quads(access: AccessCode, target: int, value: Value, active: Value) -> None:
    """To all lanes of the groups of four in which one is active."""
    w, lanes = access.w, access.w.wave_size
    firsts = (active | active >> 1 | active >> 2 | active >> 3) & 0x1111111111111111
    quads = firsts * 15
    w.settle()
    vector, emitter = f"<{lanes} x i32>", w.emitter
    bits = str(quads.ref) if lanes == 64 else emitter.let(f"trunc i64 {quads.ref} to i{lanes}")
    flags = emitter.let(f"bitcast i{lanes} {bits} to <{lanes} x i1>")
    first = emitter.let(f"insertelement {vector} poison, i32 {value.ref}, i64 0")
    everywhere = emitter.let(f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")
    old = emitter.let(f"load {vector}, ptr {w.row(target)}, align 64")
    new = emitter.let(f"select <{lanes} x i1> {flags}, {vector} {everywhere}, {vector} {old}")
    emitter.emit(f"store {vector} {new}, ptr {w.row(target)}, align 64")
