"""Lane by lane operations that gfx1250 adds, against integers, NumPy and exact fractions.

Code of conversions of 8 and 16 numbers is large: what always runs has each pair of formats once, and each rounding and
choice of a scale with each format; the other combinations are marked slow.
"""

from __future__ import annotations

import numpy as np
import pytest
from reference import floats
from reference.small import FORMATS, narrowed, widened
from waves import MODE, MODE_REGISTER, run

from luthier_py.base.errors import Unsupported
from luthier_py.isa import instruction_set, target

ISA = instruction_set(target("gfx1250"), 32)
RNG = np.random.default_rng(11)
SIZES = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4, "f32": 32, "f16": 16, "bf16": 16}
WIDE = ("f32", "f16", "bf16")
ONE_BY_ONE = [("fp8", 8), ("bf8", 8), ("fp4", 8), ("fp6", 16), ("bf6", 16)]


def execute(text, rows, mode=MODE):
    return run([ISA.parse(text)], isa=ISA, mode=mode, vgprs={n: np.resize(np.asarray(row, np.uint32), 64)
                                                            for n, row in rows.items()})


def noise(count=64):
    return RNG.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32)


def registers(first, dwords):
    return f"v{first}" if dwords == 1 else f"v[{first}:{first + dwords - 1}]"


def joined(rows, lane):
    return sum(int(row[lane]) << 32 * number for number, row in enumerate(rows))


def in_turn(choices):
    """(format, numbers, wide format, choice): all combinations, of which one of each pair of formats is not slow."""
    return [pytest.param(small, count, wide, choice, marks=() if (i + j) % len(choices) == k else pytest.mark.slow)
            for i, (small, count) in enumerate(ONE_BY_ONE) for j, wide in enumerate(WIDE)
            for k, choice in enumerate(choices)]


@pytest.mark.parametrize("small,count,wide,stochastic", in_turn([False, True]))
def test_narrowed_with_a_scale(small, count, wide, stochastic):
    """8 or 16 numbers, divided by the scale, packed from the lowest bit on."""
    size, source_dwords = SIZES[small], count * SIZES[wide] // 32
    dwords = count * size // 32
    sources, scales, seeds = [noise() for _ in range(source_dwords)], noise() & 0x7FFFFFFF, noise()
    scales = np.where(np.arange(64) % 4 == 0, scales, 0x3F800000 + (np.arange(64) % 9 - 4 << 23)).astype(np.uint32)
    name = f"v_cvt_scalef32_{'sr_' if stochastic else ''}pk{count}_{small}_{wide}"
    text = f"{name} {registers(40, dwords)}, {registers(0, source_dwords)}, {'v31, ' if stochastic else ''}v30"
    state = execute(text, {**dict(enumerate(sources)), 30: scales, 31: seeds})
    results = [state.vgpr(40 + i) for i in range(dwords)]
    for lane in range(32):
        given, made = joined(sources, lane), joined(results, lane)
        for number in range(count):
            bits = given >> number * SIZES[wide] & (1 << SIZES[wide]) - 1
            seed = int(seeds[lane]) if stochastic else None
            assert made >> number * size & (1 << size) - 1 == narrowed(
                FORMATS[small], bits, wide, int(scales[lane]), seed, False), (lane, number)


@pytest.mark.parametrize("small,count,wide,scale_sel", in_turn([0, 2, 4, 6]))
def test_widened_with_a_scale_of_the_row(small, count, wide, scale_sel):
    """A byte of the lane with the same number modulo 16: fp8 and bf8 one for both halves of the wave, others two."""
    size, dwords = SIZES[small], count * SIZES[wide] // 32
    sources, scales = [noise() for _ in range(count * size // 32)], noise()
    text = f"v_cvt_scale_pk{count}_{wide}_{small} {registers(40, dwords)}, {registers(0, len(sources))}, v30"
    state = execute(f"{text} scale_sel:{scale_sel}" if scale_sel else text, {**dict(enumerate(sources)), 30: scales})
    results = [state.vgpr(40 + i) for i in range(dwords)]
    for lane in range(32):
        if size == 8:
            first, byte = 0, scale_sel >> 1
        else:
            first, byte = 16 * (scale_sel >> 2), (scale_sel & 2) + lane // 16
        scale = int(scales[first + lane % 16]) >> 8 * byte & 0xFF
        for number in range(count):
            code = joined(sources, lane) >> number * size & (1 << size) - 1
            expected = widened(FORMATS[small], code, scale << 23, wide)
            got = joined(results, lane) >> number * SIZES[wide] & (1 << SIZES[wide]) - 1
            assert got == expected or all(floats.is_nan(x << (16 if wide == "bf16" else 0), 32 if wide != "f16" else 16)
                                          for x in (got, expected)), (lane, number)


def test_scales_of_sixteen_elements_are_refused():
    with pytest.raises(Unsupported, match="16 elements"):
        execute("v_cvt_scale_pk8_f32_fp8 v[40:47], v[0:1], v30 scale_sel:1", {})


@pytest.mark.parametrize("small", ["fp8", "bf8"])
def test_f16_of_bytes(small):
    codes = np.arange(256, dtype=np.uint32)
    for first in range(0, 256, 32):
        part = codes[first : first + 32]
        words = part | part << 8 | (255 - part) << 16 | part << 24
        one = execute(f"v_cvt_f16_{small} v8.l, v0 byte_sel:2", {0: words}).vgpr(8)[:32] & 0xFFFF
        two = execute(f"v_cvt_pk_f16_{small} v8, v0.h", {0: words}).vgpr(8)[:32]
        for lane, code in enumerate(part):
            for got, byte in ((one[lane], 255 - code), (two[lane] & 0xFFFF, 255 - code), (two[lane] >> 16, code)):
                expected = widened(FORMATS[small], int(byte), 0x3F800000, "f16")
                assert got == expected or floats.is_nan(int(got), 16) and floats.is_nan(expected, 16)


@pytest.mark.parametrize("small", ["fp8", "bf8"])
def test_bytes_of_f16(small):
    words, seeds, old = noise(), noise(), noise()
    pairs = execute(f"v_cvt_pk_{small}_f16 v8.h, v0", {0: words, 8: old}).vgpr(8)
    ones = execute(f"v_cvt_sr_{small}_f16 v8, v0.l, v1 byte_sel:3", {0: words, 1: seeds, 8: old}).vgpr(8)
    for lane in range(32):
        halves = [int(words[lane]) & 0xFFFF, int(words[lane]) >> 16]
        low, high = (narrowed(FORMATS[small], half, "f16", 0x3F800000, None, False) for half in halves)
        assert pairs[lane] == int(old[lane]) & 0xFFFF | low << 16 | high << 24
        byte = narrowed(FORMATS[small], halves[0], "f16", 0x3F800000, int(seeds[lane]), False)
        assert ones[lane] == int(old[lane]) & 0xFFFFFF | byte << 24


def bf16(values):
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint32)


def number(codes):
    return (np.asarray(codes, np.uint32) << 16).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("name,count,compute", [
    ("pk_add", 2, lambda a, b: a + b), ("pk_mul", 2, lambda a, b: a * b), ("pk_fma", 3, lambda a, b, c: a * b + c),
    ("pk_min_num", 2, np.fmin), ("pk_max_num", 2, np.fmax),
])  # fmt: skip
def test_pairs_of_bf16(name, count, compute):
    codes = bf16(RNG.normal(size=(count, 2, 32)) * 10.0 ** RNG.integers(-3, 4, (count, 2, 32)))
    rows = {n: codes[n, 0] | codes[n, 1] << 16 for n in range(count)}
    sources = ", ".join(f"v{n}" for n in range(count))
    result = execute(f"v_{name}_bf16 v8, {sources}", rows).vgpr(8)[:32]
    for half in range(2):
        exact = compute(*(number(codes[n, half]) for n in range(count)))
        np.testing.assert_array_equal(result >> 16 * half & 0xFFFF, bf16(exact.astype(np.float32)))


def test_modifiers_of_bf16():
    """Negation of each half for itself, and clamp to 0 and 1."""
    codes = bf16(RNG.normal(size=(2, 2, 32)))
    rows = {n: codes[n, 0] | codes[n, 1] << 16 for n in range(2)}
    result = execute("v_pk_add_bf16 v8, v0, v1 neg_lo:[1,0] neg_hi:[0,1] clamp", rows).vgpr(8)[:32]
    low, high = number(codes[1, 0]) - number(codes[0, 0]), number(codes[0, 1]) - number(codes[1, 1])
    for half, exact in enumerate((low, high)):
        np.testing.assert_array_equal(result >> 16 * half & 0xFFFF, bf16(np.clip(exact, 0, 1).astype(np.float32)))


@pytest.mark.parametrize("name,compute", [
    ("rcp", lambda a: 1 / a), ("sqrt", np.sqrt), ("rsq", lambda a: 1 / np.sqrt(a)), ("exp", np.exp2), ("log", np.log2),
    ("sin", lambda a: np.sin(2 * np.pi * a)), ("cos", lambda a: np.cos(2 * np.pi * a)),
])  # fmt: skip
def test_functions_of_bf16(name, compute):
    """Within one unit in the last place."""
    codes = bf16(RNG.uniform(0.01, 8, 32))
    result = number(execute(f"v_{name}_bf16 v8.l, v0.l", {0: codes}).vgpr(8)[:32] & 0xFFFF)
    np.testing.assert_allclose(result, compute(number(codes)), rtol=2.0**-7, atol=2e-3)


@pytest.mark.parametrize("word,pick", [("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("kind", [np.int32, np.uint32])
@pytest.mark.parametrize("clamp", [False, True])
def test_sum_and_pick(word, pick, kind, clamp):
    a, b, c = (noise() for _ in range(3))
    a[:4], b[:4] = (0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 5), (1, 0xFFFFFFFF, 2, 7)
    text = f"v_add_{word}_{'i' if kind is np.int32 else 'u'}32 v8, v0, v1, v2{' clamp' if clamp else ''}"
    result = execute(text, {0: a, 1: b, 2: c}).vgpr(8)[:32].view(kind)
    total = a.view(kind).astype(np.int64) + b.view(kind)
    limits = np.iinfo(kind)
    total = np.clip(total, limits.min, limits.max) if clamp else (total & 0xFFFFFFFF).astype(np.uint32).view(kind)
    np.testing.assert_array_equal(result, pick(total, c.view(kind)).astype(kind)[:32])


@pytest.mark.parametrize("word,pick", [("max", max), ("min", min)])
@pytest.mark.parametrize("letter,low,high", [("i", -(1 << 15), (1 << 15) - 1), ("u", 0, (1 << 16) - 1)])
def test_packed_sum_and_pick(word, pick, letter, low, high):
    a, b, c = (noise() for _ in range(3))
    result = execute(f"v_pk_add_{word}_{letter}16 v8, v0, v1, v2 clamp", {0: a, 1: b, 2: c}).vgpr(8)[:32]
    for lane, half in np.ndindex(32, 2):
        x, y, z = (int(row[lane]) >> 16 * half & 0xFFFF for row in (a, b, c))
        x, y, z = (v - (1 << 16) if letter == "i" and v >> 15 else v for v in (x, y, z))
        assert int(result[lane]) >> 16 * half & 0xFFFF == pick(min(max(x + y, low), high), z) & 0xFFFF


@pytest.mark.parametrize("bits,high,low", [(4, 1, 1), (6, 1, 2), (8, 2, 2)])
def test_lookup(bits, high, low):
    """Sixteen elements of a table, whose upper part is the first source, by four bits each."""
    table, selectors = [noise() for _ in range(high + low)], [noise() for _ in range(2)]
    rows = {i: table[low + i] for i in range(high)} | {2 + i: table[i] for i in range(low)}
    rows |= {4 + i: words for i, words in enumerate(selectors)}
    dwords = bits // 2
    state = execute(f"v_perm_pk16_b{bits}_u4 {registers(8, dwords)}, {registers(0, high)}, {registers(2, low)}, v[4:5]",
                    rows)
    for lane in range(32):
        whole, made = joined(table, lane), joined([state.vgpr(8 + i) for i in range(dwords)], lane)
        for place in range(16):
            at = joined(selectors, lane) >> 4 * place & 15
            assert made >> bits * place & (1 << bits) - 1 == whole >> bits * at & (1 << bits) - 1


@pytest.mark.parametrize("name,low,high", [("i4_i8", -8, 7), ("u4_u8", 0, 15)])
def test_saturation_to_four_bits(name, low, high):
    words = noise()
    result = execute(f"v_sat_pk4_{name} v8.l, v0", {0: words}).vgpr(8)[:32]
    for lane in range(32):
        bytes_ = [int(words[lane]) >> place & 0xFF for place in range(0, 32, 8)]
        values = [v - 256 if low and v > 127 else v for v in bytes_]
        assert result[lane] & 0xFFFF == sum((min(max(v, low), high) & 15) << 4 * i for i, v in enumerate(values))


def test_sums_are_rounded_to_even():
    """Half a unit more than an even number is that number."""
    rows = {0: bf16(np.full(32, 256.0)), 1: bf16(np.full(32, 1.0))}
    assert set(number(execute("v_pk_add_bf16 v8, v0, v1", rows).vgpr(8)[:32] & 0xFFFF)) == {256.0}


def test_mixed_with_bfloats():
    """Each source is an f32 or a half of a register; a constant is the same whichever half is named."""
    halves, floats_ = bf16(RNG.normal(size=(2, 64))), RNG.normal(size=64).astype(np.float32)
    word = (halves[1] << 16 | halves[0]).astype(np.uint32)
    low, high = ((half.astype(np.uint32) << 16).view(np.float32).astype(float) for half in halves)
    rows = {0: word, 1: floats_.view(np.uint32), 3: noise(), 4: noise()}
    for text, wanted in (
        ("v_fma_mix_f32_bf16 v2, v0, v1, v0 op_sel:[1,0,0] op_sel_hi:[1,0,1]", high * floats_ + low),
        ("v_fma_mix_f32_bf16 v2, v0, |v1|, -v0 op_sel:[0,0,1] op_sel_hi:[1,0,1]", low * np.abs(floats_) - high),
        ("v_fma_mix_f32_bf16 v2, v0, 1.0, v1 op_sel:[0,0,0] op_sel_hi:[1,1,0]", low + floats_),
        ("v_fma_mix_f32_bf16 v2, v0, 2.0, v1 op_sel:[0,1,0] op_sel_hi:[1,1,0]", 2 * low + floats_),
        ("v_fma_mix_f32_bf16 v2, v0, 2.0, v1 op_sel_hi:[1,0,0]", 2 * low + floats_),
        ("v_fma_mix_f32_bf16 v2, v1, v1, v1 clamp", np.clip(floats_.astype(float) ** 2 + floats_, 0, 1)),
    ):
        got = execute(text, rows).vgpr(2, np.float32)
        np.testing.assert_allclose(got[:32], wanted[:32], rtol=1e-6, atol=1e-6, err_msg=text)
    exact = low * floats_ + floats_
    for name, shift, row in (("lo", 0, 3), ("hi", 16, 4)):
        for clamp, wanted in (("", exact), (" clamp", np.clip(exact, 0, 1))):
            got = execute(f"v_fma_mix{name}_bf16 v{row}, v0, v1, v1 op_sel_hi:[1,0,0]{clamp}", rows).vgpr(row)
            assert np.array_equal(got[:32] >> shift & 0xFFFF, bf16(wanted)[:32])
            assert np.array_equal(got[:32] >> 16 - shift & 0xFFFF, rows[row][:32] >> 16 - shift & 0xFFFF)


def test_scheduling_modes_change_no_result():
    """Programs that wait for their operands themselves say so in a register that nothing else depends on."""
    code = [ISA.parse(text) for text in (
        "v_mov_b32 v1, 3", "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2", "v_add_nc_u32 v1, v1, v1")]
    state = run(code, isa=ISA)
    assert set(state.vgpr(1)[:32].tolist()) == {6} and state.sgpr(MODE_REGISTER) == MODE
    with pytest.raises(Unsupported, match="hardware register 26"):
        run([ISA.parse("s_getreg_b32 s4, hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2)")], isa=ISA)


def ordered(bits, width):
    """Floats as integers in their order."""
    bits = np.asarray(bits, np.int64)
    return np.where(bits >> width - 1, -(bits & (1 << width - 1) - 1), bits)


def nearest_bf16(values):
    """Rounded to the nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return (bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint32)


NEAR_AND_FAR = np.concatenate([np.linspace(-12, 12, 20), [1e-30, -1e-7, 0.24999, 0.25001, -0.25, 3e38, -0.0, 0.0, 1e-3,
                                                          -0.1, np.inf, -np.inf]]).astype(np.float32)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_tanh_is_within_one_unit(kind):
    with np.errstate(over="ignore"):
        given = {"f32": NEAR_AND_FAR.view(np.uint32), "bf16": nearest_bf16(NEAR_AND_FAR),
                 "f16": NEAR_AND_FAR.astype(np.float16).view(np.uint16).astype(np.uint32)}[kind]
    values = {"f32": lambda: given.view(np.float32), "bf16": lambda: (given << 16).view(np.float32),
              "f16": lambda: given.astype(np.uint16).view(np.float16)}[kind]().astype(np.float64)
    exact, width = np.tanh(values), 32 if kind == "f32" else 16
    expected = {"f32": lambda: exact.astype(np.float32).view(np.uint32), "bf16": lambda: nearest_bf16(exact),
                "f16": lambda: exact.astype(np.float16).view(np.uint16)}[kind]()
    text = {"f32": "v_tanh_f32 v4, v0", "f16": "v_tanh_f16 v4.l, v0.l", "bf16": "v_tanh_bf16 v4.l, v0.l"}[kind]
    found = execute(text, {0: given}).vgpr(4)[:32].astype(np.int64) & (1 << width) - 1
    assert np.abs(ordered(found, width) - ordered(expected, width)).max() <= 1
    zeros = values == 0
    np.testing.assert_array_equal(found[zeros], given[zeros])  # of their sign


def test_tanh_of_nan_is_one():
    assert np.isnan(execute("v_tanh_f32 v4, v0", {0: [0x7FC00001]}).vgpr(4, np.float32)[0])


def test_loads_of_clusters_give_what_they_are_asked_for():
    cells = noise(256)
    offsets = (RNG.permutation(64) * 16).astype(np.uint32)
    base = cells.ctypes.data
    for dwords in (1, 2, 4):
        inst = ISA.parse(f"cluster_load_b{32 * dwords} {registers(4, dwords)}, v0, s[2:3]")
        state = run([inst], isa=ISA, memory=[cells], vgprs={0: offsets}, sgprs={2: base & 0xFFFFFFFF, 3: base >> 32})
        for word in range(dwords):
            np.testing.assert_array_equal(state.vgpr(4 + word)[:32], cells[offsets[:32] // 4 + word])


@pytest.mark.parametrize("text", ["v_pk_add_f32 v[4:5], 0x41200000, v[0:1]", "v_pk_add_f32 v[4:5], v[0:1], 0x41200000",
                                  "v_pk_fma_f32 v[4:5], v[0:1], 1.0, 0x41200000 op_sel_hi:[1,0,1]",
                                  "v_pk_add_f32 v[4:5], v[0:1], 0x41200000 op_sel_hi:[1,0]"])
def test_a_literal_of_packed_floats_is_both_numbers(text):
    low, high = np.arange(64, dtype=np.float32), np.arange(64, dtype=np.float32) * 3
    state = execute(text, {0: low.view(np.uint32), 1: high.view(np.uint32)})
    np.testing.assert_array_equal(state.vgpr(4, np.float32)[:32], low[:32] + 10)
    np.testing.assert_array_equal(state.vgpr(5, np.float32)[:32], high[:32] + 10)
