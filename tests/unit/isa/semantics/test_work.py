"""What instructions compute: operations on floats, types of results, classes."""

from __future__ import annotations

import pytest
from emulated import code_object

from luthier_py.binary.loader import load
from luthier_py.isa import OpInfo, instruction_set, target
from luthier_py.isa.properties.classes import InstructionClass, class_of
from luthier_py.isa.semantics.readers.work import flops, flops_by_type
from luthier_py.program.ir import Instr, lift


@pytest.fixture(scope="module")
def ops() -> dict[str, OpInfo]:
    return {op.mnemonic: op for op in instruction_set(target("gfx90a")).ops}


@pytest.mark.parametrize(("name", "wanted"), [
    ("v_add_f32_e32", 1), ("v_fma_f64", 2), ("v_mul_f16_e32", 1), ("v_pk_fma_f32", 4), ("v_pk_add_f16", 2),
    ("v_fmac_f32_e32", 2), ("v_sqrt_f32_e32", 1), ("v_dot2_f32_f16", 4), ("v_add_u32_e32", 0), ("v_max_f32_e32", 0),
    ("v_cmp_lt_f32_e32", 0), ("v_cvt_f32_u32_e32", 0), ("v_mov_b32_e32", 0), ("s_add_u32", 0),
    ("global_atomic_add_f64", 1), ("global_atomic_pk_add_f16", 2), ("global_atomic_add", 0), ("v_dot4_i32_i8", 0),
    # rows x columns x depth x blocks multiplications and additions, 64 lanes
    ("v_mfma_f32_32x32x8f16", 2 * 32 * 32 * 8 // 64), ("v_mfma_f32_4x4x1f32", 2 * 4 * 4 * 1 * 16 // 64),
    ("v_mfma_f64_16x16x4f64", 2 * 16 * 16 * 4 // 64), ("v_mfma_i32_16x16x16i8", 0),
    # what meanings compute with floats to scale by a power of two is none
    ("v_div_fmas_f32", 2), ("v_div_scale_f64", 0), ("v_div_fixup_f32", 0), ("v_ldexp_f64", 0), ("v_fract_f32_e32", 0),
    ("v_cvt_pknorm_i16_f32", 0), ("v_rcp_f64_e32", 1),
])
def test_operations_on_floats(name: str, wanted: int, ops: dict[str, OpInfo]) -> None:
    assert flops(ops[name]) == wanted


@pytest.mark.parametrize(("name", "text", "wanted"), [
    ("gfx90a", "v_fma_mixlo_f16 v1, v2, v3, v4", {"f32": 2}), ("gfx90a", "v_pk_fma_f16 v1, v2, v3, v4", {"f16": 4}),
    ("gfx90a", "v_mfma_f32_16x16x16f16 a[0:3], v[0:1], v[2:3], a[0:3]", {"matrix f16": 2 * 16 * 16 * 16 // 64}),
    ("gfx942", "v_smfmac_f32_16x16x32_f16 a[0:3], v[0:1], v[2:5], v6", {"matrix f16": 16 * 16 * 32 // 64}),
    ("gfx942", "global_atomic_pk_add_bf16 v0, v1, s[0:1]", {"bf16": 2}),
    ("gfx950", "v_mfma_f32_16x16x128_f8f6f4 a[0:3], v[0:7], v[8:15], a[0:3]",
     {"matrix f8f6f4": 2 * 16 * 16 * 128 // 64}),
    ("gfx1100", "v_dual_fmac_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5", {"f32": 3}),
    ("gfx1100", "v_dual_mov_b32 v0, v1 :: v_dual_dot2acc_f32_f16 v3, v4, v5", {"f32": 4}),
    ("gfx1100", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]", {"matrix f16": 2 * 16 * 16 * 16 // 32}),
    ("gfx1201", "s_fmac_f16 s1, s2, s3", {"f16": 2}), ("gfx1201", "v_wmma_i32_16x16x16_iu8 v[0:7], v[8:9], v[10:11], "
                                                                   "v[0:7]", {}),
])
def test_operations_by_type(name: str, text: str, wanted: dict[str, int]) -> None:
    isa = instruction_set(target(name))
    op = isa.decode(isa.assemble(text), 0).op
    assert flops_by_type(op) == wanted and flops(op) == sum(wanted.values())


def instrs(text: str) -> list[Instr]:
    isa = instruction_set(target("gfx90a"))
    code = [isa.parse(line.strip()).raw for line in text.strip().splitlines()]
    program = lift(load(code_object({"k": [*code, ("s_endpgm", 0)]})))
    return list(program.kernel("k").function.instrs)


def test_what_instructions_say_of_themselves() -> None:
    told = [(each.kind, each.flops, each.result_types, each.memory and each.memory.total_bytes) for each in instrs("""
        v_fma_f32 v1, v2, v3, v4
        v_pk_mul_f32 v[2:3], v[4:5], v[6:7]
        v_cmp_lt_u32_e32 vcc, v1, v2
        s_add_u32 s4, s5, s6
        global_load_dwordx2 v[2:3], v[4:5], off
        ds_read2_b32 v[2:3], v4 offset1:1
        s_load_dwordx4 s[4:7], s[8:9], 0x0
        v_rcp_f32_e32 v1, v2
        v_mfma_f32_4x4x1f32 a[0:3], v1, v2, a[0:3]
        s_waitcnt vmcnt(0)
        s_barrier
    """)]
    kind = InstructionClass
    assert told == [
        (kind.VECTOR_ALU, 2, ("f32",), None), (kind.VECTOR_ALU, 2, ("2f32",), None), (kind.VECTOR_ALU, 0, ("b",), None),
        (kind.SCALAR_ALU, 0, ("u32", "scc"), None), (kind.VECTOR_MEMORY, 0, ("u64",), 8),
        (kind.LDS, 0, ("2u32",), 8), (kind.SCALAR_MEMORY, 0, ("u128",), 16), (kind.TRANSCENDENTAL, 1, ("f32",), None),
        (kind.MATRIX, 8, ("4f32",), None), (kind.WAIT, 0, (), None), (kind.BARRIER, 0, (), None),
        (kind.END, 0, (), None),
    ]


def test_what_an_opcode_is_does_not_depend_on_the_target() -> None:
    classes: dict[str, set[InstructionClass]] = {}
    for name in ("gfx900", "gfx90a", "gfx950", "gfx1030", "gfx1100", "gfx1250"):
        for op in instruction_set(target(name)).ops:
            classes.setdefault(op.base, set()).add(class_of(op))
            assert flops(op) >= 0
    differing = {base: found for base, found in classes.items() if len(found) > 1}
    assert all(found <= {InstructionClass.VECTOR_ALU, InstructionClass.TRANSCENDENTAL} for found in differing.values())
    assert {found for one in classes.values() for found in one} >= {*InstructionClass} - {InstructionClass.OTHER}
