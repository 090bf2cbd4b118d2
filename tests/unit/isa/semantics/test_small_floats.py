"""Floats of 8, 6 and 4 bits against their definition in exact fractions: every code, every rounding, each target's."""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference import floats
from reference.small import FORMATS, Fraction, narrowed, widened
from waves import MODE, run

from luthier_py.isa import instruction_set, target

FP16_OVFL = 1 << 23
ONE = 0x3F800000
ISAS = {name: instruction_set(target(name)) for name in ("gfx942", "gfx950", "gfx1201")}
LARGEST = {"fp8": 448, "bf8": 57344, "fp8 fnuz": 240, "bf8 fnuz": 57344, "fp6": 7.5, "bf6": 28, "fp4": 6}
LEAST = {"fp8": -9, "bf8": -16, "fp8 fnuz": -10, "bf8 fnuz": -17, "fp6": -3, "bf6": -4, "fp4": -1}


def of(name: str, isa: str) -> str:
    return f"{name} fnuz" if isa == "gfx942" else name


def each(isa: str, text: str, rows: dict[int, list[int]], results: int = 1, mode: int = MODE) -> list[list[int]]:
    """Rows 8 and on after an instruction, of as many lanes as there are values."""
    count = len(next(iter(rows.values())))
    found: list[list[int]] = [[] for _ in range(results)]
    for first in range(0, count, 64):
        vgprs = {row: np.resize(np.array(values[first : first + 64], np.uint32), 64) for row, values in rows.items()}
        lanes = ISAS[isa].wave_size
        for half in range(0, 64, lanes):
            part = {row: np.roll(values, -half) for row, values in vgprs.items()}
            state = run([ISAS[isa].parse(text)], isa=ISAS[isa], mode=mode, vgprs=part)
            for row in range(results):
                found[row] += [int(x) for x in state.vgpr(8 + row)[:lanes]]
    return [row[:count] for row in found]


def near(name: str) -> list[int]:
    """f32 at every code, between each two, and a little beside; too large ones, tiny ones, NaNs."""
    small = FORMATS[name]
    numbers = [small.number(code) for code in range(small.codes)] + [Fraction(LARGEST[name]) * x for x in (2, 2**70)]
    between = [(a + b) / 2 for a, b in zip(numbers, numbers[1:], strict=False)]
    last = numbers[small.codes - 1] - numbers[small.codes - 2]
    bits = [floats.rounded(x, 32) for x in (*numbers, *between, numbers[small.codes - 1] + last / 2,
                                            numbers[small.codes - 1] + last)]
    bits = [x + step for x in bits for step in (-1, 0, 1) if x + step >= 0] + [1, 0x7FFFFF, 0x800000, 0x7F800000]
    bits += [0x7F800001, 0x7FC00000, 0x7FFFFFFF]
    return bits + [x | 1 << 31 for x in bits]


@pytest.mark.parametrize("name", FORMATS)
def test_ranges(name):
    """As OCP's tables and AMD's have them."""
    small = FORMATS[name]
    assert small.number(small.codes - 1) == Fraction(LARGEST[name])
    assert small.number(1) == Fraction(2) ** LEAST[name]
    assert small.number(small.top | 1) == -small.number(1)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_every_code_widened(name, isa):
    expected = [widened(FORMATS[of(name, isa)], code, ONE, "f32") for code in range(256)]
    noise = random.Random(3).getrandbits
    codes = list(range(256))
    for byte in range(4):
        words = [noise(32) & ~(0xFF << 8 * byte) | code << 8 * byte for code in codes]
        text = f"v_cvt_f32_{name}_sdwa v8, v0 src0_sel:BYTE_{byte}" if isa != "gfx1201" else (
            f"v_cvt_f32_{name}_e64 v8, v0 byte_sel:{byte}")
        assert each(isa, text, {0: words}) == [expected]
    assert each(isa, f"v_cvt_f32_{name}_e32 v8, v0", {0: codes}) == [expected]
    pairs = [(code + 77) % 256 << 8 | code for code in codes]
    both = [expected, [expected[(code + 77) % 256] for code in codes]]
    high = f"v_cvt_pk_f32_{name}_sdwa v[8:9], v0 src0_sel:WORD_1" if isa != "gfx1201" else (
        f"v_cvt_pk_f32_{name}_e64 v[8:9], v0.h op_sel:[1,0]")
    low = "v0.l" if isa == "gfx1201" else "v0"
    assert each(isa, f"v_cvt_pk_f32_{name}_e32 v[8:9], {low}", {0: pairs}, 2) == both
    assert each(isa, high, {0: [x << 16 | noise(16) for x in pairs]}, 2) == both


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["fp8", "bf8"])
@pytest.mark.parametrize("finite", [False, True])
def test_rounding_to_nearest(name, isa, finite):
    small = FORMATS[of(name, isa)]
    values = near(of(name, isa))
    codes = [narrowed(small, x, "f32", ONE, None, finite) for x in values]
    mode, old = MODE | FP16_OVFL * finite, [0x12345678] * len(values)
    pairs = [second << 8 | first for first, second in zip(codes, codes[::-1], strict=True)]
    rows = {0: values, 1: values[::-1], 8: old}
    low, high = ("v8.l", "v8.h") if isa == "gfx1201" else ("v8", "v8")
    assert each(isa, f"v_cvt_pk_{name}_f32 {low}, v0, v1", rows, mode=mode) == [[0x12340000 | x for x in pairs]]
    text = f"v_cvt_pk_{name}_f32 {high}, v0, v1 op_sel:[0,0,1]"
    assert each(isa, text, rows, mode=mode) == [[0x5678 | x << 16 for x in pairs]]
    negated = [narrowed(small, x & 0x7FFFFFFF ^ 1 << 31, "f32", ONE, None, finite) for x in values]
    found = each(isa, f"v_cvt_pk_{name}_f32 {low}, -|v0|, v1", rows, mode=mode)
    assert [x & 0xFF for x in found[0]] == negated


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_stochastic_rounding(name, isa):
    small, noise = FORMATS[of(name, isa)], random.Random(5)
    values = near(of(name, isa)) + [noise.getrandbits(32) for _ in range(64)]
    seeds = [noise.choice((0, 0xFFFFFFFF, noise.getrandbits(32))) for _ in values]
    codes = [narrowed(small, x, "f32", ONE, seed, False) for x, seed in zip(values, seeds, strict=True)]
    rows = {0: values, 1: seeds, 8: [0x12345678] * len(values)}
    for byte in range(4):
        select = f"byte_sel:{byte}" if isa == "gfx1201" else f"op_sel:[0,0,{byte & 1},{byte >> 1}]"
        kept = 0x12345678 & ~(0xFF << 8 * byte)
        found = each(isa, f"v_cvt_sr_{name}_f32 v8, v0, v1 {select}", rows)
        assert found == [[kept | code << 8 * byte for code in codes]]


def test_seeds_decide_in_proportion():
    """A value a quarter of the way between two numbers goes up for a quarter of the seeds."""
    seeds = [number << 22 for number in range(1024)]
    (found,) = each("gfx950", "v_cvt_sr_fp8_f32 v8, v0, v1",
                    {0: [floats.rounded(1 + Fraction(1, 32), 32)] * 1024, 1: seeds, 8: [0] * 1024})
    assert sorted(set(found)) == [0x38, 0x39] and found.count(0x39) == 256


def test_stochastic_rounding_to_16_bits():
    noise = random.Random(6)
    values = [floats.rounded(Fraction(noise.gauss(0, 1)), 32) for _ in range(128)]
    values += [0x7F800000, 0xFF800000, 0x477FFFFF]
    seeds = [noise.choice((0, 0xFFFFFFFF, noise.getrandbits(32))) for _ in values]
    rows = {0: values, 1: seeds, 8: [0x12345678] * len(values)}
    (found,) = each("gfx950", "v_cvt_sr_bf16_f32 v8, v0, v1", rows)
    expected = [x >> 16 if x << 1 & 0xFFFFFFFF == 0xFF000000 else x + (seed >> 16) >> 16
                for x, seed in zip(values, seeds, strict=True)]
    assert found == [0x12340000 | x for x in expected]
    (found,) = each("gfx950", "v_cvt_sr_f16_f32 v8, v0, v1 op_sel:[0,0,1]", rows)
    for x, seed, result in zip(values, seeds, found, strict=True):
        if floats.is_infinite(x, 32) or x == 0x477FFFFF:
            assert result >> 16 in (0x7C00, 0xFC00, 0x7BFF)
            continue
        exact, unit = floats.number(x, 32), Fraction(2) ** (max((x >> 23 & 0xFF) - 127, -14) - 10)
        steps = (abs(exact) / unit * (1 << 13) + (seed >> 19)) // (1 << 13)
        assert abs(floats.number(result >> 16, 16)) == steps * unit and result & 0xFFFF == 0x5678


SCALES = [127 << 23, 130 << 23 | 5, 1 << 31 | 120 << 23, 0, 254 << 23, 255 << 23]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_scaled_widening(name, scale):
    small, codes = FORMATS[name], list(range(256))
    rows = {0: [0x01020300 * (name == "fp4") | code for code in codes], 1: [scale] * 256, 8: [0] * 256}
    first = [widened(small, code & 2 * small.top - 1, scale, "f32") for code in codes]
    if name != "fp4":
        assert each("gfx950", f"v_cvt_scalef32_f32_{name} v8, v0, v1", rows) == [first]
        placed = rows | {0: [code << 16 for code in codes]}
        assert each("gfx950", f"v_cvt_scalef32_f32_{name} v8, v0, v1 op_sel:[0,1,0]", placed) == [first]
        half = [widened(small, code, scale, "f16") << 16 for code in codes]
        assert each("gfx950", f"v_cvt_scalef32_f16_{name} v8, v0, v1 op_sel:[0,0,1]", rows) == [half]
    else:
        second = [widened(small, code >> 4, scale, "f32") for code in codes]
        assert each("gfx950", "v_cvt_scalef32_pk_f32_fp4 v[8:9], v0, v1", rows, 2) == [first, second]
        rows[0] = [code << 8 for code in codes]
        text = "v_cvt_scalef32_pk_bf16_fp4 v8, v0, v1 op_sel:[1,0,0]"
        assert each("gfx950", text, rows) == [[widened(small, code & 15, scale, "bf16")
                                               | widened(small, code >> 4, scale, "bf16") << 16 for code in codes]]


def moved(bits: int, scale: int) -> int:
    """Times the scale, where that is an f32."""
    exponent = (bits >> 23 & 0xFF) + (scale >> 23 & 0xFF) - 127
    return bits & ~(0xFF << 23) | exponent << 23 if bits >> 23 & 0xFF and 0 < exponent < 255 else bits


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_scaled_narrowing(name, scale):
    small, noise = FORMATS[name], random.Random(8)
    values = [moved(x, scale) for x in near(name)]
    seeds = [noise.getrandbits(32) for _ in values]
    codes = [narrowed(small, x, "f32", scale, None, False) for x in values]
    rows = {0: values, 1: values[::-1], 2: [scale] * len(values), 8: [0xFFFFFFFF] * len(values)}
    pairs = [b << small.mantissa_bits + small.exponent_bits + 1 | a for a, b in zip(codes, codes[::-1], strict=True)]
    select, kept = ("[0,0,0,1]", 0xFFFF) if name != "fp4" else ("[0,0,1,1]", 0xFFFFFF)
    found = each("gfx950", f"v_cvt_scalef32_pk_{name}_f32 v8, v0, v1, v2 op_sel:{select}", rows)
    assert found == [[kept | x << kept.bit_length() for x in pairs]]
    stochastic = [narrowed(small, x, "f32", scale, seed, False) for x, seed in zip(values, seeds, strict=True)]
    rows |= {1: seeds} if name != "fp4" else {1: values, 3: seeds}
    if name == "fp4":
        found = each("gfx950", "v_cvt_scalef32_sr_pk_fp4_f32 v8, v[0:1], v3, v2 op_sel:[0,0,1,0]", rows)
        assert found == [[0xFFFF00FF | (x << 4 | x) << 8 for x in stochastic]]
    else:
        found = each("gfx950", f"v_cvt_scalef32_sr_{name}_f32 v8, v0, v1, v2 op_sel:[0,0,1,0]", rows)
        assert found == [[0xFFFF00FF | x << 8 for x in stochastic]]


def dropped(half: int, scale: int) -> int:
    """The 8 bits that an f16, divided by the scale, has below the last place of bf8."""
    if half & 0x7C00 == 0x7C00:
        return 0
    value = abs(floats.number(half, 16)) * Fraction(2) ** (127 - (scale >> 23))
    unit = Fraction(1, 2**16)
    while value >= 8 * unit:
        unit *= 2
    return int(value / unit * 256) & 255


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_stochastic_rounding_of_halves(kind):
    """The seed is added where the source has its bits, so what a denormal loses is lost."""
    noise, scale = random.Random(9), 138 << 23  # many become denormals
    values = [noise.getrandbits(16) for _ in range(192)]
    # Every other seed goes almost up to the next number, and over it if lost bits counted (f16 has 8 below bf8's last).
    seeds = [noise.getrandbits(32) if number % 2 else (255 - dropped(x, scale) << 24) + 0xFFFFFF
             for number, x in enumerate(values)]
    rows = {0: values, 1: seeds, 2: [scale] * len(values), 8: [0] * len(values)}
    found = each("gfx950", f"v_cvt_scalef32_sr_bf8_{kind} v8, v0, v1, v2", rows)
    assert found == [[narrowed(FORMATS["bf8"], x, kind, scale, seed, False)
                      for x, seed in zip(values, seeds, strict=True)]]
    packed = {0: [x | y << 16 for x, y in zip(values, values[::-1], strict=True)], 1: rows[2], 8: rows[8]}
    codes = [narrowed(FORMATS["fp8"], x, kind, scale, None, False) for x in values]
    found = each("gfx950", f"v_cvt_scalef32_pk_fp8_{kind} v8, v0, v1", packed)
    assert found == [[a | b << 8 for a, b in zip(codes, codes[::-1], strict=True)]]


def test_too_large_stays_finite():
    rows = {0: [0x47000000] * 64, 1: [0x47000000] * 64, 2: [ONE] * 64, 8: [0] * 64}
    text = "v_cvt_scalef32_pk_fp8_f32 v8, v0, v1, v2"
    assert each("gfx950", text, rows)[0][0] == 0x7F7F
    assert each("gfx950", text, rows, mode=MODE | FP16_OVFL)[0][0] == 0x7E7E


def dot4(a: int, b: int, c: int, bits: int, signs: tuple[bool, bool]) -> int:
    def element(x: int, place: int, signed: bool) -> int:
        part = x >> place & (1 << bits) - 1
        return part - (1 << bits) if signed and part >> bits - 1 else part

    c = c - (1 << 32) if c >> 31 else c
    return c + sum(element(a, place, signs[0]) * element(b, place, signs[1]) for place in range(0, 32, bits))


@pytest.mark.parametrize("name,bits", [("v_dot4_i32_iu8", 8), ("v_dot8_i32_iu4", 4)])
@pytest.mark.parametrize("signs", [(False, False), (True, False), (False, True), (True, True)])
def test_dots_of_either_sign(name, bits, signs):
    noise = random.Random(10)
    a, b, c = ([noise.choice((noise.getrandbits(32), 0xFFFFFFFF, 0x7FFFFFFF, 0x80808080)) for _ in range(192)]
               for _ in range(3))
    exact = [dot4(*each_lane, bits, signs) for each_lane in zip(a, b, c, strict=True)]
    text = f"{name} v8, v0, v1, v2 neg_lo:[{signs[0]:d},{signs[1]:d},0]"
    rows = {0: a, 1: b, 2: c}
    assert each("gfx1201", text, rows) == [[x & 0xFFFFFFFF for x in exact]]
    clamped = [min(max(x, -(1 << 31)), (1 << 31) - 1) & 0xFFFFFFFF for x in exact]
    assert each("gfx1201", f"{text} clamp", rows) == [clamped]


@pytest.mark.parametrize("first", ["fp8", "bf8"])
@pytest.mark.parametrize("second", ["fp8", "bf8"])
def test_dots_of_bytes(first, second):
    """Where every sum is exact: small integers."""
    noise, formats = random.Random(11), (FORMATS[first], FORMATS[second])
    whole = [[code for code in range(256) if (x := f.number(code)) is not None and x.denominator == 1 and abs(x) < 17]
             for f in formats]
    columns = [[[noise.choice(codes) for _ in range(4)] for _ in range(64)] for codes in whole]
    c = [noise.randrange(-100, 100) for _ in range(64)]
    rows = {place: [sum(code << 8 * i for i, code in enumerate(codes)) for codes in column]
            for place, column in enumerate(columns)}
    rows[2] = [floats.rounded(Fraction(x), 32) for x in c]
    (found,) = each("gfx1201", f"v_dot4_f32_{first}_{second} v8, v0, v1, -v2", rows)
    for lane in range(64):
        total = sum(formats[0].number(a) * formats[1].number(b)
                    for a, b in zip(columns[0][lane], columns[1][lane], strict=True)) - c[lane]
        assert floats.number(found[lane], 32) == total


@pytest.mark.parametrize("isa", ["gfx950", "gfx1201"])
def test_dots_of_two(isa):
    """Exact ones, with each half's sign and place chosen."""
    noise = np.random.default_rng(12)
    a, b = (noise.integers(-50, 50, (64, 2)).astype(np.float32) for _ in range(2))
    c = noise.integers(-1000, 1000, 64).astype(np.float32)
    bf16 = [(x.view(np.uint32) >> 16) for x in (a, b)]
    rows = {place: (x[:, 0] | x[:, 1] << 16).tolist() for place, x in enumerate(bf16)}
    rows |= {2: c.view(np.uint32).tolist(), 8: c.view(np.uint32).tolist()}
    (found,) = each(isa, "v_dot2_f32_bf16 v8, v0, v1, v2 neg_lo:[1,0,0] op_sel:[0,1,0] op_sel_hi:[1,0,0]", rows)
    expected = -a[:, 0] * b[:, 1] + a[:, 1] * b[:, 0] + c
    assert np.array_equal(np.array(found, np.uint32).view(np.float32), expected)
    if isa == "gfx950":
        (found,) = each(isa, "v_dot2c_f32_bf16_e32 v8, v0, v1", rows)
        assert np.array_equal(np.array(found, np.uint32).view(np.float32), (a * b).sum(1) + c)
        return
    (found,) = each(isa, "v_dot2_bf16_bf16 v8.h, v0, |v1|, v2.h op_sel:[0,0,1,1]", rows | {8: [0x1234] * 64})
    exact = ((a * np.abs(b)).sum(1) + c.view(np.uint32).__and__(0xFFFF0000).view(np.float32)).view(np.uint32)
    rounded = exact + 0x7FFF + (exact >> 16 & 1) & np.uint32(0xFFFF0000)
    assert found == [int(x) | 0x1234 for x in rounded]
    halves = {place: (x.astype(np.float16).view(np.uint16).astype(np.uint32)) for place, x in enumerate((a, b))}
    rows = {place: (x[:, 0] | x[:, 1] << 16).tolist() for place, x in halves.items()}
    rows |= {2: c.astype(np.float16).view(np.uint16).astype(np.uint32).tolist(), 8: [0x12340000] * 64}
    (found,) = each(isa, "v_dot2_f16_f16 v8.l, -v0, v1, v2.l", rows)
    expected = (c - (a * b).sum(1)).astype(np.float16).view(np.uint16)
    assert found == [0x12340000 | int(x) for x in expected]
