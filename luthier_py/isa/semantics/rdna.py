"""What RDNA adds to the vector and scalar ALU: short integers, pairs of minimum and maximum, wide sums.

In: operands. Out: results before clamp and omod. Sources: RDNA 2 ISA, 12.8 to 12.11; RDNA 3 ISA, 16.8 to 16.12;
RDNA 4 ISA, 16.1 to 16.12.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import (
    I32,
    I64,
    U16,
    U32,
    U64,
    Value,
    add_sat,
    concat,
    fma,
    maximum,
    minimum,
    select,
    sub_sat,
    trunc,
)
from luthier_py.isa.semantics.floats import Two, greatest, least, maximum_in, minimum_in, of_three
from luthier_py.isa.semantics.meaning import Lanes, by_nan, declare, lanes, scalar, signature

# Integers.
lanes("V_XOR3_B32", "u32 u32 u32 -> u32", lambda a, b, c: a ^ b ^ c)
lanes("V_AND_B16", "u16 u16 -> u16", lambda a, b: a & b)
lanes("V_OR_B16", "u16 u16 -> u16", lambda a, b: a | b)
lanes("V_XOR_B16", "u16 u16 -> u16", lambda a, b: a ^ b)
lanes("V_NOT_B16", "u16 -> u16", lambda a: ~a)
lanes("V_MOV_B16", "u16 -> u16", lambda a: a)
lanes("V_CNDMASK_B16", "u16 u16 b -> u16", lambda a, b, c: select(c, b, a))
lanes("V_SWAP_B16", "u16 old -> u16 u16", lambda a, old: (a, old))
lanes("V_ADD_NC_U16", "u16 u16 -> u16", lambda a, b: a + b, add_sat)
lanes("V_SUB_NC_U16", "u16 u16 -> u16", lambda a, b: a - b, sub_sat)
lanes("V_CVT_I32_I16", "i16 -> i32", lambda a: a.to(I32))
lanes("V_CVT_U32_U16", "u16 -> u32", lambda a: a.to(U32))
lanes("V_MAD_U32", "u32 u32 u32 -> u32", lambda a, b, c: a * b + c)
for _t in "i64", "u64":
    lanes(f"V_MIN_{_t.upper()}", f"{_t} {_t} -> {_t}", minimum)
    lanes(f"V_MAX_{_t.upper()}", f"{_t} {_t} -> {_t}", maximum)
lanes("V_MAD_NC_U64_U32", "u32 u32 u64 -> u64", lambda a, b, c: a.to(U64) * b.to(U64) + c)
lanes("V_MAD_NC_I64_I32", "i32 i32 i64 -> i64", lambda a, b, c: a.to(I64) * b.to(I64) + c)
lanes("V_ADD_U64", "u64 u64 -> u64", lambda a, b: a + b)
lanes("V_SUB_U64", "u64 u64 -> u64", lambda a, b: a - b)
lanes("V_MUL_U64", "u64 u64 -> u64", lambda a, b: a * b)
scalar("S_SUB_U64", "u64 u64 -> u64", lambda a, b: a - b)
scalar("S_MUL_U64", "u64 u64 -> u64", lambda a, b: a * b)
scalar("S_PACK_HL_B32_B16", "u32 u32 -> u32", lambda a, b: concat(b.to(U16), (a >> 16).to(U16)))


def _of_three(inner: Two, outer: Two) -> Callable[[Value, Value, Value], Value]:
    return lambda a, b, c: outer(inner(a, b), c)


for _t in "i32", "u32":
    lanes(f"V_MAXMIN_{_t.upper()}", f"{_t} {_t} {_t} -> {_t}", _of_three(maximum, minimum))
    lanes(f"V_MINMAX_{_t.upper()}", f"{_t} {_t} {_t} -> {_t}", _of_three(minimum, maximum))

# Floats.
for _t in "f16", "f32", "f64":
    _name, _two, _three = _t.upper(), f"{_t} {_t} -> {_t}", f"{_t} {_t} {_t} -> {_t}"
    lanes(f"V_MINIMUM_{_name}", _two, least)
    lanes(f"V_MAXIMUM_{_name}", _two, greatest)
    if _t == "f64":
        continue
    by_nan(f"V_MAXMIN_{_name}", _three, of_three(maximum_in, minimum_in), Lanes)
    by_nan(f"V_MINMAX_{_name}", _three, of_three(minimum_in, maximum_in), Lanes)
    lanes(f"V_MAXIMUMMINIMUM_{_name}", _three, _of_three(greatest, least))
    lanes(f"V_MINIMUMMAXIMUM_{_name}", _three, _of_three(least, greatest))
for _t in "i16", "u16":
    _three = f"2{_t} 2{_t} 2{_t} -> 2{_t}"
    lanes(f"V_PK_MIN3_{_t.upper()}", _three, _of_three(minimum, minimum))
    lanes(f"V_PK_MAX3_{_t.upper()}", _three, _of_three(maximum, maximum))
by_nan("V_PK_MIN3_NUM_F16", "2f16 2f16 2f16 -> 2f16", of_three(minimum_in, minimum_in), Lanes)
by_nan("V_PK_MAX3_NUM_F16", "2f16 2f16 2f16 -> 2f16", of_three(maximum_in, maximum_in), Lanes)
lanes("V_FMAAK_F64 V_FMAMK_F64", "f64 f64 f64 -> f64", fma)
by_nan("V_MIN_NUM_F64", "f64 f64 -> f64", minimum_in, Lanes)
by_nan("V_MAX_NUM_F64", "f64 f64 -> f64", maximum_in, Lanes)
lanes("V_MINIMUM3_F16", "f16 f16 f16 -> f16", _of_three(least, least))
lanes("V_MAXIMUM3_F16", "f16 f16 f16 -> f16", _of_three(greatest, greatest))
lanes("V_PK_MINIMUM_F16", "2f16 2f16 -> 2f16", least)
lanes("V_PK_MAXIMUM_F16", "2f16 2f16 -> 2f16", greatest)


def _fma_legacy(a: Value, b: Value, c: Value) -> Value:
    """Zero times anything is zero."""
    return select(a.eq(0.0) | b.eq(0.0), c + 0.0, fma(a, b, c))


def _make_integer_packing(low: int, high: int) -> Callable[[Value, Value], Value]:
    """Two floats toward zero, clamped; the first in the low half."""
    def one(a: Value) -> Value:
        whole = trunc(a).to(I32)
        return minimum(maximum(whole, low), high).as_(U32).to(U16)

    return lambda a, b: concat(one(b), one(a))


lanes("V_FMA_LEGACY_F32 V_FMAC_LEGACY_F32", "f32 f32 f32 -> f32", _fma_legacy)
lanes("V_CVT_PK_I16_F32", "f32 f32 -> u32", _make_integer_packing(-(1 << 15), (1 << 15) - 1))
lanes("V_CVT_PK_U16_F32", "f32 f32 -> u32", _make_integer_packing(0, (1 << 16) - 1))


# gfx1250 (LLVM, VOP3Instructions.td, VOP3PInstructions.td): a sum, then the larger or smaller; clamp is the sum's.
for _t in "i32", "u32":
    for _word, _pick in (("MAX", maximum), ("MIN", minimum)):
        lanes(f"V_ADD_{_word}_{_t.upper()}", f"{_t} {_t} {_t} -> {_t}", lambda a, b, c, p=_pick: p(a + b, c),
              lambda a, b, c, p=_pick: p(add_sat(a, b), c))
for _t in "i16", "u16":
    for _word, _pick in (("MAX", maximum), ("MIN", minimum)):
        lanes(f"V_PK_ADD_{_word}_{_t.upper()}", f"2{_t} 2{_t} 2{_t} -> 2{_t}", lambda a, b, c, p=_pick: p(a + b, c),
              lambda a, b, c, p=_pick: p(add_sat(a, b), c))


def _look_up_elements(selectors: Value, table: list[Value], bits: int) -> list[Value]:
    """Sixteen elements of a table of sixteen, in its order of dwords, by 4 bits each."""
    words = [table[0].lift(0)] * (bits // 2)
    for number in range(16):
        at = ((selectors >> 4 * number).to(U32) & 15) * bits
        element = table[0].lift(0)
        for place, word in enumerate(table):
            below = at < 32 * (place + 1)
            inside = select(below & (at >= 32 * place), word >> (at & 31), 0)
            rest = at + bits > 32 * place
            crossing = select(rest & (at < 32 * place), word << ((32 * place - at) & 31), 0)
            element = element | inside | crossing
        element = element & ((1 << bits) - 1)
        word_number, shift = divmod(number * bits, 32)
        words[word_number] = words[word_number] | element << shift
        if shift + bits > 32:
            words[word_number + 1] = words[word_number + 1] | element >> 32 - shift
    return words


def _dwords(value: Value) -> list[Value]:
    return [value] if value.type == U32 else [value.to(U32), (value >> 32).to(U32)]


def _lookup(bits: int) -> Callable[[Value, Value, Value], object]:
    """The first source is the table's upper part (ROCm's hip-fpsan, tests of V_PERM_PK16)."""
    def compute(a: Value, b: Value, c: Value) -> object:
        words = _look_up_elements(c, _dwords(b) + _dwords(a), bits)
        return concat(words[1], words[0]) if bits == 4 else tuple(words)
    return compute


lanes("V_PERM_PK16_B4_U4", "u32 u32 u64 -> u64", _lookup(4))
declare("V_PERM_PK16_B6_U4", Lanes(signature("u32 u64 u64 -> 3u32"), _lookup(6), whole=True))
declare("V_PERM_PK16_B8_U4", Lanes(signature("u64 u64 u64 -> 4u32"), _lookup(8), whole=True))


def _make_nibble_saturation(signed: bool) -> Callable[[Value], Value]:
    """Four bytes to four bits each."""
    def compute(a: Value) -> Value:
        result = a.lift(0)
        for place in range(0, 32, 8):
            byte = (a.as_(I32) << 24 - place) >> 24 if signed else (a >> place) & 0xFF
            low, high = (-8, 7) if signed else (0, 15)
            result = result | (minimum(maximum(byte, low), high).as_(U32) & 15) << place // 2
        return result.to(U16)
    return compute


lanes("V_SAT_PK4_I4_I8", "u32 -> u16", _make_nibble_saturation(True))
lanes("V_SAT_PK4_U4_U8", "u32 -> u16", _make_nibble_saturation(False))
