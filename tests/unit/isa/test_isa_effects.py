"""Effects by hand: what each kind of instruction reads, writes and keeps (manual sections in the names)."""

from __future__ import annotations

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.isa import Counter, OpFlag, Space, agpr, instruction_set, sgpr, target, vgpr

ISA = instruction_set(target("gfx90a"))
V, S, A = vgpr, sgpr, agpr


def effects(name, *operands, **modifiers) -> tuple[str, str, str]:
    inst = ISA.make(name, *operands, **modifiers)
    return str(inst.reads), str(inst.writes), str(inst.partial_writes)


@pytest.mark.parametrize(("made", "reads", "writes", "kept"), [
    (("s_add_u32", S(4), S(5), 1), "s5", "s4 scc", ""),
    (("s_addc_u32", S(4), S(5), S(6)), "s[5:6] scc", "s4 scc", ""),
    (("s_cmov_b32", S(4), S(5)), "s[4:5] scc", "s4", ""),
    (("s_cmovk_i32", S(4), 5), "s4 scc", "s4", ""),
    (("s_addk_i32", S(4), 5), "s4", "s4 scc", ""),
    (("s_movk_i32", S(4), 5), "", "s4", ""),
    (("s_bitset1_b32", S(4), 5), "s4", "s4", ""),
    (("s_and_saveexec_b64", S(4, 2), S(106, 2)), "vcc exec", "s[4:5] exec scc", ""),
    (("s_mov_b32", S(4), "src_scc"), "scc", "s4", ""),
    (("s_mov_b64", S(4, 2), "src_execz"), "exec", "s[4:5]", ""),
    (("s_swappc_b64", S(30, 2), S(4, 2)), "s[4:5]", "s[30:31]", ""),
    (("s_cbranch_vccz", 4), "vcc", "", ""),
    (("s_cbranch_execz", 4), "exec", "", ""),
    (("s_load_dwordx4", S(4, 4), S(8, 2), 0), "s[8:9]", "s[4:7]", ""),
    (("v_mov_b32", V(1), S(3)), "s3 exec", "v1", ""),
    (("v_add_f32", V(1), V(2), V(3)), "exec mode v[2:3]", "v1", ""),
    (("v_addc_co_u32", V(1), S(106, 2), V(2), V(3), S(106, 2)), "vcc exec v[2:3]", "vcc v1", ""),
    (("v_cmp_eq_u32", S(106, 2), V(1), V(2)), "exec v[1:2]", "vcc", ""),
    (("v_cmp_eq_u32", S(4, 2), V(1), V(2)), "exec v[1:2]", "s[4:5]", ""),
    (("v_cmpx_eq_u32_e32", S(106, 2), V(1), V(2)), "exec v[1:2]", "vcc exec", ""),
    (("v_cndmask_b32_e32", V(1), V(2), V(3), S(106, 2)), "vcc exec v[2:3]", "v1", ""),
    (("v_fmac_f32_e32", V(1), V(2), V(3)), "exec mode v[1:3]", "v1", ""),
    (("v_swap_b32", V(1), V(2)), "exec v[1:2]", "v[1:2]", ""),
    (("v_readlane_b32", S(4), V(3), 5), "v3", "s4", ""),
    (("v_readfirstlane_b32", S(4), V(3)), "exec v3", "s4", ""),
    (("v_writelane_b32", V(3), S(4), 5), "s4 v3", "v3", "v3"),
    (("v_mad_f16", V(1), V(2), V(3), V(4)), "exec mode v[1:4]", "v1", "v1"),
    (("v_fma_mixhi_f16", V(1), V(2), V(3), V(4)), "exec mode v[1:4]", "v1", "v1"),
    (("v_pack_b32_f16", V(1), V(2), V(3)), "exec mode v[2:3]", "v1", ""),
    (("v_accvgpr_write_b32", A(4), V(1)), "exec v1", "a4", ""),
    (("v_mfma_f32_32x32x8f16", A(0, 16), V(32, 2), V(34, 2), A(0, 16)), "exec mode v[32:35] a[0:15]", "a[0:15]", ""),
    (("global_load_dword", V(1), V(2, 2), "off"), "exec v[2:3]", "v1", ""),
    (("global_load_short_d16_hi", V(1), V(2, 2), "off"), "exec v[1:3]", "v1", "v1"),
    (("global_atomic_add", V(4), V(2, 2), V(1), "off"), "exec v[1:3]", "v4", ""),
    (("flat_load_dword", V(1), V(2, 2)), "flat_scratch exec v[2:3]", "v1", ""),
    (("scratch_store_dword", "off", V(1), S(33)), "s33 flat_scratch exec v1", "", ""),
    (("ds_read_b64", V(2, 2), V(1)), "exec v1", "v[2:3]", ""),
    (("ds_read2_b64", A(4, 4), V(1)), "exec v1", "a[4:7]", ""),
    (("s_sendmsg", 1), "m0 exec", "", ""),
    (("s_setreg_imm32_b32", 1, 0), "mode", "mode", ""),
    (("s_getpc_b64", S(4, 2)), "", "s[4:5]", ""),
], ids=lambda value: value[0] if isinstance(value, tuple) else None)
def test_registers(made, reads, writes, kept) -> None:
    assert effects(*made) == (reads, writes, kept)


def test_modifiers_that_keep_bits() -> None:
    sdwa = {"dst_sel": 4, "src0_sel": 6}
    assert effects("v_mov_b32_sdwa", V(1), V(2), dst_unused=0, **sdwa) == ("exec v2", "v1", "")
    assert effects("v_mov_b32_sdwa", V(1), V(2), dst_unused=2, **sdwa) == ("exec v[1:2]", "v1", "v1")
    assert effects("v_mov_b32_dpp", V(1), V(2), dpp_ctrl=0x101, bound_ctrl=1) == ("exec v2", "v1", "")
    assert effects("v_mov_b32_dpp", V(1), V(2), dpp_ctrl=0x101) == ("exec v[1:2]", "v1", "v1")
    assert effects("v_mov_b32_dpp", V(1), V(2), dpp_ctrl=0, bound_ctrl=1, row_mask=7)[2] == "v1"


def test_buffers() -> None:
    assert effects("buffer_load_dword", V(1), V(2), S(4, 4), 0, offen=True) == ("s[4:7] exec v2", "v1", "")
    assert effects("buffer_load_dword", V(2), S(4, 4), 0, offen=True, lds=True) == ("s[4:7] m0 exec v2", "", "")
    returning = effects("buffer_atomic_add", V(1), V(2), S(4, 4), 0, offen=True, glc=True)
    assert returning == ("s[4:7] exec v[1:2]", "v1", "")
    assert effects("buffer_load_ubyte_d16_hi", V(1), "off", S(4, 4), 0) == ("s[4:7] exec v1", "v1", "v1")


def op(name, *operands, **modifiers):
    return ISA.make(name, *operands, **modifiers).op


def test_counters_and_spaces() -> None:
    flat = op("flat_load_dword", V(1), V(2, 2))
    assert (flat.counters, flat.spaces) == (Counter.VM | Counter.LGKM, Space.GLOBAL | Space.LDS | Space.SCRATCH)
    store = op("global_store_dword", V(0, 2), V(2), "off")
    assert (store.counters, store.spaces) == (Counter.VM, Space.GLOBAL)
    assert op("ds_read_b32", V(1), V(2)).counters is Counter.LGKM
    assert op("ds_bpermute_b32", V(1), V(2), V(3)).spaces is Space.NONE
    assert op("scratch_load_dword", V(1), V(2), "off").spaces is Space.SCRATCH
    assert op("s_load_dword", S(4), S(6, 2), 0).spaces is Space.SCALAR
    assert op("s_memtime", S(4, 2)).counters is Counter.LGKM
    to_lds = op("buffer_load_dword", "off", S(4, 4), 0, lds=True)
    assert Space.LDS in to_lds.spaces and to_lds.base == "BUFFER_LOAD_DWORD_LDS"
    assert op("v_mov_b32", V(1), V(2)).counters is Counter.NONE


def test_flags() -> None:
    atomic = op("global_atomic_add", V(4), V(2, 2), V(1), "off")
    assert OpFlag.ATOMIC_RETURN in atomic.flags and atomic.base == "GLOBAL_ATOMIC_ADD"
    silent = op("global_atomic_add", V(2, 2), V(1), "off")
    assert OpFlag.ATOMIC in silent.flags and OpFlag.ATOMIC_RETURN not in silent.flags and silent.base == atomic.base
    assert OpFlag.ATOMIC not in op("ds_write_b32", V(1), V(2)).flags
    assert op("ds_add_rtn_u32", V(1), V(2), V(3)).base == op("ds_add_u32", V(2), V(3)).base == "DS_ADD_U32"
    branch = OpFlag.SALU | OpFlag.BRANCH | OpFlag.TERMINATOR
    assert op("s_branch", 1).flags == branch and op("s_cbranch_scc0", 1).flags == branch | OpFlag.CONDITIONAL
    assert OpFlag.TERMINATOR not in op("s_swappc_b64", S(30, 2), S(4, 2)).flags
    leaves = OpFlag.INDIRECT | OpFlag.TERMINATOR
    assert op("s_setpc_b64", S(4, 2)).flags & leaves == leaves
    assert OpFlag.END in op("s_endpgm").flags and OpFlag.BARRIER in op("s_barrier").flags
    matrix = op("v_mfma_f32_4x4x1f32", A(0, 4), V(4), V(5), A(0, 4)).flags
    assert OpFlag.MATRIX in matrix and OpFlag.IGNORES_EXEC in matrix
    assert OpFlag.MATRIX not in op("v_accvgpr_read_b32", V(1), A(1)).flags
    assert OpFlag.VALU not in op("buffer_load_dword", "off", S(4, 4), 0, lds=True).flags


@pytest.mark.parametrize(("name", "text", "kept"), [
    ("gfx1100", "v_add_f16 v1.l, v2.l, v3.l", "v1"),
    ("gfx1201", "v_mov_b16 v1.h, v2.l", "v1"),
    ("gfx1201", "v_cvt_sr_bf8_f32 v1, v2, v3 byte_sel:1 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf", "v1"),
    ("gfx1030", "v_add_f16 v1, v2, v3", "v1"),
    ("gfx1030", "v_cvt_f16_f32 v1, v2", "v1"),
    ("gfx1030", "v_cvt_f32_f16 v1, v2", ""),
    ("gfx1030", "v_pk_add_f16 v1, v2, v3", ""),
    ("gfx900", "v_add_f16 v1, v2, v3", ""),
    ("gfx900", "v_madak_f16 v1, v2, v3, 0x1234", "v1"),
])
def test_results_of_sixteen_bits(name: str, text: str, kept: str) -> None:
    """Which keep the other half differs between generations (GCNSubtarget::zeroesHigh16BitsOfDest)."""
    inst = instruction_set(target(name)).parse(text)
    assert str(inst.partial_writes) == kept and str(inst.reads & inst.partial_writes) == kept


def test_results_without_bits() -> None:
    gfx8 = instruction_set(target("gfx803"))
    inst = gfx8.parse("v_cmp_eq_f32 vcc, v1, v2 src0_sel:DWORD src1_sel:DWORD")
    assert str(inst.writes) == "vcc"


def test_what_leaves_for_an_address_in_a_register() -> None:
    flags = instruction_set(target("gfx1250")).parse("s_add_pc_i64 s[4:5]").op.flags
    assert OpFlag.INDIRECT | OpFlag.TERMINATOR in flags and OpFlag.CONDITIONAL not in flags


def test_two_destinations_in_one_instruction_are_renamed_together_or_not_at_all() -> None:
    isa = instruction_set(target("gfx1100"))
    both = isa.parse("v_dual_mov_b32 v1, v9 :: v_dual_mov_b32 v2, v8")
    moved = isa.with_registers(both, lambda operand: operand.reg.index + 2)
    assert str(moved.writes) == "v[3:4]"
    with pytest.raises(Invalid, match="beside the others"):
        isa.with_registers(both, lambda operand: 5 if operand.name == "vdstY" else operand.reg.index)


def test_what_an_index_chooses_is_not_named():
    moved = instruction_set(target("gfx1100")).parse("v_movrels_b32_e32 v1, v2")
    assert str(moved.named) == "v[1:2]" and moved.reads.vgpr.bit_count() == 256
    added = ISA.make("s_add_u32", S(4), S(5), 1)
    assert str(added.named) == "s[4:5] scc"
