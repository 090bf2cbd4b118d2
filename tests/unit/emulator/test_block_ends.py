"""Whatever ends a block keeps what the block has written before it: scalar registers, SCC, masks and vector registers
that were put off; those that other code stands behind, and those that no wave comes to."""

from __future__ import annotations

import struct

import pytest
from emulated import ISA, LANES, Bench, code_object

from luthier_py.isa import sgpr, vgpr

VCC = sgpr(106, 2)
BEFORE = [  # of lane numbers up to 4 a mask, 11 in s8, 12 in v1, SCC
    ("s_mov_b32", sgpr(8), 11), ("v_mov_b32", vgpr(1), 12), ("v_cmp_gt_u32", VCC, 5, vgpr(0)),
    ("s_mov_b64", sgpr(10, 2), -1), ("s_cmp_eq_u32", sgpr(8), sgpr(8)),
]
AFTER = [
    ("s_cselect_b32", sgpr(9), 100, 0), ("v_mov_b32", vgpr(2), sgpr(8)), ("v_add_u32", vgpr(2), vgpr(1), vgpr(2)),
    ("v_add_u32", vgpr(2), sgpr(9), vgpr(2)), ("v_cndmask_b32", vgpr(2), vgpr(1), vgpr(2), VCC),
    ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(3), 2, vgpr(0)),
    ISA.make("global_store_dword", vgpr(3), vgpr(2), sgpr(0, 2)).raw, ("s_endpgm",),
]
EXPECTED = struct.pack(f"<{LANES}I", *(123 if lane < 5 else 12 for lane in range(LANES)))
ENDS = {
    "s_barrier": [("s_barrier",)],
    "s_sleep": [("s_sleep", 1)],
    "s_sendmsg": [ISA.make("s_sendmsg", 1).raw],
    "s_nop": [("s_nop", 0)],
    "s_branch": [("s_branch", "next"), "next:"],
    "s_cbranch taken": [("s_cbranch_scc1", "next"), ("s_trap", 2), "next:"],
    "s_cbranch passed": [("s_cbranch_scc0", "next"), "next:"],
    "s_cbranch_vccnz": [("s_cbranch_vccnz", "next"), ("s_endpgm",), "next:"],
    "s_cbranch_execz": [("s_cbranch_execz", "bad"), ("s_branch", "next"), "bad:", ("s_mov_b32", sgpr(8), 0),
                        ("s_trap", 2), ("s_mov_b32", sgpr(8), 1), "next:"],
    "s_setreg": [("s_setreg_b32", 1 | 6 << 6, sgpr(8))],  # a bit of MODE that is set anyway
    "s_trap 3": [("s_trap", 3)],
    "s_swappc": [("s_getpc_b64", sgpr(20, 2)), ("s_add_u32", sgpr(22), sgpr(20), "called"),
                 ("s_addc_u32", sgpr(23), sgpr(21), "called"), ("s_cmp_eq_u32", sgpr(8), sgpr(8)),
                 ("s_swappc_b64", sgpr(30, 2), sgpr(22, 2))],
    "s_call": [("s_call_b64", sgpr(30, 2), "called")],
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_what_was_written_before(name):
    functions = {"k": [*BEFORE, *ENDS[name], *AFTER], "called": [("s_nop", 0), ("s_setpc_b64", sgpr(30, 2))]}
    assert Bench(bytes(4 * LANES)).run(code_object(functions), "k").buffers == (EXPECTED,)
