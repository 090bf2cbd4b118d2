"""Transposed loads, blocks of registers, copies between memory and LDS, direct loads: against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, RNG
from waves import run

from luthier_py.base.errors import Unsupported
from luthier_py.emulator.records.layout import Fault, Status, SurfaceRefusal
from luthier_py.isa import instruction_set, sgpr, target, vgpr


def columns(matrix: np.ndarray) -> np.ndarray:
    """What each of 32 lanes gets: half a column, of the lower rows first."""
    return np.stack([matrix[lane // 16 * 8 : lane // 16 * 8 + 8, lane % 16] for lane in range(32)])


def test_sixteen_bits_are_transposed() -> None:
    """As measured on gfx1250: lanes in groups of eight give and get 8 x 8 elements, at any stride."""
    isa = instruction_set(target("gfx1250"), 32)
    stride = 24
    memory = RNG.integers(0, 1 << 16, (16, stride)).astype(np.uint16)
    row, half = LANES % 8 + LANES // 16 * 8, LANES // 8 % 2
    offsets = (row * stride * 2 + half * 16).astype(np.uint32)
    lds = np.ascontiguousarray(memory).view(np.uint8).reshape(-1).copy()
    base = memory.ctypes.data
    state = run([isa.make("global_load_tr16_b128", vgpr(4, 4), vgpr(0), sgpr(0, 2)),
                 isa.make("ds_load_tr16_b128", vgpr(8, 4), vgpr(0))], isa=isa, memory=[memory], lds=lds,
                vgprs={0: offsets}, sgprs={0: base & 0xFFFFFFFF, 1: base >> 32})
    assert state.status is Status.JUMP, state.fault()
    expected = columns(memory[:, :16])
    for first in (4, 8):
        found = np.stack([state.vgpr(first + word) for word in range(4)], 1)
        np.testing.assert_array_equal(np.ascontiguousarray(found).view(np.uint16), expected)


@pytest.mark.parametrize("where", ["gfx1201", "gfx1250"])
def test_bytes_are_transposed(where: str) -> None:
    """Lanes 0 to 3 and 8 to 11 give the upper rows' left halves (Triton: ds_load_tr8_b64)."""
    isa = instruction_set(target(where), 32)
    memory = RNG.integers(0, 256, (16, 16)).astype(np.uint8)
    row, half = LANES % 4 + LANES // 8 * 4, LANES // 4 % 2
    offsets = ((row * 16 + half * 8) % 256).astype(np.uint32)
    base = memory.ctypes.data
    name = "global_load_tr8_b64" if where == "gfx1250" else "global_load_tr_b64"
    state = run([isa.make(name, vgpr(4, 2), vgpr(0), sgpr(0, 2))], isa=isa, memory=[memory], vgprs={0: offsets},
                sgprs={0: base & 0xFFFFFFFF, 1: base >> 32})
    assert state.status is Status.JUMP, state.fault()
    found = np.ascontiguousarray(np.stack([state.vgpr(4), state.vgpr(5)], 1)).view(np.uint8)
    np.testing.assert_array_equal(found, columns(memory))
    sources = [int(memory[k, 2]) for k in range(8)]  # of lane 2: element 2 of S0-S3, then of S8-S11
    assert found[2].tolist() == sources


def test_six_bits_are_transposed() -> None:
    """gfx950: each of 16 lanes gives a row of 16 elements, which lies at multiples of 16 bytes."""
    isa = instruction_set(target("gfx950"), 64)
    matrix = RNG.integers(0, 64, (4, 16, 16))
    lds = np.zeros(64 * 16, np.uint8)
    for lane in range(64):
        whole = sum(int(element) << 6 * k for k, element in enumerate(matrix[lane // 16, lane % 16]))
        lds[16 * lane : 16 * lane + 12] = np.frombuffer(whole.to_bytes(12, "little"), np.uint8)
    state = run([isa.make("ds_read_b96_tr_b6", vgpr(4, 3), vgpr(0))], isa=isa, lds=lds,
                vgprs={0: (LANES * 16).astype(np.uint32)})
    assert state.status is Status.JUMP, state.fault()
    for lane in range(64):
        whole = sum(int(state.vgpr(4 + word)[lane]) << 32 * word for word in range(3))
        assert [whole >> 6 * k & 63 for k in range(16)] == matrix[lane // 16, :, lane % 16].tolist()


def test_wave64_is_refused_by_name() -> None:
    isa = instruction_set(target("gfx1201"), 64)
    with pytest.raises(Unsupported, match="global_load_tr_b64: which part of a tile each of 64 lanes loads"):
        run([isa.make("global_load_tr_b64", vgpr(4), vgpr(0, 2), "off")], isa=isa)


@pytest.mark.parametrize("space", ["global", "scratch"])
def test_blocks(space: str) -> None:
    """Registers that M0 leaves out keep their place in memory, and what they hold; the address is one of them."""
    isa = instruction_set(target("gfx1201"), 32)
    chosen = 0x8000F5A1
    values = RNG.integers(0, 1 << 32, (32, 64), dtype=np.uint64).astype(np.uint32)
    data = np.zeros((64, 32), np.uint32)
    places = (LANES * 128 if space == "global" else LANES * 0).astype(np.uint32)
    base = data.ctypes.data
    address = ("off",) if space == "scratch" else (sgpr(0, 2),)
    first = vgpr(0)
    state = run([isa.make(f"{space}_store_block", first, vgpr(4, 32), *address),
                 isa.make(f"{space}_load_block", vgpr(36, 32), first, *address)], isa=isa, memory=[data],
                scratch_bytes=256, vgprs={0: places, **{4 + k: values[k] for k in range(32)},
                                          **{36 + k: np.full(64, k, np.uint32) for k in range(32)}},
                sgprs={0: base & 0xFFFFFFFF, 1: base >> 32, 124: chosen}, exec_mask=0x0FF0FFF1)
    assert state.status is Status.JUMP, state.fault()
    active = [lane for lane in range(32) if 0x0FF0FFF1 >> lane & 1]
    for number in range(32):
        loaded = state.vgpr(36 + number)
        expected = np.full(32, number, np.uint32)
        if chosen >> number & 1:
            expected[active] = values[number][active]
        np.testing.assert_array_equal(loaded[:32], expected)
        if space == "global":
            stored = np.where(np.isin(LANES[:32], active) & bool(chosen >> number & 1), values[number][:32], 0)
            np.testing.assert_array_equal(data[:32, number], stored)


@pytest.mark.parametrize("bits", [8, 32, 64, 128])
def test_copies_to_lds_and_back(bits: int) -> None:
    """gfx1250: each lane has an address on both sides, to which the offset is added."""
    isa = instruction_set(target("gfx1250"), 32)
    size = bits // 8
    data, lds = RNG.integers(0, 256, 2048).astype(np.uint8), np.zeros(2048, np.uint8)
    before, back = data.copy(), np.zeros(2048, np.uint8)
    there, local = RNG.permutation(64) * 16, RNG.permutation(64) * 16
    bases = data.ctypes.data, back.ctypes.data
    state = run([isa.make(f"global_load_async_to_lds_b{bits}", vgpr(1), vgpr(0), sgpr(0, 2), offset=32),
                 isa.make(f"global_store_async_from_lds_b{bits}", vgpr(0), vgpr(1), sgpr(2, 2), offset=32)],
                isa=isa, memory=[data, back], lds=lds,
                vgprs={0: there.astype(np.uint32), 1: local.astype(np.uint32)},
                sgprs={0: bases[0] & 0xFFFFFFFF, 1: bases[0] >> 32, 2: bases[1] & 0xFFFFFFFF, 3: bases[1] >> 32})
    assert state.status is Status.JUMP, state.fault()
    expected, returned = np.zeros(2048, np.uint8), np.zeros(2048, np.uint8)
    for lane in range(32):
        piece = before[there[lane] + 32 : there[lane] + 32 + size]
        expected[local[lane] + 32 : local[lane] + 32 + size] = piece
        returned[there[lane] + 32 : there[lane] + 32 + size] = piece
    np.testing.assert_array_equal(lds, expected)
    np.testing.assert_array_equal(back, returned)


DIRECT = {0: ("u1", 1), 1: ("u2", 2), 2: ("u4", 4), 4: ("i1", 1), 5: ("i2", 2)}


@pytest.mark.parametrize("where,size", [("gfx1100", 64), ("gfx1151", 32), ("gfx1201", 32)])
@pytest.mark.parametrize("kind", DIRECT)
def test_direct_loads(where: str, size: int, kind: int) -> None:
    """One element of LDS, to all lanes of quads in which one is active (RDNA 3.5 ISA, 12.4)."""
    isa = instruction_set(target(where), size)
    name = "ds_direct_load" if where == "gfx1201" else "lds_direct_load"
    lds = RNG.integers(128, 256, 64).astype(np.uint8)
    type, bytes = DIRECT[kind]
    state = run([isa.make(name, vgpr(2))], isa=isa, lds=lds, vgprs={2: np.full(64, 77, np.uint32)},
                sgprs={124: 20 | kind << 16}, exec_mask=0x0000_0000_0001_0120)
    assert state.status is Status.JUMP, state.fault()
    value = int(lds[20 : 20 + bytes].view(type)[0]) & 0xFFFFFFFF
    expected = np.where(np.isin(LANES // 4, (1, 2, 4)), value, 77)[:size]
    np.testing.assert_array_equal(state.vgpr(2), expected)


def test_a_data_type_that_there_is_not_is_refused() -> None:
    isa = instruction_set(target("gfx1100"), 64)
    state = run([isa.make("lds_direct_load", vgpr(2))], isa=isa, lds=np.zeros(64, np.uint8), sgprs={124: 3 << 16})
    assert state.status is Status.FAULT and state.fault() == (Fault.SURFACE, 0, SurfaceRefusal.DATA_TYPE)
