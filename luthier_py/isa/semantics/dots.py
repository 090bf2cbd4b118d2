"""Dot products of two, four or eight elements.

In: one lane's operands. Out: the result before clamp. Sources: AMD Instinct MI200 ISA, 12.10 and 12.11; RDNA 3 ISA,
16.8 and 16.10; RDNA 4 ISA, 16.8 and 16.10; CDNA4 ISA, 12.10. Hardware does not say how it rounds inside. Here products
are added to the addend one after the other, the first element's first, each step in f32 rounded once; results of 16
bits are rounded once more. gfx1151 does otherwise (ROCm, rocm-systems issue 12056: it aligns and truncates).
"""

from __future__ import annotations

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
_NEG = 1  # of srcN_modifiers


# Floats. Denormals of f32 are zeros, whatever MODE says (LLVM, pull request 205101), and so are those of bf16; those of
# f16 are on gfx90a, and on no other target where the result is f32 (the same, dot2UnconditionalFlush).
def _dot2(a: Pair, b: Pair, c: Value) -> Value:
    """Of f32."""
    first = fma(a[0], b[0], flush_denormals(c))
    return flush_denormals(fma(a[1], b[1], first))


def _of_f16(two: Pair) -> Pair:
    return two[0].to(F32), two[1].to(F32)


def _of_bf16(bits: Value) -> Value:
    return flush_denormals(from_bf16(bits))


def _two_of_bf16(two: Pair) -> Pair:
    return _of_bf16(two[0]), _of_bf16(two[1])


# Code that asks for a clamp gets sums of any size on gfx1100 (bitsandbytes, issue 2087 and its gemm_4bit_simt).
def _of_halves(flushes: bool) -> Lanes:
    def two(elements: Pair) -> Pair:
        return _of_f16((flush_denormals(elements[0]), flush_denormals(elements[1])) if flushes else elements)

    return Lanes(
        signature("2f16 2f16 f32 -> f32"), lambda a, b, c: _dot2(two(a), two(b), c), flushes=False, clamps=False)


_KEEPS, _FLUSHES = _of_halves(False), _of_halves(True)
declare("V_DOT2_F32_F16 V_DOT2C_F32_F16", Variants(lambda how: _FLUSHES if how.half_products_flush else _KEEPS))
lanes("V_DOT2_F16_F16", "2f16 2f16 f16 -> f16", lambda a, b, c: _dot2(_of_f16(a), _of_f16(b), c.to(F32)).to(F16))
lanes("V_DOT2_F32_BF16 V_DOT2C_F32_BF16", "2u16 2u16 f32 -> f32",
      lambda a, b, c: _dot2(_two_of_bf16(a), _two_of_bf16(b), c))


def _dot2_bf16(a: Pair, b: Pair, c: Value) -> Value:
    """A NaN is always the same one: which, no manual says."""
    total = _dot2(_two_of_bf16(a), _two_of_bf16(b), _of_bf16(c))
    return select(is_nan(total), 0x7FC0, to_bf16(total))


lanes("V_DOT2_BF16_BF16", "2u16 2u16 u16 -> u16", _dot2_bf16)


def _dot4(a: Value, b: Value, c: Value, of_a: SmallFloat, of_b: SmallFloat) -> Value:
    for place in range(0, 32, 8):
        c = fma(of_a.widened(a >> place), of_b.widened(b >> place), c)
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


def _clamped(total: Value) -> Value:
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
              lambda a, b, c, n=_bits, s=_is_signed: _clamped(_dot(_elements(a, n, s), _elements(b, n, s), c)))

_MIXED = signature("raw raw raw -> i32")


def _of_either_sign(bits: int) -> Variants:
    """neg_lo of a source says that it is signed (LLVM, llvm.amdgcn.sudot4)."""
    def of(situation: Situation) -> Lanes:
        signed = [bool(situation.field(f"src{number}_modifiers") & _NEG) for number in (0, 1)]

        def total(a: Value, b: Value, c: Value) -> Value:
            return _dot(_elements(a, bits, signed[0]), _elements(b, bits, signed[1]), c.as_(I32))

        return Lanes(_MIXED, lambda a, b, c: total(a, b, c).to(I32), lambda a, b, c: _clamped(total(a, b, c)))

    return Variants(of)


declare("V_DOT4_I32_IU8", _of_either_sign(8))
declare("V_DOT8_I32_IU4", _of_either_sign(4))
