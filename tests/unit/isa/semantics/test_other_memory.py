"""Flat, scratch, buffer and scalar memory; and accesses that are caught."""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, PARTIAL, PRIVATE, RNG, SHARED, lanes_of, memory, pair
from waves import FULL, ISA, run

from luthier_py.emulator.records.layout import Fault, Status
from luthier_py.isa import sgpr, vgpr


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
    state = run(
        [
            ISA.make("scratch_store_dwordx4", "off", vgpr(4, 4), sgpr(4), offset=16),
            ISA.make("scratch_load_dwordx2", vgpr(8, 2), "off", sgpr(4), offset=20),
            ISA.make("scratch_store_dwordx4", vgpr(0), vgpr(4, 4), "off", offset=64),
            ISA.make("scratch_load_dwordx4", vgpr(10, 4), vgpr(0), "off", offset=64),
            ISA.make("scratch_load_ubyte", vgpr(14), vgpr(0), "off", offset=65),
        ],
        vgprs={0: place, **{4 + w: values[w] for w in range(4)}},
        sgprs={4: 16},
        scratch_bytes=256,
        exec_mask=PARTIAL,
    )
    assert state.status is Status.JUMP, state.fault()
    active = lanes_of(PARTIAL)
    np.testing.assert_array_equal(state.vgpr(8)[active], values[1][active])
    np.testing.assert_array_equal(state.vgpr(9)[active], values[2][active])
    for word in range(4):
        np.testing.assert_array_equal(state.vgpr(10 + word)[active], values[word][active])
    np.testing.assert_array_equal(state.vgpr(14)[active], (values[0] >> 8 & 0xFF)[active])


FLOAT32 = 7 << 12 | 4 << 15  # the format; without one, nothing is bound


def resource(base, records, stride=0, flags=FLOAT32):
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
    inside = LANES * 8 + 8 + 4 <= 300  # the scalar offset is not looked at
    np.testing.assert_array_equal(state.vgpr(4), np.where(inside, words[(LANES.astype(int) * 2 + 3) % 256], 0))
    assert set(state.vgpr(6)) == {words[4]} and set(state.vgpr(7)) == {words[5]}
    stored = LANES * 8 + 4 <= 300
    expected = before.view(np.uint32).copy()
    expected[np.flatnonzero(stored) * 2] = (LANES[stored] * 8 + 1).astype(np.uint32)
    np.testing.assert_array_equal(data.view(np.uint32), expected)


@pytest.mark.parametrize("mask", [FULL, PARTIAL])
def test_raw_buffers_are_checked_dword_by_dword(mask):
    """"Load/store-Dword-x{2,3,4} ... range-check per component" (CDNA 3 ISA, 9.1.5.1); the address is overwritten."""
    data = RNG.integers(1, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    before, stored = data.copy(), RNG.integers(1, 1 << 32, (4, 64), dtype=np.uint64).astype(np.uint32)
    offsets = (LANES * 4).astype(np.uint32)
    state = run([ISA.make("buffer_load_dwordx4", vgpr(0, 4), vgpr(0), sgpr(4, 4), 0, offen=True),
                 ISA.make("buffer_store_dwordx3", vgpr(10, 3), vgpr(8), sgpr(4, 4), 0, offen=True, offset=128)],
                vgprs={0: offsets, 8: offsets, **{10 + word: stored[word] for word in range(4)}},
                sgprs=resource(data.ctypes.data, 160), memory=[data], exec_mask=mask)
    assert state.status is Status.JUMP, state.fault()
    active = lanes_of(mask)
    places = np.arange(64)
    for word in range(4):
        inside = places + word < 40
        expected = np.where(inside, before[np.minimum(places + word, 63)], 0)
        np.testing.assert_array_equal(state.vgpr(word)[active], expected[active])
    expected = before.copy()
    for lane in places[active]:
        for word in range(3):
            if 32 + lane + word < 40:
                expected[32 + lane + word] = stored[word][lane]
    np.testing.assert_array_equal(data[40:], before[40:])
    settled = [place for place in range(40) if sum(0 <= place - 32 - lane < 3 for lane in places[active]) <= 1]
    np.testing.assert_array_equal(data[settled], expected[settled])


def test_an_atomic_out_of_range_is_dropped_and_returns_0():
    data = np.arange(1, 65, dtype=np.uint64)
    state = run([ISA.make("buffer_atomic_add_x2", vgpr(2, 2), vgpr(0), sgpr(4, 4), 0, offen=True, glc=True)],
                vgprs={0: (LANES * 8).astype(np.uint32), 2: np.full(64, 7, np.uint64)},
                sgprs=resource(data.ctypes.data, 84), memory=[data])
    inside = np.arange(64) < 10
    np.testing.assert_array_equal(data, np.arange(1, 65) + np.where(inside, 7, 0))
    np.testing.assert_array_equal(state.vgpr(2, np.uint64), np.where(inside, np.arange(1, 65), 0))


def test_structured_buffers_and_atomics():
    data = np.zeros(256, np.uint32)
    index = (LANES % 40).astype(np.uint32)
    sgprs = resource(data.ctypes.data, 32, stride=16)
    state = run(
        [
            ISA.make("buffer_atomic_add", vgpr(1), vgpr(0), sgpr(4, 4), 0, idxen=True, offset=4),
            ISA.make("buffer_load_dword", vgpr(2), vgpr(4, 2), sgpr(4, 4), 0, idxen=True, offen=True),
        ],
        vgprs={0: index, 1: LANES.astype(np.uint32), 4: index.astype(np.uint64) | np.uint64(4 << 32)},
        sgprs=sgprs,
        memory=[data],
    )
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
    code = [
        ISA.make("s_load_dwordx16", sgpr(16, 16), sgpr(0, 2), 32),
        ISA.make("s_load_dword", sgpr(40), sgpr(0, 2), sgpr(2)),
        ISA.make("s_load_dwordx2", sgpr(42, 2), sgpr(0, 2), 4),
        ISA.make("s_buffer_load_dwordx4", sgpr(44, 4), sgpr(4, 4), 24),
        ISA.make("s_buffer_load_dword", sgpr(48), sgpr(4, 4), 64),
    ]
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
    fine = run(
        [ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")],
        vgprs={0: address},
        memory=[data],
        exec_mask=FULL & ~(1 << lane),
    )
    assert fine.status is Status.JUMP, "a lane that is off may hold any address"


def test_neighbours_do_not_hide_an_overrun():
    """Two buffers: an access past the first is a fault though the second is close."""
    arena = memory(4096)
    first, second = arena[:512], arena[1024:2048]
    address = LANES * 4 + np.uint64(first.ctypes.data + 300)
    state = run([ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")], vgprs={0: address}, memory=[first, second])
    assert state.status is Status.FAULT and state.fault()[1] == 53
    mixed = np.where(LANES % 2 == 0, first.ctypes.data, second.ctypes.data) + LANES * 4
    state = run(
        [ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")],
        vgprs={0: mixed.astype(np.uint64)},
        memory=[first, second],
    )
    assert state.status is Status.JUMP, "lanes may be in different buffers"


def test_scratch_and_atomic_faults():
    far = np.full(64, 253, np.uint32)
    state = run([ISA.make("scratch_load_dword", vgpr(4), vgpr(0), "off")], vgprs={0: far}, scratch_bytes=256)
    assert state.fault()[0] == Fault.SCRATCH
    data = memory(256)
    crooked = LANES * 4 + np.uint64(data.ctypes.data + 2)
    state = run([ISA.make("global_atomic_add", vgpr(0, 2), vgpr(2), "off")], vgprs={0: crooked}, memory=[data])
    assert state.fault()[0] == Fault.MISALIGNED
    state = run(
        [ISA.make("global_load_dword", vgpr(4), vgpr(0, 2), "off")], vgprs={0: crooked}, memory=[data], exec_mask=1
    )
    assert state.status is Status.JUMP, "plain loads need no alignment"


@pytest.mark.parametrize("exec_mask", (FULL, 0x0123_4567_89AB_CDEF, 1 << 63, 0))
@pytest.mark.parametrize("dwords", (1, 2, 4))
def test_scratch_offsets_that_differ(dwords: int, exec_mask: int) -> None:
    """Each lane stores and loads at a place of its own: all at whole words; then one lane between words."""
    lanes, suffix = np.arange(64, dtype=np.uint32), {1: "", 2: "x2", 4: "x4"}[dwords]
    active = np.array([exec_mask >> lane & 1 for lane in range(64)], bool)
    for odd in (0, 2):
        offsets = (lanes * 7 % 13 * 4 + odd * (lanes == 63)).astype(np.uint32)
        values = {4 + word: lanes * 5 + 1000 * word for word in range(dwords)}
        before = {12 + word: lanes + 77 for word in range(dwords)}
        code = [ISA.make(f"scratch_store_dword{suffix}", vgpr(0), vgpr(4, dwords), "off", offset=8),
                ISA.make(f"scratch_load_dword{suffix}", vgpr(12, dwords), vgpr(0), "off", offset=8)]
        state = run(code, vgprs={0: offsets, **values, **before}, exec_mask=exec_mask, scratch_bytes=128)
        assert state.status is Status.JUMP
        memory = np.zeros((64, 128), np.uint8)
        for lane in lanes[active]:
            words = np.array([values[4 + word][lane] for word in range(dwords)], np.uint32)
            memory[lane, 8 + offsets[lane] :][: 4 * dwords] = words.view(np.uint8)
        found = state.scratch.view(np.uint32)[: 32 * 64].reshape(32, 64).T
        assert np.array_equal(np.ascontiguousarray(found).view(np.uint8).reshape(64, 128), memory)
        for word in range(dwords):
            assert np.array_equal(state.vgpr(12 + word), np.where(active, values[4 + word], before[12 + word]))


@pytest.mark.parametrize("beyond", (0, 1, 4, 1 << 31))
@pytest.mark.parametrize("lane", (0, 17, 63))
def test_one_lane_outside_of_scratch(lane: int, beyond: int) -> None:
    """Where each lane has a place of its own; the last place inside is none."""
    offsets = np.arange(64, dtype=np.uint32) * 4 * 5 % 60
    offsets[lane] = np.uint32(60 + beyond)
    state = run([ISA.make("scratch_load_dword", vgpr(4), vgpr(0), "off")], vgprs={0: offsets}, scratch_bytes=64)
    assert state.status is (Status.FAULT if beyond else Status.JUMP)
    if beyond:  # a word that lies across two is read byte by byte
        assert state.fault() == (Fault.SCRATCH, lane, max(60 + beyond, 64))
    else:
        assert not state.vgpr(4).any()
