"""MODE: rounding, denormals, clamp of NaN and f16 overflow, against fractions rounded as the manual's words say."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from ieee import toward
from lanewise import bits_of, float_of
from waves import FULL, ISA, MODE, run

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.records.layout import Fault, Status
from luthier_py.isa import instruction_set, target, vgpr

ROUNDINGS = ("nearest", "up", "down", "zero")  # as numbered in MODE
LANES = 64
EXTREMES = {
    16: [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x8400, 0x3C00, 0xBC00, 0x3C01, 0x7BFF, 0xFBFF, 0x3555],
    32: [0, 1 << 31, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x80800000, 0x3F800000, 0xBF800000, 0x3F800001, 0x7F7FFFFF,
         0xFF7FFFFF, 0x3EAAAAAB, 0x00800001, 0x33800000, 0x34000000],
    64: [0, 1 << 63, 1, 1 << 63 | 1, (1 << 52) - 1, 1 << 52, 1 << 63 | 1 << 52, 0x3FF0000000000000, 0xBFF0000000000000,
         0x3FF0000000000001, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x3FD5555555555555, 0x3CA0000000000000,
         0x3CB0000000000000, 0x0010000000000001],
}


def finite(width: int, count: int, seed: int) -> list[tuple[int, ...]]:
    """Operands: pairs of extremes, neighbours whose sum nearly cancels, and random bits; no infinity, no NaN."""
    random = np.random.default_rng(seed)
    edges = EXTREMES[width]
    found = []
    while len(found) < 3 * LANES:
        kind = len(found) % 3
        if kind == 0:
            operands = [int(random.choice(np.array(edges, np.uint64))) for _ in range(count)]
        elif kind == 1:
            operands = [int(random.integers(0, 1 << width, dtype=np.uint64, endpoint=False)) if width < 64
                        else int.from_bytes(random.bytes(8), "little") for _ in range(count)]
        else:
            first = int.from_bytes(random.bytes(width // 8), "little")
            operands = [first, first ^ 1 << width - 1 ^ int(random.integers(0, 4)), first ^ int(random.integers(0, 9))]
        if all(math.isfinite(float_of(operand, width)) for operand in operands[:count]):
            found.append(tuple(operands[:count]))
    return found


def vectors(values: list[int], width: int) -> np.ndarray:
    return np.array(values, np.uint64 if width == 64 else np.uint32)


def results(inst, operands: list[tuple[int, ...]], widths: tuple[int, ...], result: int, mode: int) -> list[int]:
    found: list[int] = []
    for start in range(0, len(operands), LANES):
        strip = operands[start : start + LANES]
        columns = {2 * i + 2: vectors([row[i] for row in strip], width) for i, width in enumerate(widths)}
        state = run([inst], vgprs=columns, mode=mode)
        row = state.vgpr(20, np.uint64 if result == 64 else np.uint32)
        found += [int(value) & (1 << result) - 1 for value in row]
    return found


def made(name: str, widths: tuple[int, ...], result: int):
    return ISA.make(name, vgpr(20, max(result // 32, 1)),
                    *(vgpr(2 * i + 2, max(width // 32, 1)) for i, width in enumerate(widths)))


ARITHMETIC = {
    "add": (2, lambda a, b: a + b), "mul": (2, lambda a, b: a * b), "fma": (3, lambda a, b, c: a * b + c),
}


def expected(compute, values: list[Fraction], operands: tuple[int, ...], width: int, rounding: str) -> int:
    """Exact, then rounded once; an exact zero of a sum is -0 only rounding down, or of two -0 (IEEE 754, 6.3)."""
    exact = compute(*values)
    signs = [operand >> width - 1 for operand in operands]
    if exact != 0:
        return toward(exact, width, rounding)
    if len(operands) == 2 and compute(Fraction(2), Fraction(3)) == 6:  # a product
        return (signs[0] ^ signs[1]) << width - 1
    terms = signs if len(operands) == 2 else [signs[0] ^ signs[1], signs[2]]
    parts_are_zero = values[-1] == 0
    negative = all(terms) if parts_are_zero and terms[0] == terms[1] else rounding == "down"
    return negative << width - 1


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("name", "width"), [(name, width) for name in ARITHMETIC for width in (16, 32, 64)])
def test_arithmetic(name: str, width: int, rounding: str) -> None:
    count, compute = ARITHMETIC[name]
    operands = finite(width, count, seed=width + count)
    shift = 0 if width == 32 else 2
    mode = MODE | ROUNDINGS.index(rounding) << shift
    found = results(made(f"v_{name}_f{width}", (width,) * count, width), operands, (width,) * count, width, mode)
    for row, got in zip(operands, found, strict=True):
        values = [Fraction(float_of(operand, width)) for operand in row]
        want = expected(compute, values, row, width, rounding)
        assert got == want, f"{[hex(x) for x in row]}: {got:#x}, expected {want:#x}"


CONVERSIONS = [
    ("v_cvt_f16_f32", 32, 16, 2), ("v_cvt_f32_f64", 64, 32, 2), ("v_cvt_f32_i32", None, 32, 0),
    ("v_cvt_f32_u32", None, 32, 0), ("v_cvt_f16_u16", None, 16, 2), ("v_cvt_f16_i16", None, 16, 2),
]


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("name", "source", "result", "shift"), CONVERSIONS)
def test_conversions(name: str, source: int | None, result: int, shift: int, rounding: str) -> None:
    width = source or int(name[-2:])
    operands = [row[:1] for row in finite(width, 1, seed=9)]
    near = {(32, 16): 0x477FF000, (64, 32): 0x47EFFFFFF0000000}.get((width, result))
    operands[:4] = [(near or 1,), ((near or 2) + 1,), ((near or 3) | 1 << width - 1,), ((near or 5) - 1,)]
    found = results(made(name, (width,), result), operands, (width,), result, MODE | ROUNDINGS.index(rounding) << shift)
    for (operand,), got in zip(operands, found, strict=True):
        if source is None:
            signed = "_i" in name and operand >> width - 1
            exact = Fraction(operand - (1 << width) if signed else operand)
        else:
            exact = Fraction(float_of(operand, width))
        sign = operand & 1 << width - 1 if source else 0
        want = toward(exact, result, rounding) if exact else (1 << result - 1 if sign else 0)
        assert got == want, f"{operand:#x}: {got:#x}, expected {want:#x}"


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize(("width", "shift"), [(16, 2), (32, 0), (64, 2)])
def test_ldexp(width: int, shift: int, rounding: str) -> None:
    """To denormals, to the largest numbers and beyond, rounded once."""
    powers = {16: (-30, 31), 32: (-280, 280), 64: (-2100, 2100)}[width]
    random = np.random.default_rng(width)
    exponent = 16 if width == 16 else 32
    operands = [(row[0], int(random.integers(*powers)) & (1 << exponent) - 1) for row in finite(width, 1, seed=width)]
    found = results(made(f"v_ldexp_f{width}", (width, exponent), width), operands, (width, exponent), width,
                    MODE | ROUNDINGS.index(rounding) << shift)
    for (a, power), got in zip(operands, found, strict=True):
        exact = Fraction(float_of(a, width)) * Fraction(2) ** (power - (power >> exponent - 1 << exponent))
        want = toward(exact, width, rounding) if exact else a & 1 << width - 1
        assert got == want, f"{a:#x} {power:#x}: {got:#x}, expected {want:#x}"


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_steps_of_divisions_round_as_fma(rounding: str) -> None:
    """v_div_fmas without scaling, v_fmac, v_pk_fma and v_fma_mix are v_fma; v_mad rounds the product, too,
    and is v_mul and v_add without denormals of f32.
    """
    mode = MODE | ROUNDINGS.index(rounding) * 5
    operands = finite(32, 3, seed=3)
    fused = results(made("v_fma_f32", (32,) * 3, 32), operands, (32,) * 3, 32, mode)
    for name in "v_div_fmas_f32", "v_fma_mix_f32":
        assert results(made(name, (32,) * 3, 32), operands, (32,) * 3, 32, mode) == fused
    flushing = mode & ~0x30
    products = results(made("v_mul_f32", (32,) * 2, 32), [row[:2] for row in operands], (32,) * 2, 32, flushing)
    sums = [(product, row[2]) for product, row in zip(products, operands, strict=True)]
    assert results(made("v_mad_f32", (32,) * 3, 32), operands, (32,) * 3, 32, mode) == \
        results(made("v_add_f32", (32,) * 2, 32), sums, (32,) * 2, 32, flushing)
    halves = finite(16, 3, seed=5)
    packed = [tuple(x | x << 16 for x in row) for row in halves]
    both = results(made("v_pk_fma_f16", (32,) * 3, 32), packed, (32,) * 3, 32, mode)
    assert both == [x | x << 16 for x in results(made("v_fma_f16", (16,) * 3, 16), halves, (16,) * 3, 16, mode)]


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_other_bits_do_not_matter(rounding: str) -> None:
    """f32 follows MODE[1:0] alone, f64 and f16 MODE[3:2]."""
    number = ROUNDINGS.index(rounding)
    for name, width, shift in (("v_add_f32", 32, 2), ("v_add_f64", 64, 0), ("v_add_f16", 16, 0)):
        operands, inst = finite(width, 2, seed=4), made(name, (width, width), width)
        assert results(inst, operands, (width,) * 2, width, MODE | number << shift) == \
            results(inst, operands, (width,) * 2, width, MODE)


@pytest.mark.parametrize("sources", [0, 1])
@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize(("name", "width", "shift"), [("v_mul_f32", 32, 4), ("v_mul_f64", 64, 6), ("v_mul_f16", 16, 6)])
def test_denormals(name: str, width: int, shift: int, sources: int, kept: int) -> None:
    """The lower of two bits keeps denormals of sources, the upper one those of results (MI200 ISA, 3.4)."""
    mode = MODE & ~(3 << shift) | (sources | kept << 1) << shift
    one = bits_of(1.0, width)
    least = EXTREMES[width][5]  # the least normal number
    operands = [(one, 1), (bits_of(0.5, width), least), (one, least), (bits_of(2.0, width), least - 1)] * 16
    found = results(made(name, (width, width), width), operands, (width, width), width, mode)
    denormal_kept, halved = sources and kept, least >> 1
    doubled = 2 * (least - 1) if sources else 0
    assert found[:4] == [1 if denormal_kept else 0, halved if kept else 0, least, doubled]


def test_classes_do_not_depend_on_mode() -> None:
    denormal = np.full(64, 1, np.uint32)
    state = run([ISA.parse("v_cmp_class_f32_e64 vcc, v2, v4")],
                vgprs={2: denormal, 4: np.full(64, 0x80, np.uint32)}, mode=MODE & ~0x30)
    assert state.vcc == FULL


def test_f16_overflow() -> None:
    """FP16_OVFL: the largest f16 instead of infinity, but infinities stay (MI200 ISA, 3.4)."""
    huge, infinity = bits_of(65504.0, 16), bits_of(math.inf, 16)
    operands = [(huge, huge), (huge | 0x8000, huge | 0x8000), (infinity, huge), (bits_of(1.0, 16), huge)] * 16
    add = made("v_add_f16", (16, 16), 16)
    assert results(add, operands, (16, 16), 16, MODE)[:4] == [infinity, infinity | 0x8000, infinity, huge]
    for rounding in range(4):
        clamped = results(add, operands, (16, 16), 16, MODE | 1 << 23 | rounding << 2)[:2]
        assert clamped == [huge, huge | 0x8000]
    assert results(add, operands, (16, 16), 16, MODE | 1 << 23)[2:4] == [infinity, huge]
    for name, value, want in (("v_cvt_f16_f32", 1e9, huge), ("v_cvt_f16_f32", math.inf, infinity)):
        got = results(made(name, (32,), 16), [(bits_of(value, 32),)] * 64, (32,), 16, MODE | 1 << 23)
        assert got[0] == want
    exp = made("v_exp_f16", (16,), 16)
    assert results(exp, [(huge,), (infinity,)] * 32, (16,), 16, MODE | 1 << 23)[:2] == [huge, infinity]


@pytest.mark.parametrize(("dx10_clamp", "want"), [(1, 0), (0, 0x7FC00000)])
def test_clamp_of_nan(dx10_clamp: int, want: int) -> None:
    clamp = ISA.parse("v_add_f32_e64 v20, v2, v4 clamp")
    nan, one = (np.full(64, bits, np.uint32) for bits in (0x7FC00000, 0x3F800000))
    state = run([clamp], vgprs={2: nan, 4: one}, mode=MODE & ~0x100 | dx10_clamp << 8)
    assert state.vgpr(20)[0] == want


def test_changes_inside_a_block_hold_from_there_on() -> None:
    """Three sums of one, each under its own rounding, and the division of v_rcp is not touched."""
    one, little = (np.full(64, bits, np.uint32) for bits in (0x3F800000, 0x20000000))
    code = [
        ISA.parse("v_add_f32 v20, v2, v4"), ISA.parse("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1"),
        ISA.parse("v_add_f32 v21, v2, v4"), ISA.parse("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 3"),
        ISA.parse("v_sub_f32 v22, v2, v4"), ISA.parse("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 0"),
        ISA.parse("v_sub_f32 v23, v2, v4"), ISA.parse("s_getreg_b32 s4, hwreg(HW_REG_MODE)"),
    ]
    state = run(code, vgprs={2: one, 4: little})
    assert [int(state.vgpr(i)[0]) for i in (20, 21, 22, 23)] == [0x3F800000, 0x3F800001, 0x3F7FFFFF, 0x3F800000]


def test_opcodes_of_gfx10() -> None:
    isa = instruction_set(target("gfx1030"), 64)
    one, little = (np.full(64, bits, np.uint32) for bits in (0x3F800000, 0x20000000))
    code = [isa.parse("s_round_mode 0x1"), isa.parse("v_add_f32 v20, v2, v4"), isa.parse("s_denorm_mode 0x0"),
            isa.parse("v_mul_f32 v21, 1.0, v6"), isa.parse("s_round_mode 0x0"), isa.parse("s_denorm_mode 0xf")]
    state = run(code, vgprs={2: one, 4: little, 6: one * 0 + 1}, isa=isa)
    assert [int(state.vgpr(i)[0]) for i in (20, 21)] == [0x3F800001, 0]


@pytest.mark.parametrize(("text", "message"), [
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 1), 1", "MODE bits 0x1000"),
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1", "MODE bits 0x8000000"),
    ("s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 0, 1), 1", "hardware register 3"),
])
def test_what_is_not_followed_is_refused(text: str, message: str) -> None:
    with pytest.raises(Unsupported, match=message) as raised:
        run([ISA.parse("s_nop 0"), ISA.parse(text)])
    assert raised.value.where is not None and raised.value.where.pc == 4


def test_ieee_mode_changes() -> None:
    """Of a minimum of a signalling NaN and a number."""
    signalling, one = (np.full(64, bits, np.uint32) for bits in (0x7F800001, 0x3F800000))
    code = [ISA.parse("v_min_f32 v20, v2, v4"), ISA.parse("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 0"),
            ISA.parse("v_min_f32 v21, v2, v4"), ISA.parse("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 9, 1), 1")]
    state = run(code, vgprs={2: signalling, 4: one}, mode=0x3F0)
    assert [int(state.vgpr(i)[0]) for i in (20, 21)] == [0x7FC00001, 0x3F800000]


def test_gfx12_clamps_nan_whatever_is_written_where_others_have_dx10_clamp() -> None:
    isa = instruction_set(target("gfx1201"), 64)
    nan, one = (np.full(64, bits, np.uint32) for bits in (0x7FC00000, 0x3F800000))
    code = [isa.parse("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 10), 0xf0"),
            isa.parse("v_add_f32_e64 v20, v2, v4 clamp"),
            isa.parse("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 10), 0x1f0")]
    assert run(code, vgprs={2: nan, 4: one}, isa=isa, mode=0x1F0).vgpr(20)[0] == 0


SAVED_AND_RESTORED = """
    s_getreg_b32 s4, hwreg(HW_REG_MODE, 0, 4)
    s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 1
    v_add_f32 v20, v2, v4
    s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s4
    v_add_f32 v21, v2, v4
"""


def test_mode_from_a_register() -> None:
    """A value that MODE had before comes back; the code for it is chosen when the wave is there."""
    columns = {2: np.full(64, 0x3F800000, np.uint32), 4: np.full(64, 0x20000000, np.uint32)}
    code = [ISA.parse(line) for line in SAVED_AND_RESTORED.split("\n") if line.strip()]
    state = run(code, vgprs=columns)
    assert [int(state.vgpr(i)[0]) for i in (20, 21)] == [0x3F800001, 0x3F800000]
    replays = ISA.make("s_setreg_imm32_b32", 1 | 25 << 6, 1)  # gfx1250's kernels begin with that
    state = run([replays, *code], vgprs=columns)
    assert [int(state.vgpr(i)[0]) for i in (20, 21)] == [0x3F800001, 0x3F800000]
    code[0] = ISA.parse("s_mov_b32 s4, 1")  # not what it was: the sum is rounded up, and there is no way back
    state = run(code, vgprs=columns)
    assert state.status is Status.FAULT and state.fault()[0] == Fault.MODE and state.fault()[2] == MODE | 1
    assert [int(state.vgpr(i)[0]) for i in (20, 21)] == [0x3F800001, 0x3F800001]
    code[0] = ISA.parse("s_mov_b32 s4, 2")
    assert run(code, vgprs=columns).fault()[0] == Fault.MODE


@pytest.mark.parametrize("scc", [0, 1])
def test_mode_by_the_way_taken(scc: int) -> None:
    """Where ways meet there is code for each value of MODE."""
    up, to_zero = ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0")
    code = [ISA.parse(line) for line in (
        "s_cbranch_scc0 2", up, "v_add_f32 v20, v2, v4", to_zero, "v_add_f32 v21, v2, v4")]
    state = run(code, vgprs={2: np.full(64, 0x3F800000, np.uint32), 4: np.full(64, 0x20000000, np.uint32)}, scc=scc)
    assert [int(state.vgpr(i)[0]) for i in (20, 21)] == [0x3F800000 + scc, 0x3F800000]


def test_dot_products_do_not_say_how_they_round() -> None:
    with pytest.raises(Unsupported, match="v_dot2"):
        run([ISA.parse("v_dot2_f32_f16 v20, v2, v4, v6")], mode=MODE | 1)
