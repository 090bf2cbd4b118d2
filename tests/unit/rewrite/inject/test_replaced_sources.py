"""What a hook gets that stands for an instruction and is given no arguments."""

from __future__ import annotations

import pytest
from emulated import ISA, LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, V, instrumented, stores, words
from synthetic import build

from luthier_py import Lane, Mutator, f16, hook, u32
from luthier_py.base.errors import HookError
from luthier_py.isa import instruction_set, target
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import lift


@hook
def digits(a: Lane[u32], b: Lane[u32], c: Lane[u32]) -> Lane[u32]:
    return a * u32(100) + b * u32(10) + c


@pytest.mark.parametrize(("text", "made"), [
    ("v_fmac_f32_e32 v1, v2, v3", 573), ("v_fma_f32 v1, v3, v2, v1", 753), ("v_mad_u32_u24 v1, v3, 9, v2", 795),
    ("v_pk_fma_f16 v1, v2, v3, v1", 573),
])
def test_a_hook_gets_the_sources_in_the_manuals_order(text, made):
    rows = [*POINTERS, ("v_mov_b32", V(1), 3), ("v_mov_b32", V(2), 5), ("v_mov_b32", V(3), 7), ISA.parse(text).raw,
            *stores(V(1)), END]

    def visit(tool, m):
        m.replace(next(i for i in m.functions()[0].instrs if i.inst.raw == ISA.parse(text).raw), digits)

    bench = Bench(bytes(range(64)), bytes(4 * WORDS * LANES))
    ran = bench.run(instrumented(code_object({"k": rows}), visit)[1].data, "k.luthier")
    assert words(ran, 0)[0] == made


@pytest.mark.parametrize(("text", "what"), [
    ("v_fma_f32 v1, -v1, v1, v2", "src0_modifiers"), ("v_fma_f32 v1, v1, |v1|, v2", "src1_modifiers"),
    ("v_fma_f32 v1, v1, v1, v2 clamp", "clamp"), ("v_fma_f32 v1, v1, v1, v2 mul:2", "omod"),
    ("v_fma_mix_f32 v1, v2, v3, v4 op_sel_hi:[1,0,0]", "src0_modifiers"),
    ("v_pk_fma_f16 v1, v1, v2, v3 op_sel_hi:[0,1,1]", "src0_modifiers"),
    ("v_mfma_f32_4x4x1f32 v[0:3], v1, v2, v[0:3] cbsz:1", "cbsz"),
    ("v_add_u32_sdwa v1, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:DWORD", "src0_sel"),
    ("v_add_u32_dpp v1, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", "DPP"),
])
def test_sources_that_are_made_something_else_of_are_not_given(text, what):
    rows = [ISA.parse(text).raw, END]

    def visit(tool, m):
        m.replace(next(iter(m.functions()[0].instrs)), digits)

    with pytest.raises(HookError, match=f"whole sources alone \\({what}\\); give the hook's arguments"):
        instrumented(code_object({"k": rows}), visit)


@hook
def summed(a: Lane[f16], b: Lane[f16]) -> Lane[f16]:
    return a + b


@pytest.mark.parametrize(("gpu", "text", "into", "why"), [
    ("gfx1100", "v_add_f16_e32 v1.l, v2.l, v3.l", None, "writes a part of v1 alone; say into="),
    ("gfx1030", "v_add_f16_e32 v1, v2, v3", None, "writes a part of v1 alone; say into="),
    ("gfx1100", "v_add_f16_e32 v1.l, v2.l, v3.h", V(1), "takes upper halves of registers .src1.; give the hook's"),
])
def test_halves_are_not_taken_for_whole_registers(gpu, text, into, why):
    raw = instruction_set(target(gpu)).parse(text).raw
    program = lift(build({"k": [raw, ("s_endpgm", 0)]}, gpu=gpu))
    m = Mutator(program, analyse(program))
    with pytest.raises(HookError, match=why):
        m.replace(next(iter(program.functions[0].instrs)), summed, into=into)
