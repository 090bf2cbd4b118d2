"""Assembling, renaming and changing fields; what is not legal is refused with a reason."""

from __future__ import annotations

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.isa import EXEC, M0, VCC, agpr, instruction_set, sgpr, target, vgpr

ISA = instruction_set(target("gfx90a"))
V, S, A = vgpr, sgpr, agpr


def text(name, *operands, **modifiers) -> str:
    return ISA.text(ISA.make(name, *operands, **modifiers))


@pytest.mark.parametrize(("made", "expected"), [
    (("V_ADD_F32", V(1), 1.0, V(2)), "v_add_f32_e32 v1, 1.0, v2"),
    (("v_add_f32", V(1), V(2), S(3)), "v_add_f32_e64 v1, v2, s3"),
    (("v_add_f32", V(1), 1.5, V(2)), "v_add_f32_e32 v1, 0x3fc00000, v2"),
    (("v_add_f16", V(1), 0.5, V(2)), "v_add_f16_e32 v1, 0.5, v2"),
    (("v_fma_f64", V(0, 2), V(2, 2), 1.0, V(4, 2)), "v_fma_f64 v[0:1], v[2:3], 1.0, v[4:5]"),
    (("v_mov_b32_e64", V(1), 5), "v_mov_b32_e64 v1, 5"),
    (("v_cmp_lt_f64", S(VCC, 2), 3.0, V(2, 2)), "v_cmp_lt_f64_e32 vcc, 0x40080000, v[2:3]"),
    (("s_mov_b64", S(EXEC, 2), -1), "s_mov_b64 exec, -1"),
    (("s_mov_b64", S(4, 2), 0xFFFFFFFF), "s_mov_b64 s[4:5], 0xffffffff"),
    (("s_cbranch_scc0", -2), "s_cbranch_scc0 65534"),
    (("s_mov_b32", S(M0), 7), "s_mov_b32 m0, 7"),
    (("v_madak_f32", V(1), V(2), V(3), 2.5), "v_madak_f32 v1, v2, v3, 0x40200000"),
    (("s_setreg_imm32_b32", 0xF801, 5), "s_setreg_imm32_b32 hwreg(HW_REG_MODE), 5"),
    (("ds_read2_b32", V(2, 2), V(1)), "ds_read2_b32 v[2:3], v1"),
    (("global_load_dword", V(1), V(2), S(4, 2)), "global_load_dword v1, v2, s[4:5]"),
    (("global_load_dword", A(1), V(2, 2), None), "global_load_dword a1, v[2:3], off"),
    (("v_mbcnt_lo_u32_b32", V(1), -1, 0), "v_mbcnt_lo_u32_b32 v1, -1, 0"),
    (("v_writelane_b32", V(3), S(4), S(M0)), "v_writelane_b32 v3, s4, m0"),
    (("s_endpgm",), "s_endpgm"),
    (("v_pk_add_f16", V(1), V(2), V(3)), "v_pk_add_f16 v1, v2, v3"),
])
def test_smallest_legal_encoding(made, expected) -> None:
    assert text(*made) == expected


def test_modifiers() -> None:
    assert text("global_load_dword", V(1), V(2, 2), "off", offset=-16, glc=True) == \
        "global_load_dword v1, v[2:3], off offset:-16 glc"
    assert text("buffer_load_dword", V(1), V(2), S(4, 4), 0, offen=True, offset=16) == \
        "buffer_load_dword v1, v2, s[4:7], 0 offen offset:16"
    assert text("v_add_f32_e64", V(1), V(2), V(3), clamp=1, omod=1) == "v_add_f32_e64 v1, v2, v3 clamp mul:2"
    assert text("v_add_f32_e64", V(1), V(2), V(3), src1_modifiers=1) == "v_add_f32_e64 v1, v2, -v3"
    assert text("v_mov_b32_dpp", V(1), V(2), dpp_ctrl=0x111) == \
        "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf"
    assert text("buffer_atomic_add", V(1), V(2), S(4, 4), 0, offen=True, glc=True).endswith("offen glc")


@pytest.mark.parametrize(("made", "reason"), [
    (("s_add_u32", S(4), 0x12345, 0x54321), "two different literals"),
    (("v_add_f32", V(1), S(2), S(3)), "more than 1 scalar"),
    (("v_addc_co_u32_e32", V(1), S(VCC, 2), S(2), V(3), S(VCC, 2)), "more than 1 scalar"),
    (("global_load_dwordx2", V(1, 2), V(2, 2), "off"), "even registers"),
    (("s_mov_b64", S(3, 2), 0), "multiple of 2"),
    (("s_load_dwordx4", S(6, 4), S(8, 2), 0), "multiple of 4"),
    (("s_load_dword", S(M0), S(8, 2), 0), "no operand names it"),
    (("s_mov_b64", S(101, 2), 0), "multiple of 2"),
    (("s_load_dwordx4", S(100, 4), S(8, 2), 0), "no operand names it"),
    (("v_mov_b32", S(1), V(1)), "registers of kind V"),
    (("v_mov_b32", V(1), V(2, 2)), "takes 1 dwords"),
    (("no_such_thing",), "no instruction"),
    (("s_nop", 70000), "between 0 and 65535"),
    (("s_branch", 40000), "between -32768 and 32767"),
    (("v_fma_f32", V(0), V(1), V(2), 3.14), "takes no literal"),
    (("v_mov_b32", V(0), 1 << 32), "does not fit"),
    (("v_fma_f64", V(0, 2), V(2, 2), V(4, 2), 0.1), "cannot be 0x"),
    (("s_add_u32", S(1), S(2)), "takes 3 operands"),
    (("s_add_u32", S(1), S(2), 1.0e60), "cannot hold"),
    (("global_load_dword", V(1), V(2, 2), "on"), "must be off"),
    (("v_mov_b32", V(256), V(1)), "256 registers can be named"),
])
def test_refused(made, reason) -> None:
    with pytest.raises(Invalid, match=reason):
        ISA.make(*made)


def test_refused_modifiers() -> None:
    with pytest.raises(Invalid, match="has no offset"):
        ISA.make("v_mov_b32", V(1), V(2), offset=3)
    with pytest.raises(Invalid, match="between -4096 and 4095"):
        ISA.make("global_load_dword", V(1), V(2, 2), "off", offset=5000)
    with pytest.raises(Invalid, match="between 0 and 4095"):
        ISA.make("flat_load_dword", V(1), V(2, 2), offset=5000)


def test_renaming_keeps_every_other_bit() -> None:
    inst = ISA.decode(bytes.fromhex("007850d102070a04"))  # src2 of a two-operand VOP3 is don't-care
    moved = ISA.with_registers(inst, lambda operand: operand.reg.index + 16)
    back = ISA.with_registers(moved, lambda operand: operand.reg.index - 16)
    assert back.raw == inst.raw and moved.raw != inst.raw
    assert [operand.reg.index - 16 for operand in moved.operands if operand.reg] == \
        [operand.reg.index for operand in inst.operands if operand.reg]


def test_renaming_leaves_special_registers_alone_and_refuses_what_cannot_be_named() -> None:
    inst = ISA.make("s_and_b64", S(VCC, 2), S(4, 2), S(6, 2))
    moved = ISA.with_registers(inst, lambda o: o.reg.index if o.reg.index == VCC else o.reg.index + 10)
    assert ISA.text(moved) == "s_and_b64 vcc, s[14:15], s[16:17]"
    with pytest.raises(Invalid, match="multiple of 2"):
        ISA.with_registers(inst, lambda o: o.reg.index + 1)
    load = ISA.make("global_load_dwordx2", V(2, 2), V(4, 2), "off")
    with pytest.raises(Invalid, match="even registers"):
        ISA.with_registers(load, lambda o: o.reg.index + 1)
    assert ISA.with_registers(load, lambda o: o.reg.index) is load


def test_renaming_follows_implied_fields() -> None:
    fmac = ISA.make("v_fmac_f32_e32", V(1), V(2), V(3))
    moved = ISA.with_registers(fmac, lambda o: o.reg.index + 8)
    assert str(moved.reads) == "exec mode v[9:11]" and str(moved.writes) == "v9"
    acc = ISA.make("ds_write2_b32", V(1), A(2), A(3))
    assert ISA.text(ISA.with_registers(acc, lambda o: o.reg.index + 1)) == "ds_write2_b32 v2, a3, a4"


def test_fields_and_literals() -> None:
    assert ISA.text(ISA.with_field(ISA.make("s_add_u32", S(4), S(4), 0x12345678), "literal", 77)) == \
        "s_add_u32 s4, s4, 0x4d"
    assert ISA.with_field(ISA.make("s_branch", 4), "simm16", -9)["simm16"].value == -9
    assert ISA.with_field(ISA.make("v_madak_f32", V(1), V(2), V(3), 2.5), "literal", 7)["imm"].value == 7
    load = ISA.make("global_load_dword", V(1), V(2, 2), "off", glc=True)
    assert ISA.text(ISA.with_field(load, "offset", -8)) == "global_load_dword v1, v[2:3], off offset:-8 glc"
    with pytest.raises(Invalid, match="has no field"):
        ISA.with_field(load, "literal", 3)
    with pytest.raises(Invalid, match="between -4096 and 4095"):
        ISA.with_field(load, "offset", 5000)


def test_encode_checks_fields() -> None:
    op = ISA.make("s_add_u32", S(4), S(4), 12).op
    assert ISA.encode(op, [4, 4, 140]).hex() == "048c0480"
    with pytest.raises(Invalid, match="3 fields"):
        ISA.encode(op, [4, 4])
    with pytest.raises(Invalid, match="none is given"):
        ISA.encode(op, [4, 4, 255])
    with pytest.raises(Invalid, match="no source takes it"):
        ISA.encode(op, [4, 4, 4], 7)
