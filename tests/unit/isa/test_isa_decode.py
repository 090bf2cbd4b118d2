"""Decoding: golden encodings from the Vega and CDNA2 manuals and LLVM, operands, and what is refused."""

from __future__ import annotations

import random

import pytest
from each_target import EACH_TARGET

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.isa import EXEC, M0, VCC, Access, OperandKind, Reg, agpr, instruction_set, sgpr, target, vgpr

ISA = instruction_set(target("gfx90a"))


def decode(hexadecimal: str):
    return ISA.decode(bytes.fromhex(hexadecimal))


def regs(inst) -> dict[str, Reg]:
    return {operand.name: operand.reg for operand in inst.operands if operand.reg is not None}


@pytest.mark.parametrize(("code", "text", "base", "form"), [
    ("048c0480", "s_add_u32 s4, s4, 12", "S_ADD_U32", "SOP2"),
    ("04ff048078563412", "s_add_u32 s4, s4, 0x12345678", "S_ADD_U32", "SOP2"),
    ("ff0402020000c03f", "v_add_f32_e32 v1, 0x3fc00000, v2", "V_ADD_F32", "VOP2"),
    ("000001d101050202", "v_add_f32_e64 v0, v1, v2", "V_ADD_F32", "VOP3"),
    ("008050dc02007f01", "global_load_dword v1, v[2:3], off", "GLOBAL_LOAD_DWORD", "FLAT"),
    ("008009dd02017f04", "global_atomic_add v4, v[2:3], v1, off glc", "GLOBAL_ATOMIC_ADD", "FLAT"),
    ("00001ad801020000", "ds_write_b32 v1, v2", "DS_WRITE_B32", "DS"),
    ("030106c010000000", "s_load_dwordx2 s[4:5], s[6:7], 0x10", "S_LOAD_DWORDX2", "SMRD"),
    ("0040b0d302091a1c", "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]", "V_PK_FMA_F32", "VOP3P"),
    ("0105947d", "v_cmp_eq_u32_e32 vcc, v1, v2", "V_CMP_EQ_U32", "VOPC"),
    ("000081bf", "s_endpgm", "S_ENDPGM", "SOPP"),
    ("700f8cbf", "s_waitcnt vmcnt(0)", "S_WAITCNT", "SOPP"),
])
def test_golden(code: str, text: str, base: str, form: str) -> None:
    inst = decode(code)
    assert (ISA.text(inst), inst.op.base, inst.op.format, inst.raw.hex()) == (text, base, form, code)


def test_registers_have_one_place() -> None:
    assert regs(decode("c101febe"))["sdst"] == sgpr(EXEC, 2)          # s_mov_b64 exec, -1
    assert regs(decode("03008ad204f80000"))["src1"] == sgpr(M0)       # v_writelane_b32 v3, s4, m0
    assert regs(decode("0400cad001050200")) == {"sdst": sgpr(4, 2), "src0": vgpr(1), "src1": vgpr(2)}
    assert regs(decode("0140d8d303010018"))["src0"] == agpr(3)        # v_accvgpr_read_b32 v1, a3
    assert regs(decode("6a0001d101050202"))["vdst"] == vgpr(106)      # not VCC


def test_constants_have_the_bits_that_the_operation_sees() -> None:
    assert decode("f2040202")["src0"].value == 0x3F800000             # v_add_f32 v1, 1.0, v2
    assert decode("c3040202")["src0"].value == 0xFFFFFFFD             # -3
    assert decode("0000ccd102e51904")["src1"].value == 0x3FF0000000000000  # v_fma_f64 ..., 1.0, ...
    assert decode("c101febe")["src0"].value == (1 << 64) - 1
    assert decode("ff4cc27c0000f03f")["src0"].value == 0x3FF00000 << 32    # v_cmp_lt_f64 vcc, literal, v[38:39]
    assert decode("ff01febe000000f0")["src0"].value == 0xF0000000     # s_mov_b64 exec, literal: zero-extended


def test_absent_offsets_branches_and_modifiers() -> None:
    load = decode("f0bf50dc02007f01")
    assert load["offset"].value == -16 and load["offset"].access is Access.NONE
    branch = decode("fdff82bf")
    assert branch["simm16"].kind is OperandKind.TARGET and branch["simm16"].value == -3
    assert branch.branch_target(0x1000) == 0x1000 + 4 - 12
    assert decode("000081bf").branch_target(0) is None


def test_data_of_loads_and_stores_has_its_width() -> None:
    store = ISA.make("global_store_dwordx4", vgpr(0, 2), vgpr(4, 4), "off")
    assert regs(store) == {"vaddr": vgpr(0, 2), "vdata": vgpr(4, 4)}
    assert [info.dwords for info in store.op.operands if info.name == "vdata"] == [4]


@pytest.mark.parametrize("code", [
    "ffffffff",              # no such encoding
    "e2000080",              # reserved source 226
    "7d000080",              # null, which gfx9 does not have
    "ff000080",              # literal that is cut off
    "008050dc",              # half an instruction
    "0000",
    "",
    "000001d1ff040202",      # VOP3 takes no literal on gfx9
    "008054dc02007f01",      # v[1:2] does not start at an even register
    "008054dc02007fff",      # v[255:256]
    "fa04020201ff01ff",      # reserved dpp_ctrl
    "f904020201070606",      # reserved dst_sel
])
def test_refused(code: str) -> None:
    with pytest.raises(Malformed):
        ISA.decode(bytes.fromhex(code))


def test_offset_and_memoryview() -> None:
    data = memoryview(bytes.fromhex("00000000048c0480"))
    assert ISA.text(ISA.decode(data, 4)) == "s_add_u32 s4, s4, 12"


def test_random_words_never_raise_anything_else() -> None:
    generator = random.Random(7)
    found = 0
    for _ in range(20000):
        data = generator.randbytes(12)
        try:
            inst = ISA.decode(data)
        except Malformed:
            continue
        found += 1
        assert inst.raw == data[:len(inst.raw)]
        assert ISA.text(inst) and inst.reads is not None
        assert ISA.decode(ISA.encode(inst.op, inst.fields, inst.literal)).fields == inst.fields
    assert found > 5000


@pytest.mark.parametrize("row", EACH_TARGET)
def test_every_target_has_tables(row) -> None:
    isa = instruction_set(row)
    assert isa.decode(isa.make("s_mov_b32", sgpr(4), sgpr(VCC)).raw)["src0"].reg == sgpr(VCC)


def test_wave_sizes() -> None:
    assert instruction_set(target("gfx1030"), 64).wave_size == 64
    assert instruction_set(target("gfx1030")) is instruction_set(target("gfx1030"), 32)
    with pytest.raises(Invalid, match="no waves of 32"):
        instruction_set(target("gfx90a"), 32)


@pytest.mark.parametrize(("name", "code", "text"), [
    ("gfx1250", "e60184be", "s_mov_b64 s[4:5], src_flat_scratch_base_lo"),
    ("gfx1250", "e70084be", "s_mov_b32 s4, src_flat_scratch_base_hi"),
    ("gfx1100", "026022d5eab6ae037e4d9407",
     "v_subrev_co_ci_u32_e64_dpp v2, s96, v126, v91, src_shared_base dpp8:[5,1,1,2,1,7,1,0] fi:1"),
    ("gfx803", "d0fc7ad8010000fb", "ds_swizzle_b32 v251, v1 offset:64720"),
    ("gfx90a", "d0fc7ad8010000fb", "ds_swizzle_b32 v251, v1 offset:swizzle(FFT,16)"),
    ("gfx1030", "487f0bf47d00e048", "s_load_dwordx4 null, s[16:17], s36 offset:0x7d glc dlc"),
    *[("gfx1250", f"000035cc51a102{source}400033cc20210202",  # nothing reads the third source of the scales
       "v_wmma_scale_f32_16x16x128_f8f6f4 v[64:71], v[32:47], v[16:31], 0, v81, v80") for source in ("02", "04")],
])
def test_what_depends_on_the_generation(name: str, code: str, text: str) -> None:
    isa = instruction_set(target(name))
    assert " ".join(isa.text(isa.decode(bytes.fromhex(code))).split()) == text


@pytest.mark.parametrize(("name", "code"), [
    ("gfx900", "e60184be"), ("gfx1250", "e70184be"), ("gfx900", "fb30b5d002013c06")])
def test_reserved_ones_are_refused(name: str, code: str) -> None:
    with pytest.raises(Malformed):
        instruction_set(target(name)).decode(bytes.fromhex(code))
