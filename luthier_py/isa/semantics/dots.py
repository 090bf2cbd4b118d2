"""Dot products of two, four or eight elements.

In: one lane's operands. Out: the result before clamp. Sources: AMD Instinct MI200 ISA, 12.10 and 12.11; RDNA 3 ISA,
16.8 and 16.10; RDNA 4 ISA, 16.8 and 16.10; CDNA4 ISA, 12.10. Hardware does not say how it rounds inside. Here products
are added to the addend one after the other, the first element's first, each step in f32 rounded once; results of 16
bits are rounded once more. RDNA 3 and 4 do otherwise (ROCm, rocm-systems issue 12056: they align and truncate).
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    I32,
    I64,
    U32,
    U64,
    Value,
    fma,
    is_nan,
    maximum,
    minimum,
    select,
)
from luthier_py.isa.semantics.cdna4 import from_bf16, to_bf16
from luthier_py.isa.semantics.floats import flush_denormals
from luthier_py.isa.semantics.meaning import Lanes, Situation, Variants, declare, lanes, signature
from luthier_py.isa.semantics.small_floats import BF8, FP8, SmallFloat

Pair = tuple[Value, Value]
Convert = Callable[[Value], Value]
_NEG = 1  # of srcN_modifiers


# Floats. Denormals of f32 are zeros, whatever MODE says (LLVM, pull request 205101), and so are those of bf16, but on
# RDNA 4; those of f16 are on gfx90a alone (the same, dot2UnconditionalFlush). Measured on gfx1100 and gfx1201 by AMD
# (rocm-systems, rocjitsu: gfx11_dot2.h, gfx12_dot.h), which also have how these round inside.
def _plain(a: Value) -> Value:
    return a


def _dot2(a: Pair, b: Pair, c: Value, flushed: Convert) -> Value:
    """Of f32."""
    first = fma(a[0], b[0], flushed(c))
    return flushed(fma(a[1], b[1], first))


def _select_flushed_kind(flushed: Convert, kind: str) -> str:
    return kind if flushed is flush_denormals else ""


def _of_halves(flushed: Convert, flushed_half: Convert) -> Lanes:
    def two(elements: Pair) -> Pair:
        return flushed_half(elements[0]).to(F32), flushed_half(elements[1]).to(F32)

    return Lanes(signature("2f16 2f16 f32 -> f32"), lambda a, b, c: _dot2(two(a), two(b), c, flushed),
                 flushes=False, clamps=False,
                 loses=(*[_select_flushed_kind(flushed_half, "f16")] * 2, _select_flushed_kind(flushed, "f32")))


def _of_bfloats(flushed: Convert, narrow: bool) -> Lanes:
    """A NaN of bf16 is always the same one: which, no manual says."""
    def wide(bits: Value) -> Value:
        return flushed(from_bf16(bits))

    def two(elements: Pair) -> Pair:
        return wide(elements[0]), wide(elements[1])

    def compute_rounded(a: Pair, b: Pair, c: Value) -> Value:
        total = _dot2(two(a), two(b), wide(c), flushed)
        return select(is_nan(total), 0x7FC0, to_bf16(total))

    loses = (*[_select_flushed_kind(flushed, "bf16")] * 2,
             "" if narrow else _select_flushed_kind(flushed, "f32"))  # of a half not as a whole dword
    if narrow:
        return Lanes(signature("2u16 2u16 u16 -> u16"), compute_rounded, loses=loses)
    return Lanes(signature("2u16 2u16 f32 -> f32"), lambda a, b, c: _dot2(two(a), two(b), c, flushed), flushes=False,
                 loses=loses)


def _by_target(keeps: Lanes, flushes: Lanes, loses_halves: Lanes) -> Variants:
    return Variants(lambda how: loses_halves if how.half_products_flush
                    else keeps if how.dots_keep_denormals else flushes)


# Code that asks for a clamp gets sums of any size on gfx1100 (bitsandbytes, issue 2087 and its gemm_4bit_simt).
declare("V_DOT2_F32_F16 V_DOT2C_F32_F16", _by_target(
    _of_halves(_plain, _plain), _of_halves(flush_denormals, _plain), _of_halves(flush_denormals, flush_denormals)))
for _names, _is_narrow in (("V_DOT2_F32_BF16 V_DOT2C_F32_BF16", False), ("V_DOT2_BF16_BF16", True)):
    _keeps, _flushes = _of_bfloats(_plain, _is_narrow), _of_bfloats(flush_denormals, _is_narrow)
    declare(_names, _by_target(_keeps, _flushes, _flushes))
lanes("V_DOT2_F16_F16", "2f16 2f16 f16 -> f16", lambda a, b, c: _dot2(
    (a[0].to(F32), a[1].to(F32)), (b[0].to(F32), b[1].to(F32)), c.to(F32), flush_denormals).to(F16))


def _dot4(a: Value, b: Value, c: Value, of_a: SmallFloat, of_b: SmallFloat) -> Value:
    for place in range(0, 32, 8):
        c = fma(of_a.widen(a >> place), of_b.widen(b >> place), c)
    return c


for _first, _of_first in (("FP8", FP8), ("BF8", BF8)):
    for _second, _of_second in (("FP8", FP8), ("BF8", BF8)):
        lanes(f"V_DOT4_F32_{_first}_{_second}", "u32 u32 f32 -> f32",
              lambda a, b, c, x=_of_first, y=_of_second: _dot4(a, b, c, x, y))


# Integers.
def _elements(a: Value, bits: int, signed: bool) -> list[Value]:
    typed = a.as_(I32 if signed else U32)
    return [((typed << 32 - bits - place) >> 32 - bits).to(I64 if signed else U64) for place in range(0, 32, bits)]


def _dot(a: list[Value], b: list[Value], c: Value) -> Value:
    """The sum of the products and ``c``, in 64 bits."""
    total = c.to(I64 if c.type == I32 else U64)
    for x, y in zip(a, b, strict=True):
        total = total + x.as_(total.type) * y.as_(total.type)
    return total


def _clamp_to_32_bits(total: Value) -> Value:
    """To 32 bits."""
    signed = total.type == I64
    low = maximum(total, -(1 << 31)) if signed else total
    return minimum(low, (1 << 32 - signed) - 1).to(I32 if signed else U32)


for _bits, _count in ((16, 2), (8, 4), (4, 8)):
    for _letter, _is_signed in (("I", True), ("U", False)):
        _word = f"{_letter.lower()}32"
        _names = f"V_DOT{_count}_{_letter}32_{_letter}{_bits}"
        _names += f" V_DOT{_count}C_{_letter}32_{_letter}{_bits}" if _is_signed else ""
        lanes(_names, f"{_word} {_word} {_word} -> {_word}",
              lambda a, b, c, n=_bits, s=_is_signed: _dot(_elements(a, n, s), _elements(b, n, s), c).to(c.type),
              lambda a, b, c, n=_bits, s=_is_signed: _clamp_to_32_bits(_dot(_elements(a, n, s), _elements(b, n, s), c)))

_MIXED = signature("raw raw raw -> i32")


def _of_either_sign(bits: int) -> Variants:
    """neg_lo of a source says that it is signed (LLVM, llvm.amdgcn.sudot4)."""
    def of(situation: Situation) -> Lanes:
        signed = [bool(situation.field(f"src{number}_modifiers") & _NEG) for number in (0, 1)]

        def total(a: Value, b: Value, c: Value) -> Value:
            return _dot(_elements(a, bits, signed[0]), _elements(b, bits, signed[1]), c.as_(I32))

        return Lanes(_MIXED, lambda a, b, c: total(a, b, c).to(I32), lambda a, b, c: _clamp_to_32_bits(total(a, b, c)))

    return Variants(of)


declare("V_DOT4_I32_IU8", _of_either_sign(8))
declare("V_DOT8_I32_IU4", _of_either_sign(4))
