"""Conversions of 32 numbers, which lie packed in many registers of a lane.

In: an instruction and its ManyConverted row. Out: an item of the strip. Invariant: all registers are read before one
is written, since they may overlap.
"""

from __future__ import annotations

from luthier_py.emulator.operands import Raw, row_of
from luthier_py.emulator.rounding import Arithmetic
from luthier_py.emulator.strip import LaneChunk
from luthier_py.emulator.wave_code import WaveCode
from luthier_py.isa.instruction import Inst
from luthier_py.isa.semantics.algebra import U32, Value
from luthier_py.isa.semantics.scaled_floats import NUMBERS, ManyConverted


def many(w: WaveCode, inst: Inst, row: ManyConverted) -> None:
    """Put off one instruction."""
    sources = [inst[name] for name in ("src0", "src1", "src2") if inst.find(name) is not None]
    starts, target = [], inst["vdst"].reg
    for operand in sources[: row.operands]:
        assert operand.reg is not None
        starts.append(row_of(operand.reg))
    assert target is not None
    first = row_of(target)
    rest = [Raw(operand, operand.reg, 32, w.context, None) for operand in sources[row.operands :]]
    keeps_finite = w.context.mode.keeps_finite

    def write(chunk: LaneChunk) -> None:
        *seed, scale = (raw.read(chunk, 32) for raw in rest)
        with chunk.ops.computing(Arithmetic(keeps_f16_finite=keeps_finite)):
            results = [row.convert(bits, scale, seed[0] if seed else None, keeps_finite)
                       for bits in _numbers(chunk, starts, row.source_bits)]
        for place, word in enumerate(_packed(chunk, results, row.result_bits)):
            chunk.write_row(first + place, word)

    w.put_off(write)


def _numbers(chunk: LaneChunk, starts: list[int], bits: int) -> list[Value]:
    """In turns from the operands that begin at these rows."""
    found = []
    for number in range(NUMBERS):
        place, which = divmod(number, len(starts))
        word, shift = divmod(place * bits, 32)
        value = chunk.row(starts[which] + word)
        if shift:
            value = value >> shift
        if shift + bits > 32:
            value = value | chunk.row(starts[which] + word + 1) << 32 - shift
        found.append(value if bits == 32 else value & ((1 << bits) - 1))
    return found


def _packed(chunk: LaneChunk, numbers: list[Value], bits: int) -> list[Value]:
    words = [chunk.ops.constant(U32, 0)] * (NUMBERS * bits // 32)
    for number, value in enumerate(numbers):
        word, shift = divmod(number * bits, 32)
        words[word] = words[word] | value << shift
        if shift + bits > 32:
            words[word + 1] = words[word + 1] | value >> 32 - shift
    return words
