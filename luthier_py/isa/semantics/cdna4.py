"""What CDNA 4 adds: functions of three bits, bfloat16, IEEE 754-2019 minimum, swapped rows, transposed loads.

In: nothing. Out: rows. Source: AMD Instinct CDNA4 ISA, 6.6 and chapter 16; the matrix shapes are in `matrix`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    U16,
    U32,
    Value,
    concat,
    is_nan,
    maximum,
    minimum,
    select,
)
from luthier_py.isa.semantics.floats import greatest, least, quiet
from luthier_py.isa.semantics.meaning import Lanes, Situation, Variants, declare, lanes, signature

_LOOKS_AT_ALL = Situation(lambda name: 0b11001010)


def _truth_table(type: str, sources: int = 3) -> Variants:
    """Bit by bit a function of three sources: bit 4 * src0 + 2 * src1 + src2 of the operand `bitop3`, which may ignore
    some. Of two sources (RDNA 4's dual instructions) the third is 0."""
    def of(situation: Situation) -> Lanes:
        table = situation.field("bitop3")
        numbers = [number for number in range(0, 8, 1 << 3 - sources) if table >> number & 1]
        ignored = sum(bit for bit in (4, 2, 1)[:sources] if {number ^ bit for number in numbers} == {*numbers})

        def compute(*given: Value) -> Value:
            result = given[0].lift(0)
            for number in numbers:
                if not number & ignored:
                    bits = [x if number >> 2 - place & 1 else ~x for place, x in enumerate(given)
                            if not ignored >> 2 - place & 1]
                    result = result | reduce(and_, bits, given[0].lift(-1))
            return result

        return Lanes(signature(f"{' '.join([type] * sources)} -> {type}"), compute)

    return Variants(of, _LOOKS_AT_ALL)


@dataclass(frozen=True, slots=True)
class SwapRows:
    """Every odd group of ``lanes`` of vdst changes places with the even group before it of src0."""

    lanes: int


@dataclass(frozen=True, slots=True)
class TransposedLoad:
    """Lanes load rows, or parts of rows, of tiles that have 16 columns; each lane gets a column, or a part of one.

    Of CDNA 4 each 16 lanes load a tile, row after row, and each gets a whole column. Of RDNA 4 and gfx1250 all 32 load
    one of 16 rows, whose halves are 8 lanes (elements of 16 bits) or 4 lanes apart (8 bits), and the lower 16 lanes get
    the upper half of the columns. (Triton, AMD: what ds_load_tr does on gfx1250; measured there. Wave64 is not known.)
    """

    bits: int          # of an element
    dwords: int = 2    # of a lane
    whole: bool = False  # one tile for 32 lanes

    @property
    def elements(self) -> int:
        """The elements of a lane."""
        return 32 * self.dwords // self.bits

    def source(self, lane: int, number: int) -> tuple[int, int]:
        """Which lane has loaded what becomes element ``number`` of ``lane``, and as which element."""
        if not self.whole:
            place, element = divmod(lane % 16, self.elements)
            return lane // 16 * 16 + 16 // self.elements * number + place, element
        if self.bits == 16:
            return lane & ~7 | number, lane & 7
        return lane & 16 | (number & 4) << 1 | (lane & 8) >> 1 | number & 3, lane & 7


declare("V_BITOP3_B32", _truth_table("u32"))
declare("V_BITOP3_B16", _truth_table("u16"))
declare("V_BITOP2_B32", _truth_table("u32", 2))
declare("V_PERMLANE16_SWAP_B32", SwapRows(16))
declare("V_PERMLANE32_SWAP_B32", SwapRows(32))
declare("DS_READ_B64_TR_B16", TransposedLoad(16))
declare("DS_READ_B64_TR_B8", TransposedLoad(8))
declare("DS_READ_B64_TR_B4", TransposedLoad(4))
declare("DS_READ_B96_TR_B6", TransposedLoad(6, 3))
declare("GLOBAL_LOAD_TR_B128 DS_LOAD_TR16_B128", TransposedLoad(16, 4, whole=True))
declare("GLOBAL_LOAD_TR_B64 DS_LOAD_TR8_B64", TransposedLoad(8, whole=True))


def to_bf16(a: Value) -> Value:
    """f32 to bfloat16, rounded to the nearest even; a NaN becomes a quiet one."""
    bits = quiet(a).as_(U32)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (select(is_nan(a), bits, rounded) >> 16).to(U16)


def from_bf16(a: Value) -> Value:
    """f32 of a bfloat16 (u16), exactly; the payload of a NaN stays."""
    return (a.to(U32) << 16).as_(F32)


def _f16(a: Value) -> Value:
    return a.to(F16).as_(U16)


lanes("V_CVT_PK_BF16_F32", "f32 f32 -> u32", lambda a, b: concat(to_bf16(b), to_bf16(a)))
lanes("V_CVT_PK_F16_F32", "f32 f32 -> u32", lambda a, b: concat(_f16(b), _f16(a)))
lanes("V_CVT_F32_BF16", "u16 -> f32", from_bf16)


lanes("V_MINIMUM3_F32", "f32 f32 f32 -> f32", lambda a, b, c: least(least(a, b), c))
lanes("V_MAXIMUM3_F32", "f32 f32 f32 -> f32", lambda a, b, c: greatest(greatest(a, b), c))
lanes("V_PK_MINIMUM3_F16", "2f16 2f16 2f16 -> 2f16", lambda a, b, c: least(least(a, b), c))
lanes("V_PK_MAXIMUM3_F16", "2f16 2f16 2f16 -> 2f16", lambda a, b, c: greatest(greatest(a, b), c))
lanes("V_PRNG_B32", "u32 -> u32", lambda a: (a << 1) ^ select((a >> 31).ne(0), 0xC5, a.lift(0)))


def _make_byte_packing(low: int, high: int) -> Callable[[Value, Value, Value], Value]:
    """Two words shifted to the right and clamped, the first in the low byte."""

    def compute(a: Value, b: Value, c: Value) -> Value:
        first, second = (minimum(maximum(x >> (c & 31), low), high).as_(U32) & 0xFF for x in (a, b))
        return (first | second << 8).to(U16)

    return compute


lanes("V_ASHR_PK_I8_I32", "i32 i32 i32 -> u16", _make_byte_packing(-128, 127))
lanes("V_ASHR_PK_U8_I32", "i32 i32 i32 -> u16", _make_byte_packing(0, 255))
