"""Atomics in global memory and LDS: colliding lanes go one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, PARTIAL, RNG, lanes_of
from waves import ISA, run

from luthier_py.emulator.records.layout import Status
from luthier_py.isa import instruction_set, target, vgpr


def wrap(width):
    return lambda value: value & ((1 << width) - 1)


def signed(value, width):
    return value - (1 << width) if value >> width - 1 else value


def integer_atomics(width):
    cut = wrap(width)
    return {
        "add": lambda m, d: cut(m + d), "sub": lambda m, d: cut(m - d),
        "and": lambda m, d: m & d, "or": lambda m, d: m | d,
        "xor": lambda m, d: m ^ d, "swap": lambda m, d: d, "umin": min, "umax": max,
        "smin": lambda m, d: m if signed(m, width) < signed(d, width) else d,
        "smax": lambda m, d: m if signed(m, width) > signed(d, width) else d,
        "inc": lambda m, d: 0 if m >= d else m + 1, "dec": lambda m, d: d if m == 0 or m > d else m - 1,
    }  # fmt: skip


DS_NAMES = {
    "umin": "min_{u}",
    "umax": "max_{u}",
    "smin": "min_{i}",
    "smax": "max_{i}",
    "add": "add_{u}",
    "sub": "sub_{u}",
    "inc": "inc_{u}",
    "dec": "dec_{u}",
    "and": "and_{b}",
    "or": "or_{b}",
    "xor": "xor_{b}",
    "swap": "wrxchg_rtn_{b}",
}


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("space", ["global", "flat", "lds"])
def test_integer_atomics(width, space):
    """Lanes collide: the old values show that they went one after the other."""
    kind = np.uint32 if width == 32 else np.uint64
    words = width // 32
    for name, step in integer_atomics(width).items():
        cells = (
            RNG.integers(0, 50, 8).astype(kind)
            if name in ("inc", "dec")
            else RNG.integers(0, 1 << 62, 8, dtype=np.uint64).astype(kind)
        )
        data = (
            RNG.integers(0, 40, 64).astype(kind)
            if name in ("inc", "dec")
            else RNG.integers(0, 1 << 62, 64, dtype=np.uint64).astype(kind)
        )
        place = RNG.integers(0, 8, 64)
        expected, old = cells.copy(), np.zeros(64, kind)
        for lane in np.flatnonzero(lanes_of(PARTIAL)):
            old[lane] = expected[place[lane]]
            expected[place[lane]] = step(int(old[lane]), int(data[lane]))
        offsets = (place * (width // 8)).astype(np.uint64)
        if space == "lds":
            word = DS_NAMES[name].format(u=f"u{width}", i=f"i{width}", b=f"b{width}")
            word = word if "rtn" in word else word.replace("_", "_rtn_")
            inst = ISA.make(f"ds_{word}", vgpr(4, words), vgpr(0), vgpr(2, words))
            state = run(
                [inst], vgprs={0: offsets.astype(np.uint32), 2: data}, lds=cells.view(np.uint8), exec_mask=PARTIAL
            )
        else:
            tail = "_x2" if width == 64 else ""
            places = ["off"] if space == "global" else []
            inst = ISA.make(
                f"{space}_atomic_{name}{tail}", vgpr(4, words), vgpr(0, 2), vgpr(2, words), *places, glc=True
            )
            state = run(
                [inst], vgprs={0: offsets + np.uint64(cells.ctypes.data), 2: data}, memory=[cells], exec_mask=PARTIAL
            )
        assert state.status is Status.JUMP, (name, state.fault())
        np.testing.assert_array_equal(cells, expected, name)
        np.testing.assert_array_equal(state.vgpr(4, kind), np.where(lanes_of(PARTIAL), old, 0), name)


def test_compare_and_swap():
    cells = np.arange(64, dtype=np.uint32)
    pairs = (
        np.stack([LANES + 100, LANES // 2 * 2], axis=1).astype(np.uint32).reshape(-1).view(np.uint64)
    )  # data, compare
    address = LANES * 4 + np.uint64(cells.ctypes.data)
    state = run(
        [ISA.make("global_atomic_cmpswap", vgpr(4), vgpr(0, 2), vgpr(2, 2), "off", glc=True)],
        vgprs={0: address, 2: pairs},
        memory=[cells],
    )
    np.testing.assert_array_equal(state.vgpr(4), LANES)
    np.testing.assert_array_equal(cells, np.where(LANES % 2 == 0, LANES + 100, LANES))
    lds = np.arange(64, dtype=np.uint32)
    state = run(
        [ISA.make("ds_cmpst_rtn_b32", vgpr(4), vgpr(0), vgpr(2), vgpr(3))],
        lds=lds.view(np.uint8),
        vgprs={
            0: (LANES * 4).astype(np.uint32),
            2: (LANES // 2 * 2).astype(np.uint32),
            3: (LANES + 100).astype(np.uint32),
        },
    )
    np.testing.assert_array_equal(lds, np.where(LANES % 2 == 0, LANES + 100, LANES))
    np.testing.assert_array_equal(state.vgpr(4), LANES)


def test_other_lds_atomics():
    lds = np.full(8, 10, np.uint32)
    zero = np.zeros(64, np.uint32)
    state = run(
        [
            ISA.make("ds_mskor_rtn_b32", vgpr(4), vgpr(0), vgpr(2), vgpr(3)),
            ISA.make("ds_rsub_rtn_u32", vgpr(5), vgpr(0), vgpr(2), offset=4),
            ISA.make("ds_wrap_rtn_b32", vgpr(6), vgpr(0), vgpr(2), vgpr(3), offset=8),
            ISA.make("ds_add_f32", vgpr(0), vgpr(7), offset=12),
        ],
        lds=lds.view(np.uint8),
        exec_mask=1,
        vgprs={0: zero, 2: zero + np.uint32(3), 3: zero + np.uint32(4), 7: np.full(64, 1.5, np.float32)},
    )
    assert list(lds[:3]) == [(10 & ~3) | 4, 3 - 10 & 0xFFFFFFFF, 7]
    assert lds[3:4].view(np.float32)[0] == np.array([10], np.uint32).view(np.float32)[0] + np.float32(1.5)
    assert {int(state.vgpr(i)[0]) for i in (4, 5, 6)} == {10}


@pytest.mark.parametrize(
    "name,kind", [("add_f32", np.float32), ("add_f64", np.float64), ("min_f64", np.float64), ("max_f64", np.float64)]
)
def test_float_atomics(name, kind):
    cells = RNG.normal(size=4).astype(kind)
    data = RNG.normal(size=64).astype(kind)
    place = RNG.integers(0, 4, 64)
    expected = cells.copy()
    for lane in range(64):
        step = {"add": lambda a, b: kind(a + b), "min": min, "max": max}[name[:3]]
        expected[place[lane]] = step(expected[place[lane]], data[lane])
    width = np.dtype(kind).itemsize
    address = (place * width).astype(np.uint64) + np.uint64(cells.ctypes.data)
    bits = data.view(np.uint32 if width == 4 else np.uint64)
    run(
        [ISA.make(f"global_atomic_{name}", vgpr(0, 2), vgpr(2, width // 4), "off")],
        vgprs={0: address, 2: bits},
        memory=[cells],
    )
    np.testing.assert_array_equal(cells, expected)


SIGNALLING, QUIET = 0x7FF0_0000_0000_0001, 0xFFF8_0000_0000_0123
EXTREMES = {  # old, data, min, max (MI200 ISA, 9.5.3)
    "a quiet NaN in memory loses": (QUIET, 0x3FF0 << 48, 0x3FF0 << 48, 0x3FF0 << 48),
    "a quiet NaN as data loses": (0x3FF0 << 48, QUIET, 0x3FF0 << 48, 0x3FF0 << 48),
    "a signalling NaN in memory wins": (SIGNALLING, 0x3FF0 << 48, SIGNALLING | 1 << 51, SIGNALLING | 1 << 51),
    "a signalling NaN as data wins": (0x3FF0 << 48, SIGNALLING, SIGNALLING | 1 << 51, SIGNALLING | 1 << 51),
    "-0 is less than +0": (0, 1 << 63, 1 << 63, 0), "in either order": (1 << 63, 0, 1 << 63, 0),
}  # fmt: skip


@pytest.mark.parametrize("space", ["global", "lds"])
def test_float_extremes(space):
    for number, word in enumerate(("min", "max")):
        cells = np.array([case[0] for case in EXTREMES.values()], np.uint64)
        data = np.resize(np.array([case[1] for case in EXTREMES.values()], np.uint64), 64)
        offsets, count = LANES * 8, len(EXTREMES)
        if space == "lds":
            run([ISA.make(f"ds_{word}_f64", vgpr(0), vgpr(2, 2))], exec_mask=(1 << count) - 1, lds=cells.view(np.uint8),
                vgprs={0: offsets.astype(np.uint32), 2: data})
        else:
            run([ISA.make(f"global_atomic_{word}_f64", vgpr(0, 2), vgpr(2, 2), "off")], exec_mask=(1 << count) - 1,
                vgprs={0: offsets + np.uint64(cells.ctypes.data), 2: data}, memory=[cells])
        for got, (name, case) in zip(cells, EXTREMES.items(), strict=True):
            assert int(got) == case[2 + number], (word, name, hex(int(got)))


NUMBERS = {  # old, data, min, max (RDNA 4 ISA, 16.15: DS_MIN_NUM_F32, DS_MAX_NUM_F32)
    "a quiet NaN in memory loses": (0x7FC00001, 0x3F800000, 0x3F800000, 0x3F800000),
    "a signalling NaN in memory loses": (0x7F800001, 0x3F800000, 0x3F800000, 0x3F800000),
    "a quiet NaN as data loses": (0x3F800000, 0x7FC00001, 0x3F800000, 0x3F800000),
    "a signalling NaN as data loses": (0x3F800000, 0xFF800001, 0x3F800000, 0x3F800000),
    "of two NaN the data, made quiet": (0x7FC00001, 0xFF800002, 0xFFC00002, 0xFFC00002),
    "the larger": (0xBF800000, 0x00000001, 0xBF800000, 0x00000001),
    "-0 is less than +0": (0, 1 << 31, 1 << 31, 0), "in either order": (1 << 31, 0, 1 << 31, 0),
}  # fmt: skip


@pytest.mark.parametrize("target_name", ["gfx1201", "gfx1250"])
@pytest.mark.parametrize("space", ["global", "flat", "buffer", "lds"])
def test_extreme_numbers_of_rdna4(target_name, space):
    isa = instruction_set(target(target_name), 32)
    count = len(NUMBERS)
    data = np.resize(np.array([case[1] for case in NUMBERS.values()], np.uint32), 64)
    for number, word in enumerate(("min", "max")):
        cells = np.array([case[0] for case in NUMBERS.values()], np.uint32)
        vgprs, more = {0: LANES * 4 + np.uint64(cells.ctypes.data), 2: data}, {"memory": [cells]}
        text = f"{space}_atomic_{word}_num_f32 v[0:1], v2"
        if space == "lds":
            text, vgprs, more = f"ds_{word}_num_f32 v0, v2", {0: (LANES * 4).astype(np.uint32), 2: data}, {
                "lds": cells.view(np.uint8)}
        elif space == "buffer":
            base = cells.ctypes.data
            records = (4 * count << 25, 0, 0) if isa.target.wide_resources else (0, 4 * count, 20 << 12 | 3 << 28)
            more["sgprs"] = {4: base & 0xFFFFFFFF, 5: base >> 32 | records[0], 6: records[1], 7: records[2]}
            text, vgprs = f"buffer_atomic_{word}_num_f32 v2, v0, s[4:7], null offen", {
                0: (LANES * 4).astype(np.uint32), 2: data}
        text += ", off" if space == "global" else ""
        run([isa.parse(text)], isa=isa, exec_mask=(1 << count) - 1, vgprs=vgprs, **more)
        for got, (name, case) in zip(cells, NUMBERS.items(), strict=True):
            assert int(got) == case[2 + number], (word, name, hex(int(got)))


@pytest.mark.parametrize("name, keeps", [
    ("gfx908", False), ("gfx90a", False), ("gfx942", True), ("gfx950", True), ("gfx1100", True), ("gfx1201", True)])
def test_sums_of_f32_in_memory_keep_denormals_where_the_target_does(name, keeps):
    """In any MODE. LLVM makes the instruction of an atomicrmw that has to keep them where it says so
    (memory-atomic-fadd-f32-denormal-support); else a loop."""
    isa = instruction_set(target(name), target(name).wave_sizes[0])
    for mode in (0xF0, 0xC0):
        cells = np.array([1, 0x80000001, 0x807FFFFF, 0x80800001], np.uint32)
        data = np.resize(np.array([2, 2, 0x80800000, 0x00800000], np.uint32), 64)
        run([isa.parse("global_atomic_add_f32 v[0:1], v2, off")], isa=isa, exec_mask=15, memory=[cells], mode=mode,
            vgprs={0: LANES * 4 + np.uint64(cells.ctypes.data), 2: data})
        assert list(cells) == ([3, 1, 0x80FFFFFF, 0x80000001] if keeps else [0, 0, 0x80800000, 0x80000000])


@pytest.mark.parametrize("mode, sums", [
    (0xF0, [3, 0x800001, 1]), (0xC0, [0, 0x800000, 0]), (0xD0, [0, 0x800001, 0]), (0xE0, [0, 0x800000, 1]),
])
def test_lds_flushes_denormals_of_f32_sums_as_mode_says(mode, sums):
    """"DS atomic fadd F32 does respect the denormal mode [...] They don't respect the rounding mode" (LLVM, PR 89468):
    1 and a quarter of its last place is 1 rounding up, too."""
    cells = np.array([1, 1, 0x80800000, 0x3F800000], np.uint32)
    data = np.resize(np.array([2, 0x800000, 0x800001, 0x33000000], np.uint32), 64)
    for name in ("ds_add_f32", "ds_add_rtn_f32"):
        copy = cells.copy()
        operands = (vgpr(1), vgpr(0), vgpr(2)) if "rtn" in name else (vgpr(0), vgpr(2))
        state = run([ISA.make(name, *operands)], exec_mask=15, lds=copy.view(np.uint8), mode=mode | 1,
                    vgprs={0: (LANES * 4).astype(np.uint32), 2: data})
        assert list(copy) == [*sums, 0x3F800000]
        assert "rtn" not in name or list(state.vgpr(1)[:4]) == list(cells)


def test_packed_half_atomic():
    cells = np.array([[1.5, -2], [0.25, 8]], np.float16)
    data = RNG.normal(size=(64, 2)).astype(np.float16)
    expected = cells.copy()
    for lane in range(64):
        expected[lane % 2] = (expected[lane % 2] + data[lane]).astype(np.float16)
    address = LANES % 2 * 4 + np.uint64(cells.ctypes.data)
    run(
        [ISA.make("global_atomic_pk_add_f16", vgpr(0, 2), vgpr(2), "off")],
        vgprs={0: address, 2: data.view(np.uint32).reshape(64)},
        memory=[cells],
    )
    np.testing.assert_array_equal(cells, expected)
