"""Float arithmetic from its definition: fractions, rounded once.

In: bits of floats. Out: bits of the result. Nothing here computes in a wider float format.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from lanewise import bits_of, float_of


def rounded(value: Fraction, width: int) -> int:
    """The nearest float, ties to even: from the definition, not through another float format."""
    exponent_bits, mantissa = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[width]
    bias = (1 << exponent_bits - 1) - 1
    sign, value = (1 << width - 1, -value) if value < 0 else (0, value)
    if value == 0:
        return sign
    exponent = max(_floor_log2(value), 1 - bias)
    scaled = value / Fraction(2) ** (exponent - mantissa)
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
    bits = whole + (exponent + bias - 1 << mantissa)
    return sign | min(bits, ((1 << exponent_bits) - 1) << mantissa)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def exactly(width, compute, special):
    """Round compute(fractions) once; ``special`` is IEEE arithmetic for zeros, infinities, NaN."""

    def whole(*operands):
        values = [float_of(operand, width) for operand in operands]
        with np.errstate(all="ignore"):
            shape = special(*(np.float64(value) for value in values))
        if any(not math.isfinite(value) for value in values) or math.isnan(shape) or math.isinf(shape) and width == 64:
            return bits_of(float(shape), width)
        result = compute(*map(Fraction, values))
        return bits_of(float(shape), width) & (1 << width - 1) if result == 0 else rounded(result, width)

    return whole


def toward(value: Fraction, width: int, rounding: str) -> int:
    """The float that ``rounding`` chooses of the two that enclose an exact value that is not 0 (IEEE 754, 4.3)."""
    if rounding == "nearest":
        return rounded(value, width)
    exponent_bits, mantissa = {16: (5, 10), 32: (8, 23), 64: (11, 52)}[width]
    bias = (1 << exponent_bits - 1) - 1
    sign, size = (1 << width - 1, -value) if value < 0 else (0, value)
    exponent = max(_floor_log2(size), 1 - bias)
    scaled = size / Fraction(2) ** (exponent - mantissa)
    whole = scaled.numerator // scaled.denominator
    away = {"up": value > 0, "down": value < 0, "zero": False}[rounding]
    whole += away and whole != scaled
    bits = whole + (exponent + bias - 1 << mantissa)
    infinity = ((1 << exponent_bits) - 1) << mantissa
    return sign | min(bits, infinity if away else infinity - 1)
