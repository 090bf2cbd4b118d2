"""Floats where rounding, denormals and the sign of zero decide: division, approximations, clamp."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ieee import rounded
from lanewise import float_of
from waves import FULL, ISA, run

from luthier_py.isa import instruction_set, target, vgpr


@pytest.mark.parametrize("width,power", [(32, 64), (64, 128)])
def test_division_scales_back_with_one_rounding(width, power):
    """v_div_fmas of quotients that become denormal, halfway cases among them; from fractions."""
    rng = np.random.default_rng(3)
    mantissa, lowest = {32: (23, -149), 64: (52, -1074)}[width]
    quotients, errors = [], []
    for number in range(64):
        kept = number % (mantissa - 2) + 2  # bits that the denormal keeps
        whole = int(rng.integers(1 << kept - 1, 1 << kept, dtype=np.uint64))
        below = int(rng.integers(1 << mantissa + 1 - kept, dtype=np.uint64)) if number % 3 else 1 << mantissa - kept
        digits = Fraction((whole << mantissa + 1 - kept) + below)
        quotient = digits * Fraction(2) ** (lowest + power - mantissa - 1 + kept)
        quotients.append(rounded(quotient * (-1) ** (number // 2), width))
        errors.append(rounded(quotient * (-1) ** number / (1 << mantissa + 3), width) if number % 5 else 0)
    one = rounded(Fraction(1), width)
    kind = np.uint32 if width == 32 else np.uint64
    words = width // 32
    state = run([ISA.make(f"v_div_fmas_f{width}", vgpr(6, words), vgpr(0, words), vgpr(2, words), vgpr(4, words))],
                vgprs={0: np.array(errors, kind), 2: np.full(64, one, kind), 4: np.array(quotients, kind)}, vcc=FULL)
    for got, error, quotient in zip(state.vgpr(6, kind), errors, quotients, strict=True):
        exact = Fraction(float_of(error, width)) + Fraction(float_of(quotient, width))
        expected = rounded(exact / 2**power, width)
        assert int(got) == expected, (hex(quotient), hex(error), hex(int(got)), hex(expected))


MINUS_0, INFINITY, MINUS_INFINITY = 0x80000000, 0x7F800000, 0xFF800000
FLUSHED = {  # of the denormals +1e-45 and -1e-45: what the zeros of their signs give
    "v_log_f32_e32": (MINUS_INFINITY, MINUS_INFINITY), "v_exp_f32_e32": (0x3F800000, 0x3F800000),
    "v_rcp_f32_e32": (INFINITY, MINUS_INFINITY), "v_rcp_iflag_f32_e32": (INFINITY, MINUS_INFINITY),
    "v_rsq_f32_e32": (INFINITY, MINUS_INFINITY), "v_sqrt_f32_e32": (0, MINUS_0),
}  # fmt: skip


def test_approximations_of_f32_flush_denormals():
    """"1ULP accuracy, denormals are flushed" (CDNA 3 ISA, 12.8), with denormals enabled in MODE."""
    source = np.array([1, 0x80000001] + [0] * 62, np.uint32)
    for name, expected in FLUSHED.items():
        state = run([ISA.make(name, vgpr(1), vgpr(0))], vgprs={0: source})
        assert tuple(map(int, state.vgpr(1)[:2])) == expected, name
    huge = np.array([0x7F7FFFFF, 0xFF7FFFFF] + [0] * 62, np.uint32)
    state = run([ISA.make("v_rcp_f32_e32", vgpr(1), vgpr(0)), ISA.make("v_exp_f32_e32", vgpr(2), vgpr(3))],
                vgprs={0: huge, 3: np.full(64, -127.0, np.float32).view(np.uint32)})
    assert list(state.vgpr(1)[:2]) == [0, MINUS_0] and not state.vgpr(2).any()


def test_clamp_keeps_minus_0():
    """-0 is not less than 0; LLVM folds a clamp so, too (SITargetLowering::performClampCombine)."""
    pair = vgpr(4, 2)
    state = run([ISA.make("v_mul_f32_e64", vgpr(1), vgpr(0), 1.0, clamp=1),
                 ISA.make("v_max_f64", vgpr(2, 2), pair, pair, clamp=1)],
                vgprs={0: np.full(64, MINUS_0, np.uint32), 4: np.full(64, 1 << 63, np.uint64)})
    assert (state.vgpr(1) == MINUS_0).all() and (state.vgpr(2, np.uint64) == 1 << 63).all()


def test_sine_of_minus_0():
    """"sin(-0.0) = -0", but +0 of a whole number of turns (CDNA 3 ISA, 12.8: V_SIN_F32, V_SIN_F16)."""
    turns = np.array([MINUS_0, 0, 0xFF7FFFFF, 0xC0000000] + [0] * 60, np.uint32)
    halves = np.array([0x8000, 0, 0xFBFF, 0xC000] + [0] * 60, np.uint32)
    state = run([ISA.make("v_sin_f32_e32", vgpr(2), vgpr(0)), ISA.make("v_sin_f16_e32", vgpr(3), vgpr(1))],
                vgprs={0: turns, 1: halves})
    assert list(state.vgpr(2)[:4]) == [MINUS_0, 0, 0, 0] and list(state.vgpr(3)[:4]) == [0x8000, 0, 0, 0]


@pytest.mark.parametrize("name", ["v_mad_f32", "v_mad_legacy_f32"])
@pytest.mark.parametrize("operands, result", [
    ((1, 0x3F800000, 0), 0), ((0x3F800000, 1, 0x3F800000), 0x3F800000), ((0, 0, 5), 0),
    ((0x3F800000, 0x00800001, 0x80800000), 0), ((0x3F800000, 0x00800001, 0), 0x00800001),
])
def test_mad_has_no_denormals_whatever_mode_says(name, operands, result):
    """LLVM takes it only where denormals are off, and calls what it does FMAD_FTZ."""
    state = run([ISA.make(name, vgpr(4), vgpr(0), vgpr(1), vgpr(2))],
                vgprs={i: np.full(64, word, np.uint32) for i, word in enumerate(operands)})
    assert set(state.vgpr(4)) == {result}


@pytest.mark.parametrize("c, result", [(5, 0), (0x00800001, 0x00800001), (0x80000003, 0)])
def test_dot2_takes_and_gives_no_f32_denormals_whatever_mode_says(c, result):
    """"fdot2_f32_f16 always flushes fp32 denormal operand and output to zero" (LLVM, pull request 205101)."""
    zero = np.zeros(64, np.uint32)
    state = run([ISA.make("v_dot2_f32_f16", vgpr(4), vgpr(0), vgpr(1), vgpr(2))],
                vgprs={0: zero, 1: zero, 2: np.full(64, c, np.uint32)})
    assert set(state.vgpr(4)) == {result}


@pytest.mark.parametrize("name, texts, kept", [
    ("gfx906", ["v_dot2_f32_f16 v4, v0, v1, v2"], True),
    ("gfx90a", ["v_dot2_f32_f16 v4, v0, v1, v2", "v_dot2c_f32_f16 v4, v0, v1"], False),
    ("gfx950", ["v_dot2_f32_f16 v4, v0, v1, v2", "v_dot2c_f32_f16 v4, v0, v1"], True),
    ("gfx1030", ["v_dot2_f32_f16 v4, v0, v1, v2", "v_dot2c_f32_f16 v4, v0, v1"], True),
    ("gfx1100", ["v_dot2_f32_f16 v4, v0, v1, v2"], True),
])
def test_dot_products_of_halves_that_are_denormal(name, texts, kept):
    """-2**-24 times 2**-14, in any MODE: gfx90a alone takes it as zero (measured: LLVM, pull request 205101)."""
    isa = instruction_set(target(name), target(name).wave_sizes[0])
    zero, product = np.zeros(64, np.uint32), 0xAC800000 if kept else 0
    given = {0: np.full(64, 0x8001, np.uint32), 1: np.full(64, 0x0400, np.uint32), 2: zero, 4: zero}
    for text in texts:
        for mode in (0xF0, 0xC0, 0x30, 0):
            assert set(run([isa.parse(text)], isa=isa, vgprs=given, mode=mode).vgpr(4)[:32]) == {product}


@pytest.mark.parametrize("name, f32_alone, f16_alone", [("gfx90a", True, False), ("gfx950", True, False),
                                                        ("gfx1030", False, True), ("gfx1201", False, True)])
def test_halves_that_are_denormal_to_fma_mix(name, f32_alone, f16_alone):
    """Zeros where MODE flushes (measured on gfx90a and gfx950: LLVM, pull request 205101): by which of its fields, if
    they say different things, differs."""
    isa = instruction_set(target(name), target(name).wave_sizes[0])
    given = {0: np.full(64, 0x8001, np.uint32), 1: np.full(64, 0x0400, np.uint32), 2: np.zeros(64, np.uint32)}
    for mode, flushes in ((0xF0, False), (0xC0, f32_alone), (0x30, f16_alone), (0, True)):
        for text, whole in (("v_fma_mix_f32 v4, v0, v1, v2 op_sel_hi:[1,1,0]", 0xAC800000),
                            ("v_fma_mix_f32 v4, -v0, v1, v2 op_sel_hi:[1,1,0]", 0x2C800000)):
            state = run([isa.parse(text)], isa=isa, vgprs=given, mode=mode)
            assert set(state.vgpr(4)[:32]) == {0 if flushes else whole}, (text, hex(mode))


def test_mad_mix_has_no_denormal_halves_whatever_mode_says():
    """As source and as result: LLVM, pull request 224911; Mesa, work item 6178."""
    isa = instruction_set(target("gfx900"))
    given = {0: np.full(64, 0x35800000, np.uint32), 1: np.full(64, 0x3F800000, np.uint32), 2: np.zeros(64, np.uint32),
             3: np.full(64, 0x3FF, np.uint32), 4: np.full(64, 0x12345678, np.uint32)}
    for mode in (0xF0, 0xC0, 0):
        for text, result in (("v_mad_mixlo_f16 v4, v0, v1, v2", 0x12340000), ("v_mad_mixhi_f16 v4, v0, v1, v2", 0x5678),
                             ("v_mad_mix_f32 v4, v3, v1, v2 op_sel_hi:[1,0,0]", 0),
                             ("v_mad_mix_f32 v4, v0, v1, v2", 0x35800000)):
            assert set(run([isa.parse(text)], isa=isa, vgprs=given, mode=mode).vgpr(4)) == {result}, text


@pytest.mark.parametrize("name, kept", [("gfx1100", False), ("gfx1201", True)])
def test_dot_products_of_denormals_of_bf16_and_f32(name, kept):
    """As AMD has measured (rocm-systems, rocjitsu: gfx11_dot2.h, gfx12_dot.h)."""
    isa = instruction_set(target(name), 32)
    one, zero = np.full(64, 0x3F80, np.uint32), np.zeros(64, np.uint32)
    for text, given, result in (
        ("v_dot2_f32_bf16 v4, v0, v1, v2", {0: np.full(64, 0x0001, np.uint32), 1: one, 2: zero}, 0x00010000),
        ("v_dot2_f32_bf16 v4, v0, v1, v2", {0: zero, 1: one, 2: np.full(64, 5, np.uint32)}, 5),
        ("v_dot2_f32_f16 v4, v0, v1, v2", {0: zero, 1: one, 2: np.full(64, 0x80000003, np.uint32)}, 0x80000003),
    ):
        for mode in (0xF0, 0):
            found = set(run([isa.parse(text)], isa=isa, vgprs=given, mode=mode).vgpr(4)[:32])
            assert {value & 0x7FFFFFFF for value in map(int, found)} == {result & 0x7FFFFFFF if kept else 0}


@pytest.mark.parametrize("rounding", range(4))
def test_halves_are_rounded_upwards_whatever_mode_says(rounding):
    """Exactly: the sum of 0.49999997 and 0.5, rounded, would be 1; that of 8388609 and 0.5 would be even."""
    given = [0.49999997, 0.5, -0.5, -0.50000006, 2.5, -2.5, 8388609.0, -1e-30, 3e9, -np.inf, 1.5]
    values = np.resize(np.array(given, np.float32), 64)
    state = run([ISA.parse("v_cvt_rpi_i32_f32 v4, v0")], vgprs={0: values.view(np.uint32)}, mode=0xF0 | rounding)
    assert state.vgpr(4, np.int32)[:11].tolist() == [0, 1, 0, -1, 3, -2, 8388609, 0, 2**31 - 1, -(2**31), 2]


def test_what_rdna_1_has_beside_its_successors():
    """v_mac_legacy_f32: zero times anything is 0; v_mul_lo_i32: the low half, whatever the signs."""
    isa = instruction_set(target("gfx1010"), 32)
    given = ([0, 2, -3, np.inf], [np.inf, 5, 7, 1], [1, 1, 2, 3])
    a, b, c = (np.resize(np.array(row, np.float32), 64) for row in given)
    vgprs = {0: a.view(np.uint32), 1: b.view(np.uint32), 4: c.view(np.uint32)}
    state = run([isa.parse("v_mac_legacy_f32 v4, v0, v1")], isa=isa, vgprs=vgprs)
    assert state.vgpr(4, np.float32)[:4].tolist() == [1, 11, -19, np.inf]
    state = run([isa.parse("v_mul_lo_i32 v4, v0, v1")], isa=isa, vgprs=vgprs)
    whole = vgprs[0].astype(np.uint64) * vgprs[1].astype(np.uint64)
    np.testing.assert_array_equal(state.vgpr(4)[:32], whole.astype(np.uint32)[:32])
