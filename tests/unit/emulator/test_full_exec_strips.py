"""Regions for waves whose lanes are all active and even: what lanes see of each other's stores, and what ends it.

Each kernel does its work several times over: the first time no memory was accessed, and nothing is known of it.
"""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from emulated import ISA, LANES, Bench, code_object

from luthier_py.base.errors import DeviceError
from luthier_py.isa import EXEC, VCC, sgpr, vgpr

TIMES = 3
WORDS = 2 * LANES + 8


def looped(*body):
    """``body`` TIMES over; s[0:1] and s[2:3] are the buffers, v1 is 4 * lane, and s10 counts."""
    return [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(1), 2, vgpr(0)),
        ("s_movk_i32", sgpr(10), 0), "again:", *body, ("s_add_u32", sgpr(10), sgpr(10), 1),
        ("s_cmp_lg_u32", sgpr(10), TIMES), ("s_cbranch_scc1", "again"), ("s_endpgm",),
    ]


def load(target, offset=0, address=1, base=0):
    return ISA.make("global_load_dword", vgpr(target), vgpr(address), sgpr(base, 2), offset=offset).raw


def store(source, offset=0, address=1, base=0):
    return ISA.make("global_store_dword", vgpr(address), vgpr(source), sgpr(base, 2), offset=offset).raw


def left(rows, *contents, others_write=False, **options):
    bench = Bench(*contents)
    bench.device.limits = replace(bench.device.limits, others_write=others_write)
    return [list(struct.unpack(f"<{len(data) // 4}I", data))
            for data in bench.run(code_object({"k": rows}, **options), "k").buffers]


def words(values):
    return struct.pack(f"<{len(values)}I", *values)


START = [3 * place + 1 for place in range(WORDS)]


@pytest.mark.parametrize("offset", [4, 64, 252, -4])
def test_a_store_where_other_lanes_have_loaded(offset):
    """Each loads before any stores: whatever is 16 lanes on, in the same strip, or beyond the wave."""
    shift = offset // 4
    base = max(-shift, 0)
    rows = looped(load(2, 4 * base), ("v_add_u32", vgpr(2), 5, vgpr(2)), store(2, 4 * base + offset))
    expected = START.copy()
    for _ in range(TIMES):
        given = expected.copy()
        for lane in range(LANES):
            expected[base + shift + lane] = given[base + lane] + 5
    assert left(rows, words(START), bytes(4))[0] == expected


def test_a_store_in_place():
    rows = looped(load(2), ("v_add_u32", vgpr(2), vgpr(0), vgpr(2)), store(2))
    expected = [value + TIMES * place if place < LANES else value for place, value in enumerate(START)]
    assert left(rows, words(START), bytes(4))[0] == expected


@pytest.mark.parametrize("offset", [4, 64, 256])
def test_two_stores_to_what_overlaps(offset):
    """All lanes make the first before one makes the second."""
    rows = looped(("v_mov_b32", vgpr(2), 7), ("v_add_u32", vgpr(3), 9, vgpr(0)), store(3, offset), store(2))
    expected = START.copy()
    expected[offset // 4 : offset // 4 + LANES] = [9 + lane for lane in range(LANES)]
    expected[:LANES] = [7] * LANES
    assert left(rows, words(START), bytes(4))[0] == expected


def test_a_load_behind_a_store():
    """Lanes see what others have stored."""
    rows = looped(("v_add_u32", vgpr(2), sgpr(10), vgpr(0)), store(2), load(3, 64), store(3, base=2))
    found = left(rows, words(START), bytes(4 * LANES))
    last = TIMES - 1
    assert found[0] == [last + place if place < LANES else START[place] for place in range(WORDS)]
    assert found[1] == [last + lane + 16 if lane + 16 < LANES else START[lane + 16] for lane in range(LANES)]


def test_stores_in_lds_where_other_lanes_have_loaded():
    rows = looped(
        load(2), ISA.make("ds_write_b32", vgpr(1), vgpr(2)).raw, ISA.make("ds_read_b32", vgpr(3), vgpr(1)).raw,
        ISA.make("ds_write_b32", vgpr(1), vgpr(3), offset=4).raw, ISA.make("ds_read_b32", vgpr(4), vgpr(1)).raw,
        store(4, base=2))
    expected = [START[0], *START[: LANES - 1]]
    assert left(rows, words(START), bytes(4 * LANES), lds_bytes=4 * LANES + 4)[1] == expected


@pytest.mark.parametrize("lanes", [1, 15, 16, 17, 32, 63])
def test_stores_in_lds_of_some_lanes(lanes):
    """Neighbours of a lane that is off keep what they have."""
    rows = looped(
        ISA.make("ds_write_b32", vgpr(1), vgpr(0)).raw, load(2), ("s_mov_b64", sgpr(8, 2), sgpr(EXEC, 2)),
        ("v_cmp_gt_u32", sgpr(VCC, 2), lanes, vgpr(0)), ("s_and_b64", sgpr(EXEC, 2), sgpr(EXEC, 2), sgpr(VCC, 2)),
        ISA.make("ds_write_b32", vgpr(1), vgpr(2)).raw, ("s_mov_b64", sgpr(EXEC, 2), sgpr(8, 2)),
        ISA.make("ds_read_b32", vgpr(3), vgpr(1)).raw, store(3, base=2))
    expected = [START[lane] if lane < lanes else lane for lane in range(LANES)]
    assert left(rows, words(START), bytes(4 * LANES), lds_bytes=4 * LANES)[1] == expected


def test_a_comparison_that_some_lanes_decide_otherwise():
    """The address and what is compared are the same affine value."""
    rows = looped(load(2), ("v_cmp_gt_u32", sgpr(VCC, 2), 80, vgpr(1)),
                  ("v_cndmask_b32", vgpr(2), vgpr(0), vgpr(2), sgpr(VCC, 2)), store(2, base=2))
    expected = [START[lane] if 4 * lane < 80 else lane for lane in range(LANES)]
    assert left(rows, words(START), bytes(4 * LANES))[1] == expected


def test_a_row_that_is_even_but_for_one_lane():
    """Lanes 0, 1 and 63 do not show it."""
    rows = looped(("v_cmp_eq_u32", sgpr(VCC, 2), 40, vgpr(0)), ("v_mov_b32", vgpr(3), 0),
                  ("v_cndmask_b32", vgpr(3), vgpr(1), vgpr(3), sgpr(VCC, 2)), ("s_branch", "on"), "on:",
                  load(2, address=3), store(2, base=2))
    expected = [START[0 if lane == 40 else lane] for lane in range(LANES)]
    assert left(rows, words(START), bytes(4 * LANES))[1] == expected


@pytest.mark.parametrize("stores", [False, True])
def test_the_last_lane_is_outside(stores):
    """At the third time."""
    move = store(0) if stores else load(2)
    rows = looped(move, ("v_add_u32", vgpr(1), 4, vgpr(1)))
    with pytest.raises(DeviceError, match="lane 63 of wave 0"):
        left(rows, bytes(4 * (LANES + TIMES - 2)), bytes(4))


def test_offsets_of_32_bits_that_wrap():
    """The second time the base is so far below the buffer that four lanes' offsets reach it, and others begin at 0."""
    rows = looped(
        ("s_cmp_eq_u32", sgpr(10), 0), ("s_cselect_b32", sgpr(12), 0, 16), ("s_cselect_b32", sgpr(13), 0, -1),
        ("s_add_u32", sgpr(14), sgpr(0), sgpr(12)), ("s_addc_u32", sgpr(15), sgpr(1), sgpr(13)),
        ("v_subrev_u32", vgpr(3), sgpr(12), vgpr(1)), load(2, address=3, base=14), store(2, base=2))
    with pytest.raises(DeviceError, match="lane 4 of wave 0"):
        left(rows, words(START), bytes(4 * LANES))


def load_elements(target, words, offset=0, address=1, base=0):
    name = f"global_load_dwordx{words}"
    return ISA.make(name, vgpr(target, words), vgpr(address), sgpr(base, 2), offset=offset).raw


@pytest.mark.parametrize("others_write", [False, True])
@pytest.mark.parametrize("elements", [2, 3, 4])
def test_elements_that_overlap(elements, others_write):
    """A dword apart, which nobody else writes; else lane by lane."""
    rows = looped(load_elements(4, elements), *(("v_mul_u32_u24", vgpr(4 + word), 3 + word, vgpr(4 + word))
                                                for word in range(elements)),
                  *(("v_add_u32", vgpr(4), vgpr(4), vgpr(4 + word)) for word in range(1, elements)), store(4, base=2))
    expected = [sum((3 + word) * START[lane + word] for word in range(elements)) for lane in range(LANES)]
    assert left(rows, words(START), bytes(4 * LANES), others_write=others_write)[1] == expected


def test_elements_that_overlap_and_where_a_lane_stores():
    """All lanes load before one stores."""
    rows = looped(load_elements(4, 2), ("v_add_u32", vgpr(4), vgpr(4), vgpr(5)), store(4))
    expected = START.copy()
    for _ in range(TIMES):
        expected[:LANES] = [expected[lane] + expected[lane + 1] for lane in range(LANES)]
    assert left(rows, words(START), bytes(4))[0] == [value & 0xFFFFFFFF for value in expected]


@pytest.mark.parametrize("apart", [2, 3])
def test_elements_in_place_that_overlap_or_do_not(apart):
    """Lanes are so many bits apart; what they store is there only if it is no other's."""
    pair = ISA.make("global_store_dwordx2", vgpr(6), vgpr(4, 2), sgpr(0, 2)).raw
    rows = looped(("v_lshlrev_b32", vgpr(6), apart, vgpr(0)), ("s_branch", "on"), "on:", load_elements(4, 2, address=6),
                  ("v_add_u32", vgpr(4), 7, vgpr(4)), ("v_add_u32", vgpr(5), 9, vgpr(5)), pair)
    expected = START.copy()
    for _ in range(TIMES):
        given = expected.copy()
        for lane in range(LANES):
            first = lane << apart >> 2
            expected[first : first + 2] = [given[first] + 7, given[first + 1] + 9]
    assert left(rows, words(START), bytes(4))[0] == expected


NARROW = {"ubyte": "<B", "sbyte": "<b", "ushort": "<H", "sshort": "<h"}


@pytest.mark.parametrize("others_write", [False, True])
@pytest.mark.parametrize("step", [0, 1, 2, 3])
@pytest.mark.parametrize("name", NARROW)
def test_parts_of_dwords(name, step, others_write):
    """The same in all lanes, one behind the other, overlapping, or with gaps."""
    data = bytes(range(256)) * 2
    rows = looped(("v_mul_u32_u24", vgpr(6), step, vgpr(0)), ("s_branch", "on"), "on:",
                  ISA.make(f"global_load_{name}", vgpr(2), vgpr(6), sgpr(0, 2), offset=100).raw, store(2, base=2))
    expected = [struct.unpack_from(NARROW[name], data, 100 + step * lane)[0] & 0xFFFFFFFF for lane in range(LANES)]
    assert left(rows, data, bytes(4 * LANES), others_write=others_write)[1] == expected


@pytest.mark.parametrize(("name", "bits"), [("byte", 8), ("short", 16)])
@pytest.mark.parametrize("offset", [0, 1, 2, 32])
def test_parts_of_dwords_where_others_have_loaded(name, bits, offset):
    """All lanes load before one stores."""
    size = bits // 8
    rows = looped(("v_mul_u32_u24", vgpr(6), size, vgpr(0)), ("s_branch", "on"), "on:",
                  ISA.make(f"global_load_u{name}", vgpr(2), vgpr(6), sgpr(0, 2)).raw,
                  ("v_add_u32", vgpr(2), 201, vgpr(2)),
                  ISA.make(f"global_store_{name}", vgpr(6), vgpr(2), sgpr(0, 2), offset=offset).raw)
    expected = bytearray(words(START))
    for _ in range(TIMES):
        given = bytes(expected)
        for lane in range(LANES):
            value = int.from_bytes(given[size * lane : size * (lane + 1)], "little") + 201
            expected[offset + size * lane : offset + size * (lane + 1)] = (value % (1 << bits)).to_bytes(size, "little")
    assert words(left(rows, words(START), bytes(4))[0]) == bytes(expected)


def test_the_upper_half_of_a_register():
    """Is loaded and stored alone."""
    rows = looped(("v_lshlrev_b32", vgpr(6), 1, vgpr(0)), ("v_mov_b32", vgpr(2), vgpr(0)),
                  ISA.make("global_load_short_d16_hi", vgpr(2), vgpr(6), sgpr(0, 2)).raw,
                  ISA.make("global_store_short_d16_hi", vgpr(6), vgpr(2), sgpr(0, 2), offset=256).raw,
                  store(2, base=2))
    found = left(rows, words(START), bytes(4 * LANES))
    halves = struct.unpack_from(f"<{LANES}H", words(START))
    assert [word >> 16 for word in found[1]] == list(halves)
    assert struct.unpack_from(f"<{LANES}H", words(found[0]), 256) == halves


@pytest.mark.parametrize("stores", [False, True])
def test_the_last_lane_of_parts_of_dwords_is_outside(stores):
    move = (ISA.make("global_store_short", vgpr(6), vgpr(0), sgpr(0, 2)) if stores
            else ISA.make("global_load_ushort", vgpr(2), vgpr(6), sgpr(0, 2)))
    rows = looped(("v_lshlrev_b32", vgpr(6), 1, vgpr(0)), ("v_add_u32", vgpr(6), sgpr(10), vgpr(6)), move.raw)
    with pytest.raises(DeviceError, match="lane 63 of wave 0"):
        left(rows, bytes(2 * LANES), bytes(4))


def test_the_last_lane_of_elements_that_overlap_is_outside():
    rows = looped(load_elements(4, 3), ("v_add_u32", vgpr(1), 4, vgpr(1)))
    size = 4 * (LANES + TIMES)
    left(rows, bytes(size + 4), bytes(4))
    with pytest.raises(DeviceError, match="lane 63 of wave 0"):
        left(rows, bytes(size - 4), bytes(4))


def test_private_memory_at_one_offset():
    """A dword of all lanes; then one that each lane finds at an offset of its own."""
    rows = looped(
        ("v_mov_b32", vgpr(3), 0), ("scratch_store_dword", vgpr(3), vgpr(0), "off"),
        ("v_add_u32", vgpr(4), sgpr(10), vgpr(0)),
        ISA.make("scratch_store_dword", vgpr(3), vgpr(4), "off", offset=4).raw,
        ("v_and_b32", vgpr(5), 4, vgpr(1)), ("scratch_load_dword", vgpr(2), vgpr(5), "off"), ("s_waitcnt", 0),
        store(2, base=2))
    expected = [lane + (TIMES - 1) * (lane & 1) for lane in range(LANES)]
    assert left(rows, words(START), bytes(4 * LANES), scratch_bytes=8)[1] == expected
