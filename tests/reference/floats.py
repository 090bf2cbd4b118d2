"""IEEE 754 from its definition: exact fractions, rounded once to the nearest even.

In: bits of floats and their width. Out: bits. No float arithmetic of the host takes part.
"""

from __future__ import annotations

import math
from fractions import Fraction

MANTISSA = {16: 10, 32: 23, 64: 52}


def sign_bit(width: int) -> int:
    return 1 << width - 1


def infinity(width: int) -> int:
    return (sign_bit(width) - 1) & ~((1 << MANTISSA[width]) - 1)


def quiet_bit(width: int) -> int:
    return 1 << MANTISSA[width] - 1


def default_nan(width: int) -> int:
    return infinity(width) | quiet_bit(width)


def magnitude(bits: int, width: int) -> int:
    return bits & (sign_bit(width) - 1)


def is_nan(bits: int, width: int) -> bool:
    return magnitude(bits, width) > infinity(width)


def is_infinite(bits: int, width: int) -> bool:
    return magnitude(bits, width) == infinity(width)


def is_zero(bits: int, width: int) -> bool:
    return magnitude(bits, width) == 0


def negative(bits: int, width: int) -> bool:
    return bool(bits >> width - 1)


def is_denormal(bits: int, width: int) -> bool:
    return 0 < magnitude(bits, width) < 1 << MANTISSA[width]


def number(bits: int, width: int) -> Fraction:
    """The value of a finite float."""
    mantissa = MANTISSA[width]
    exponent = magnitude(bits, width) >> mantissa
    fraction = bits & ((1 << mantissa) - 1)
    if exponent:
        fraction |= 1 << mantissa
    bias = (1 << width - mantissa - 2) - 1
    scale = max(exponent, 1) - bias - mantissa
    value = Fraction(fraction << scale) if scale >= 0 else Fraction(fraction, 1 << -scale)
    return -value if negative(bits, width) else value


def rounded(value: Fraction, width: int, zero: int = 0) -> int:
    """The nearest float, ties to even; ``zero`` is the answer for an exact zero."""
    if value == 0:
        return zero
    mantissa = MANTISSA[width]
    bias = (1 << width - mantissa - 2) - 1
    sign = sign_bit(width) if value < 0 else 0
    top, bottom = abs(value.numerator), value.denominator
    exponent = top.bit_length() - bottom.bit_length()
    if (top << max(-exponent, 0)) < (bottom << max(exponent, 0)):
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    shift = mantissa - exponent
    whole, rest = divmod(top << max(shift, 0), bottom << max(-shift, 0))
    unit = bottom << max(-shift, 0)
    whole += 2 * rest > unit or (2 * rest == unit and whole & 1)
    return sign | min(whole + (exponent + bias - 1 << mantissa), infinity(width))


def add(a: int, b: int, width: int) -> int:
    if is_nan(a, width) or is_nan(b, width):
        return propagated(width, a, b)
    if is_infinite(a, width) or is_infinite(b, width):
        if is_infinite(a, width) and is_infinite(b, width) and a != b:
            return default_nan(width)
        return a if is_infinite(a, width) else b
    both_negative = negative(a, width) and negative(b, width)
    return rounded(number(a, width) + number(b, width), width, sign_bit(width) if both_negative else 0)


def multiply(a: int, b: int, width: int) -> int:
    if is_nan(a, width) or is_nan(b, width):
        return propagated(width, a, b)
    sign = (a ^ b) & sign_bit(width)
    if is_infinite(a, width) or is_infinite(b, width):
        return default_nan(width) if is_zero(a, width) or is_zero(b, width) else sign | infinity(width)
    return rounded(number(a, width) * number(b, width), width, sign)


def divide(a: int, b: int, width: int) -> int:
    if is_nan(a, width) or is_nan(b, width):
        return propagated(width, a, b)
    sign = (a ^ b) & sign_bit(width)
    if is_infinite(a, width):
        return default_nan(width) if is_infinite(b, width) else sign | infinity(width)
    if is_infinite(b, width):
        return sign
    if is_zero(b, width):
        return default_nan(width) if is_zero(a, width) else sign | infinity(width)
    return rounded(number(a, width) / number(b, width), width, sign)


def fused(a: int, b: int, c: int, width: int) -> int:
    """a * b + c, rounded once."""
    if any(is_nan(x, width) for x in (a, b, c)):
        return propagated(width, a, b, c)
    sign = (a ^ b) & sign_bit(width)
    if is_infinite(a, width) or is_infinite(b, width):
        product = multiply(a, b, width)
        return product if is_nan(product, width) else add(product, c, width)
    if is_infinite(c, width):
        return c
    zero = sign if sign == c & sign_bit(width) else 0
    return rounded(number(a, width) * number(b, width) + number(c, width), width, zero)


def square_root(a: int, width: int) -> int:
    if is_nan(a, width) or is_zero(a, width):
        return propagated(width, a) if is_nan(a, width) else a
    if negative(a, width):
        return default_nan(width)
    if is_infinite(a, width):
        return a
    places = 1200  # binary places: enough for the least denormal
    scaled = number(a, width) * (1 << 2 * places)
    whole = math.isqrt(scaled.numerator // scaled.denominator)
    exact = Fraction(whole * whole) == scaled
    return rounded(Fraction(4 * whole + (not exact), 1 << places + 2), width)


def to_integral(a: int, width: int, how: str) -> int:
    """floor, ceil, trunc or rint; the sign of a zero is the operand's."""
    if is_nan(a, width):
        return propagated(width, a)
    if is_infinite(a, width):
        return a
    value = number(a, width)
    whole = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "rint": round}[how](value)
    return rounded(Fraction(whole), width, a & sign_bit(width))


def resized(a: int, width: int, wanted: int) -> int:
    """A float of another width; a NaN keeps its sign and the top of its payload, and becomes quiet."""
    sign = sign_bit(wanted) if negative(a, width) else 0
    if is_nan(a, width):
        payload = a & ((1 << MANTISSA[width]) - 1)
        shift = MANTISSA[wanted] - MANTISSA[width]
        return sign | infinity(wanted) | quiet_bit(wanted) | (payload << shift if shift > 0 else payload >> -shift)
    if is_infinite(a, width):
        return sign | infinity(wanted)
    return rounded(number(a, width), wanted, sign)


def to_integer(a: int, width: int, low: int, high: int) -> int:
    """Truncated and clamped; NaN is 0."""
    if is_nan(a, width):
        return 0
    if is_infinite(a, width):
        return low if negative(a, width) else high
    return min(max(math.trunc(number(a, width)), low), high)


def less(a: int, b: int, width: int) -> bool:
    """Ordered and a < b."""
    return not unordered(a, b, width) and _ordinal(a, width) < _ordinal(b, width)


def equal(a: int, b: int, width: int) -> bool:
    return not unordered(a, b, width) and _ordinal(a, width) == _ordinal(b, width)


def unordered(a: int, b: int, width: int) -> bool:
    return is_nan(a, width) or is_nan(b, width)


def _ordinal(a: int, width: int) -> int:
    """Numbers in their order; both zeros are 0."""
    return -magnitude(a, width) if negative(a, width) else a


def propagated(width: int, *operands: int) -> int:
    """The first NaN of the operands, made quiet."""
    return next(x for x in operands if is_nan(x, width)) | quiet_bit(width)


def approximately(a: int, width: int, function: str) -> int:
    """exp2, log2, tanh, or sin and cos of turns: right to less than half a unit more than rounding."""
    if is_nan(a, width):
        return propagated(width, a)
    if is_infinite(a, width):
        if function == "exp2":
            return 0 if negative(a, width) else a
        if function == "tanh":
            return rounded(Fraction(-1 if negative(a, width) else 1), width)
        return default_nan(width) if function != "log2" or negative(a, width) else a
    value = number(a, width)
    if function == "exp2":
        return _exp2(value, width)
    if function == "log2":
        if value <= 0:
            return sign_bit(width) | infinity(width) if value == 0 else default_nan(width)
        return rounded(Fraction(_log2(value)), width)
    if function == "tanh":
        return rounded(Fraction(math.tanh(value)), width) if value else a
    if function == "sin":
        turns = value - round(value)
        if turns == 0:
            return a if value == 0 else 0
        folded = (Fraction(1, 2) if turns > 0 else Fraction(-1, 2)) - turns if abs(turns) > Fraction(1, 4) else turns
    else:
        folded = Fraction(1, 4) - abs(value - round(value))
    return rounded(Fraction(math.sin(2 * math.pi * folded)), width)


def _exp2(value: Fraction, width: int) -> int:
    if abs(value) > 4000:
        return infinity(width) if value > 0 else 0
    whole = math.floor(value)
    return rounded(Fraction(2.0 ** float(value - whole)) * Fraction(2) ** whole, width)


def _log2(value: Fraction) -> float:
    """Accurate near 1, too."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    scaled = value / Fraction(2) ** exponent
    if scaled > Fraction(3, 2):
        scaled, exponent = scaled / 2, exponent + 1
    if scaled < Fraction(3, 4):
        scaled, exponent = scaled * 2, exponent - 1
    return exponent + math.log1p(float(scaled - 1)) / math.log(2)
