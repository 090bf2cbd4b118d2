"""Instructions that read or write registers of other lanes.

In: an instruction and its row. Out: IR on the wave's memory, after everything put off is written.
Sources: AMD Instinct MI200 ISA, V_READLANE and its like, 11.4 (DS permutes), 12.16 (DS_SWIZZLE).
"""

from __future__ import annotations

from luthier_py.emulator.instructions.dpp import shuffle_row
from luthier_py.emulator.instructions.operands import OP_SEL, field, read_scalar, register, row_of
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.records.layout import TEMPORARY_ROW
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.encoding.instruction import Inst, Operand
from luthier_py.isa.model.registers import RegFile
from luthier_py.isa.semantics.algebra import U32, U64, Prim, Value, ctz, select
from luthier_py.isa.semantics.cdna4 import SwapRows, TransposedLoad
from luthier_py.isa.semantics.control import CrossLane
from luthier_py.isa.semantics.crossings import GatherInRow
from luthier_py.isa.semantics.lds import Permute

_FOURIER, _ROTATE, _QUAD = 0xE000, 0xC000, 0x8000  # modes of the swizzle pattern
_ASKED_ROW, _ONES_ROW, _GIVEN_ROW = range(TEMPORARY_ROW + 1, TEMPORARY_ROW + 4)


def cross_lane(w: WaveCode, inst: Inst, row: CrossLane) -> None:
    """Emit V_READLANE, V_READFIRSTLANE, V_WRITELANE or V_PERMLANE64. A source that is scalar is copied as it is."""
    source, target = inst["src0"], inst.find("vdst") or inst["sdst"]
    assert target.reg is not None
    if row is CrossLane.OTHER_HALF:
        _other_half(w, source, row_of(target.reg))
        return
    if row is CrossLane.WRITE:
        value = read_scalar(source, 32, w.context)
        lane = select_lane(w, inst, row)
        w.settle()
        w.emitter.emit(f"store i32 {value.ref}, ptr {_element(w, row_of(target.reg), lane)}, align 4")
        return
    if source.reg is None or source.reg.file is RegFile.SGPR:
        w.scalars.write(target.reg.index, read_scalar(source, 32, w.context))
        return
    lane = select_lane(w, inst, row)
    w.scalars.write(target.reg.index, _read(w, row_of(source.reg), lane))


def _other_half(w: WaveCode, source: Operand, target: int) -> None:
    if w.wave_size == 64:
        moved, _ = shuffle_row(w, row_of(register(source)), [lane ^ 32 for lane in range(64)])
        w.emitter.emit(f"store <64 x i32> {moved}, ptr {w.row(TEMPORARY_ROW)}, align 64")
        w.put_off(lambda strip: strip.write_row(target, strip.row(TEMPORARY_ROW)))


def gather_in_row(w: WaveCode, inst: Inst, row: GatherInRow) -> None:
    """By the same support function as DS_BPERMUTE, which gives 0 for lanes that are not active."""
    source, target = (row_of(register(inst[name])) for name in ("src0", "vdst"))
    fetches, bound = (bool(field(inst, f"src{number}_modifiers") & OP_SEL) for number in (0, 1))
    own = row_of(register(inst["src1"])) if row.own else None
    words = [] if row.own else [read_scalar(inst[name], 32, w.context) for name in ("src1", "src2")]

    def write(strip: LaneStrip) -> None:
        lane = strip.ops.apply(Prim.LANE, U32)
        if own is not None:
            picked = strip.row(own)
        else:
            low, high = map(strip.splat, words)
            picked = select((lane & 8).ne(0), high, low) >> ((lane & 7) << 2)
        first = (lane & 0xFFFFFFF0) ^ (16 if row.other_row else 0)
        strip.write_row(_ASKED_ROW, (first | picked & 15) << 2)
        strip.write_row(_ONES_ROW, strip.ops.constant(U32, 1))

    w.put_off_ahead(write)
    mask = w.ops.constant(U64, -1) if fetches else w.exec().to(U64)
    permute_backward(w, mask, _ASKED_ROW, source, TEMPORARY_ROW)
    keeps = not fetches and not bound
    if keeps:
        permute_backward(w, mask, _ASKED_ROW, _ONES_ROW, _GIVEN_ROW)

    def finish(strip: LaneStrip) -> None:
        new = strip.row(TEMPORARY_ROW)
        strip.write_row(target, select(strip.row(_GIVEN_ROW).ne(0), new, strip.row(target)) if keeps else new)

    w.put_off(finish)


def permute_backward(w: WaveCode, mask: Value, addresses: int, data: int, result: int) -> None:
    """Rows: what lanes get that ask by 4 * the lane's number; 0 where a lane is not in ``mask``."""
    w.settle()
    w.emitter.support("void", f"bpermute_{w.wave_size}", [
        ("ptr", "%wave"), ("i64", str(mask.ref)), ("i64", "0"),
        *(("ptr", w.row(row)) for row in (addresses, data, result))])


def read_first(w: WaveCode, source: Operand) -> Value:
    """A vector register in the lowest lane of EXEC."""
    assert source.reg is not None
    return _read(w, row_of(source.reg), _first_lane(w))


def read_first_row(w: WaveCode, row: int) -> Value:
    """The same of any row."""
    return _read(w, row, _first_lane(w))


def _first_lane(w: WaveCode) -> Value:
    mask = w.exec().to(U64)
    return select(mask.eq(0), 0, ctz(mask))


def _read(w: WaveCode, row: int, lane: Value) -> Value:
    w.settle()
    return w.ops.let(U32, f"load i32, ptr {_element(w, row, lane)}, align 4")


def select_lane(w: WaveCode, inst: Inst, row: CrossLane) -> Value:
    """The one that is read, or written."""
    if row is CrossLane.READ_FIRST:
        return _first_lane(w)
    return (read_scalar(inst["src1"], 32, w.context) & (w.wave_size - 1)).to(U64)


def _element(w: WaveCode, row: int, lane: Value) -> str:
    return w.emitter.let(f"getelementptr i32, ptr {w.row(row)}, i64 {lane.ref}")


def permute(w: WaveCode, inst: Inst, row: Permute) -> None:
    """Lanes outside EXEC give 0 to those that read them."""
    target = inst["vdst"].reg
    assert target is not None
    if row is Permute.SWIZZLE:
        _swizzle(w, inst, row_of(target))
        return
    address, data = inst["addr"].reg, inst["data0"].reg
    assert address is not None and data is not None
    mask = w.ops.constant(U64, -1) if row is Permute.BACKWARD_ANY else w.exec().to(U64)
    w.settle()
    arguments = [("ptr", "%wave"), ("i64", str(mask.ref)), ("i64", str(field(inst, "offset"))),
                 ("ptr", w.row(row_of(address))), ("ptr", w.row(row_of(data))), ("ptr", w.row(TEMPORARY_ROW))]
    reach = 32 if w.settings.target.permutes_halves else w.wave_size
    w.emitter.support("void", f"{'permute' if row is Permute.FORWARD else 'bpermute'}_{reach}", arguments)
    w.put_off(lambda strip: strip.write_row(row_of(target), strip.row(TEMPORARY_ROW)))


def _swizzle(w: WaveCode, inst: Inst, target: int) -> None:
    source = inst["addr"].reg
    assert source is not None
    sources = swizzle_sources(field(inst, "offset"), w.wave_size)
    whole, mask = shuffle_row(w, row_of(source), sources)
    place = w.row(TEMPORARY_ROW)
    vector = f"<{w.wave_size} x i32>"
    kept = w.emitter.let(f"select <{w.wave_size} x i1> {mask}, {vector} {whole}, {vector} zeroinitializer")
    w.emitter.emit(f"store {vector} {kept}, ptr {place}, align 64")
    w.put_off(lambda strip: strip.write_row(target, strip.row(TEMPORARY_ROW)))


def swap_rows(w: WaveCode, inst: Inst, row: SwapRows) -> None:
    """What comes from a lane that is not active is left out, or 0 with bound_ctrl; fi takes it as it is."""
    first, second = inst["vdst"].reg, inst["src0"].reg
    assert first is not None and second is not None
    lanes, mask = w.wave_size, w.exec()
    w.settle()
    vector, flags = f"<{lanes} x i32>", f"<{lanes} x i1>"
    active = w.emitter.let(f"bitcast i{lanes} {mask.ref} to {flags}")
    places = [w.row(row_of(reg)) for reg in (first, second)]
    old = [w.emitter.let(f"load {vector}, ptr {place}, align 64") for place in places]
    for number, place in enumerate(places):
        changes = [lane // row.lanes % 2 != number for lane in range(lanes)]
        others = [lane ^ row.lanes if change else lane for lane, change in enumerate(changes)]
        picked = ", ".join(f"i32 {lanes * change + other}" for other, change in zip(others, changes, strict=True))
        new = w.emitter.let(f"shufflevector {vector} {old[number]}, {vector} {old[1 - number]}, {vector} <{picked}>")
        sources = ", ".join(f"i32 {other}" for other in others)
        given = w.emitter.let(f"shufflevector {flags} {active}, {flags} poison, {vector} <{sources}>")
        taken = active
        if not field(inst, "fi"):
            if field(inst, "bound_ctrl"):
                new = w.emitter.let(f"select {flags} {given}, {vector} {new}, {vector} zeroinitializer")
            else:
                taken = w.emitter.let(f"and {flags} {active}, {given}")
        kept = w.emitter.let(f"select {flags} {taken}, {vector} {new}, {vector} {old[number]}")
        w.emitter.emit(f"store {vector} {kept}, ptr {place}, align 64")


def transpose(w: WaveCode, source: int, target: int, row: TransposedLoad) -> None:
    """Rows from ``source`` on, as the lanes have loaded them, to rows from ``target`` on."""
    lanes, mask = w.wave_size, (1 << row.bits) - 1
    vector, wide, let = f"<{lanes} x i32>", f"<{lanes} x i64>", w.emitter.let
    parts = [let(f"load {vector}, ptr {w.row(source + word)}, align 64") for word in range(row.dwords)]
    parts += ["zeroinitializer"] * (4 - row.dwords)
    twice, order = f"<{2 * lanes} x i32>", ", ".join(f"i32 {i}" for i in range(2 * lanes))
    pairs = [let(f"shufflevector {vector} {parts[k]}, {vector} {parts[k + 1]}, {twice} <{order}>") for k in (0, 2)]
    words = ["zeroinitializer"] * (row.dwords + 1)
    for number in range(row.elements):
        wanted = [row.source(lane, number) for lane in range(lanes)]
        places = [(giver, element * row.bits) for giver, element in wanted]
        halves = []
        for half in (0, 1):  # an element may reach into the next dword
            picked = ", ".join(f"i32 {min(place // 32 + half, 3) * lanes + giver}" for giver, place in places)
            short = let(f"shufflevector {twice} {pairs[0]}, {twice} {pairs[1]}, {vector} <{picked}>")
            halves.append(let(f"zext {vector} {short} to {wide}"))
        above = let(f"shl {wide} {halves[1]}, splat (i64 32)")
        both = let(f"or {wide} {halves[0]}, {above}")
        shifts = ", ".join(f"i64 {place % 32}" for _, place in places)
        one = let(f"and {wide} {let(f'lshr {wide} {both}, <{shifts}>')}, splat (i64 {mask})")
        word, bit = divmod(number * row.bits, 32)
        moved = let(f"shl {wide} {one}, splat (i64 {bit})")
        high = let(f"lshr {wide} {moved}, splat (i64 32)")
        for at, value in ((word, moved), (word + 1, high)):
            words[at] = let(f"or {vector} {words[at]}, {let(f'trunc {wide} {value} to {vector}')}")
    for word in range(row.dwords):
        w.emitter.emit(f"store {vector} {words[word]}, ptr {w.row(target + word)}, align 64")


def swizzle_sources(pattern: int, lanes: int) -> list[int]:
    """For each lane the lane that DS_SWIZZLE reads."""
    if pattern & 0xE000 == _ROTATE:
        amount = pattern >> 5 & 31
        amount = -amount if pattern >> 10 & 1 else amount
        keep = pattern & 31
        return [(lane & ~31) | (lane & keep) | ((lane + amount) & ~keep & 31) for lane in range(lanes)]
    if pattern & 0xE000 == _FOURIER:
        keep = pattern & 31
        reversed_ = [sum((lane >> bit & 1) << 4 - bit for bit in range(5)) for lane in range(lanes)]
        return [(lane & 32) | (reversed_[lane] >> keep.bit_count()) | (lane & keep) for lane in range(lanes)]
    if pattern & _QUAD:
        return [(lane & ~3) | (pattern >> 2 * (lane & 3) & 3) for lane in range(lanes)]
    and_mask, or_mask, xor_mask = pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31
    return [(lane & ~31) | (((lane & 31 & and_mask) | or_mask) ^ xor_mask) for lane in range(lanes)]
