"""Float instructions that are steps of longer computations: exponents, division, argument reduction.

In: one lane's operands, with abs and neg applied. Out: the result before clamp and omod.
Source: AMD Instinct MI200 ISA, 12.7 to 12.12.
"""

from __future__ import annotations

from functools import cache

from luthier_py.isa.semantics.algebra import (
    F16,
    F32,
    F64,
    I16,
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
from luthier_py.isa.semantics.floats import quiet
from luthier_py.isa.semantics.meaning import lanes

# Exponent and mantissa. Everything narrower than f64 is computed in f64, which has no denormals there.
_F64_EXPONENT, _F64_SIGN_AND_MANTISSA = 0x7FF, 0x800FFFFFFFFFFFFF


def _normal_f64(a: Value) -> tuple[Value, Value]:
    """Bits of a double that is no denormal, and the power of two it was scaled by."""
    wide = a.to(F64)
    tiny = abs(wide) < 2.0**-1022
    return select(tiny, wide * 2.0**54, wide).as_(U64), select(tiny, wide.as_(I64).lift(54), 0)


def _special(a: Value) -> Value:
    """Zero, infinity or NaN."""
    return a.eq(0.0) | ~(abs(a) < float("inf"))


def _mantissa(a: Value) -> Value:
    bits, _ = _normal_f64(a)
    mantissa = ((bits & _F64_SIGN_AND_MANTISSA) | 0x3FE0000000000000).as_(F64)
    return select(_special(a), a, mantissa.to(a.type))


def _exponent(a: Value) -> Value:
    result = I16 if a.type == F16 else I32
    bits, scale = _normal_f64(a)
    exponent = ((bits >> 52) & _F64_EXPONENT).as_(I64) - 1022 - scale
    return select(_special(a), 0, exponent.to(result))


def _power_of_two(exponent: Value) -> Value:
    """2 ** exponent as f64, for exponents of normal numbers."""
    return ((exponent.to(I64) + 1023) << 52).as_(F64)


def ldexp(a: Value, exponent: Value) -> Value:
    """a * 2 ** exponent, rounded once."""
    exponent = exponent.to(I32)
    if a.type != F64:
        near = maximum(minimum(exponent, 400), -400)
        return (a.to(F64) * _power_of_two(near)).to(a.type)
    exponent = maximum(minimum(exponent, 2200), -2200)
    for _ in range(2):
        step = maximum(minimum(exponent, 1023), -969)  # stay clear of denormals until the last step
        a = a * _power_of_two(step)
        exponent = exponent - step
    return a * _power_of_two(maximum(minimum(exponent, 1023), -1022))


lanes("V_LDEXP_F32", "f32 i32 -> f32", ldexp)
lanes("V_LDEXP_F16", "f16 i16 -> f16", ldexp)
lanes("V_LDEXP_F64", "f64 i32 -> f64", ldexp)


_PI_BITS = 1280


@cache
def _two_over_pi() -> tuple[int, ...]:
    """2 / pi in words of 64 bits, most significant first, the binary point before the first."""
    unit = 1 << _PI_BITS + 64

    def arctan_of_inverse(x: int) -> int:
        term = unit // x
        total, divisor, sign = term, 1, 1
        while term:
            term //= x * x
            divisor, sign = divisor + 2, -sign
            total += sign * (term // divisor)
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    fraction = (2 * unit << _PI_BITS) // pi
    return tuple(fraction >> _PI_BITS - 64 * (i + 1) & 0xFFFFFFFFFFFFFFFF for i in range(_PI_BITS // 64))


def _trig_preop(a: Value, segment: Value) -> Value:
    """53 bits of 2 / pi, for the argument reduction of ``a``: the segment's, farther down for large arguments."""
    exponent = _extract_biased_exponent(a)
    start = (segment & 31) * 53 + maximum(exponent - 1077, 0)
    word, bit = (start >> 6), (start & 63).to(U64)
    high = low = bit.lift(0)
    words = (*_two_over_pi(), 0)
    for i in range(len(words) - 1):
        here = word.eq(i)
        high, low = select(here, words[i], high), select(here, words[i + 1], low)
    below = select(bit.eq(0), 0, low >> ((64 - bit) & 63))
    bits = ((high << bit) | below) >> 11
    scale = select(exponent >= 1968, -start + 128, -start) - 53
    return ldexp(bits.to(F64), scale)


lanes("V_TRIG_PREOP_F64", "f64 i32 -> f64", _trig_preop)


# Division in steps (MI200 ISA, V_DIV_SCALE, V_DIV_FMAS, V_DIV_FIXUP).
def _extract_biased_exponent(a: Value) -> Value:
    mantissa = a.type.mantissa_bits
    return ((a.as_(a.type.unsigned) >> mantissa) & ((1 << a.type.bits - 1 - mantissa) - 1)).to(U32).as_(I32)


def _is_denormal(a: Value) -> Value:
    return _extract_biased_exponent(a).eq(0) & a.ne(0.0)


def _div_scale(a: Value, denominator: Value, numerator: Value) -> tuple[Value, Value]:
    """Scale ``a``, which is the denominator or the numerator; the flag says that the quotient needs scaling back.

    Where both 1 / denominator and the quotient are denormal the manual scales the denominator up, to infinity;
    what the division needs, and so what is done here, is to scale it down.
    """
    far, tiny, scale = (96, 23, 64) if a.type == F32 else (768, 53, 128)
    up, down = a * 2.0**scale, a * 2.0**-scale
    is_denominator, is_numerator = (
        a.as_(a.type.unsigned).eq(other.as_(a.type.unsigned)) for other in (denominator, numerator))
    zero = numerator.eq(0.0) | denominator.eq(0.0)
    huge = _extract_biased_exponent(numerator) - _extract_biased_exponent(denominator) >= far
    denormal = _is_denormal(denominator)
    small_reciprocal = _is_denormal(1.0 / denominator)
    small_quotient = _is_denormal(numerator / denominator)
    small_numerator = _extract_biased_exponent(numerator) <= tiny

    scaled = select(small_numerator, up, a)
    scaled = select(small_quotient, select(is_numerator, up, a), scaled)
    scaled = select(small_reciprocal, down, scaled)
    scaled = select(small_reciprocal & small_quotient, select(is_denominator, down, a), scaled)
    scaled = select(denormal, up, scaled)
    scaled = select(huge, select(is_denominator, up, a), scaled)
    flag = ~zero & (huge | (~denormal & small_quotient))
    return select(zero, float("nan"), scaled), flag


def _div_fmas(a: Value, b: Value, c: Value, scaled: Value) -> Value:
    """The scaled quotient is far from 1, so its exponent says which way to scale it back."""
    power, bias = (64, 127) if a.type == F32 else (128, 1023)
    total = fma(a, b, c)
    down = _scale_down(total, fma(a, b, c - total), power)
    return select(scaled, select(_extract_biased_exponent(c) > bias, total * 2.0**power, down), total)


def _scale_down(total: Value, rest: Value, power: int) -> Value:
    """(total + rest) * 2 ** -power rounded once; ``rest`` is less than total's last place.

    A denormal result is rounded again. That is wrong only where ``total`` lies halfway between two of
    them and ``rest`` is on the side that ties to even did not choose. In a division ``rest`` is exact.
    """
    last_place = {32: 2.0**-149, 64: 2.0**-1074}[total.type.bits]
    near = total * 2.0**-power
    missing = total - near * 2.0**power
    halfway = abs(missing).eq(last_place * 2.0 ** (power - 1))
    onward = ((missing > 0.0) & (rest > 0.0)) | ((missing < 0.0) & (rest < 0.0))
    step = select(missing > 0.0, last_place, -total.lift(last_place))
    return select(halfway & onward, near + step, near)


def _div_fixup(quotient: Value, denominator: Value, numerator: Value) -> Value:
    """The special cases of a division whose ordinary result is ``quotient``."""
    infinity, sign_bit = float("inf"), 1 << quotient.type.bits - 1
    bits = quotient.type.unsigned
    sign = (denominator.as_(bits) ^ numerator.as_(bits)) & sign_bit

    def apply_sign(value: Value) -> Value:
        return (value.as_(bits) | sign).as_(quotient.type)

    zero, inf = quotient.lift(0.0), quotient.lift(infinity)
    far = {16: 26, 32: 150, 64: 1075}[bits.bits]
    distance = _extract_biased_exponent(numerator) - _extract_biased_exponent(denominator)
    result = apply_sign(abs(quotient))
    result = select(distance < -far, apply_sign(zero), result)
    result = select(distance > {16: 16, 32: 128, 64: 1024}[bits.bits], apply_sign(inf), result)
    result = select(abs(denominator).eq(infinity) | numerator.eq(0.0), apply_sign(zero), result)
    result = select(denominator.eq(0.0) | abs(numerator).eq(infinity), apply_sign(inf), result)
    nothing = (denominator.eq(0.0) & numerator.eq(0.0)) | (abs(denominator).eq(infinity) & abs(numerator).eq(infinity))
    result = select(nothing, -quotient.lift(float("nan")), result)
    result = select(is_nan(denominator), quiet(denominator), result)
    return select(is_nan(numerator), quiet(numerator), result)


for _name in "F32", "F64":
    _t = _name.lower()
    lanes(f"V_DIV_SCALE_{_name}", f"{_t} {_t} {_t} -> {_t} b", _div_scale, flushes=False)
    lanes(f"V_DIV_FMAS_{_name}", f"{_t} {_t} {_t} vcc -> {_t}", _div_fmas)
for _name in "F16", "F32", "F64":
    _t = _name.lower()
    lanes(f"V_DIV_FIXUP_{_name}", f"{_t} {_t} {_t} -> {_t}", _div_fixup, flushes=False)


for _name in "F16", "F32", "F64":
    _t, _result = _name.lower(), "i16" if _name == "F16" else "i32"
    lanes(f"V_FREXP_MANT_{_name}", f"{_t} -> {_t}", _mantissa)
    lanes(f"V_FREXP_EXP_{_result.upper()}_{_name}", f"{_t} -> {_result}", _exponent)
