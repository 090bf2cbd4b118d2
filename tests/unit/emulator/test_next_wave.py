"""Waves that go on in the host function of the one before them: what they do is what each would do by itself."""

from __future__ import annotations

import struct

import pytest
from emulated import ISA, LANES, Bench, code_object

from luthier_py.base.errors import DeviceError
from luthier_py.emulator.reading.discover import discover
from luthier_py.emulator.reading.first_reads import scalars_named
from luthier_py.emulator.records.layout import NAMED_SCALARS
from luthier_py.isa import EXEC, VCC, sgpr, vgpr

WAVES = 4
RETURN = sgpr(30, 2)
BEGIN = [
    ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("v_readfirstlane_b32", sgpr(8), vgpr(0)), ("s_waitcnt", 0),
    ("s_lshr_b32", sgpr(8), sgpr(8), 6), ("v_lshlrev_b32", vgpr(1), 2, vgpr(0)),
]
"""s[0:1] is the buffer, s8 the wave's number, v1 4 * item."""


def store(source, address=1):
    return ISA.make("global_store_dword", vgpr(address), vgpr(source), sgpr(0, 2)).raw


def count():
    """One more in the first dword of the second buffer, by each wave."""
    return [("v_mov_b32", vgpr(6), 0), ("s_mov_b64", sgpr(20, 2), sgpr(EXEC, 2)), ("s_mov_b64", sgpr(EXEC, 2), 1),
            ("v_mov_b32", vgpr(7), 1), ISA.make("global_atomic_add", vgpr(6), vgpr(7), sgpr(2, 2)).raw,
            ("s_mov_b64", sgpr(EXEC, 2), sgpr(20, 2))]


def left(functions, waves=WAVES, groups=1, times=1, lds_bytes=4 * LANES * WAVES, items=0):
    """The two buffers, as words; twice what one launch leaves where ``times`` is 2."""
    bench = Bench(bytes(4 * LANES * waves), bytes(64))
    module = bench.device.load(code_object(functions, lds_bytes=lds_bytes), "k")
    kernel = module.kernel("k")
    kernarg = struct.pack("<2Q", *(one.address for one in bench.buffers)).ljust(256, b"\0")
    for _ in range(times):
        bench.device.launch(kernel, (groups, 1, 1), (items or LANES * waves, 1, 1), kernarg)
    found = [bench.device.read(one.address, one.size) for one in bench.buffers]
    return [list(struct.unpack(f"<{len(data) // 4}I", data)) for data in found], bench.device.profile


@pytest.mark.parametrize(("waves", "items"), [(1, 64), (2, 128), (4, 256), (4, 193)])
def test_each_wave_ends_once(waves, items):
    rows = [*BEGIN, *count(), ("s_endpgm",)]
    (_, counted), profile = left({"k": rows}, waves, groups=3, items=items)
    assert counted[0] == 3 * waves and profile.total == 3 * waves * len(rows)


def test_a_wave_that_has_ended_is_left_alone():
    """All but the first end before it does, which has slept meanwhile."""
    rows = [*BEGIN, ("s_cmp_lg_u32", sgpr(8), 0), ("s_cbranch_scc1", "end"), ("s_sleep", 1), "end:", *count(),
            ("s_endpgm",)]
    assert left({"k": rows})[0][1][0] == WAVES


def test_barriers():
    """Each wave reads what the one before it has written, turn after turn."""
    rows = [
        *BEGIN, ("v_lshl_add_u32", vgpr(2), vgpr(0), 3, 5), ("s_movk_i32", sgpr(10), 0), "again:",
        ISA.make("ds_write_b32", vgpr(1), vgpr(2)).raw, ("s_waitcnt", 0), ("s_barrier",),
        ("v_add_u32", vgpr(3), 256, vgpr(1)), ("v_and_b32", vgpr(3), 0x3FF, vgpr(3)),
        ISA.make("ds_read_b32", vgpr(2), vgpr(3)).raw, ("s_waitcnt", 0), ("s_barrier",),
        ("s_add_u32", sgpr(10), sgpr(10), 1), ("s_cmp_lg_u32", sgpr(10), 3), ("s_cbranch_scc1", "again"),
        store(2), ("s_endpgm",),
    ]
    items = LANES * WAVES
    assert left({"k": rows})[0][0] == [((item + 3 * LANES) % items) * 8 + 5 for item in range(items)]


def test_the_next_wave_is_in_another_function():
    """Odd waves wait at a barrier in a function that they have called, even ones in the kernel."""
    kernel = [
        *BEGIN, ("v_mov_b32", vgpr(2), 3), ("s_bitcmp0_b32", sgpr(8), 0), ("s_cbranch_scc1", "even"),
        ("s_call_b64", RETURN, "called"), ("s_branch", "end"),
        "even:", ("s_barrier",), "end:", *count(), store(2), ("s_endpgm",),
    ]
    called = [("s_barrier",), ("v_mov_b32", vgpr(2), 4), ("s_setpc_b64", RETURN)]
    (found, counted), _ = left({"k": kernel, "called": called})
    assert found == [3 + (item // LANES & 1) for item in range(LANES * WAVES)] and counted[0] == WAVES


def test_a_fault_is_that_of_the_wave_that_makes_it():
    rows = [*BEGIN, ("s_cmp_eq_u32", sgpr(8), 2), ("s_cselect_b32", sgpr(9), 0x40000000, 0),
            ("v_add_u32", vgpr(1), sgpr(9), vgpr(1)), store(0), ("s_endpgm",)]
    with pytest.raises(DeviceError, match="lane 0 of wave 2"):
        left({"k": rows})


# What a wave finds in scalar registers


def named(*rows):
    insts, pc = {}, 0
    for row in rows:
        insts[pc] = ISA.make(*row)
        pc += insts[pc].size_bytes
    return scalars_named(discover(insts.__getitem__, 0))


@pytest.mark.parametrize(("rows", "expected"), [
    ([("v_mov_b32", vgpr(1), vgpr(0))], 0),
    ([("s_mov_b64", sgpr(10, 2), sgpr(2, 2))], 12),
    ([("v_add_u32", vgpr(1), sgpr(40), vgpr(1))], 41),
    ([("s_mov_b32", sgpr(3), sgpr(VCC))], 4),
    ([("s_swappc_b64", sgpr(0, 2), sgpr(2, 2))], NAMED_SCALARS),
    ([("s_set_gpr_idx_on", sgpr(0), 1), ("s_set_gpr_idx_off",)], NAMED_SCALARS),
])
def test_scalar_registers_that_are_named(rows, expected):
    assert named(*rows, ("s_endpgm",)) == expected


@pytest.mark.parametrize("register", [20, 45])
def test_a_scalar_register_begins_as_0(register):
    """Work-group after work-group, and launch after launch, in the same memory."""
    rows = [*BEGIN, ("s_add_u32", sgpr(register), sgpr(register), 7), ("v_mov_b32", vgpr(2), sgpr(register)), store(2),
            ("s_endpgm",)]
    assert left({"k": rows}, groups=3, times=3)[0][0] == [7] * (LANES * WAVES)


# Strips of which no lane is active


def test_instructions_of_a_strip_under_different_masks():
    """A strip that is off in one of them is on in another."""
    rows = [*BEGIN, ("v_mov_b32", vgpr(2), 1), ("s_branch", "on"), "on:",
            ("s_mov_b64", sgpr(EXEC, 2), 0xFFFF), ("v_add_u32", vgpr(2), 10, vgpr(2)),
            ("s_lshl_b64", sgpr(EXEC, 2), sgpr(EXEC, 2), 40), ("v_add_u32", vgpr(2), 20, vgpr(2)),
            ("s_mov_b64", sgpr(EXEC, 2), -1), ("s_branch", "last"), "last:", store(2), ("s_endpgm",)]
    found = left({"k": rows}, waves=1)[0][0]
    assert found == [11 if lane < 16 else 21 if 40 <= lane < 56 else 1 for lane in range(LANES)]


def test_a_comparison_of_some_lanes():
    """Lanes that are off give 0, and each lane has its own bit."""
    rows = [*BEGIN, ("v_and_b32", vgpr(4), 5, vgpr(0)), ("s_mov_b32", sgpr(EXEC), 0xF0F0FF01),
            ("s_mov_b32", sgpr(EXEC + 1), 0x0001FFF7), ("s_branch", "on"), "on:",
            ("v_cmp_lt_u32", sgpr(VCC, 2), 3, vgpr(4)), ("s_mov_b64", sgpr(EXEC, 2), -1),
            ("v_mov_b32", vgpr(2), sgpr(VCC)), ("v_mov_b32", vgpr(3), sgpr(VCC + 1)),
            ("v_cmp_eq_u32", sgpr(VCC, 2), 0, vgpr(0)),
            ("v_cndmask_b32", vgpr(2), vgpr(3), vgpr(2), sgpr(VCC, 2)), store(2), ("s_endpgm",)]
    found = left({"k": rows}, waves=1)[0][0]
    active = 0x0001FFF7F0F0FF01
    expected = sum(1 << lane for lane in range(LANES) if active >> lane & 1 and lane & 5 > 3)
    assert found[0] | found[1] << 32 == expected


@pytest.mark.parametrize("lane", [0, 17, 40])
def test_one_of_some_lanes_stores_outside_of_lds(lane):
    """It stores nothing, and the others do."""
    rows = [*BEGIN, ("v_cmp_eq_u32", sgpr(VCC, 2), lane, vgpr(0)), ("v_mov_b32", vgpr(3), 0x10000),
            ("v_cndmask_b32", vgpr(3), vgpr(1), vgpr(3), sgpr(VCC, 2)), ("s_lshr_b64", sgpr(EXEC, 2), sgpr(EXEC, 2), 9),
            ISA.make("ds_write_b32", vgpr(3), vgpr(0)).raw, ("s_mov_b64", sgpr(EXEC, 2), -1), ("s_waitcnt", 0),
            ISA.make("ds_read_b32", vgpr(2), vgpr(1)).raw, ("s_waitcnt", 0), store(2), ("s_endpgm",)]
    found = left({"k": rows}, waves=1)[0][0]
    others = [other for other in range(LANES - 9) if other != lane]
    assert [found[other] for other in others] == others
