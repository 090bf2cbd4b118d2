"""Images in memory row after row, without a sampler: against NumPy's indexing."""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, RNG
from waves import State, run

from luthier_py.emulator.layout import Fault, Status, SurfaceRefusal
from luthier_py.errors import Unsupported
from luthier_py.isa import Inst, InstructionSet, instruction_set, target

TARGETS = ("gfx1030", "gfx1100", "gfx1151")
IDENTITY = 4 | 5 << 3 | 6 << 6 | 7 << 9
TYPES = {"1D": 8, "2D": 9, "3D": 10, "CUBE": 11, "1D_ARRAY": 12, "2D_ARRAY": 13}
GFX10 = {"32_UINT": 20, "8_8_8_8_UNORM": 56, "16_16_FLOAT": 29, "32_32_UINT": 62}
GFX11 = {"32_UINT": 20, "8_8_8_8_UNORM": 42, "16_16_FLOAT": 29, "32_32_UINT": 48}


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
    code = GFX11[format] if generation == 11 else GFX10[format]
    words[1] |= code << 20 | (width - 1 & 3) << 30
    words[2] = width - 1 >> 2 | height - 1 << 14
    words[4] = pitch - 1 if name in ("1D", "2D") and pitch else slices - 1 | first << 16
    return dict(enumerate(words))


def instruction(isa: InstructionSet, name: str, dim: str, data: str, count: int, dmask: int, more: str = "") -> Inst:
    address = f"v[0:{count - 1}]" if count > 1 else "v0"
    return isa.parse(f"{name} {data}, {address}, s[0:7] dmask:{dmask:#x} dim:SQ_RSRC_IMG_{dim} unorm {more}")


def done(inst: Inst, isa: InstructionSet, data: np.ndarray, words: dict[int, int], vgprs: dict, **more) -> State:
    padded = {index: np.asarray(values, np.uint32) for index, values in vgprs.items()}
    return run([inst], isa=isa, memory=[data], sgprs=words, vgprs=padded, **more)


@pytest.mark.parametrize("where", TARGETS)
def test_two_dimensions(where: str) -> None:
    """Rows longer than what is seen; outside is 0, but for what is always 1; components by dmask."""
    isa = instruction_set(target(where), 64)
    data = pixels(40 * 4 * 9)
    image = data.reshape(9, 40, 4)[:, :37]
    x, y = RNG.integers(0, 45, 64), RNG.integers(0, 11, 64)
    selects = 6 | 5 << 3 | 4 << 6 | 1 << 9  # blue first
    words = resource(isa, "2D", "8_8_8_8_UNORM", data, 37, 9, pitch=40, selects=selects)
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
    """A whole element is written: components that dmask leaves out become 0; lanes outside write nothing."""
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
            expected[y[lane], x[lane]] = pair[0], 0, pair[1], 0
    np.testing.assert_array_equal(data.reshape(2, 64, 4), expected)


@pytest.mark.parametrize("where", TARGETS)
def test_sixteen_bits(where: str) -> None:
    isa = instruction_set(target(where), 64)
    data = pixels(64 * 4)
    data.view(np.float16)[:] = RNG.normal(0, 10, 128).astype(np.float16)
    words = resource(isa, "1D", "16_16_FLOAT", data, 64)
    state = done(instruction(isa, "image_load", "1D", "v4", 1, 3, "d16"), isa, data, words, {0: LANES[::-1].copy()})
    assert state.status is Status.JUMP, state.fault()
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
    state = done(instruction(isa, name, "1D", text, 1, 1 if bits == 32 else 3, "glc"), isa, data, words,
                 {0: x, **registers})
    assert state.status is Status.JUMP, state.fault()
    total = old.copy()
    for lane in range(64):
        seen = total[x[lane]] if x[lane] < 32 else kind(0)
        assert int(state.vgpr(4)[lane]) | (int(state.vgpr(5)[lane]) << 32 if bits == 64 else 0) == int(seen)
        if x[lane] < 32:
            total[x[lane] : x[lane] + 1] += given[lane]
    np.testing.assert_array_equal(data[: 32 * bits // 8].view(kind), total)


def test_levels_that_there_are_not_are_outside() -> None:
    isa = instruction_set(target("gfx1100"), 32)
    data = pixels(256)
    words = resource(isa, "1D", "32_UINT", data, 64)
    level = LANES.astype(int) % 2
    state = done(instruction(isa, "image_load_mip", "1D", "v4", 2, 1), isa, data, words, {0: LANES, 1: level})
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(4), np.where(level[:32], 0, data.view(np.uint32)[:32]))


def test_coordinates_of_sixteen_bits() -> None:
    isa = instruction_set(target("gfx1030"), 32)
    data = pixels(256 * 4)
    words = resource(isa, "2D", "32_UINT", data, 64, 4)
    x, y = RNG.integers(0, 64, 64), RNG.integers(0, 4, 64)
    state = done(instruction(isa, "image_load", "2D", "v4", 1, 1, "a16"), isa, data, words, {0: x | y << 16})
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(4), data.view(np.uint32).reshape(4, 64)[y, x][:32])


@pytest.mark.parametrize("more,width", [(3 << 20, 64), (1 << 16, 64), (0, 63)])
def test_what_is_not_known_is_refused_when_it_is_met(more: int, width: int) -> None:
    """Tiled; with two levels; of rows whose length nothing says."""
    isa = instruction_set(target("gfx1100"), 32)
    data = pixels(256 * 4)
    words = resource(isa, "2D", "32_UINT", data, width, 4, more=more)
    state = done(instruction(isa, "image_load", "2D", "v4", 2, 1), isa, data, words, {0: LANES, 1: LANES * 0})
    assert state.status is Status.FAULT and state.fault() == (Fault.SURFACE, 0, SurfaceRefusal.IMAGE)


@pytest.mark.parametrize("where", ["gfx803", "gfx90a", "gfx1010", "gfx1201"])
def test_other_generations_are_refused_by_name(where: str) -> None:
    isa = instruction_set(target(where), 64)
    text = "image_load v4, v0, s[0:7] dmask:0x1"
    text += {"gfx803": " unorm", "gfx90a": " unorm",
             "gfx1010": " dim:SQ_RSRC_IMG_1D unorm", "gfx1201": " dim:SQ_RSRC_IMG_1D"}[where]
    with pytest.raises(Unsupported, match="use buffers or global memory"):
        run([isa.parse(text)], isa=isa)
