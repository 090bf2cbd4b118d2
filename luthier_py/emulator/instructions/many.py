"""Conversions of 8 to 32 numbers, which lie packed in many registers of a lane.

In: an instruction and its ManyConverted row. Out: an item of the region. Invariant: all registers are read before one
is written, since they may overlap.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.instructions.operands import Raw, field, row_of
from luthier_py.emulator.instructions.wave_code import WaveCode
from luthier_py.emulator.records.layout import STRIP, TEMPORARY_ROW
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.emulator.vector_regions.rounding import Arithmetic
from luthier_py.isa.encoding.instruction import Inst, Operand
from luthier_py.isa.model.registers import RegFile
from luthier_py.isa.semantics.algebra import U32, Value, lane_of
from luthier_py.isa.semantics.scaled_floats import ManyConverted


def many(w: WaveCode, inst: Inst, row: ManyConverted) -> None:
    """Put off one instruction."""
    sources = [inst[name] for name in ("src0", "src1", "src2") if inst.find(name) is not None]
    starts, target = [], inst["vdst"].reg
    for operand in sources[: row.operands]:
        assert operand.reg is not None
        starts.append(row_of(operand.reg))
    assert target is not None
    first = row_of(target)
    if row.by_row:
        scale_of = _by_row(w, inst, row, sources[1])
    rest = [] if row.by_row else [Raw(operand, operand.reg, 32, w.context, None) for operand in sources[row.operands :]]
    keeps_finite = w.context.mode.keeps_finite

    def write(strip: LaneStrip) -> None:
        *seed, scale = [scale_of(strip)] if row.by_row else [raw.read(strip, 32) for raw in rest]
        with strip.ops.use_arithmetic(Arithmetic(keeps_f16_finite=keeps_finite)):
            results = [row.convert(bits, scale, seed[0] if seed else None, keeps_finite)
                       for bits in _numbers(strip, starts, row.source_bits, row.count)]
        for place, word in enumerate(_pack_results(strip, results, row.result_bits)):
            strip.write_row(first + place, word)

    w.put_off(write)


def _by_row(w: WaveCode, inst: Inst, row: ManyConverted, operand: Operand) -> Callable[[LaneStrip], Value]:
    """The scale of each lane, as an f32's bits. Those of 16 lanes are copied to all: regions look at no other lanes."""
    place = row.scale_place(field(inst, "scale_sel"))
    if place is None:
        raise Unsupported(f"{inst.op.mnemonic} with scales of 16 elements: which lanes they lie in is not clear")
    half, byte, next_above = place
    uniform = operand.reg is None or operand.reg.file is RegFile.SGPR
    raw = Raw(operand, operand.reg, 32, w.context, None) if uniform else None
    if raw is None:
        assert operand.reg is not None
        w.settle()
        vector = f"<{STRIP} x i32>"
        given = w.emitter.let(f"load {vector}, ptr {w.at(w.row(row_of(operand.reg)), 4 * STRIP * half)}, align 4")
        for start in range(0, w.wave_size, STRIP):
            w.emitter.emit(f"store {vector} {given}, ptr {w.at(w.row(TEMPORARY_ROW), 4 * start)}, align 4")

    def scale_of(strip: LaneStrip) -> Value:
        word = strip.row(TEMPORARY_ROW) if raw is None else raw.read(strip, 32)
        shift = ((lane_of(word) >> 4) & 1) * 8 + 8 * byte if next_above else strip.ops.constant(U32, 8 * byte)
        return ((word >> shift) & 0xFF) << 23

    return scale_of


def _numbers(strip: LaneStrip, starts: list[int], bits: int, count: int) -> list[Value]:
    """In turns from the operands that begin at these rows."""
    found = []
    for number in range(count):
        place, which = divmod(number, len(starts))
        word, shift = divmod(place * bits, 32)
        value = strip.row(starts[which] + word)
        if shift:
            value = value >> shift
        if shift + bits > 32:
            value = value | strip.row(starts[which] + word + 1) << 32 - shift
        found.append(value if bits == 32 else value & ((1 << bits) - 1))
    return found


def _pack_results(strip: LaneStrip, numbers: list[Value], bits: int) -> list[Value]:
    words = [strip.ops.constant(U32, 0)] * (len(numbers) * bits // 32)
    for number, value in enumerate(numbers):
        word, shift = divmod(number * bits, 32)
        words[word] = words[word] | value << shift
        if shift + bits > 32:
            words[word + 1] = words[word + 1] | value >> 32 - shift
    return words
