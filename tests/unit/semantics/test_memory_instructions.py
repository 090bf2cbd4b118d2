"""Loads, stores and atomics in every address form, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from waves import FULL, ISA, run

from luthier_py.emulator.layout import Fault, Status
from luthier_py.isa import sgpr, vgpr

RNG = np.random.default_rng(11)
LANES = np.arange(64, dtype=np.uint64)
PARTIAL = 0x8F0F_FFFF_1248_FFF1
PRIVATE = 2 << 48
SHARED = 1 << 48


def lanes_of(mask):
    return (np.uint64(mask) >> LANES) & np.uint64(1) == 1


def memory(size=8192):
    return RNG.integers(0, 256, size).astype(np.uint8)


def pair(value):
    return {0: value & 0xFFFFFFFF, 1: value >> 32}


# Byte offsets of the lanes: consecutive, equal, equal in groups of 16, strided, backwards, anywhere.
OFFSETS = {
    "consecutive": lambda size: LANES * size, "same": lambda size: LANES * 0 + 64, "rows": lambda size: LANES // 16 * 256,
    "tiles": lambda size: LANES % 16 * size, "strided": lambda size: LANES * 2 * size, "backwards": lambda size: (63 - LANES) * size,
    "anywhere": lambda size: RNG.permutation(256).astype(np.uint64)[:64] * 16,
}  # fmt: skip
LOADS = {
    "ubyte": (1, np.uint8), "sbyte": (1, np.int8), "ushort": (2, np.uint16), "sshort": (2, np.int16),
    "dword": (4, np.uint32), "dwordx2": (8, np.uint32), "dwordx3": (12, np.uint32), "dwordx4": (16, np.uint32),
}  # fmt: skip


def loaded(data, offsets, size, kind):
    """(words, lanes) that a load gives."""
    words = max(size // 4, 1)
    step = np.dtype(kind).itemsize
    at = [np.array([data[int(o) + 4 * w : int(o) + 4 * w + step].view(kind)[0] for o in offsets]) for w in range(words)]
    return np.array([row.astype(np.int64).astype(np.uint32) for row in at])


@pytest.mark.parametrize("pattern", OFFSETS)
@pytest.mark.parametrize("mask", [FULL, PARTIAL])
def test_global_loads(pattern, mask):
    """With addresses in a register pair, and with a scalar base."""
    data = memory()
    active = lanes_of(mask)
    for name, (size, kind) in LOADS.items():
        offsets = OFFSETS[pattern](size)
        addresses = offsets + np.uint64(data.ctypes.data - 8)
        words = max(size // 4, 1)
        old = RNG.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
        registers = {0: addresses, 2: offsets.astype(np.uint32), 8: old, 12: old}
        state = run([ISA.make(f"global_load_{name}", vgpr(4, words), vgpr(0, 2), "off", offset=8),
                     ISA.make(f"global_load_{name}", vgpr(8, words), vgpr(2), sgpr(0, 2), offset=4095)],
                    vgprs=registers, exec_mask=mask, memory=[data], sgprs=pair(data.ctypes.data - 4095))
        assert state.status is Status.JUMP, (name, state.fault())
        expected = loaded(data, offsets, size, kind)
        for word in range(words):
            np.testing.assert_array_equal(state.vgpr(4 + word)[active], expected[word][active], name)
            np.testing.assert_array_equal(state.vgpr(8 + word)[active], expected[word][active], name)
        assert (state.vgpr(4)[~active] == 0).all() and (state.vgpr(8)[~active] == old[~active]).all()


@pytest.mark.parametrize("pattern", ["consecutive", "strided", "backwards", "anywhere", "tiles"])
@pytest.mark.parametrize("mask", [FULL, PARTIAL])
def test_global_stores(pattern, mask):
    active = lanes_of(mask)
    values = RNG.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
    for name, size in (("byte", 1), ("short", 2), ("dword", 4), ("dwordx2", 8), ("dwordx3", 12), ("dwordx4", 16)):
        data = memory()
        expected = data.copy()
        offsets = OFFSETS[pattern](size)
        words = max(size // 4, 1)
        for lane in np.flatnonzero(active):
            raw = b"".join(int(values[w][lane]).to_bytes(4, "little") for w in range(words))[:size]
            expected[int(offsets[lane]) : int(offsets[lane]) + size] = np.frombuffer(raw, np.uint8)
        state = run([ISA.make(f"global_store_{name}", vgpr(0, 2), vgpr(4, words), "off")], exec_mask=mask, memory=[data],
                    vgprs={0: offsets + np.uint64(data.ctypes.data), **{4 + w: values[w] for w in range(4)}})
        assert state.status is Status.JUMP, state.fault()
        np.testing.assert_array_equal(data, expected, name)


def test_halves_of_registers():
    """d16 loads keep the other half; d16_hi stores take the high one."""
    data = memory()
    before = data.copy()
    old = RNG.integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    address = LANES * 2 + np.uint64(data.ctypes.data)
    names = ["short_d16", "short_d16_hi", "ubyte_d16", "ubyte_d16_hi", "sbyte_d16", "sbyte_d16_hi"]
    code = [ISA.make(f"global_load_{name}", vgpr(4 + i), vgpr(0, 2), "off") for i, name in enumerate(names)]
    code += [ISA.make("global_store_short_d16_hi", vgpr(0, 2), vgpr(2), "off", offset=1024),
             ISA.make("global_store_byte_d16_hi", vgpr(0, 2), vgpr(2), "off", offset=2048)]
    state = run(code, vgprs={0: address, 2: old, **{4 + i: old for i in range(6)}}, memory=[data])
    shorts, bytes_ = before[:128].view(np.uint16), before[:128:2]
    signed = bytes_.astype(np.int8).astype(np.int16).view(np.uint16)
    for i, value in enumerate((shorts, shorts, bytes_, bytes_, signed, signed)):
        wide = value.astype(np.uint32)
        expected = (old & 0xFFFF) | wide << 16 if i % 2 else (old & 0xFFFF0000) | wide
        np.testing.assert_array_equal(state.vgpr(4 + i), expected, names[i])
    np.testing.assert_array_equal(data[1024:1152].view(np.uint16), (old >> 16).astype(np.uint16))
    np.testing.assert_array_equal(data[2048:2176:2], (old >> 16).astype(np.uint8))


def test_loads_over_their_own_addresses():
    data = memory()
    address = LANES[::-1] * 16 + np.uint64(data.ctypes.data)
    lds = data[:4096].copy()
    state = run([ISA.make("global_load_dwordx4", vgpr(0, 4), vgpr(0, 2), "off"),
                 ISA.make("ds_read2_b32", vgpr(6, 2), vgpr(6), offset0=1, offset1=0),
                 ISA.make("ds_read_b64", vgpr(8, 2), vgpr(9))],
                vgprs={0: address, 6: (LANES[::-1] * 8).astype(np.uint32), 9: (LANES[::-1] * 8).astype(np.uint32)}, memory=[data], lds=lds)
    words = data.view(np.uint32).reshape(-1, 4)[:64][::-1]
    for word in range(4):
        np.testing.assert_array_equal(state.vgpr(word), words[:, word])
    pairs = lds.view(np.uint32).reshape(-1, 2)[:64][::-1]
    np.testing.assert_array_equal(state.vgpr(6), pairs[:, 1])
    np.testing.assert_array_equal(state.vgpr(7), pairs[:, 0])
    np.testing.assert_array_equal(state.vgpr(8), pairs[:, 0])
    np.testing.assert_array_equal(state.vgpr(9), pairs[:, 1])


DS_READS = {"u8": (1, np.uint8), "i8": (1, np.int8), "u16": (2, np.uint16), "i16": (2, np.int16), "b32": (4, np.uint32),
            "b64": (8, np.uint32), "b96": (12, np.uint32), "b128": (16, np.uint32)}


@pytest.mark.parametrize("pattern", OFFSETS)
def test_lds_loads_and_stores(pattern):
    for name, (size, kind) in DS_READS.items():
        lds = memory(8192)
        offsets = OFFSETS[pattern](size)
        words = max(size // 4, 1)
        state = run([ISA.make(f"ds_read_{name}", vgpr(4, words), vgpr(0), offset=16)], vgprs={0: offsets.astype(np.uint32)}, lds=lds,
                    exec_mask=PARTIAL)
        assert state.status is Status.JUMP, state.fault()
        expected = loaded(lds, offsets + np.uint64(16), size, kind)
        active = lanes_of(PARTIAL)
        for word in range(words):
            np.testing.assert_array_equal(state.vgpr(4 + word)[active], expected[word][active], name)
    if pattern in ("same", "rows"):
        return
    for name, size in (("b8", 1), ("b16", 2), ("b32", 4), ("b64", 8), ("b96", 12), ("b128", 16)):
        lds, offsets, words = memory(8192), OFFSETS[pattern](size), max(size // 4, 1)
        values = RNG.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
        expected = lds.copy()
        for lane in range(64):
            raw = b"".join(int(values[w][lane]).to_bytes(4, "little") for w in range(words))[:size]
            expected[int(offsets[lane]) : int(offsets[lane]) + size] = np.frombuffer(raw, np.uint8)
        run([ISA.make(f"ds_write_{name}", vgpr(0), vgpr(4, words))], lds=lds,
            vgprs={0: offsets.astype(np.uint32), **{4 + w: values[w] for w in range(4)}})
        np.testing.assert_array_equal(lds, expected, name)


@pytest.mark.parametrize("name,width,stride", [("b32", 4, 4), ("b64", 8, 8), ("st64_b32", 4, 256), ("st64_b64", 8, 512)])
def test_lds_pairs(name, width, stride):
    words = width // 4
    for first, second in ((0, 3), (5, 1), (2, 2)):
        lds = memory(16384)
        offsets = LANES * width
        read = f"ds_read2{'' if name.startswith('b') else ''}{name if name.startswith('st64') else '_' + name}"
        state = run([ISA.make(read, vgpr(4, 2 * words), vgpr(0), offset0=first, offset1=second)], lds=lds, vgprs={0: offsets.astype(np.uint32)})
        for i, place in enumerate((first, second)):
            expected = loaded(lds, offsets + np.uint64(place * stride), width, np.uint32)
            for word in range(words):
                np.testing.assert_array_equal(state.vgpr(4 + i * words + word), expected[word])
        values = RNG.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
        expected = lds.copy()
        for i, place in enumerate((first, second)):
            for lane in range(64):
                at = int(offsets[lane]) + place * stride
                expected[at : at + width] = np.ascontiguousarray(values[i * words : (i + 1) * words, lane]).view(np.uint8)
        if first != second:
            run([ISA.make(read.replace("read", "write"), vgpr(0), vgpr(4, words), vgpr(4 + words, words), offset0=first, offset1=second)],
                lds=lds, vgprs={0: (offsets if stride > 8 else offsets * np.uint64(8)).astype(np.uint32), **{4 + w: values[w] for w in range(4)}})
            if stride > 8:
                np.testing.assert_array_equal(lds, expected)


def wrap(width):
    return lambda value: value & ((1 << width) - 1)


def signed(value, width):
    return value - (1 << width) if value >> width - 1 else value


def integer_atomics(width):
    cut = wrap(width)
    return {
        "add": lambda m, d: cut(m + d), "sub": lambda m, d: cut(m - d), "and": lambda m, d: m & d, "or": lambda m, d: m | d,
        "xor": lambda m, d: m ^ d, "swap": lambda m, d: d, "umin": min, "umax": max,
        "smin": lambda m, d: m if signed(m, width) < signed(d, width) else d,
        "smax": lambda m, d: m if signed(m, width) > signed(d, width) else d,
        "inc": lambda m, d: 0 if m >= d else m + 1, "dec": lambda m, d: d if m == 0 or m > d else m - 1,
    }  # fmt: skip


DS_NAMES = {"umin": "min_{u}", "umax": "max_{u}", "smin": "min_{i}", "smax": "max_{i}", "add": "add_{u}", "sub": "sub_{u}", "inc": "inc_{u}",
            "dec": "dec_{u}", "and": "and_{b}", "or": "or_{b}", "xor": "xor_{b}", "swap": "wrxchg_rtn_{b}"}


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("space", ["global", "flat", "lds"])
def test_integer_atomics(width, space):
    """Lanes collide: the old values show that they went one after the other."""
    kind = np.uint32 if width == 32 else np.uint64
    words = width // 32
    for name, step in integer_atomics(width).items():
        cells = RNG.integers(0, 50, 8).astype(kind) if name in ("inc", "dec") else RNG.integers(0, 1 << 62, 8, dtype=np.uint64).astype(kind)
        data = RNG.integers(0, 40, 64).astype(kind) if name in ("inc", "dec") else RNG.integers(0, 1 << 62, 64, dtype=np.uint64).astype(kind)
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
            state = run([inst], vgprs={0: offsets.astype(np.uint32), 2: data}, lds=cells.view(np.uint8), exec_mask=PARTIAL)
        else:
            tail = "_x2" if width == 64 else ""
            places = ["off"] if space == "global" else []
            inst = ISA.make(f"{space}_atomic_{name}{tail}", vgpr(4, words), vgpr(0, 2), vgpr(2, words), *places, glc=True)
            state = run([inst], vgprs={0: offsets + np.uint64(cells.ctypes.data), 2: data}, memory=[cells], exec_mask=PARTIAL)
        assert state.status is Status.JUMP, (name, state.fault())
        np.testing.assert_array_equal(cells, expected, name)
        np.testing.assert_array_equal(state.vgpr(4, kind), np.where(lanes_of(PARTIAL), old, 0), name)


def test_compare_and_swap():
    cells = np.arange(64, dtype=np.uint32)
    pairs = np.stack([LANES + 100, LANES // 2 * 2], axis=1).astype(np.uint32).reshape(-1).view(np.uint64)  # data, compare
    address = LANES * 4 + np.uint64(cells.ctypes.data)
    state = run([ISA.make("global_atomic_cmpswap", vgpr(4), vgpr(0, 2), vgpr(2, 2), "off", glc=True)], vgprs={0: address, 2: pairs}, memory=[cells])
    np.testing.assert_array_equal(state.vgpr(4), LANES)
    np.testing.assert_array_equal(cells, np.where(LANES % 2 == 0, LANES + 100, LANES))
    lds = np.arange(64, dtype=np.uint32)
    state = run([ISA.make("ds_cmpst_rtn_b32", vgpr(4), vgpr(0), vgpr(2), vgpr(3))], lds=lds.view(np.uint8),
                vgprs={0: (LANES * 4).astype(np.uint32), 2: (LANES // 2 * 2).astype(np.uint32), 3: (LANES + 100).astype(np.uint32)})
    np.testing.assert_array_equal(lds, np.where(LANES % 2 == 0, LANES + 100, LANES))
    np.testing.assert_array_equal(state.vgpr(4), LANES)


def test_other_lds_atomics():
    lds = np.full(8, 10, np.uint32)
    zero = np.zeros(64, np.uint32)
    state = run([ISA.make("ds_mskor_rtn_b32", vgpr(4), vgpr(0), vgpr(2), vgpr(3)), ISA.make("ds_rsub_rtn_u32", vgpr(5), vgpr(0), vgpr(2), offset=4),
                 ISA.make("ds_wrap_rtn_b32", vgpr(6), vgpr(0), vgpr(2), vgpr(3), offset=8), ISA.make("ds_add_f32", vgpr(0), vgpr(7), offset=12)],
                lds=lds.view(np.uint8), exec_mask=1,
                vgprs={0: zero, 2: zero + np.uint32(3), 3: zero + np.uint32(4), 7: np.full(64, 1.5, np.float32)})
    assert list(lds[:3]) == [(10 & ~3) | 4, 3 - 10 & 0xFFFFFFFF, 7]
    assert lds[3:4].view(np.float32)[0] == np.array([10], np.uint32).view(np.float32)[0] + np.float32(1.5)
    assert {int(state.vgpr(i)[0]) for i in (4, 5, 6)} == {10}


@pytest.mark.parametrize("name,kind", [("add_f32", np.float32), ("add_f64", np.float64), ("min_f64", np.float64), ("max_f64", np.float64)])
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
    run([ISA.make(f"global_atomic_{name}", vgpr(0, 2), vgpr(2, width // 4), "off")], vgprs={0: address, 2: bits}, memory=[cells])
    np.testing.assert_array_equal(cells, expected)


def test_packed_half_atomic():
    cells = np.array([[1.5, -2], [0.25, 8]], np.float16)
    data = RNG.normal(size=(64, 2)).astype(np.float16)
    expected = cells.copy()
    for lane in range(64):
        expected[lane % 2] = (expected[lane % 2] + data[lane]).astype(np.float16)
    address = LANES % 2 * 4 + np.uint64(cells.ctypes.data)
    run([ISA.make("global_atomic_pk_add_f16", vgpr(0, 2), vgpr(2), "off")], vgprs={0: address, 2: data.view(np.uint32).reshape(64)}, memory=[cells])
    np.testing.assert_array_equal(cells, expected)


def test_flat_reaches_every_space():
    """A quarter of the lanes each in global memory, LDS and scratch; one instruction."""
    data, lds = memory(1024), memory(1024)
    kinds = (LANES % 3).astype(int)
    offsets = LANES * 4
    base = np.array([data.ctypes.data, SHARED, PRIVATE], np.uint64)
    private_offset = (LANES % 16) * 4
    address = np.where(kinds == 2, private_offset, offsets) + base[kinds]
    state = run([ISA.make("flat_store_dword", vgpr(0, 2), vgpr(2)), ISA.make("flat_load_dword", vgpr(4), vgpr(0, 2)),
                 ISA.make("v_add_u32_e32", vgpr(5), 1, vgpr(4))],
                vgprs={0: address, 2: LANES.astype(np.uint32) * 3 + 7}, memory=[data], lds=lds, scratch_bytes=64)
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(5), LANES * 3 + 8)
    assert data.view(np.uint32)[3] == 3 * 3 + 7 and lds.view(np.uint32)[4] == 4 * 3 + 7
    rows = state.scratch.view(np.uint32).reshape(16, 64)
    assert rows[5 % 16][5] == 5 * 3 + 7, "a dword of all lanes is a row"


def test_scratch_instructions():
    values = RNG.integers(0, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
    place = RNG.integers(0, 8, 64).astype(np.uint32) * 16
    state = run([ISA.make("scratch_store_dwordx4", "off", vgpr(4, 4), sgpr(4), offset=16), ISA.make("scratch_load_dwordx2", vgpr(8, 2), "off", sgpr(4), offset=20),
                 ISA.make("scratch_store_dwordx4", vgpr(0), vgpr(4, 4), "off", offset=64), ISA.make("scratch_load_dwordx4", vgpr(10, 4), vgpr(0), "off", offset=64),
                 ISA.make("scratch_load_ubyte", vgpr(14), vgpr(0), "off", offset=65)],
                vgprs={0: place, **{4 + w: values[w] for w in range(4)}}, sgprs={4: 16}, scratch_bytes=256, exec_mask=PARTIAL)
    assert state.status is Status.JUMP, state.fault()
    active = lanes_of(PARTIAL)
    np.testing.assert_array_equal(state.vgpr(8)[active], values[1][active])
    np.testing.assert_array_equal(state.vgpr(9)[active], values[2][active])
    for word in range(4):
        np.testing.assert_array_equal(state.vgpr(10 + word)[active], values[word][active])
    np.testing.assert_array_equal(state.vgpr(14)[active], (values[0] >> 8 & 0xFF)[active])


def resource(base, records, stride=0, flags=0):
    return {4: base & 0xFFFFFFFF, 5: base >> 32 & 0xFFFF | stride << 16, 6: records, 7: flags}


def test_raw_buffers():
    """Lanes past num_records read 0 and write nothing."""
    data = memory(1024)
    before = data.copy()
    offsets = (LANES * 8).astype(np.uint32)
    sgprs = {**resource(data.ctypes.data, 300), 8: 4}
    state = run([ISA.make("buffer_load_dword", vgpr(4), vgpr(0), sgpr(4, 4), sgpr(8), offen=True, offset=8),
                 ISA.make("buffer_load_dwordx2", vgpr(6, 2), "off", sgpr(4, 4), 0, offset=16),
                 ISA.make("buffer_store_dword", vgpr(1), vgpr(0), sgpr(4, 4), 0, offen=True)],
                vgprs={0: offsets, 1: offsets + 1, 4: offsets}, sgprs=sgprs, memory=[data])
    assert state.status is Status.JUMP, state.fault()
    words = before.view(np.uint32)
    inside = LANES * 8 + 8 + 4 <= 300 - 4
    np.testing.assert_array_equal(state.vgpr(4), np.where(inside, words[(LANES.astype(int) * 2 + 3) % 256], 0))
    assert set(state.vgpr(6)) == {words[4]} and set(state.vgpr(7)) == {words[5]}
    stored = LANES * 8 + 4 <= 300
    expected = before.view(np.uint32).copy()
    expected[np.flatnonzero(stored) * 2] = (LANES[stored] * 8 + 1).astype(np.uint32)
    np.testing.assert_array_equal(data.view(np.uint32), expected)


def test_structured_buffers_and_atomics():
    data = np.zeros(256, np.uint32)
    index = (LANES % 40).astype(np.uint32)
    sgprs = resource(data.ctypes.data, 32, stride=16)
    state = run([ISA.make("buffer_atomic_add", vgpr(1), vgpr(0), sgpr(4, 4), 0, idxen=True, offset=4),
                 ISA.make("buffer_load_dword", vgpr(2), vgpr(4, 2), sgpr(4, 4), 0, idxen=True, offen=True)],
                vgprs={0: index, 1: LANES.astype(np.uint32), 4: index.astype(np.uint64) | np.uint64(4 << 32)}, sgprs=sgprs, memory=[data])
    assert state.status is Status.JUMP, state.fault()
    expected = np.zeros(256, np.uint32)
    for lane in range(64):
        if lane % 40 < 32:
            expected[lane % 40 * 4 + 1] += lane
    np.testing.assert_array_equal(data, expected)
    np.testing.assert_array_equal(state.vgpr(2), [expected[i % 40 * 4 + 1] if i % 40 < 32 else 0 for i in range(64)])


def test_scalar_loads():
    data = memory(256)
    words = data.view(np.uint32)
    base = data.ctypes.data
    code = [ISA.make("s_load_dwordx16", sgpr(16, 16), sgpr(0, 2), 32), ISA.make("s_load_dword", sgpr(40), sgpr(0, 2), sgpr(2)),
            ISA.make("s_load_dwordx2", sgpr(42, 2), sgpr(0, 2), -4 & 0x1FFFFF if False else 4),
            ISA.make("s_buffer_load_dwordx4", sgpr(44, 4), sgpr(4, 4), 24), ISA.make("s_buffer_load_dword", sgpr(48), sgpr(4, 4), 64)]
    state = run(code, sgprs={**pair(base), 2: 20, **resource(base, 32)}, memory=[data])
    assert state.status is Status.JUMP, state.fault()
    assert [state.sgpr(16 + i) for i in range(16)] == list(words[8:24])
    assert (state.sgpr(40), state.sgpr(42), state.sgpr(43)) == (words[5], words[1], words[2])
    assert [state.sgpr(44 + i) for i in range(4)] == [words[6], words[7], 0, 0], "past the range reads 0"
    assert state.sgpr(48) == 0


@pytest.mark.parametrize("lane,past", [(0, -1), (17, 0), (63, 0)])
def test_one_byte_outside_is_caught(lane, past):
    """One lane a byte before the start, or one element past the end; the others inside."""
    data = memory(512)
    offsets = LANES * 4
    offsets[lane] = np.uint64(512 - 4 + 1) if past >= 0 else np.uint64((1 << 64) - 1)
    address = offsets + np.uint64(data.ctypes.data)
    state = run([ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")], vgprs={0: address}, memory=[data])
    assert state.status is Status.FAULT
    assert state.fault() == (Fault.ADDRESS, lane, int(address[lane]))
    fine = run([ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")], vgprs={0: address}, memory=[data], exec_mask=FULL & ~(1 << lane))
    assert fine.status is Status.JUMP, "a lane that is off may hold any address"


def test_neighbours_do_not_hide_an_overrun():
    """Two buffers: an access past the first is a fault though the second is close."""
    arena = memory(4096)
    first, second = arena[:512], arena[1024:2048]
    address = LANES * 4 + np.uint64(first.ctypes.data + 300)
    state = run([ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")], vgprs={0: address}, memory=[first, second])
    assert state.status is Status.FAULT and state.fault()[1] == 53
    mixed = np.where(LANES % 2 == 0, first.ctypes.data, second.ctypes.data) + LANES * 4
    state = run([ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")], vgprs={0: mixed.astype(np.uint64)}, memory=[first, second])
    assert state.status is Status.JUMP, "lanes may be in different buffers"


def test_lds_scratch_and_atomic_faults():
    lds = memory(256)
    far = np.full(64, 253, np.uint32)
    state = run([ISA.make("ds_read_b32", vgpr(4), vgpr(0))], vgprs={0: far}, lds=lds)
    assert state.fault()[0] == Fault.LDS
    state = run([ISA.make("scratch_load_dword", vgpr(4), vgpr(0), "off")], vgprs={0: far}, scratch_bytes=256)
    assert state.fault()[0] == Fault.SCRATCH
    data = memory(256)
    crooked = LANES * 4 + np.uint64(data.ctypes.data + 2)
    state = run([ISA.make("global_atomic_add", vgpr(0, 2), vgpr(2), "off")], vgprs={0: crooked}, memory=[data])
    assert state.fault()[0] == Fault.MISALIGNED
    state = run([ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")], vgprs={0: crooked}, memory=[data], exec_mask=1)
    assert state.status is Status.JUMP, "plain loads need no alignment"
