"""Cycles of single instructions: matrices as LLVM's SISchedule.td has their passes; numbers that name a source."""

from __future__ import annotations

import pytest

from luthier_py.isa import instruction_set, target, targets, vgpr
from luthier_py.isa.timing.costs import cost_of, work_of
from luthier_py.isa.timing.cycles import SOURCES, Pipe, Work, cycle_model

V = vgpr


def registers(*dwords: int) -> list[object]:
    return [V(16 * number, width) for number, width in enumerate(dwords)]


@pytest.mark.parametrize(("name", "mnemonic", "dwords", "passes"), [
    ("gfx90a", "v_mfma_f32_4x4x4f16", (4, 2, 2, 4), 2),
    ("gfx90a", "v_mfma_f32_16x16x16f16", (4, 2, 2, 4), 8),
    ("gfx90a", "v_mfma_f32_32x32x8f16", (16, 2, 2, 16), 16),
    ("gfx90a", "v_mfma_f64_16x16x4f64", (8, 2, 2, 8), 8),
    ("gfx90a", "v_mfma_f64_4x4x4f64", (2, 2, 2, 2), 4),
    ("gfx942", "v_mfma_f32_16x16x16_f16", (4, 2, 2, 4), 4),
    ("gfx942", "v_mfma_f32_32x32x8_f16", (16, 2, 2, 16), 8),
    ("gfx942", "v_mfma_f32_16x16x4_f32", (4, 1, 1, 4), 8),
    ("gfx942", "v_mfma_f32_32x32x2_f32", (16, 1, 1, 16), 16),
    ("gfx942", "v_mfma_f32_4x4x4_16b_f16", (4, 2, 2, 4), 2),
    ("gfx942", "v_mfma_f32_16x16x4_4b_f16", (16, 2, 2, 16), 8),
    ("gfx942", "v_mfma_f32_16x16x8_xf32", (4, 2, 2, 4), 4),
    ("gfx942", "v_mfma_i32_32x32x16_i8", (16, 2, 2, 16), 8),
    ("gfx942", "v_mfma_f32_16x16x32_fp8_bf8", (4, 2, 2, 4), 4),
    ("gfx942", "v_mfma_f64_16x16x4_f64", (8, 2, 2, 8), 8),
    ("gfx942", "v_smfmac_f32_16x16x32_f16", (4, 2, 4, 1), 4),
    ("gfx942", "v_smfmac_f32_32x32x16_f16", (16, 2, 4, 1), 8),
    ("gfx950", "v_mfma_f32_16x16x32_f16", (4, 4, 4, 4), 4),
    ("gfx950", "v_mfma_f32_32x32x16_f16", (16, 4, 4, 16), 8),
    ("gfx950", "v_mfma_f64_16x16x4_f64", (8, 2, 2, 8), 16),
])
def test_passes_of_matrices(name, mnemonic, dwords, passes):
    inst = instruction_set(target(name), 64).make(mnemonic, *registers(*dwords))
    cost = cost_of(target(name), inst, 64)
    assert (cost.work, cost.held, cost.chained, cost.pipe) == (Work.MATRIX, 4 * passes, 4 * passes, Pipe.MATRIX)
    assert cost.ready == cost.held + 12


@pytest.mark.parametrize(("formats", "passes"), [((0, 0), 8), ((0, 4), 8), ((4, 4), 4), ((2, 3), 4)])
def test_mixed_formats_take_as_long_as_the_slower(formats, passes):
    """cbsz, blgp: 0 and 1 are of 8 bits, 2 and 3 of 6, 4 of 4."""
    inst = instruction_set(target("gfx950"), 64).make(
        "v_mfma_f32_16x16x128_f8f6f4", V(0, 4), V(16, 8), V(32, 8), V(48, 4), cbsz=formats[0], blgp=formats[1])
    assert cost_of(target("gfx950"), inst, 64).held == 4 * passes


@pytest.mark.parametrize(("name", "mnemonic", "dwords", "cycles"), [
    ("gfx1100", "v_wmma_f32_16x16x16_f16", (8, 8, 8, 8), 32), ("gfx1100", "v_wmma_i32_16x16x16_iu4", (8, 2, 2, 8), 16),
    ("gfx1201", "v_wmma_f32_16x16x16_f16", (8, 4, 4, 8), 16),
    ("gfx1250", "v_wmma_f32_16x16x32_f16", (8, 8, 8, 8), 8),
])
def test_matrices_of_waves_by_their_rate(name, mnemonic, dwords, cycles):
    """256 operations of a SIMD in a cycle on RDNA 3, in i4 512; 512 on RDNA 4; LLVM's XDL2 on gfx1250."""
    inst = instruction_set(target(name), 32).make(mnemonic, *registers(*dwords))
    assert cost_of(target(name), inst, 32).held == cycles


def test_waves_of_64_hold_rdna_twice_as_long():
    inst = instruction_set(target("gfx1100"), 64).make("v_exp_f32", V(0), V(1))
    assert work_of(inst) is Work.TRANSCENDENTAL
    assert [cost_of(target("gfx1100"), inst, size).held for size in (32, 64)] == [4, 8]


@pytest.mark.parametrize(("mnemonic", "operands"), [("s_delay_alu", (1,)), ("s_clause", (1,)), ("s_setprio", (3,))])
def test_what_is_for_hardware_s_scheduling_is_an_issue(mnemonic, operands):
    inst, model = instruction_set(target("gfx1100"), 32).make(mnemonic, *operands), cycle_model(target("gfx1100"))
    assert cost_of(target("gfx1100"), inst, 32).held == model.step == 1


def test_a_dual_instruction_is_one():
    isa = instruction_set(target("gfx1100"), 32)
    dual = isa.parse("v_dual_add_f32 v0, v1, v2 :: v_dual_mul_f32 v3, v4, v5")
    single = isa.make("v_add_f32", V(0), V(1), V(2))
    assert cost_of(target("gfx1100"), dual, 32).held == cost_of(target("gfx1100"), single, 32).held


@pytest.mark.parametrize("row", targets(), ids=lambda row: row.name)
def test_each_target_has_a_model_whose_numbers_have_sources(row):
    model = cycle_model(row)
    assert set(model.work) == set(Work) - {Work.MATRIX, Work.SCALAR_MEMORY, Work.VECTOR_MEMORY, Work.LDS}
    assert model.sources and set(model.sources.split()) <= set(SOURCES)
    for timing in model.work.values():
        assert timing.source in SOURCES and 0 < timing.held <= timing.ready
