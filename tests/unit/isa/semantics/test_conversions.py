"""Conversions between floats and integers of all sizes, against exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from ieee import rounded
from lanewise import Case, bits_of, check, float_of, nan_or_equal, signed


def to_integer(width, result, is_signed, function=math.trunc):
    low, high = (-(1 << result - 1), (1 << result - 1) - 1) if is_signed else (0, (1 << result) - 1)

    def compute(a):
        value = float_of(a, width)
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return (high if value > 0 else low) & ((1 << result) - 1)
        return max(low, min(high, function(value))) & ((1 << result) - 1)

    return compute


def from_integer(width, source, is_signed):
    return lambda a: rounded(Fraction(signed(a, source) if is_signed else a), width)


def test_conversions_from_floats():
    check(
        [
            Case("v_cvt_i32_f32_e32", (32,), 32, to_integer(32, 32, True)),
            Case("v_cvt_u32_f32_e32", (32,), 32, to_integer(32, 32, False)),
            Case("v_cvt_i32_f64_e32", (64,), 32, to_integer(64, 32, True)),
            Case("v_cvt_u32_f64_e32", (64,), 32, to_integer(64, 32, False)),
            Case("v_cvt_i16_f16_e32", (16,), 16, to_integer(16, 16, True)),
            Case("v_cvt_u16_f16_e32", (16,), 16, to_integer(16, 16, False)),
            Case("v_cvt_flr_i32_f32_e32", (32,), 32, to_integer(32, 32, True, math.floor)),
            Case("v_cvt_f32_f16_e32", (16,), 32, resized(16, 32), {}, nan_or_equal(32)),
            Case("v_cvt_f16_f32_e32", (32,), 16, resized(32, 16), {}, nan_or_equal(16)),
            Case("v_cvt_f64_f32_e32", (32,), 64, resized(32, 64), {}, nan_or_equal(64)),
            Case("v_cvt_f32_f64_e32", (64,), 32, resized(64, 32), {}, nan_or_equal(32)),
            Case(
                "v_cvt_pkrtz_f16_f32",
                (32, 32),
                32,
                lambda a, b: toward_zero(a) | toward_zero(b) << 16,
                {},
                pair_of_halves,
            ),
            Case("v_cvt_pknorm_i16_f32", (32, 32), 32, lambda a, b: norm(a, 32767) | norm(b, 32767) << 16),
            Case("v_cvt_pknorm_u16_f32", (32, 32), 32, lambda a, b: norm(a, 65535, 0) | norm(b, 65535, 0) << 16),
        ],
        floats=True,
    )


def resized(source, result):
    def compute(a):
        value = float_of(a, source)
        return (
            rounded(Fraction(value), result) | (a >> source - 1) << result - 1
            if math.isfinite(value)
            else bits_of(value, result)
        )

    return compute


def toward_zero(a):
    value = float_of(a, 32)
    if not math.isfinite(value):
        return bits_of(value, 16)
    nearest = rounded(Fraction(value), 16) & 0x7FFF
    while nearest and not float_of(nearest, 16) <= abs(value):
        nearest -= 1
    return nearest | (a >> 31) << 15


def pair_of_halves(a, b):
    same = nan_or_equal(16)
    return same(a & 0xFFFF, b & 0xFFFF) and same(a >> 16, b >> 16)


def norm(a, top, low=-1):
    value = float_of(a, 32)
    return round(float(np.float32(max(low, min(1, value))) * np.float32(top))) & 0xFFFF if not math.isnan(value) else 0


def test_conversions_from_integers():
    check(
        [
            Case("v_cvt_f32_i32_e32", (32,), 32, from_integer(32, 32, True)),
            Case("v_cvt_f32_u32_e32", (32,), 32, from_integer(32, 32, False)),
            Case("v_cvt_f64_i32_e32", (32,), 64, from_integer(64, 32, True)),
            Case("v_cvt_f64_u32_e32", (32,), 64, from_integer(64, 32, False)),
            Case("v_cvt_f16_i16_e32", (16,), 16, from_integer(16, 16, True)),
            Case("v_cvt_f16_u16_e32", (16,), 16, from_integer(16, 16, False)),
            *(
                Case(f"v_cvt_f32_ubyte{i}_e32", (32,), 32, lambda a, i=i: bits_of(float(a >> 8 * i & 255), 32))
                for i in range(4)
            ),
            Case("v_cvt_off_f32_i4_e32", (32,), 32, lambda a: bits_of(signed(a, 4) / 16, 32)),
            Case("v_cvt_pk_u8_f32", (32, 32, 32), 32, insert_byte),
        ]
    )


def insert_byte(a, b, c):
    place = 8 * (b & 3)
    return c & ~(255 << place) | to_integer(32, 8, False, round)(a) << place
