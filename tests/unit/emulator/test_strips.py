"""A register that switched-off lanes still need is stored, however vector code is put together into loops."""

from __future__ import annotations

import struct

from emulated import ISA, LANES, Bench, code_object

from luthier_py.isa import EXEC, VCC, sgpr, vgpr


def test_a_register_that_the_active_lanes_overwrite_later():
    """v2 is written by all lanes, then, in another block, again by half of them: the others keep their value."""
    rows = [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_mov_b64", sgpr(8, 2), sgpr(EXEC, 2)),
        ("v_mov_b32", vgpr(2), 1), ("s_mov_b32", sgpr(EXEC + 1), 0), ("v_mov_b32", vgpr(3), 5), ("s_branch", "next"),
        "next:", ("v_mov_b32", vgpr(2), vgpr(3)), ("s_mov_b64", sgpr(EXEC, 2), sgpr(8, 2)),
        ("v_lshlrev_b32", vgpr(4), 2, vgpr(0)), ISA.make("global_store_dword", vgpr(4), vgpr(2), sgpr(2, 2)).raw,
        ("s_endpgm",),
    ]
    assert shown(rows) == (5,) * (LANES // 2) + (1,) * (LANES // 2)


def test_a_register_that_v_writelane_wrote_in_a_lane_that_is_off():
    rows = [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_mov_b64", sgpr(8, 2), sgpr(EXEC, 2)),
        ("v_mov_b32", vgpr(2), 1), ("s_mov_b32", sgpr(EXEC + 1), 0), ("s_movk_i32", sgpr(9), 7),
        ("v_writelane_b32", vgpr(2), sgpr(9), 40), ("s_branch", "next"),
        "next:", ("v_mov_b32", vgpr(2), 5), ("s_mov_b64", sgpr(EXEC, 2), -1),
        ("v_lshlrev_b32", vgpr(4), 2, vgpr(0)), ISA.make("global_store_dword", vgpr(4), vgpr(2), sgpr(2, 2)).raw,
        ("s_endpgm",),
    ]
    assert shown(rows) == (5,) * 32 + (1,) * 8 + (7,) + (1,) * 23


def test_a_register_of_lanes_that_v_cmpx_switches_off():
    """All lanes write v2; v_cmpx ends that region, and what follows overwrites v2 in the lanes that it leaves on."""
    rows = [
        ("s_load_dwordx4", sgpr(0, 4), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(4), 2, vgpr(0)),
        ("v_mov_b32", vgpr(2), vgpr(0)), ("v_cmpx_gt_u32", sgpr(VCC, 2), 20, vgpr(2)), ("v_mov_b32", vgpr(2), 1),
        ("s_mov_b64", sgpr(EXEC, 2), -1), ISA.make("global_store_dword", vgpr(4), vgpr(2), sgpr(2, 2)).raw,
        ("s_endpgm",),
    ]
    assert shown(rows) == (1,) * 20 + tuple(range(20, LANES))


def shown(rows):
    """What every lane stored."""
    ran = Bench(struct.pack("<I", 7) * LANES, bytes(4 * LANES)).run(code_object({"k": rows}, scratch_bytes=4), "k")
    return struct.unpack(f"<{LANES}I", ran.buffers[1])
