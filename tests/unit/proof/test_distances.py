"""The checker's view of waits between inserted code and the application's: missing ones are found, on every path."""

from __future__ import annotations

import numpy as np
import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import instruction_set, target
from luthier_py.proof.distances import check_distances
from luthier_py.proof.linked import Linked


def code(isa, listing: str) -> Linked:
    """Lines of the application end with "; app"."""
    lines = [line for line in map(str.strip, listing.strip().splitlines()) if line and not line.endswith(":")]
    data, insts, pcs = isa.assemble(listing), [], []
    for _ in lines:
        pcs.append(sum(inst.size_bytes for inst in insts))
        insts.append(isa.decode(data, pcs[-1]))
    inserted = np.array([not line.endswith("; app") for line in lines])
    return Linked("f", np.array(pcs), np.arange(len(insts)), insts, inserted, (), called=True)


@pytest.mark.parametrize(("name", "wave_size", "listing", "fault"), [
    ("gfx90a", 64, """v_readfirstlane_b32 s4, v0 ; app
        global_load_dword v1, v2, s[4:5]""", "5 wait states"),
    ("gfx90a", 64, """v_readfirstlane_b32 s4, v0 ; app
        global_load_dword v1, v2, s[4:5] ; app""", None),
    ("gfx90a", 64, """v_readfirstlane_b32 s4, v0
        s_nop 4
        global_load_dword v1, v2, s[4:5] ; app""", None),
    ("gfx90a", 64, """v_readfirstlane_b32 s4, v0
        s_cbranch_scc1 there ; app
        s_nop 4
        there:
        global_load_dword v1, v2, s[4:5] ; app""", "4 wait states"),
    ("gfx90a", 64, """there:
        global_load_dword v1, v2, s[4:5]
        v_readfirstlane_b32 s4, v0 ; app
        s_branch there ; app""", "4 wait states"),
    ("gfx90a", 64, """global_store_dwordx2 v4, v[2:3], s[4:5]
        global_load_dwordx2 v[2:3], v4, s[6:7] ; app""", None),
    ("gfx90a", 64, """global_load_dword v5, v4, s[4:5] ; app
        global_load_dword v6, v2, s[4:5]
        global_load_dword v2, v4, s[6:7]""", "clause reads, then writes"),
    ("gfx90a", 64, """global_store_dwordx2 v4, v[2:3], s[4:5] ; app
        global_load_dword v5, v4, s[4:5]
        global_load_dwordx2 v[2:3], v4, s[6:7]""", "clause reads, then writes"),
    ("gfx1010", 32, """global_load_dword v1, v2, s[4:5] ; app
        s_mov_b32 s4, 0""", "fixVMEMtoScalarWriteHazards"),
    ("gfx1010", 32, """global_load_dword v1, v2, s[4:5] ; app
        s_waitcnt_depctr depctr_vm_vsrc(0)
        s_mov_b32 s4, 0""", None),
    ("gfx1201", 32, """v_mov_b32 v1, s4
        s_mov_b32 s4, 0 ; app
        v_mov_b32 v1, s4 ; app""", "AMDGPUWaitSGPRHazards"),
    ("gfx1201", 32, """v_mov_b32 v1, s4 ; app
        s_mov_b32 s4, 0 ; app
        v_mov_b32 v1, s4 ; app""", None),
    ("gfx1201", 32, """s_swappc_b64 s[30:31], s[8:9] ; app
        s_mov_b32 s40, 0
        v_mov_b32 v1, s40""", "AMDGPUWaitSGPRHazards"),
    ("gfx1201", 64, """s_mov_b32 s5, s33
        s_mov_b32 s33, s32
        s_wait_alu depctr_sa_sdst(0)
        s_swappc_b64 s[30:31], s[8:9]
        s_mov_b32 s33, s5
        s_wait_alu depctr_sa_sdst(0)
        s_setpc_b64 s[30:31]""", None),
    ("gfx1201", 64, """s_mov_b32 s5, s33
        s_swappc_b64 s[30:31], s[8:9]
        s_mov_b32 s33, s5
        s_setpc_b64 s[30:31]""", "AMDGPUWaitSGPRHazards"),
])
def test_listings(name: str, wave_size: int, listing: str, fault: str | None) -> None:
    isa = instruction_set(target(name), wave_size)
    if fault is None:
        check_distances(isa, [code(isa, listing)])
    else:
        with pytest.raises(CheckFailed) as raised:
            check_distances(isa, [code(isa, listing)])
        assert fault in str(raised.value)


CALL, RETURN = "s_swappc_b64 s[30:31], s[8:9] ; app\n", "s_setpc_b64 s[30:31] ; app"
WAITS = "s_waitcnt_depctr depctr_sa_sdst(0)\n s_waitcnt_depctr depctr_va_vcc(0)\n"
MASKS = f"""{WAITS} v_cndmask_b32_e64 v1, v2, v3, s[4:5]
    v_cmp_eq_u32 vcc, v1, v2
    s_waitcnt_depctr depctr_va_vcc(0)
    """


@pytest.mark.parametrize(("name", "wave_size", "callee", "caller", "mitigation", "behind", "fault"), [
    ("gfx1010", 32, "global_load_dword v1, v2, s[4:5]\n", CALL, "s_waitcnt_depctr depctr_vm_vsrc(0)\n",
     "s_mov_b32 s4, 0 ; app", "fixVMEMtoScalarWriteHazards"),
    ("gfx1100", 32, "v_exp_f32 v2, v1\n", CALL, "s_waitcnt_depctr depctr_va_vdst(0)\n",
     "v_mov_b32 v3, v2 ; app", "fixVALUTransUseHazard"),
    ("gfx1100", 64, MASKS, WAITS + CALL, WAITS, "s_mov_b32 s4, 0 ; app\n s_waitcnt_depctr depctr_sa_sdst(0)",
     "fixVALUMaskWriteHazard"),
    ("gfx1100", 64, MASKS, WAITS + CALL + WAITS + "s_mov_b32 s4, 0 ; app\n", "s_waitcnt_depctr depctr_sa_sdst(0)\n",
     "s_endpgm ; app", "fixVALUMaskWriteHazard"),
])
def test_what_begins_in_a_function_goes_on_behind_its_call(name, wave_size, callee, caller, mitigation, behind, fault):
    isa = instruction_set(target(name), wave_size)
    called = code(isa, callee + RETURN)
    check_distances(isa, [code(isa, caller + mitigation + behind), called])
    with pytest.raises(CheckFailed, match=fault):
        check_distances(isa, [code(isa, caller + behind), called])
