"""Which bytes of a buffer are in range, and where they are, on every generation: formulas of the manuals in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from memories import RNG
from waves import run

from luthier_py.emulator.records.layout import Fault, Status, SurfaceRefusal
from luthier_py.isa import instruction_set, sgpr, target, vgpr

FORMAT = 7 << 12 | 4 << 15
STRIDE, RECORDS = 16, 40
SCALAR = 8
LANES = np.arange(64)


def loaded(where: str, words: list[int], index: np.ndarray, offset: np.ndarray, data: np.ndarray, size: int = 64):
    """A dword for each lane, by index and offset."""
    isa = instruction_set(target(where), size)
    name = "buffer_load_b32" if isa.target.generation >= 11 else "buffer_load_dword"
    pairs = index.astype(np.uint64) | offset.astype(np.uint64) << np.uint64(32)
    state = run([isa.make(name, vgpr(4), vgpr(2, 2), sgpr(4, 4), sgpr(8), idxen=True, offen=True)], isa=isa,
                vgprs={2: pairs}, memory=[data], sgprs={**{4 + i: word for i, word in enumerate(words)}, 8: SCALAR})
    assert state.status is Status.JUMP, state.fault()
    return state.vgpr(4)


def resource(data: np.ndarray, records: int, last: int, stride: int = STRIDE, swizzle: int = 0) -> list[int]:
    base = data.ctypes.data
    return [base & 0xFFFFFFFF, base >> 32 | stride << 16 | swizzle << 30, records, last]


def expected(data: np.ndarray, places: np.ndarray, inside: np.ndarray) -> np.ndarray:
    return np.where(inside, data.view(np.uint32)[places // 4], 0)


@pytest.mark.parametrize("where", ["gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201"])
@pytest.mark.parametrize("check", [0, 1, 2, 3])
@pytest.mark.parametrize("stride", [STRIDE, 0])
@pytest.mark.parametrize("records", [RECORDS, 0])
def test_checks_of_rdna(where: str, check: int, stride: int, records: int) -> None:
    data = RNG.integers(1, 256, 4096).astype(np.uint8)
    index, offset = RNG.permutation(64), RNG.integers(0, 16, 64) * 4
    inside = {0: (index < records) & (offset + 4 <= stride), 1: index < records, 2: np.full(64, records != 0),
              3: offset + 4 <= records - SCALAR}[check]
    found = loaded(where, resource(data, records, FORMAT | check << 28, stride), index, offset, data)
    np.testing.assert_array_equal(found, expected(data, SCALAR + index * stride + offset, inside))


@pytest.mark.parametrize("where", ["gfx803", "gfx900", "gfx90a"])
@pytest.mark.parametrize("stride", [STRIDE, 0])
def test_records_and_bytes_before_rdna(where: str, stride: int) -> None:
    """gfx8 counts bytes unless the buffer is swizzled, less the scalar offset; gfx9 counts records."""
    data = RNG.integers(1, 256, 4096).astype(np.uint8)
    index, offset = RNG.permutation(64), RNG.integers(0, 16, 64) * 4
    if where == "gfx803":
        records = 400
        inside = index * stride + offset < records - SCALAR
    else:
        records = RECORDS
        inside = index < records if stride else offset < records
    found = loaded(where, resource(data, records, FORMAT, stride), index, offset, data)
    np.testing.assert_array_equal(found, expected(data, SCALAR + index * stride + offset, inside))


@pytest.mark.parametrize("where", ["gfx803", "gfx900", "gfx1030", "gfx1100", "gfx1201"])
def test_swizzled(where: str) -> None:
    """Groups of 16 records, elements of 4 bytes (gfx8 says so, and 8 here); RDNA 4 weaves the scalar offset in."""
    generation = target(where).generation
    element = 8 if generation == 8 else 4
    data = RNG.integers(1, 256, 8192).astype(np.uint8)
    index, offset = RNG.permutation(64), RNG.integers(0, 2, 64) * 4
    swizzle = 1 if generation >= 11 else 2
    last = FORMAT | 1 << 21 | (2 << 19 if generation == 8 else 0) | (1 << 28 if generation >= 10 else 0)
    woven = offset + (SCALAR if generation == 12 else 0)
    places = (index // 16 * STRIDE + woven // element * element) * 16 + index % 16 * element + woven % element
    places += 0 if generation == 12 else SCALAR
    found = loaded(where, resource(data, RECORDS, last, swizzle=swizzle), index, offset, data)
    np.testing.assert_array_equal(found, expected(data, places, index < RECORDS))


def test_large_elements_of_swizzled_buffers() -> None:
    """RDNA 3: 3 is for elements of 16 bytes, here in groups of 8 records."""
    data = RNG.integers(1, 256, 8192).astype(np.uint8)
    index, offset = RNG.permutation(64), RNG.integers(0, 8, 64) * 4
    places = (index // 8 * 32 + offset // 16 * 16) * 8 + index % 8 * 16 + offset % 16 + SCALAR
    found = loaded("gfx1100", resource(data, RECORDS, FORMAT | 1 << 28, 32, 3), index, offset, data)
    np.testing.assert_array_equal(found, expected(data, places, index < RECORDS))


def test_scaled_strides() -> None:
    data = RNG.integers(1, 256, 8192).astype(np.uint8)
    index, offset = RNG.permutation(64), RNG.integers(0, 8, 64) * 4
    for scale, factor in enumerate((1, 4, 8, 32)):
        words = resource(data, RECORDS, FORMAT | 1 << 28 | scale << 18, 2)
        found = loaded("gfx1201", words, index, offset, data)
        places = (SCALAR + index * 2 * factor + offset) & ~3
        exact = [int.from_bytes(data[at : at + 4].tobytes(), "little") for at in SCALAR + index * 2 * factor + offset]
        np.testing.assert_array_equal(found, np.where(index < RECORDS, exact, 0))
        assert len(set(places)) > 20


@pytest.mark.parametrize("where", ["gfx900", "gfx1100"])
def test_lanes_that_are_counted_in(where: str) -> None:
    """ADD_TID_ENABLE in a buffer that is not swizzled: the lane is part of the index (gfx9: see stride[17:14])."""
    isa = instruction_set(target(where), 64)
    name = "buffer_load_b32" if isa.target.generation >= 11 else "buffer_load_dword"
    data = RNG.integers(1, 1 << 32, 512, dtype=np.uint64).astype(np.uint32)
    last = 1 << 23 | (2 << 28 | FORMAT if isa.target.generation >= 10 else 0)
    state = run([isa.make(name, vgpr(4), "off", sgpr(4, 4), sgpr(8), offset=4)], isa=isa, memory=[data],
                sgprs={**{4 + i: word for i, word in enumerate(resource(data, 1, last, 32))}, 8: SCALAR})
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(4), data[LANES * 8 + 3])


def wide(data: np.ndarray, records: int, stride: int, scale: int = 0, swizzle: int = 0, check: int = 0) -> list[int]:
    whole = data.ctypes.data | records << 57 | stride << 108 | scale << 122 | swizzle << 124 | check << 125
    return [whole >> 32 * i & 0xFFFFFFFF for i in range(4)]


@pytest.mark.parametrize("check", [0, 1])
@pytest.mark.parametrize("scale,factor", [(0, 1), (1, 4), (2, 8)])
def test_wide_resources(check: int, scale: int, factor: int) -> None:
    """gfx1250: bytes are counted, from the base on; with the check of records offsets stay in theirs."""
    data = RNG.integers(1, 256, 4096).astype(np.uint8)
    index, offset = RNG.permutation(64), RNG.integers(0, 16, 64) * 4
    stride = 32
    place = SCALAR + index * stride + offset
    inside = place + 4 <= 1500
    if check:
        inside &= SCALAR + offset + 4 <= stride
    found = loaded("gfx1250", wide(data, 1500, stride // factor, scale, check=check), index, offset, data, 32)
    np.testing.assert_array_equal(found[:32], expected(data, place, inside)[:32])


def test_swizzled_wide_resources_are_refused() -> None:
    isa = instruction_set(target("gfx1250"), 32)
    data = np.zeros(64, np.uint32)
    words = wide(data, 256, 16, swizzle=1)
    state = run([isa.make("buffer_load_b32", vgpr(4), vgpr(2), sgpr(4, 4), "null", offen=True)], isa=isa, memory=[data],
                sgprs={4 + i: word for i, word in enumerate(words)})
    assert state.status is Status.FAULT and state.fault() == (Fault.SURFACE, 0, SurfaceRefusal.SWIZZLE)


@pytest.mark.parametrize("where,stride,bits", [("gfx1201", 0, 8), ("gfx1201", 4, 16), ("gfx1250", 0, 8)])
def test_scalar_loads_of_bytes_and_shorts(where: str, stride: int, bits: int) -> None:
    isa = instruction_set(target(where), 32)
    data = RNG.integers(0, 256, 64).astype(np.uint8)
    size = bits // 8
    limit = 10 * (stride or 1)
    words = wide(data, limit, 0) if isa.target.wide_resources else resource(data, 10, FORMAT, stride)
    places = range(0, 48, size)
    for letter in "ui":
        kind = np.dtype(f"{letter}{size}")
        code = [isa.make(f"s_buffer_load_{letter}{bits}", sgpr(20 + k), sgpr(4, 4), "null", offset=at)
                for k, at in enumerate(places)]
        state = run(code, isa=isa, memory=[data], sgprs={4 + i: word for i, word in enumerate(words)})
        assert state.status is Status.JUMP, state.fault()
        for k, at in enumerate(places):
            wanted = int(data[at : at + size].view(kind)[0]) & 0xFFFFFFFF if at + size <= limit else 0
            assert state.sgpr(20 + k) == wanted


@pytest.mark.parametrize("where", ["gfx803", "gfx90a"])
def test_from_lds_to_memory(where: str) -> None:
    """BUFFER_STORE_LDS_DWORD: each lane its own dword of LDS, to where the lanes that are counted in lead."""
    isa = instruction_set(target(where), 64)
    lds, data = RNG.integers(0, 256, 512).astype(np.uint8), np.zeros(256, np.uint32)
    words = {4 + i: word for i, word in enumerate(resource(data, 0, 1 << 23, 8))}
    state = run([isa.make("buffer_store_lds_dword", sgpr(4, 4), sgpr(8), offset=4, lds=True)], isa=isa, memory=[data],
                lds=lds, sgprs={**words, 8: 16, 124: 64})
    assert state.status is Status.JUMP, state.fault()
    wanted = np.zeros(256, np.uint32)
    wanted[(16 + 4) // 4 + LANES * 2] = lds[68 : 68 + 256].view(np.uint32)
    np.testing.assert_array_equal(data, wanted)


def test_private_memory_has_addresses_in_which_the_lane_stands() -> None:
    """gfx1250: (lane << 52) + src_flat_scratch_base + offset, also of another lane (LLVM, lowerADDRSPACECAST)."""
    isa = instruction_set(target("gfx1250"), 32)
    owner = (LANES ^ 1).astype(np.uint32)
    state = run([isa.make("v_mov_b32_e32", vgpr(2), "src_flat_scratch_base_lo"),
                 isa.make("v_mov_b32_e32", vgpr(3), "src_flat_scratch_base_hi"),
                 isa.make("v_lshl_add_u32", vgpr(3), vgpr(1), 20, vgpr(3)),
                 isa.make("flat_store_b32", vgpr(2, 2), vgpr(0), offset=8),
                 isa.make("scratch_load_b32", vgpr(4), "off", "off", offset=8),
                 isa.make("flat_load_b32", vgpr(5), vgpr(2, 2), offset=8)],
                isa=isa, vgprs={0: LANES.astype(np.uint32) + 100, 1: owner}, scratch_bytes=64)
    assert state.status is Status.JUMP, state.fault()
    np.testing.assert_array_equal(state.vgpr(4), (LANES[:32] ^ 1) + 100)
    np.testing.assert_array_equal(state.vgpr(5), LANES[:32] + 100)
