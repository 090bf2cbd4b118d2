"""Float vector instructions against exact arithmetic, rounded as IEEE 754 says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from ieee import exactly, rounded
from lanewise import Case, bits_of, check, close, float_of, nan_or_equal, signed
from waves import MODE

QUIET = {16: 1 << 9, 32: 1 << 22, 64: 1 << 51}
NAN = {16: 0x7E00, 32: 0x7FC00000, 64: 0x7FF8 << 48}


def arithmetic(name, width, count, compute, special=None, **modifiers):
    return Case(
        name, (width,) * count, width, exactly(width, compute, special or compute), modifiers, nan_or_equal(width)
    )


def fused(a, b, c):
    """IEEE fma for special values only."""
    product = a * b
    if math.isinf(product) and not (math.isinf(a) or math.isinf(b)):
        product = math.copysign(1.0, a) * math.copysign(1.0, b)  # finite in truth
    return product + c


def test_arithmetic():
    for width in 16, 32, 64:
        tail = "_e32" if width < 64 else ""
        cases = [
            arithmetic(f"v_add_f{width}{tail}", width, 2, lambda a, b: a + b),
            arithmetic(f"v_mul_f{width}{tail}", width, 2, lambda a, b: a * b),
            arithmetic(f"v_fma_f{width}", width, 3, lambda a, b, c: a * b + c, fused),
        ]
        if width < 64:
            cases += [arithmetic(f"v_sub_f{width}_e32", width, 2, lambda a, b: a - b),
                      arithmetic(f"v_subrev_f{width}_e32", width, 2, lambda a, b: b - a)]
        check(cases, floats=True)


def two_roundings(width):
    product = exactly(width, lambda a, b: a * b, lambda a, b: a * b)
    total = exactly(width, lambda a, b: a + b, lambda a, b: a + b)
    return lambda a, b, c: total(product(a, b), c)


def two_roundings_without_denormals(a, b, c):
    """LLVM, FMAD_FTZ: of sources, the product and the sum."""
    product, total = (exactly(32, compute, compute) for compute in (lambda a, b: a * b, lambda a, b: a + b))
    return flushed(total(flushed(product(flushed(a), flushed(b))), flushed(c)))


def test_mad_rounds_twice():
    check([Case("v_mad_f32", (32,) * 3, 32, two_roundings_without_denormals, {}, nan_or_equal(32)),
           Case("v_mad_legacy_f16", (16,) * 3, 16, two_roundings(16), {}, nan_or_equal(16))], floats=True)


def is_nan(bits, width):
    return math.isnan(float_of(bits, width))


def extreme(width, pick_smaller):
    """minNum/maxNum of IEEE 754-2008, with -0 below +0; a signalling NaN comes out quiet."""

    def order(bits):
        value = signed(bits, width)
        return value if value >= 0 else -(bits & ~(1 << width - 1)) - 0.5

    def compute(a, b):
        for x in (a, b):
            if is_nan(x, width) and not x & QUIET[width]:
                return x | QUIET[width]
        if is_nan(a, width):
            return b
        if is_nan(b, width):
            return a
        return (min if pick_smaller else max)((a, b), key=order)

    return compute


def test_extremes():
    for width in 16, 32, 64:
        tail = "_e32" if width < 64 else ""
        low, high = extreme(width, True), extreme(width, False)
        same = nan_or_equal(width)
        cases = [Case(f"v_min_f{width}{tail}", (width,) * 2, width, low, {}, same),
                 Case(f"v_max_f{width}{tail}", (width,) * 2, width, high, {}, same)]
        if width < 64:
            cases += [
                Case(f"v_min3_f{width}", (width,) * 3, width, lambda a, b, c, f=low: f(f(a, b), c), {}, same),
                Case(f"v_max3_f{width}", (width,) * 3, width, lambda a, b, c, f=high: f(f(a, b), c), {}, same),
            ]
        check(cases, floats=True)


def med3(a, b, c):
    low, high = extreme(32, True), extreme(32, False)
    if any(is_nan(x, 32) for x in (a, b, c)):
        return low(low(a, b), c)
    largest = high(high(a, b), c)
    if equal(largest, a):
        return high(b, c)
    return high(a, c) if equal(largest, b) else high(a, b)


def equal(a, b):
    """Of numbers: both zeros are one."""
    return a == b or not (a | b) & 0x7FFFFFFF


def test_median():
    check([Case("v_med3_f32", (32,) * 3, 32, med3, {}, nan_or_equal(32))], floats=True)


def whole(width, function):
    def compute(a):
        value = float_of(a, width)
        if not math.isfinite(value):
            return a
        return bits_of(math.copysign(function(value), value), width)

    return compute


def test_rounding_to_integers():
    for width in 16, 32, 64:
        same = nan_or_equal(width)
        check(
            [
                Case(f"v_{name}_f{width}_e32", (width,), width, whole(width, function), {}, same)
                for name, function in (
                    ("floor", math.floor),
                    ("ceil", math.ceil),
                    ("trunc", math.trunc),
                    ("rndne", round),
                )
            ],
            floats=True,
        )


def fract(width):
    limit = {16: 0x3BFF, 32: 0x3F7FFFFF, 64: 0x3FEFFFFFFFFFFFFF}[width]

    def compute(a):
        value = float_of(a, width)
        if not math.isfinite(value):
            return NAN[width]
        return min(rounded(Fraction(value) - math.floor(value), width), limit)

    return compute


def test_fract():
    for width in 16, 32, 64:
        check([Case(f"v_fract_f{width}_e32", (width,), width, fract(width), {}, nan_or_equal(width))], floats=True)


def frexp_exponent(width):
    def compute(a):
        value = float_of(a, width)
        return math.frexp(value)[1] & (0xFFFF if width == 16 else 0xFFFFFFFF) if math.isfinite(value) and value else 0

    return compute


def frexp_mantissa(width):
    def compute(a):
        value = float_of(a, width)
        return bits_of(math.frexp(value)[0], width) if math.isfinite(value) and value else a

    return compute


def ldexp(width, exponent_bits):
    def compute(a, exponent):
        value, exponent = float_of(a, width), signed(exponent, exponent_bits)
        if not math.isfinite(value) or value == 0:
            return a
        limit = 5000
        return rounded(Fraction(value) * Fraction(2) ** max(-limit, min(limit, exponent)), width) | a & 1 << width - 1

    return compute


def test_exponents():
    check([
        *(Case(f"v_frexp_mant_f{w}_e32", (w,), w, frexp_mantissa(w), {}, nan_or_equal(w)) for w in (16, 32, 64)),
        Case("v_frexp_exp_i16_f16_e32", (16,), 16, frexp_exponent(16)),
        Case("v_frexp_exp_i32_f32_e32", (32,), 32, frexp_exponent(32)),
        Case("v_frexp_exp_i32_f64_e32", (64,), 32, frexp_exponent(64)),
    ], floats=True)
    near = [Case("v_ldexp_f32", (32, 32), 32, ldexp(32, 32), {}, nan_or_equal(32)),
            Case("v_ldexp_f64", (64, 32), 64, ldexp(64, 32), {}, nan_or_equal(64)),
            Case("v_ldexp_f16_e32", (16, 16), 16, ldexp(16, 16), {}, nan_or_equal(16))]
    check(near)  # integer edges: exponents of every size


def approximate(width, function, flushes=False):
    """``flushes``: denormals in and out are zeros, which those of f32 do."""
    def flushed(a):
        return a & 0x80000000 if flushes and width == 32 and not a & 0x7F800000 else a

    def compute(a):
        with np.errstate(all="ignore"):
            return flushed(bits_of(float(function(np.float64(float_of(flushed(a), width)))), width))

    return compute


def test_reciprocals_and_roots():
    for width in 16, 32, 64:
        same = close(width, 0 if width == 64 else 1)
        check(
            [
                Case(f"v_rcp_f{width}_e32", (width,), width, approximate(width, lambda a: 1 / a, True), {}, same),
                Case(
                    f"v_rsq_f{width}_e32",
                    (width,),
                    width,
                    approximate(width, lambda a: 1 / np.sqrt(a), True),
                    {},
                    close(width, 2),
                ),
                Case(f"v_sqrt_f{width}_e32", (width,), width, approximate(width, np.sqrt, True), {}, same),
            ],
            floats=True,
        )


def turns(function):
    def compute(a):
        part = a - np.rint(a)
        exact = {0.25: 1.0, -0.25: -1.0} if function is np.sin else {0.25: 0.0, -0.25: 0.0}
        if function is np.sin and abs(part) == 0.5:
            return 0.0
        return exact.get(float(part), function(2 * np.pi * part))

    return compute


def test_transcendentals():
    for width in 16, 32:
        same = close(width, 1)
        check([
            Case(f"v_exp_f{width}_e32", (width,), width, approximate(width, np.exp2, True), {}, same),
            Case(f"v_log_f{width}_e32", (width,), width, approximate(width, np.log2, True), {}, same),
            Case(f"v_cos_f{width}_e32", (width,), width, approximate(width, turns(np.cos)), {}, near_zero(width)),
            Case(f"v_sin_f{width}_e32", (width,), width, approximate(width, turns(np.sin)), {}, near_zero(width)),
        ], floats=True)


def near_zero(width):
    """As close, or both so small that the reference's pi is not exact."""
    same = close(width, 2)
    return lambda a, b: same(a, b) or max(abs(float_of(a, width)), abs(float_of(b, width))) < 1e-15


def test_modifiers():
    def modified(bits, modifiers):
        bits = bits & 0x7FFFFFFF if modifiers & 2 else bits
        return bits ^ 1 << 31 if modifiers & 1 else bits

    add = exactly(32, lambda a, b: a + b, lambda a, b: a + b)
    cases = []
    for first in range(4):
        for second in range(4):
            cases.append(Case("v_add_f32_e64", (32, 32), 32,
                              lambda a, b, m=first, n=second: add(modified(a, m), modified(b, n)),
                              {"src0_modifiers": first, "src1_modifiers": second}, nan_or_equal(32)))
    cases.append(Case("v_add_f32_e64", (32, 32), 32, lambda a, b: clamped(add(a, b)), {"clamp": 1}))
    check(cases, floats=True)


def test_output_modifiers():
    """They are ignored in IEEE mode and with denormals; else all zeros become +0 (CDNA 3 ISA, 6.2.2)."""
    factors = ((1, 2), (2, 4), (3, Fraction(1, 2)))
    scaling = [Case("v_mul_f32_e64", (32, 32), 32, scaled(factor), {"omod": omod}, nan_or_equal(32))
               for omod, factor in factors]
    check(scaling, floats=True, mode=MODE & ~0x2F0)
    for mode, flushes in ((MODE, False), (MODE & ~0x200, False), (MODE & ~0xF0, True)):
        ignoring = [Case("v_mul_f32_e64", (32, 32), 32, product(flushes), {"omod": omod}, nan_or_equal(32))
                    for omod, _ in factors]
        check(ignoring, floats=True, mode=mode)


def flushed(bits):
    return bits if bits & 0x7F800000 else bits & 0x80000000


def product(flushes):
    exact = exactly(32, lambda a, b: a * b, lambda a, b: a * b)
    return lambda a, b: flushed(exact(flushed(a), flushed(b))) if flushes else exact(a, b)


def scaled(factor):
    scale = exactly(32, lambda a: a * factor, lambda a: a * float(factor))

    def compute(a, b):
        exact = exactly(32, lambda a, b: a * b, lambda a, b: a * b)
        bits = flushed(scale(exact(flushed(a), flushed(b))))
        return bits if bits & 0x7FFFFFFF else 0

    return compute


def clamped(bits):
    value = float_of(bits, 32)
    return 0 if not value >= 0 else bits if value < 1 else 0x3F800000


def test_flushed_denormals():
    """With denormals off in MODE, they are zeros going in and coming out."""

    def flush(bits):
        return bits & 1 << 31 if not bits & 0x7F800000 else bits

    add, mul = (exactly(32, f, f) for f in (lambda a, b: a + b, lambda a, b: a * b))
    check([
        Case("v_add_f32_e32", (32, 32), 32, lambda a, b: flush(add(flush(a), flush(b))), {}, nan_or_equal(32)),
        Case("v_mul_f32_e32", (32, 32), 32, lambda a, b: flush(mul(flush(a), flush(b))), {}, nan_or_equal(32)),
        Case("v_mov_b32_e32", (32,), 32, lambda a: a),
        Case("v_add_f64", (64, 64), 64, exactly(64, lambda a, b: a + b, lambda a, b: a + b), {}, nan_or_equal(64)),
    ], floats=True, mode=MODE & ~0x30)


def test_trig_preop():
    """The segments of 2 / pi, against 2 / pi worked out in integers (Gauss's formula)."""
    pi = 48 * _arctan(18) + 32 * _arctan(57) - 20 * _arctan(239)
    digits = (2 * ONE << 1300) // pi  # 2 / pi * 2 ** 1300

    def compute(a, segment):
        exponent = a >> 52 & 0x7FF
        shift = (segment & 31) * 53 + max(exponent - 1077, 0)
        bits = digits >> (1300 - shift - 53) & (1 << 53) - 1 if shift + 53 <= 1300 else 0
        scale = -53 - shift + (128 if exponent >= 1968 else 0)
        return rounded(Fraction(bits) * Fraction(2) ** scale, 64) if shift < 1100 else -1

    check([Case("v_trig_preop_f64", (64, 32), 64, compute, {}, lambda a, b: b == (1 << 64) - 1 or a == b)])


ONE = 1 << 1500


def _arctan(x):
    """arctan(1 / x) in units of ONE."""
    total = term = ONE // x
    divisor, sign = 1, 1
    while term:
        term //= x * x
        divisor, sign = divisor + 2, -sign
        total += sign * (term // divisor)
    return total
