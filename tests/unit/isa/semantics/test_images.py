"""Images in memory row after row, without a sampler: against NumPy's indexing."""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, RNG
from waves import State, run

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.records.layout import Fault, Status, SurfaceRefusal
from luthier_py.isa import Inst, InstructionSet, instruction_set, target

TARGETS = ("gfx803", "gfx90a", "gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
IDENTITY = 4 | 5 << 3 | 6 << 6 | 7 << 9
TYPES = {"1D": 8, "2D": 9, "3D": 10, "CUBE": 11, "1D_ARRAY": 12, "2D_ARRAY": 13}
# Data formats, and number formats from bit 6 on.
GFX9 = {"32_UINT": 4 | 4 << 6, "8_8_8_8_UNORM": 10, "16_16_FLOAT": 5 | 7 << 6, "32_32_UINT": 11 | 4 << 6}
GFX10 = {"32_UINT": 20, "8_8_8_8_UNORM": 56, "16_16_FLOAT": 29, "32_32_UINT": 62}
GFX11 = {"32_UINT": 20, "8_8_8_8_UNORM": 42, "16_16_FLOAT": 29, "32_32_UINT": 48}
CODES = {8: GFX9, 9: GFX9, 10: GFX10, 11: GFX11, 12: GFX11}


def pixels(size: int) -> np.ndarray:
    """Bytes that begin where images may: at a multiple of 256."""
    raw = RNG.integers(0, 256, size + 512).astype(np.uint8)
    start = -raw.ctypes.data % 256
    return raw[start : start + size]


def resource(isa: InstructionSet, name: str, format: str, data: np.ndarray, width: int, height: int = 1,
             slices: int = 1, pitch: int = 0, first: int = 0, selects: int = IDENTITY, more: int = 0) -> dict[int, int]:
    base, generation = data.ctypes.data, isa.target.generation
    assert base % 256 == 0
    words = [base >> 8 & 0xFFFFFFFF, base >> 40, 0, selects | TYPES[name] << 28 | more, 0, 0, 0, 0]
    code, last = CODES[generation][format], slices - 1
    if generation <= 9:
        words[1] |= code << 20
        words[2] = width - 1 | height - 1 << 14
        words[3] += (8 if generation == 8 else 0) << 20
        words[4] = (pitch or width) - 1 << 13 | (last if generation == 9 or name == "3D" else 0)
        words[5] = first | (last << 13 if generation == 8 and name != "3D" else 0)
        return dict(enumerate(words))
    words[1] |= code << (17 if generation == 12 else 20) | (width - 1 & 3) << 30
    words[2] = width - 1 >> 2 | height - 1 << 14
    words[4] = pitch - 1 if name in ("1D", "2D") and pitch else last | first << 16
    return dict(enumerate(words))


def instruction(isa: InstructionSet, name: str, dim: str, data: str, count: int, dmask: int, more: str = "") -> Inst:
    address = f"v[0:{count - 1}]" if count > 1 else "v0"
    if isa.target.generation == 12 and count > 1:
        address = f"[{', '.join(f'v{i}' for i in range(count))}]"
    shape = f"dim:SQ_RSRC_IMG_{dim}"
    if isa.target.generation <= 9:  # LLVM shows one register, whatever the resource says
        address, shape = "v0", "da" if "ARRAY" in dim else ""
    more = more if isa.target.generation == 12 else f"unorm {more}"
    return isa.parse(f"{name} {data}, {address}, s[0:7] dmask:{dmask:#x} {shape} {more}")


def done(inst: Inst, isa: InstructionSet, data: np.ndarray, words: dict[int, int], vgprs: dict, **more) -> State:
    padded = {index: np.asarray(values, np.uint32) for index, values in vgprs.items()}
    return run([inst], isa=isa, memory=[data], sgprs=words, vgprs=padded, **more)


@pytest.mark.parametrize("where", TARGETS)
def test_two_dimensions(where: str) -> None:
    """Rows longer than what is seen; outside is 0, but for what is always 1; components by dmask."""
    isa = instruction_set(target(where), 64)
    length = 64 if where == "gfx1010" else 40  # whose resources do not say it: a multiple of 256 bytes
    data = pixels(length * 4 * 9)
    image = data.reshape(9, length, 4)[:, :37]
    x, y = RNG.integers(0, 45, 64), RNG.integers(0, 11, 64)
    selects = 6 | 5 << 3 | 4 << 6 | 1 << 9  # blue first
    words = resource(isa, "2D", "8_8_8_8_UNORM", data, 37, 9, pitch=length, selects=selects)
    state = done(instruction(isa, "image_load", "2D", "v[4:6]", 2, 0b1101), isa, data, words, {0: x, 1: y})
    assert state.status is Status.JUMP, state.fault()
    inside = (x < 37) & (y < 9)
    for register, channel in ((4, 2), (5, 0)):
        seen = image[np.minimum(y, 8), np.minimum(x, 36), channel].astype(np.float32) / 255
        np.testing.assert_array_equal(state.vgpr(register, np.float32), np.where(inside, seen, 0))
    np.testing.assert_array_equal(state.vgpr(6, np.float32), 1)


@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("name", ["1D", "3D", "1D_ARRAY", "2D_ARRAY"])
def test_other_dimensions(where: str, name: str) -> None:
    """Slices lie one after the other; of an array the view begins at its first slice."""
    isa = instruction_set(target(where), 64)
    height, first = (1, 1) if name == "1D_ARRAY" else (1, 0) if name == "1D" else (5, 2 if name == "2D_ARRAY" else 0)
    data = pixels(6 * height * 64 * 4)
    image = data.view(np.uint32).reshape(6, height, 64)
    slices = 1 if name == "1D" else 6
    x, y, z = RNG.integers(0, 70, 64), RNG.integers(0, height + 1, 64), RNG.integers(0, 7, 64)
    words = resource(isa, name, "32_UINT", data, 64, height, slices, first=first)
    vgprs = {"1D": (x,), "3D": (x, y, z), "1D_ARRAY": (x, z), "2D_ARRAY": (x, y, z)}[name]
    state = done(instruction(isa, "image_load", name, "v4", len(vgprs), 1), isa, data, words, dict(enumerate(vgprs)))
    assert state.status is Status.JUMP, state.fault()
    line = y if len(vgprs) == 3 else np.zeros(64, int)
    layer = z if name != "1D" else np.zeros(64, int)
    count = slices - first
    inside = (x < 64) & (line < height) & (layer < count)
    seen = image[np.minimum(layer + first, 5), np.minimum(line, height - 1), np.minimum(x, 63)]
    np.testing.assert_array_equal(state.vgpr(4), np.where(inside, seen, 0))


@pytest.mark.parametrize("where", TARGETS)
def test_stores(where: str) -> None:
    """A whole element is written: components that dmask leaves out become 0, on RDNA 4 as the first one; lanes outside
    write nothing."""
    isa = instruction_set(target(where), 64)
    data = pixels(64 * 4 * 2)
    before = data.copy()
    x, y = RNG.permutation(64) + 10, LANES.astype(int) % 2
    red, blue = RNG.random((2, 64)).astype(np.float32)
    words = resource(isa, "2D", "8_8_8_8_UNORM", data, 64, 2)
    state = done(instruction(isa, "image_store", "2D", "v[4:5]", 2, 0b0101), isa, data, words,
                 {0: x, 1: y, 4: red.view(np.uint32), 5: blue.view(np.uint32)}, exec_mask=0x0FFF_FFFF_FFFF_FFF0)
    assert state.status is Status.JUMP, state.fault()
    expected = before.reshape(2, 64, 4)
    for lane in range(4, 60):
        if x[lane] < 64:
            pair = np.rint(np.array([red[lane], blue[lane]], np.float64) * 255)
            missing = pair[0] if where == "gfx1201" else 0
            expected[y[lane], x[lane]] = pair[0], missing, pair[1], missing
    np.testing.assert_array_equal(data.reshape(2, 64, 4), expected)


@pytest.mark.parametrize("where", TARGETS)
def test_sixteen_bits(where: str) -> None:
    isa = instruction_set(target(where), 64)
    data = pixels(64 * 4)
    data.view(np.float16)[:] = RNG.normal(0, 10, 128).astype(np.float16)
    words = resource(isa, "1D", "16_16_FLOAT", data, 64)
    place = "v[4:5]" if where == "gfx803" else "v4"  # which packs nothing
    state = done(instruction(isa, "image_load", "1D", place, 1, 3, "d16"), isa, data, words, {0: LANES[::-1].copy()})
    assert state.status is Status.JUMP, state.fault()
    if where == "gfx803":
        halves = data.view(np.uint16).reshape(64, 2)[::-1]
        np.testing.assert_array_equal(np.stack([state.vgpr(4), state.vgpr(5)], 1), halves)
        return
    np.testing.assert_array_equal(state.vgpr(4), data.view(np.uint32)[::-1])


@pytest.mark.parametrize("where", TARGETS)
@pytest.mark.parametrize("bits", [32, 64])
def test_atomics(where: str, bits: int) -> None:
    """The old value where glc is set, 0 outside."""
    isa = instruction_set(target(where), 64)
    data = pixels(64 * 8)
    kind = np.uint32 if bits == 32 else np.uint64
    old = data[: 32 * bits // 8].view(kind).copy()
    x = LANES.astype(int) % 40
    given = RNG.integers(0, 1 << 60, 64, dtype=np.uint64).astype(kind)
    words = resource(isa, "1D", f"{'32_' * (bits // 32)}UINT", data, 32)
    registers = {4: given.astype(np.uint64) & np.uint64(0xFFFFFFFF), 5: given.astype(np.uint64) >> np.uint64(32)}
    name, text = "image_atomic_add", "v4" if bits == 32 else "v[4:5]"
    name, returned = (f"{name}_uint", "th:TH_ATOMIC_RETURN") if where == "gfx1201" else (name, "glc")
    state = done(instruction(isa, name, "1D", text, 1, 1 if bits == 32 else 3, returned), isa, data, words,
                 {0: x, **registers})
    assert state.status is Status.JUMP, state.fault()
    total = old.copy()
    for lane in range(64):
        seen = total[x[lane]] if x[lane] < 32 else kind(0)
        assert int(state.vgpr(4)[lane]) | (int(state.vgpr(5)[lane]) << 32 if bits == 64 else 0) == int(seen)
        if x[lane] < 32:
            total[x[lane] : x[lane] + 1] += given[lane]
    np.testing.assert_array_equal(data[: 32 * bits // 8].view(kind), total)


@pytest.mark.parametrize("where", TARGETS)
def test_levels_that_there_are_not_are_outside(where: str) -> None:
    isa = instruction_set(target(where), 64)
    data = pixels(256)
    words = resource(isa, "1D", "32_UINT", data, 64)
    level = LANES.astype(int) % 2
    state = done(instruction(isa, "image_load_mip", "1D", "v4", 2, 1), isa, data, words, {0: LANES, 1: level})
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(4), np.where(level, 0, data.view(np.uint32)[:64]))


@pytest.mark.parametrize("where", TARGETS)
def test_sizes(where: str) -> None:
    """Width, height, slices of the view, and levels; of a level that there is not only the number of levels."""
    isa = instruction_set(target(where), 64)
    data = pixels(256)
    words = resource(isa, "2D_ARRAY", "32_UINT", data, 64, 5, 7, first=2)
    level = LANES.astype(int) % 3
    state = done(instruction(isa, "image_get_resinfo", "2D_ARRAY", "v[4:7]", 1, 15), isa, data, words, {0: level})
    assert state.status is Status.JUMP, state.fault()
    for register, size in ((4, 64), (5, 5), (6, 5)):
        np.testing.assert_array_equal(state.vgpr(register), np.where(level == 0, size, 0))
    np.testing.assert_array_equal(state.vgpr(7), 1)


@pytest.mark.parametrize(("where", "name"), [("gfx1030", "image_atomic_fmax"), ("gfx1201", "image_atomic_max_flt")])
def test_float_atomics(where: str, name: str) -> None:
    """A signalling NaN in memory wins in IEEE mode; on RDNA 4 numbers win."""
    isa = instruction_set(target(where), 64)
    data = pixels(256)
    data.view(np.uint32)[:4] = 0x3F800000, 0x7F800001, 0x7FC00000, 0x80000000
    words = resource(isa, "1D", "32_UINT", data, 64)
    given = np.resize(np.array([0x40000000, 0x40000000, 0x40000000, 0], np.uint32), 64)
    done(instruction(isa, name, "1D", "v4", 1, 1), isa, data, words, {0: LANES, 4: given}, exec_mask=15)
    signalling = 0x40000000 if where == "gfx1201" else 0x7FC00001
    assert data.view(np.uint32)[:4].tolist() == [0x40000000, signalling, 0x40000000, 0]


def test_coordinates_of_sixteen_bits() -> None:
    isa = instruction_set(target("gfx1030"), 32)
    data = pixels(256 * 4)
    words = resource(isa, "2D", "32_UINT", data, 64, 4)
    x, y = RNG.integers(0, 64, 64), RNG.integers(0, 4, 64)
    state = done(instruction(isa, "image_load", "2D", "v4", 1, 1, "a16"), isa, data, words, {0: x | y << 16})
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(4), data.view(np.uint32).reshape(4, 64)[y, x][:32])


@pytest.mark.parametrize(("where", "more", "width"), [
    *((where, more, 64) for where in TARGETS for more in (3 << 20, 1 << 16)), ("gfx1201", 0, 63),
])
def test_what_is_not_known_is_refused_when_it_is_met(where: str, more: int, width: int) -> None:
    """Tiled; with two levels; of rows whose length nothing says."""
    isa = instruction_set(target(where), 64)
    data = pixels(256 * 4)
    words = resource(isa, "2D", "32_UINT", data, width, 4, more=more)
    state = done(instruction(isa, "image_load", "2D", "v4", 2, 1), isa, data, words, {0: LANES, 1: LANES * 0})
    assert state.status is Status.FAULT and state.fault() == (Fault.SURFACE, 0, SurfaceRefusal.IMAGE)


@pytest.mark.parametrize(("dim", "name"), [("1D", "1D_ARRAY"), ("2D_ARRAY", "2D"), ("2D", "CUBE")])
def test_arrays_have_to_be_declared_up_to_gfx9(dim: str, name: str) -> None:
    isa = instruction_set(target("gfx90a"), 64)
    data = pixels(256 * 4)
    words = resource(isa, name, "32_UINT", data, 64)
    state = done(instruction(isa, "image_load", dim, "v4", 1, 1), isa, data, words, {0: LANES, 1: LANES * 0})
    assert state.status is Status.FAULT and state.fault() == (Fault.SURFACE, 0, SurfaceRefusal.IMAGE)


def test_packed_texels_are_refused_by_name() -> None:
    isa = instruction_set(target("gfx90a"), 64)
    with pytest.raises(Unsupported, match="use image_load and image_store, or buffers"):
        run([isa.parse("image_load_pck v4, v0, s[0:7] dmask:0x1 unorm")], isa=isa)


def test_coordinates_that_no_operand_names_are_read() -> None:
    """Up to gfx9: three and a level; with a sampler as many as there may be."""
    isa = instruction_set(target("gfx90a"), 64)
    load = isa.parse("image_load v4, v8, s[0:7] dmask:0x1 unorm")
    assert [i for i in range(256) if load.reads.vgpr >> i & 1] == [8, 9, 10, 11]
    sample = isa.parse("image_sample v4, v8, s[0:7], s[8:11] dmask:0x1")
    assert [i for i in range(256) if sample.reads.vgpr >> i & 1] == [*range(8, 21)]
    last = isa.parse("image_load v4, v254, s[0:7] dmask:0x1 unorm")
    assert [i for i in range(256) if last.reads.vgpr >> i & 1] == [254, 255]
