"""Hazards of gfx10 and later: sequences that need a wait, and some that do not (tests/differential has LLVM's word)."""

from __future__ import annotations

import pytest
from each_target import EACH_TARGET

from luthier_py.isa import Inst, InstructionSet, instruction_set, target
from luthier_py.isa.hazards.patterns import drop_ended_patterns, possible_patterns, select_mitigated_hazards
from luthier_py.isa.hazards.pending import NOTHING, find_missing_mitigations, possible
from luthier_py.isa.model.registers import RegSet

WAIT_SOURCES, WAIT_RESULTS = "s_waitcnt_depctr depctr_vm_vsrc(0)", "s_waitcnt_depctr depctr_va_vdst(0)"
LOAD = "global_load_dword v1, v2, s[4:5]"


def needed(isa: InstructionSet, before: list[str], inst: str) -> list[str]:
    pending, last, instructions = NOTHING, isa.parse(inst), [isa.parse(text) for text in before]
    rows = possible(isa, {last.op, *(earlier.op for earlier in instructions)})
    for earlier in instructions:
        pending = pending.behind(isa, earlier).join(rows.own(isa, earlier)).join(pending.extend_patterns(isa, earlier))
    return [isa.text(wait) for wait in find_missing_mitigations(isa, [pending], last).instructions(isa, last)]


@pytest.mark.parametrize(("name", "wave_size", "before", "inst", "expected"), [
    ("gfx1010", 32, [LOAD], "s_mov_b32 s4, 0", [WAIT_SOURCES]),
    ("gfx1010", 32, [LOAD], "s_mov_b32 exec_lo, 0", [WAIT_SOURCES]),
    ("gfx1010", 32, [LOAD], "s_mov_b32 s6, 0", []),
    ("gfx1010", 32, [LOAD, "v_mov_b32 v9, 0"], "s_mov_b32 s4, 0", []),
    ("gfx1010", 32, [LOAD, WAIT_SOURCES], "s_mov_b32 s4, 0", []),
    ("gfx1030", 32, [LOAD], "s_mov_b32 s4, 0", []),
    ("gfx1010", 32, ["s_load_dword s8, s[4:5], 0x0"], "v_readfirstlane_b32 s4, v0", ["s_mov_b32 null, 0"]),
    ("gfx1010", 32, ["s_load_dword s8, s[4:5], 0x0", "s_mov_b32 s9, 0"], "v_readfirstlane_b32 s4, v0", []),
    ("gfx1010", 32, ["s_mov_b32 s4, exec_lo"], "v_cmpx_eq_u32 v0, v1", ["s_waitcnt_depctr depctr_sa_sdst(0)"]),
    ("gfx1010", 32, ["s_mov_b32 s4, exec_lo", "v_cmp_eq_u32 vcc_lo, v0, v1"], "v_cmpx_eq_u32 v0, v1", []),
    ("gfx1010", 32, ["ds_read_b32 v1, v2", "s_branch 4"], "global_store_dword v[2:3], v4, off",
     ["s_waitcnt_vscnt null, 0x0"]),
    ("gfx1010", 32, ["ds_read_b32 v1, v2"], "global_store_dword v[2:3], v4, off", []),
    ("gfx1010", 32, ["global_atomic_add v1, v2, s[4:5]"], "s_denorm_mode 0", ["s_nop 2"]),
    ("gfx1100", 32, ["v_cmpx_eq_u32 v0, v1"], "v_permlane16_b32 v2, v3, s1, s2", ["v_mov_b32_e32 v3, v3"]),
    ("gfx1100", 32, ["v_cmpx_eq_u32 v0, v1", "v_nop"], "v_permlane16_b32 v2, v3, s1, s2", ["v_mov_b32_e32 v3, v3"]),
    ("gfx1100", 32, ["v_cmpx_eq_u32 v0, v1", "v_mov_b32 v9, 0"], "v_permlane16_b32 v2, v3, s1, s2", []),
    ("gfx1030", 32, ["v_cmpx_eq_u32 v0, v1"], "v_permlane16_b32 v2, v3, s1, s2", []),
    ("gfx1100", 32, ["v_exp_f32 v1, v2"], "v_mov_b32 v3, v1", [WAIT_RESULTS]),
    ("gfx1100", 32, ["v_exp_f32 v1, v2", WAIT_RESULTS], "v_mov_b32 v3, v1", []),
    ("gfx1100", 32, ["v_exp_f32 v1, v2", *["v_mov_b32 v9, 0"] * 5], "v_mov_b32 v3, v1", [WAIT_RESULTS]),
    ("gfx1100", 32, ["v_exp_f32 v1, v2", *["v_mov_b32 v9, 0"] * 6], "v_mov_b32 v3, v1", []),
    ("gfx1150", 32, ["v_exp_f32 v1, v2"], "v_mov_b32 v3, v1", []),
    ("gfx1100", 64, ["v_cndmask_b32 v1, v2, v3, vcc", "s_mov_b64 vcc, 0"], "s_nop 0",
     ["s_waitcnt_depctr depctr_sa_sdst(0)"]),
    ("gfx1100", 64, ["v_cndmask_b32 v1, v2, v3, vcc", "s_mov_b64 s[4:5], 0"], "s_nop 0", []),
    ("gfx1100", 32, ["v_cndmask_b32 v1, v2, v3, vcc_lo", "s_mov_b32 vcc_lo, 0"], "s_nop 0", []),
    ("gfx1100", 64, ["v_mov_b32 v1, 0", "s_mov_b64 exec, -1", "v_mov_b32 v2, 0"], "v_add_f32 v3, v1, v2",
     [WAIT_RESULTS]),
    *(("gfx1250", 32, [*before], inst, expected) for before, inst, expected in (
        (["global_load_b32 v1, v2, s[4:5]"], "v_mov_b32 v2, 0", ["s_wait_xcnt 0x0"]),
        (["global_load_b32 v1, v2, s[4:5]"], "s_mov_b32 s5, 0", ["s_wait_xcnt 0x0"]),
        (["global_load_b32 v1, v2, s[4:5]"], "v_mov_b32 v3, 0", []),
        (["global_load_b32 v1, v2, s[4:5]"], "global_load_b32 v2, v3, s[4:5]", []),
        (["global_load_b32 v1, v2, s[4:5]"], "ds_load_b32 v2, v3", ["s_wait_xcnt 0x0"]),
        (["global_load_b32 v1, v2, s[4:5]", "s_wait_xcnt 0x0"], "v_mov_b32 v2, 0", []),
        (["global_load_b32 v1, v2, s[4:5]", "s_wait_xcnt 0x1"], "v_mov_b32 v2, 0", ["s_wait_xcnt 0x0"]),
        (["global_load_b32 v1, v2, s[4:5]", "s_wait_loadcnt 0x0"], "v_mov_b32 v2, 0", []),
        (["global_load_b32 v1, v2, s[4:5]", "s_wait_loadcnt_dscnt 0x1"], "v_mov_b32 v2, 0", []),
        (["global_load_b32 v1, v2, s[4:5]", "s_wait_storecnt 0x0"], "v_mov_b32 v2, 0", ["s_wait_xcnt 0x0"]),
        (["global_store_b32 v1, v2, s[4:5]"], "v_mov_b32 v2, 0", ["s_wait_xcnt 0x0"]),
        (["global_store_b32 v1, v2, s[4:5]", "s_wait_storecnt 0x0"], "v_mov_b32 v2, 0", []),
        (["global_prefetch_b8 v[2:3], off", "s_wait_storecnt 0x0"], "v_mov_b32 v2, 0", ["s_wait_xcnt 0x0"]),
        (["s_load_b32 s9, s[4:5], 0x0"], "s_mov_b32 s4, 0", ["s_wait_xcnt 0x0"]),
        (["s_load_b32 s9, s[4:5], 0x0", "s_wait_kmcnt 0x0"], "s_mov_b32 s4, 0", []),
        (["ds_load_b32 v1, v2"], "v_mov_b32 v2, 0", []))),
    ("gfx1201", 32, ["global_load_b32 v1, v2, s[4:5]"], "v_mov_b32 v2, 0", []),
    ("gfx1201", 32, ["v_mov_b32 v1, s4", "s_mov_b32 s4, 0"], "v_mov_b32 v1, s4", ["s_wait_alu depctr_sa_sdst(0)"]),
    ("gfx1201", 32, ["v_mov_b32 v1, s5", "s_mov_b32 s4, 0"], "s_mov_b32 s6, s4", ["s_wait_alu depctr_sa_sdst(0)"]),
    ("gfx1201", 32, ["s_mov_b32 s4, 0"], "v_mov_b32 v1, s4", []),
    ("gfx1201", 32, ["v_mov_b32 v1, s4", "s_mov_b32 s4, 0", "s_load_b32 s9, s[6:7], 0x0"], "v_mov_b32 v1, s4", []),
    ("gfx1201", 32, ["v_mov_b32 v1, s4", "v_readfirstlane_b32 s4, v1"], "v_mov_b32 v1, s4",
     ["s_wait_alu depctr_va_sdst(0)"]),
    ("gfx1201", 32, ["v_mov_b32 v1, s4", "v_readfirstlane_b32 s4, v1"], "s_setpc_b64 s[30:31]",
     ["s_wait_alu depctr_va_sdst(0)"]),
    ("gfx90a", 64, ["v_mov_b32 v1, 0", "v_mfma_f64_4x4x4f64 a[0:1], v[4:5], v[4:5], a[0:1]"],
     "global_store_dword v[2:3], v1, off", ["s_nop 0"]),
])
def test_sequences(name: str, wave_size: int, before: list[str], inst: str, expected: list[str]) -> None:
    assert needed(instruction_set(target(name), wave_size), before, inst) == expected


def anything(isa: InstructionSet) -> Inst:
    """Something with operands to take a cure's registers from."""
    return isa.parse("v_mov_b32 v1, v2")


@pytest.mark.parametrize("row", EACH_TARGET)
def test_every_cure_ends_what_it_is_for(row) -> None:
    for wave_size in row.wave_sizes:
        isa = instruction_set(row, wave_size)
        for hazard in select_mitigated_hazards(isa):
            chains = {(hazard, len(hazard.links), len(hazard.links) - 1): RegSet.by_file(sgpr=1 << 106 | 1, vgpr=1)}
            for text in hazard.mitigation(isa, anything(isa)):
                chains = drop_ended_patterns(chains, isa.parse(text))
            assert not chains, hazard.name


def test_code_has_only_hazards_of_which_it_has_every_instruction() -> None:
    isa = instruction_set(target("gfx1100"), 32)
    texts = "v_mov_b32 v1, v2", "ds_load_b32 v1, v2", "lds_direct_load v1 wait_vdst:15"
    names = [sorted(row.name.split()[0] for row in possible_patterns(isa, {isa.parse(text).op for text in chosen}))
             for chosen in (texts[:2], texts[::2], texts[1:], texts)]
    assert names == [[], ["VALU"], ["memory"], ["VALU", "memory"]]


def test_cache_control_is_no_buffer_with_an_offset() -> None:
    isa = instruction_set(target("gfx1010"), 32)
    many = "image_sample_d v[0:3], [v4, v20, v30, v8, v40, v12], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D"
    assert needed(isa, [many], "buffer_gl0_inv") == []
    assert needed(isa, [many], "buffer_load_dword v1, off, s[0:3], 0 offset:4") == ["s_nop 0"]
