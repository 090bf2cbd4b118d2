"""Buffer resources: MUBUF addressing, the scratch resource, and scalar buffer loads.

In: a buffer instruction. Out: addresses for the support functions, or a direct access of scratch. What a resource says,
and what is in its range, is in `resources`. Sources: AMD Instinct MI200 ISA, 9.1 and 8.2.1.2; RDNA 3 ISA, 9.3.
Invariant: what a resource's range check rejects reads 0 and writes nothing, as in hardware; what it
lets through is still checked against allocations.
"""

from __future__ import annotations

from luthier_py.base.records import replace
from luthier_py.emulator.instructions.access import AccessCode, Move
from luthier_py.emulator.instructions.loads import Addresses
from luthier_py.emulator.instructions.operands import field, read_scalar, register, row_of
from luthier_py.emulator.instructions.resources import BufferResource, LanePlace, buffer_resource, format_code
from luthier_py.emulator.instructions.surfaces import SurfaceElement, convert, format_word, make_typed_element
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.records.layout import TEMPORARY_MASKS, TEMPORARY_ROW, ZERO_ROW, SurfaceRefusal
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.instruction import Inst, OperandKind
from luthier_py.isa.model.element_formats import UNBOUND
from luthier_py.isa.semantics.algebra import U32, U64, Kind, Prim, Type, Value, maximum, minimum, select
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.memory import ScalarLoad

_ADDRESS_ROW = TEMPORARY_ROW + 2  # a pair; the rows before it may hold data


def vector_buffer(access: AccessCode, inst: Inst, move: Move, size: int) -> None:
    """One buffer instruction that moves ``size`` bytes for each lane."""
    w = access.w
    resource, _ = _resource(access, inst)
    if w.settings.target.wide_resources:
        access.refuse_where(resource.swizzled, SurfaceRefusal.SWIZZLE)
    scratch, general, done = (w.emitter.label(hint) for hint in ("scratch", "buffer", "moved"))
    mask = access.mask()
    w.settle()
    known = w.scalars.save()
    w.emitter.branch(str(resource.private.ref), scratch, general)
    w.emitter.place(scratch)
    _in_scratch(access, inst, move, resource.start, mask)
    w.settle()
    w.emitter.emit(f"br label %{done}")
    w.emitter.place(general)
    w.scalars.restore(known)
    _in_buffer(access, inst, move, resource, size)
    w.settle()
    w.scalars.restore(known)
    w.emitter.emit(f"br label %{done}")
    w.emitter.place(done)


def emit_formatted_buffer(access: AccessCode, inst: Inst, row: FormatLoad | FormatStore) -> None:
    """One that converts, by a format of its own or its resource's."""
    w = access.w
    resource, words = _resource(access, inst, formatted=True)
    if row.typed:
        element = make_typed_element(w, field(inst, "format"))
    else:
        element = SurfaceElement(format_word(w, format_code(w.settings.target, words[3])), words[3] & 0xFFF)
    bound = resource.bound & element.format.ne(UNBOUND.word)
    inside = _inside(access, inst, resource, select(bound, element.size, 4).to(U64), 1)[0]
    seen = SurfaceElement(element.format, select(bound, element.selects, 0))
    convert(access, inst, row, seen, select(bound, inside, 0), _ADDRESS_ROW)


def _resource(access: AccessCode, inst: Inst, formatted: bool = False) -> tuple[BufferResource, list[Value]]:
    """With its dwords."""
    srsrc = inst["srsrc"]
    assert srsrc.reg is not None
    words = [access.w.scalars.read(srsrc.reg.index + i) for i in range(4)]
    soffset = read_scalar(inst["soffset"], 32, access.w.context).to(U64)
    return buffer_resource(access.w.settings.target, words, soffset, formatted), words


def _is_indexed(inst: Inst) -> bool:
    return any(word in inst.op.record for word in ("IDXEN", "BOTHEN"))


def _rows(inst: Inst) -> tuple[int, int]:
    """Rows of index and offset; ZERO_ROW for what the instruction does not have."""
    vaddr = inst.find("vaddr")
    indexed, offset = _is_indexed(inst), any(word in inst.op.record for word in ("OFFEN", "BOTHEN"))
    if vaddr is None or vaddr.kind is OperandKind.ABSENT or not (indexed or offset):
        return ZERO_ROW, ZERO_ROW
    assert vaddr.reg is not None
    first = row_of(vaddr.reg)
    return (first if indexed else ZERO_ROW), (first + indexed if offset else ZERO_ROW)


def _in_scratch(access: AccessCode, inst: Inst, move: Move, start: Value, mask: Value) -> None:
    """The resource that the kernel was started with: swizzled so that a dword of all lanes is a row."""
    own = access.field_value("scratch")
    lanes = access.w.wave_size.bit_length() - 1
    base = ((start - own) >> lanes) + field(inst, "offset")
    access.call(move, Addresses("private", base, _rows(inst)[1], mask))


def _in_buffer(access: AccessCode, inst: Inst, move: Move, resource: BufferResource, size: int) -> None:
    """At once where all that a lane moves is in range, else dword by dword; atomics are in or out as a whole."""
    w = access.w
    pieces = max(size // 4, 1) if move.result is None else 1
    inside = _inside(access, inst, resource, size // pieces, pieces)
    if move.operation.startswith("load"):
        w.put_off(lambda strip: _clear(strip, move.data, pieces))
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


def _clear(strip: LaneStrip, first: int, rows: int) -> None:
    for row in range(first, first + rows):
        strip.write_row(row, strip.ops.constant(U32, 0))


def _clear_outside(access: AccessCode, first: int, rows: int, outside: Value) -> None:
    """What an atomic out of range returns is 0."""
    mask = str(outside.to(Type(Kind.UINT, access.w.wave_size)).ref)

    def write(strip: LaneStrip) -> None:
        for row in range(first, first + rows):
            strip.write_row(row, select(strip.lanes_of(mask), 0, strip.row(row)))

    access.w.put_off(write)


def _inside(access: AccessCode, inst: Inst, resource: BufferResource, size: Value | int,
            pieces: int) -> list[Value]:
    """For each piece of ``size`` bytes the lanes in whose range it is; addresses of the first are in _ADDRESS_ROW."""
    w = access.w
    masks = TEMPORARY_MASKS[:pieces]
    index_row, offset_row = _rows(inst)

    def write(strip: LaneStrip) -> None:
        lane = select(strip.splat(resource.adds_lane), strip.ops.apply(Prim.LANE, U32), 0)
        offset = strip.row(offset_row) + field(inst, "offset")
        place = LanePlace(strip, resource, strip.row(index_row) + lane, offset, _is_indexed(inst))
        for number, mask in enumerate(masks):
            strip.write_mask(mask, place.inside(number * size if isinstance(size, int) else 0, size))
        strip.write_pair(_ADDRESS_ROW, place.address())

    w.put_off_ahead(write, *masks)
    return [w.scalars.read(mask, w.wave_size // 32).to(U64) for mask in masks]


def scalar_buffer_room(access: AccessCode, inst: Inst, offset: Value, unit: int = 4) -> tuple[Value, Value]:
    """The address at ``offset`` of a scalar instruction's resource, in whole units of bytes, and how many bytes are in
    range from there on."""
    w = access.w
    sbase = register(inst["sbase"]).index
    r = buffer_resource(w.settings.target, [w.scalars.read(sbase + i) for i in range(4)], w.ops.constant(U64, 0),
                        formatted=True)
    size = r.records if w.settings.target.wide_resources else select(r.stride.eq(0), r.records,
                                                                     r.records * r.stride.to(U64))
    return (r.base + offset) & -unit, select(size > offset, size - offset, 0)


def scalar_buffer_load(access: AccessCode, inst: Inst, offset: Value, row: ScalarLoad) -> None:
    """Dwords, bytes or shorts outside the resource's range read 0."""
    w, sdst = access.w, register(inst["sdst"])
    whole = row.bits == 32
    address, room = scalar_buffer_room(access, inst, offset & ~3 if whole else offset, 4 if whole else 1)
    count = minimum(room >> 2, row.dwords) if whole else (room >= row.bytes).to(U64)
    nothing = count.eq(0)
    known, after = w.emitter.label("some"), w.emitter.label("loaded")
    w.settle()
    place = select(nothing, w.ops.let(U64, "ptrtoint ptr %wave to i64"), address)  # any memory: nothing is read there
    w.emitter.branch(str(nothing.ref), after, known)
    w.emitter.place(known)
    access.resolve(address, maximum(count, 1) << 2 if whole else w.ops.constant(U64, row.bytes))
    w.emitter.emit(f"br label %{after}")
    w.emitter.place(after)
    at = w.emitter.let(f"inttoptr i64 {place.ref} to ptr")
    if whole:
        for number, value in enumerate(_load_masked_dwords(w, at, count, row.dwords)):
            w.scalars.write(sdst.index + number, value)
    else:
        w.scalars.write(sdst.index, select(nothing, 0, short_load(w, at, row)))


def short_load(w: WaveCode, pointer: str, row: ScalarLoad) -> Value:
    """A byte or a short, extended."""
    loaded = w.emitter.let(f"load i{row.bits}, ptr {pointer}, align 1")
    return w.ops.let(U32, f"{'sext' if row.signed else 'zext'} i{row.bits} {loaded} to i32")


def _load_masked_dwords(w: WaveCode, pointer: str, count: Value, dwords: int) -> list[Value]:
    """The first ``count``, and zeros."""
    lanes = ", ".join(f"i64 {i}" for i in range(dwords))
    vector = f"<{dwords} x i64>"
    first = w.emitter.let(f"insertelement {vector} poison, i64 {count.ref}, i64 0")
    limits = w.emitter.let(f"shufflevector {vector} {first}, {vector} poison, <{dwords} x i32> zeroinitializer")
    mask = w.emitter.let(f"icmp ult {vector} <{lanes}>, {limits}")
    kind = f"<{dwords} x i32>"
    arguments = [("ptr", f"align 4 {pointer}"), (f"<{dwords} x i1>", mask), (kind, "zeroinitializer")]
    data = w.emitter.call(kind, f"llvm.masked.load.v{dwords}i32.p0", arguments)
    return [w.ops.let(U32, f"extractelement {kind} {data}, i64 {i}") for i in range(dwords)]
