"""Buffer resources: MUBUF addressing, the scratch resource, and scalar buffer loads.

In: a buffer instruction. Out: addresses for the support functions, or a direct access of scratch.
Source: AMD Instinct MI200 ISA, 9.1 (addressing, range checking, swizzling) and 8.2.1.2.
Invariant: what a resource's range check rejects reads 0 and writes nothing, as in hardware; what it
lets through is still checked against allocations.
"""

from __future__ import annotations

from dataclasses import replace

from luthier_py.emulator.access import AccessCode, Move
from luthier_py.emulator.layout import TEMPORARY_MASKS, TEMPORARY_ROW, ZERO_ROW
from luthier_py.emulator.loads import Addresses
from luthier_py.emulator.operands import field, read_scalar, register, row_of
from luthier_py.emulator.strip import LaneChunk
from luthier_py.emulator.wave_code import WaveCode
from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Inst, OperandKind
from luthier_py.isa.semantics.algebra import U32, U64, Kind, Type, Value, maximum, minimum, select

_ADDRESS_ROW = TEMPORARY_ROW + 2  # a pair; the rows before it may hold data
_ADD_TID = 1 << 23


def vector_buffer(access: AccessCode, inst: Inst, move: Move, size: int) -> None:
    """One buffer instruction that moves ``size`` bytes for each lane."""
    w = access.w
    _check_form(w)
    srsrc = inst["srsrc"]
    assert srsrc.reg is not None
    words = [w.scalars.read(srsrc.reg.index + i) for i in range(4)]
    soffset = read_scalar(inst["soffset"], 32, w.context).to(U64)
    scratch, general, done = (w.emitter.label(hint) for hint in ("scratch", "buffer", "moved"))
    mask = access.mask()
    w.settle()
    known = w.scalars.save()
    w.emitter.branch(str((words[3] & _ADD_TID).ne(0).ref), scratch, general)
    w.emitter.place(scratch)
    _in_scratch(access, inst, move, words, soffset, mask)
    w.settle()
    w.emitter.emit(f"br label %{done}")
    w.emitter.place(general)
    w.scalars.restore(known)
    _in_buffer(access, inst, move, words, soffset, size)
    w.settle()
    w.scalars.restore(known)
    w.emitter.emit(f"br label %{done}")
    w.emitter.place(done)


def _check_form(w: WaveCode) -> None:
    if w.settings.target.wide_resources:
        raise Unsupported(f"buffer resources of {w.settings.target.name}")


def _rows(inst: Inst) -> tuple[int, int]:
    """Rows of index and offset; ZERO_ROW for what the instruction does not have."""
    vaddr = inst.find("vaddr")
    indexed, offset = (any(word in inst.op.record for word in (own, "BOTHEN")) for own in ("IDXEN", "OFFEN"))
    if vaddr is None or vaddr.kind is OperandKind.ABSENT or not (indexed or offset):
        return ZERO_ROW, ZERO_ROW
    assert vaddr.reg is not None
    first = row_of(vaddr.reg)
    return (first if indexed else ZERO_ROW), (first + indexed if offset else ZERO_ROW)


def _base(words: list[Value]) -> Value:
    """48 bits of address."""
    return words[0].to(U64) | ((words[1] & 0xFFFF).to(U64) << 32)


def _in_scratch(access: AccessCode, inst: Inst, move: Move, words: list[Value], soffset: Value, mask: Value) -> None:
    """The resource that the kernel was started with: swizzled so that a dword of all lanes is a row."""
    own = access.field_value("scratch")
    lanes = access.w.wave_size.bit_length() - 1
    base = ((_base(words) + soffset - own) >> lanes) + field(inst, "offset")
    access.call(move, Addresses("private", base, _rows(inst)[1], mask))


def _in_buffer(access: AccessCode, inst: Inst, move: Move, words: list[Value], soffset: Value, size: int) -> None:
    """At once where all that a lane moves is in range, else dword by dword; atomics are in or out as a whole."""
    w = access.w
    pieces = max(size // 4, 1) if move.result is None else 1
    inside = _inside(access, inst, words, soffset, size // pieces, pieces)
    if move.operation.startswith("load"):
        w.put_off(lambda chunk: _clear(chunk, move.data, pieces))
    exec_mask, base = access.mask(), w.ops.constant(U64, 0)
    whole = Addresses("far", base, _ADDRESS_ROW, inside[-1])
    if pieces == 1:
        access.support(move, whole)
        if move.result not in (None, TEMPORARY_ROW):
            _clear_outside(access, move.result, size // 4, exec_mask & ~inside[0])
        return
    w.settle()
    at_once, singly, done = (w.emitter.label(hint) for hint in ("at_once", "singly", "transferred"))
    w.emitter.branch(str(inside[-1].eq(exec_mask).ref), at_once, singly)
    w.emitter.place(at_once)
    access.support(move, whole)
    w.emitter.emit(f"br label %{done}")
    w.emitter.place(singly)
    operation = move.operation.split("_")[0] + "_b32"
    for number, mask in enumerate(inside):
        piece = replace(move, operation=operation, data=move.data + number)
        access.support(piece, Addresses("far", base + 4 * number, _ADDRESS_ROW, mask))
    w.emitter.emit(f"br label %{done}")
    w.emitter.place(done)


def _clear(chunk: LaneChunk, first: int, rows: int) -> None:
    for row in range(first, first + rows):
        chunk.write_row(row, chunk.ops.constant(U32, 0))


def _clear_outside(access: AccessCode, first: int, rows: int, outside: Value) -> None:
    """What an atomic out of range returns is 0."""
    mask = str(outside.to(Type(Kind.UINT, access.w.wave_size)).ref)

    def write(chunk: LaneChunk) -> None:
        for row in range(first, first + rows):
            chunk.write_row(row, select(chunk.lanes_of(mask), 0, chunk.row(row)))

    access.w.put_off(write)


def _inside(access: AccessCode, inst: Inst, words: list[Value], soffset: Value, size: int, pieces: int) -> list[Value]:
    """For each piece of ``size`` bytes the lanes in whose range it is; addresses of the first are in _ADDRESS_ROW."""
    w = access.w
    masks = TEMPORARY_MASKS[:pieces]
    index_row, offset_row = _rows(inst)
    base = _base(words) + soffset
    stride = (words[1] >> 16) & 0x3FFF
    raw = stride.eq(0)
    swizzled = (words[1] >> 31).ne(0)
    records = words[2].to(U64)
    raw_room = select(records > soffset, records - soffset, 0)
    element = w.ops.constant(U32, 2) << ((words[3] >> 19) & 3)
    index_stride = w.ops.constant(U32, 8) << ((words[3] >> 21) & 3)

    def write(chunk: LaneChunk) -> None:
        index, offset = chunk.row(index_row), chunk.row(offset_row) + field(inst, "offset")
        wide_stride = chunk.splat(stride).to(U64)
        linear = index.to(U64) * wide_stride + offset.to(U64)
        e, s = chunk.splat(element), chunk.splat(index_stride)
        in_element, in_stride = offset & (e - 1), index & (s - 1)
        blocks = (index - in_stride).to(U64) * wide_stride + (offset - in_element).to(U64) * s.to(U64)
        woven = blocks + (in_stride * e + in_element).to(U64)
        is_woven, is_raw = chunk.splat(swizzled), chunk.splat(raw)
        in_records = index.to(U64) < chunk.splat(records)
        for number, mask in enumerate(masks):
            in_room = offset.to(U64) + size * (number + 1) <= chunk.splat(raw_room)
            chunk.write_mask(mask, select(is_raw, in_room, in_records))
        chunk.write_pair(_ADDRESS_ROW, chunk.splat(base) + select(is_woven, woven, linear))

    w.put_off(write, *masks)
    return [w.scalars.read(mask, w.wave_size // 32).to(U64) for mask in masks]


def scalar_buffer_room(access: AccessCode, inst: Inst, offset: Value) -> tuple[Value, Value]:
    """The address at ``offset`` of a scalar instruction's resource, and how many bytes are in range from there on."""
    w = access.w
    _check_form(w)
    sbase = register(inst["sbase"]).index
    words = [w.scalars.read(sbase + i) for i in range(3)]
    stride = (words[1] >> 16) & 0x3FFF
    records = words[2].to(U64)
    size = select(stride.eq(0), records, records * stride.to(U64))
    return (_base(words) + offset) & ~3, select(size > offset, size - offset, 0)


def scalar_buffer_load(access: AccessCode, inst: Inst, offset: Value, dwords: int) -> None:
    """Dwords outside the resource's range read 0."""
    w, sdst = access.w, register(inst["sdst"])
    address, room = scalar_buffer_room(access, inst, offset & ~3)
    count = minimum(room >> 2, dwords)
    nothing = count.eq(0)
    known, after = w.emitter.label("some"), w.emitter.label("loaded")
    w.settle()
    place = select(nothing, w.ops.let(U64, "ptrtoint ptr %wave to i64"), address)  # any memory: nothing is read there
    w.emitter.branch(str(nothing.ref), after, known)
    w.emitter.place(known)
    access.resolve(address, maximum(count, 1) << 2)
    w.emitter.emit(f"br label %{after}")
    w.emitter.place(after)
    at = w.emitter.let(f"inttoptr i64 {place.ref} to ptr")
    lanes = ", ".join(f"i64 {i}" for i in range(dwords))
    vector = f"<{dwords} x i64>"
    first = w.emitter.let(f"insertelement {vector} poison, i64 {count.ref}, i64 0")
    limits = w.emitter.let(f"shufflevector {vector} {first}, {vector} poison, <{dwords} x i32> zeroinitializer")
    mask = w.emitter.let(f"icmp ult {vector} <{lanes}>, {limits}")
    kind = f"<{dwords} x i32>"
    arguments = [("ptr", f"align 4 {at}"), (f"<{dwords} x i1>", mask), (kind, "zeroinitializer")]
    data = w.emitter.call(kind, f"llvm.masked.load.v{dwords}i32.p0", arguments)
    for i in range(dwords):
        w.scalars.write(sdst.index + i, w.ops.let(U32, f"extractelement {kind} {data}, i64 {i}"))
