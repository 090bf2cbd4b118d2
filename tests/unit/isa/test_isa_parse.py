"""Assembly text to instructions: what is read, where errors point, and listings with labels."""

from __future__ import annotations

import random

import pytest

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.isa import InstructionSet, OperandKind, instruction_set, target


def isa_of(gpu: str) -> InstructionSet:
    return instruction_set(target(gpu))


@pytest.mark.parametrize(("gpu", "text", "code"), [
    ("gfx90a", "s_add_u32 s4, s4, 12", "048c0480"),
    ("gfx90a", "  s_add_u32   s4 ,s4,0x12345678 ; comment", "04ff048078563412"),
    ("gfx90a", "v_add_f32 v1, v2, s3", "010001d102070000"),
    ("gfx90a", "v_add_f32_e64 v1, -v2, |v3| clamp mul:2", "018201d102070228"),
    ("gfx90a", "v_fma_f64 v[0:1], v[2:3], 1.0, v[4:5]", "0000ccd102e51104"),
    ("gfx90a", "s_waitcnt vmcnt(0) lgkmcnt(0)", "70008cbf"),
    ("gfx90a", "s_waitcnt vmcnt(0) & lgkmcnt(0)", "70008cbf"),
    ("gfx90a", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3", "010900ba03000000"),
    ("gfx90a", "s_endpgm", "000081bf"),
    ("gfx90a", "global_load_dword v1, v[2:3], off offset:-16 glc", "f09f51dc02007f01"),
    ("gfx90a", "buffer_load_dword v1, off, s[4:7], 0 offset:16", "100050e000010180"),
    ("gfx90a", "v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "fa02027e021101ff"),
    ("gfx90a", "v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD", "f902027e02150600"),
    ("gfx90a", "ds_swizzle_b32 v1, v2 offset:swizzle(SWAP,16)", "1f407ad802000001"),
    ("gfx90a", "ds_swizzle_b32 v1, v2 offset:swizzle(BROADCAST,32,31)", "e0037ad802000001"),
    ("gfx90a", "ds_swizzle_b32 v1, v2 offset:swizzle(ROTATE,1,31)", "e0c77ad802000001"),
    ("gfx90a", "s_nop 010", "080080bf"),
    ("gfx90a", "v_cmp_lt_f64 vcc, 0x40080000, v[2:3]", "ff04c27c00000840"),
    ("gfx90a", "v_mfma_f32_32x32x8f16 a[0:15], v[32:33], v[34:35], a[0:15]", "0080ccd320450204"),
    ("gfx1030", "image_sample v[0:3], [v4, v9], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D",
     "0a0f80f00400400009000000"),
    ("gfx1030", "tbuffer_load_format_x v1, off, s[4:7], 0 format:[BUF_FMT_32_FLOAT]", "0000b0e800010180"),
    ("gfx1030", "s_getreg_b32 s4, hwreg(HW_REG_HW_ID1)", "17f804b9"),
    ("gfx1030", "exp mrt0 v0, v1, off, v2 done vm", "0b1800f800010002"),
    ("gfx1100", "v_add_f16 v1.h, v2.l, v3.h", "020703 65".replace(" ", "")),
    ("gfx1100", "v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5", "010506c9040b0200"),
    ("gfx1100", "s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(SALU_CYCLE_1)", "910487bf"),
    ("gfx1100", "s_sendmsg_rtn_b32 s4, sendmsg(MSG_RTN_GET_REALTIME)", "834c84be"),
    ("gfx1201", "global_load_b32 v1, v[2:3], off offset:64 th:TH_LOAD_NT scope:SCOPE_DEV", "7c0005ee0100180002400000"),
    ("gfx1201", "s_wait_loadcnt 0x0", "0000c0bf"),
    ("gfx1030", "s_movrels_b32 s4, src_vccz", "fb2e84be"),
    ("gfx1030", "v_fma_mix_f32 v1, v2, 0x1234, v3", "010020cc02ff0d0434120000"),
    ("gfx1010", "s_buffer_store_dwordx4 null, ttmp[4:7], s95 offset:0x7f dlc", "785f68f47f0000be"),
    ("gfx1100", "v_wmma_f32_16x16x16_f16 v[230:237], v[163:170], v[182:189], 0.5 neg_lo:[1,1,0]", "e64040cca36dc37b"),
    ("gfx1250", "v_max_i64 v[2:3], 0xffffffff, v[4:5]", "02001bd7ff080200ffffffff"),
    ("gfx1250", "s_mov_b64 s[2:3], 0xffffffff", "fe0182beffffffff00000000"),
    ("gfx1250", "s_mov_b64 s[2:3], -100", "fe0182be9cffffffffffffff"),
    ("gfx1250", "s_and_b64 s[2:3], s[4:5], -100", "04fe828b9cffffffffffffff"),
    ("gfx1250", "v_add_nc_u64_e32 v[2:3], -100, v[4:5]", "fe0804509cffffffffffffff"),
    ("gfx1250", "v_cmp_eq_i64_e32 vcc_lo, -100, v[2:3]", "fe04a47c9cffffffffffffff"),
    ("gfx1250", "v_cmp_eq_i64_e64 s12, -100, v[2:3]", "0c0052d4ff0402009cffffff"),
    ("gfx1250", "s_mov_b64 s[2:3], lit64(0x1)", "fe0182be0100000000000000"),
    ("gfx1250", "v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v2, v4, v5", "01410ccf0401020000050002"),
])
def test_golden(gpu: str, text: str, code: str) -> None:
    isa = isa_of(gpu)
    inst = isa.parse(text)
    assert inst.raw.hex() == code
    assert isa.parse(isa.text(inst)).raw == inst.raw


@pytest.mark.parametrize(("text", "column", "reason"), [
    ("s_frob s1", 1, "no instruction s_frob"),
    ("s_add_u32 s1, s2", 16, "takes 3 operands, not 2"),
    ("s_add_u32 s1, s2, s3, s4", 23, "takes 3 operands, not 4"),
    ("s_add_u32 s1, q2, s3", 15, "'q2' is no register"),
    ("s_add_u32 s1, s2, v3", 19, "registers of kind"),
    ("s_mov_b64 s[3:4], 0", 11, "multiple of 2"),
    ("global_load_dword v1, v[2:3], off offset:70000", 35, "between -4096 and 4095"),
    ("global_load_dword v1, v[2:3], off bogus", 35, "no bogus"),
    ("v_mov_b32 v1,", 14, "operand is missing"),
    ("v_fma_f32 v0, v1, v2, 3.5", 23, "takes no literal"),
    ("s_add_u32 s1, 0x12345, 0x54321", 24, "two different literals"),
    ("s_waitcnt xcnt(0)", 10, "unknown counter"),
    ("s_waitcnt vmcnt 0", 10, "cannot read"),
    ("s_getreg_b32 s1, hwreg(HW_REG_FROB)", 24, "integer is expected"),
    ("v_mov_b32_dpp v1, v2 quad_perm:0 row_mask:0xf bank_mask:0xf", 32, "list in brackets"),
    ("", 1, "instruction is expected"),
])
def test_errors_point_at_the_column(text: str, column: int, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as caught:
        isa_of("gfx90a").parse(text)
    assert f"column {column}:" in str(caught.value)


def test_listing() -> None:
    code = isa_of("gfx90a").assemble("""
        s_mov_b32 s4, 10          ; counter
    again: s_sub_u32 s4, s4, 1
        s_cmp_lg_u32 s4, 0        // done?
        s_cbranch_scc1 again
        s_cbranch_scc0 done
        s_nop 0
    done:
        s_endpgm
    """)
    assert [code[k:k + 4].hex() for k in range(12, 20, 4)] == ["fdff85bf", "010084bf"]
    assert isa_of("gfx90a").assemble("") == b""


@pytest.mark.parametrize(("listing", "reason"), [
    ("s_nop 0\ns_nop s1", "line 2, column 7: .*number"),
    ("a: s_nop 0\na: s_nop 0", "line 2: label a is there twice"),
    ("s_branch nowhere", "line 1, column 10: 'nowhere' is no"),
])
def test_listings_that_are_wrong(listing: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        isa_of("gfx90a").assemble(listing)


@pytest.mark.parametrize("gpu", ["gfx90a", "gfx1030", "gfx1100", "gfx1201"])
def test_what_is_printed_is_read(gpu: str) -> None:
    """Random instructions: what parses gives the same text again."""
    isa, generator, read = isa_of(gpu), random.Random(5), 0
    for op in isa.ops[::23]:
        word = (op.value | generator.getrandbits(8 * op.size_bytes) & ~op.mask).to_bytes(op.size_bytes, "little")
        try:
            text = isa.text(isa.decode(word + bytes(12)))
            again = isa.parse(text)
        except (Malformed, Invalid):
            continue
        read += 1
        assert isa.text(again) == text or "lit(" in text or ".l" in isa.text(again)  # a half that is not said
    assert read > 50


def test_nonsense_is_refused_and_nothing_else() -> None:
    generator = random.Random(6)
    pieces = ["v_add_f32", "s_mov_b64", "global_load_dword", "v1", "s[2:3]", ",", "[", ")", "offset:", "-", "|", "lit(",
              "neg(", "::", "0x", "1.0", "off", "v[", "\"", "quad_perm:[", "exp", "hwreg(", "swizzle(", "a[3:1]"]
    for _ in range(3000):
        text = " ".join(generator.choices(pieces, k=generator.randrange(1, 8)))
        try:
            isa_of("gfx90a").parse(text)
        except Invalid:
            continue


@pytest.mark.parametrize(("operand", "reason"), [
    ("QUAD_PERM,5,0,0,0", "QUAD_PERM does not take 5"), ("SWAP,3", "SWAP does not take 3"), ("SWAP,32", "not take 32"),
    ("FFT,100", "not take 100"), ("BROADCAST,2,2", "no lane 2 in a group of 2"), ("REVERSE,1", "not take 1"),
    ("ROTATE,2,0", "not take 2"), ("FFT,08", "an integer is expected"), ("FFT", "cannot read|arguments"),
])
def test_swizzles_that_there_are_not(operand: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        isa_of("gfx90a").parse(f"ds_swizzle_b32 v1, v2 offset:swizzle({operand})")


@pytest.mark.parametrize(("gpu", "text", "reason"), [
    ("gfx90a", "v_add_f32_e64 v1, s2, s3", "reads more than 1 scalar"),
    ("gfx90a", "v_addc_co_u32_e64 v1, vcc, s2, v3, vcc", "reads more than 1 scalar"),
    ("gfx90a", "v_cndmask_b32_e32 v1, s2, v3, vcc", "reads more than 1 scalar"),
    ("gfx1030", "v_fma_f32 v1, s2, s3, 0x1234567", "reads more than 2 scalar"),
    ("gfx1030", "v_lshlrev_b64 v[0:1], s2, s[4:5]", "reads more than 1 scalar"),
    ("gfx1100", "v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v5, v7", "src0 of both halves, v1 and v5, are in the"),
    ("gfx1100", "v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v6", "src1 of both halves"),
    ("gfx1100", "v_dual_fmac_f32 v0, v1, v2 :: v_dual_fmamk_f32 v3, v4, 0x11111, v8", "src2 of both halves"),
    ("gfx1250", "v_pk_add_f32 v[0:1], s[0:1], v[2:3]", "src0 is a scalar, of which .* op_sel and op_sel_hi must be 0"),
    ("gfx1250", "v_pk_mul_f32 v[0:1], v[2:3], s[0:1] op_sel:[0,1] op_sel_hi:[1,0]", "src1 is a scalar"),
    ("gfx1250", "v_pk_fma_f32 v[0:1], v[0:1], v[2:3], s[2:3]", "src2 is a scalar"),
])
def test_what_can_be_encoded_need_not_be_legal(gpu: str, text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        isa_of(gpu).parse(text)


@pytest.mark.parametrize(("gpu", "text"), [
    ("gfx90a", "v_add_f32_e64 v1, s2, s2"), ("gfx1030", "v_add_f32_e64 v1, s2, s3"),
    ("gfx1030", "v_add3_u32 v1, s2, null, s3"),
    ("gfx90a", "v_writelane_b32 v3, s4, m0"), ("gfx1201", "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v3, v5"),
    ("gfx1100", "v_dual_fmac_f32 v0, v1, v2 :: v_dual_fmamk_f32 v3, v4, 0x11111, v9"),
    ("gfx90a", "v_pk_add_f32 v[0:1], s[0:1], v[2:3]"), ("gfx1250", "v_pk_add_f32 v[0:1], 0x1234, v[2:3]"),
    ("gfx1250", "v_pk_add_f32 v[0:1], s[0:1], v[2:3] op_sel_hi:[0,1]"),
])
def test_legal_text_is_taken(gpu: str, text: str) -> None:
    isa = isa_of(gpu)
    assert isa.text(isa.parse(text)).startswith(text)


WIDE = ("s_mov_b64 s[2:3], {}", "s_and_b64 s[2:3], {}, 1", "s_and_b64 s[2:3], 1, {}", "s_cmp_eq_u64 {}, 1",
        "s_cmp_eq_u64 1, {}", "s_ashr_i64 s[2:3], {}, s4", "v_mov_b64_e32 v[2:3], {}",
        "v_add_nc_u64_e32 v[2:3], {}, v[4:5]", "v_cmp_eq_i64_e32 vcc_lo, {}, v[2:3]")
WIDE_VOP3 = ("v_cmp_eq_i64_e64 s12, {}, 1", "v_cmp_eq_i64_e64 s12, 1, {}", "v_cmp_eq_u64_e64 s12, {}, v[2:3]",
             "v_add_nc_u64_e64 v[2:3], {}, 1", "v_min_i64 v[2:3], v[4:5], {}", "v_lshlrev_b64_e64 v[2:3], v4, {}",
             "v_mad_nc_u64_u32 v[2:3], v4, v5, {}")


@pytest.mark.parametrize(("text", "code"), [
    ("v_add_f32 v0, lit(10.5), v1", "ff02000600002841"), ("v_add_f32 v0, lit64(10.5), v1", "ff02000600002841"),
    ("v_add_f32 v0, lit(1.0), v1", "ff0200060000803f"), ("v_add_f32 v0, lit(-2.5e0), v1", "ff020006000020c0"),
    ("v_add_f16 v0, lit(10.5), v1", "ff02006440490000"), ("s_mov_b32 s0, lit(10.5)", "ff0080be00002841"),
    ("v_pk_add_bf16 v0, lit(0.1), v1", "004023ccff020218cd3d0000"),
    ("v_pk_add_bf16 v0, 0.1, v1", "004023ccff020218cd3d0000"), ("v_pk_add_bf16 v0, 0.15915494, v1", "004023ccf8020218"),
    ("v_fmaak_f32 v0, v1, v2, lit(10.5)", "0105005a00002841"),
    ("v_fmaak_f64 v[0:1], v[2:3], v[4:5], lit64(10.5)", "020900480000000000002540"),
    ("v_add_f64 v[0:1], lit64(0.1), v[2:3]", "fe0400049a9999999999b93f"),
    ("v_add_f64 v[0:1], 0.1, v[2:3]", "fe0400049a9999999999b93f"),
    ("v_add_f64 v[0:1], 10.5, v[2:3]", "ff04000400002540"),
    ("v_add_f64 v[0:1], lit(10.5), v[2:3]", "ff04000400002540"),  # newer LLVM: see test_literals_of_wide_operands
    ("v_add_f64 v[0:1], v[2:3], lit(10.5)", "000002d502ff010000002540"), ("s_mov_b64 s[0:1], 1.0", "f20180be"),
])
def test_floats_as_literals(text: str, code: str) -> None:
    """As llvm-mc has them, but for lit() of f64."""
    assert isa_of("gfx1250").parse(text).raw.hex() == code


@pytest.mark.parametrize("number", ["10.5", "lit(10.5)", "lit(1.0)", "lit64(10.5)"])
@pytest.mark.parametrize("text", [*WIDE, *WIDE_VOP3])
def test_integers_of_64_bits_have_no_floats_as_literals(text: str, number: str) -> None:
    """Of 32 bits they would be the upper half of a float, and stand in the lower one."""
    with pytest.raises(Invalid, match="integer of 64 bits|must be a register|no literal"):
        isa_of("gfx1250").parse(text.format(number))


@pytest.mark.parametrize("text", ["v_add_f32 v0, lit(1e300), v1", "v_fmaak_f32 v0, v1, v2, 1e300",
                                  "s_mov_b32 s0, lit(1.0.0)",
                                  "v_add_f64 v[0:1], v[2:3], lit64(0.1)", "s_mov_b32 s0, lit(inf)"])
def test_floats_that_do_not_fit(text: str) -> None:
    with pytest.raises(Invalid):
        isa_of("gfx1250").parse(text)


@pytest.mark.parametrize("text", WIDE + WIDE_VOP3)
def test_literals_of_wide_operands(text: str) -> None:
    """lit() is a literal of 32 bits, in any encoding, and reads back as such; VOP3 has room for no other (LLVM, pull
    request 197561, and what it was before in LLVM 22: four dwords, which no hardware takes)."""
    isa = isa_of("gfx1250")
    narrow, size = isa.parse(text.format("lit(0x1)")), 8 if text in WIDE_VOP3 else 4
    assert isa.text(narrow) == text.format("lit(0x1)") and narrow.size_bytes == size + 4
    with pytest.raises(Invalid, match="more than 32 bits"):
        isa.parse(text.format("lit(0x123456789)"))
    if text in WIDE_VOP3:
        for literal in ("lit64(0x1)", "0x123456789"):
            with pytest.raises(Invalid, match="more than 32 bits"):
                isa.parse(text.format(literal))
        return
    assert isa.text(isa.parse(text.format("lit64(0x1)"))) == text.format("lit64(0x1)")
    for number in (-100, -(1 << 31), 1 << 31, (1 << 32) - 1, 1 << 40, 0x1234, 65, -17):
        made = isa.parse(text.format(number))
        (operand,) = (each for each in made.operands if each.kind is OperandKind.CONSTANT and each.value != 1)
        assert operand.value == number % (1 << 64), number
