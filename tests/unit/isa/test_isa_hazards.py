"""Wait states between pairs of instructions (CDNA2 ISA 4.5; LLVM's GCNHazardRecognizer)."""

from __future__ import annotations

import pytest

from luthier_py.isa import M0, VCC, agpr, instruction_set, sgpr, target, vgpr
from luthier_py.isa.hazards.wait_states import (
    advance_hazards,
    compute_missing_states,
    find_produced_hazards,
    join_hazards,
    unsafe_shift_amount,
)

ISA = instruction_set(target("gfx90a"))
V, S, A = vgpr, sgpr, agpr
NOP = ("s_nop", 0)
STORE = ("global_store_dwordx2", V(0), V(2, 2), S(4, 2))
MATRIX = ("v_mfma_f32_4x4x1f32", A(0, 4), V(4), V(5), A(0, 4))


def wait_states(isa, before, inst):
    """Those that are missing between the end of ``before``, in the order in which it runs, and ``inst``."""
    pending = {}
    for earlier in before:
        pending = join_hazards(advance_hazards(isa, pending, earlier), find_produced_hazards(isa, earlier))
    return compute_missing_states(isa, pending, inst)


def missing(before, after) -> int:
    return wait_states(ISA, [ISA.make(*made) for made in before], ISA.make(*after))


@pytest.mark.parametrize(("before", "after", "states"), [
    ([("v_readfirstlane_b32", S(4), V(0))], ("global_load_dword", V(1), V(2), S(4, 2)), 5),
    ([("v_readfirstlane_b32", S(4), V(0))], ("global_load_dword", V(1), V(2), S(6, 2)), 0),
    ([("v_readfirstlane_b32", S(4), V(0)), NOP, NOP], ("global_load_dword", V(1), V(2), S(4, 2)), 3),
    ([("v_readfirstlane_b32", S(4), V(0)), ("s_nop", 4)], ("global_load_dword", V(1), V(2), S(4, 2)), 0),
    ([("s_mov_b32", S(4), 0)], ("global_load_dword", V(1), V(2), S(4, 2)), 0),
    ([("v_cmp_eq_u32", S(VCC, 2), V(0), V(1))], ("v_div_fmas_f32", V(0), V(1), V(2), V(3)), 4),
    ([("v_readfirstlane_b32", S(4), V(0))], ("v_readlane_b32", S(5), V(0), S(4)), 4),
    ([("v_cmpx_eq_u32_e32", S(VCC, 2), V(1), V(2))], MATRIX, 4),
    ([("s_mov_b32", S(M0), 0)], ("s_sendmsg", 1), 1),
    ([("s_mov_b32", S(M0), 0)], ("v_writelane_b32", V(0), S(4), S(M0)), 0),
    ([("s_setreg_imm32_b32", 1, 0)], ("s_getreg_b32", S(4), 1), 2),
    ([("s_setreg_imm32_b32", 1, 0)], ("s_getreg_b32", S(4), 2), 0),
    ([("global_store_dwordx4", V(0, 2), V(4, 4), "off")], ("v_mov_b32", V(5), 0), 1),
    ([("global_store_dwordx2", V(0, 2), V(4, 2), "off")], ("v_mov_b32", V(5), 0), 0),
    ([("v_mov_b32", V(4), 0)], MATRIX, 2),
    ([MATRIX], ("v_accvgpr_read_b32", V(0), A(1)), 20),
    ([MATRIX], ("v_accvgpr_read_b32", V(0), A(9)), 0),
    ([MATRIX], ("v_mov_b32", V(4), 0), 0),
    ([("v_mfma_f32_4x4x1f32", A(0, 4), V(4), V(5), A(4, 4))], ("v_accvgpr_write_b32", A(5), V(4)), 15),
    ([("v_cmpx_eq_u32_e32", S(VCC, 2), V(1), V(2))], ("global_load_dword", V(1), V(2), S(4, 2)), 5),
    ([("v_dot2_f32_f16", V(0), V(1), V(2), V(3))], ("v_mov_b32", V(4), V(0)), 3),
    ([("s_load_dword", S(4), S(8, 2), 0)], ("s_load_dwordx2", S(8, 2), S(10, 2), 0), 1),
    ([("s_load_dword", S(4), S(8, 2), 0)], ("s_load_dwordx2", S(6, 2), S(8, 2), 0), 0),
    ([STORE], ("global_load_dwordx2", V(2, 2), V(0), S(6, 2)), 0),
    ([STORE, ("global_load_dword", V(5), V(0), S(4, 2))], ("global_load_dwordx2", V(2, 2), V(0), S(6, 2)), 1),
    ([STORE, ("global_load_dword", V(5), V(0), S(4, 2)), NOP], ("global_load_dwordx2", V(2, 2), V(0), S(6, 2)), 0),
    ([], ("global_load_dword", V(1), V(2), S(4, 2)), 0),
])
def test_pairs(before, after, states) -> None:
    assert missing(before, after) == states


def test_dpp() -> None:
    shift = ISA.make("v_mov_b32_dpp", V(2), V(1), dpp_ctrl=0x101)
    assert wait_states(ISA, [ISA.make("v_mov_b32", V(1), 0)], shift) == 2
    assert wait_states(ISA, [ISA.make("v_cmpx_eq_u32_e32", S(VCC, 2), V(5), V(6))], shift) == 5


def test_states_that_passed_are_not_owed_again() -> None:
    before = [("v_mov_b32", V(4), 0), ("s_nop", 0)]
    assert missing(before, MATRIX) == 1
    assert missing([*before, ("v_mov_b32", V(4), 1)], MATRIX) == 2


def test_targets_that_check_in_hardware_need_nothing() -> None:
    isa = instruction_set(target("gfx1030"))
    before = [isa.make("v_readfirstlane_b32", S(4), V(0))]
    assert wait_states(isa, before, isa.make("global_load_dword", V(1), V(2), S(4, 2))) == 0


def test_shift_amounts_in_the_last_register_of_a_block() -> None:
    assert unsafe_shift_amount(ISA.target, ISA.make("v_lshlrev_b64", V(0, 2), V(7), V(2, 2)))
    assert not unsafe_shift_amount(ISA.target, ISA.make("v_lshlrev_b64", V(0, 2), V(6), V(2, 2)))
    assert not unsafe_shift_amount(target("gfx942"), ISA.make("v_lshlrev_b64", V(0, 2), V(7), V(2, 2)))


@pytest.mark.parametrize(("before", "states"), [
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), 0xf0", 1),
    ("s_setreg_b32 hwreg(HW_REG_WAVE_MODE, 23, 1), s0", 1),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 0", 0), ("s_getreg_b32 s0, hwreg(HW_REG_WAVE_MODE)", 0),
])
def test_gfx1250_would_lose_a_bank_switch_right_behind_mode(before: str, states: int) -> None:
    isa = instruction_set(target("gfx1250"))
    assert (
        compute_missing_states(isa, find_produced_hazards(isa, isa.parse(before)), isa.parse("s_set_vgpr_msb 1"))
        == states
    )
