"""Exact, open, refused, and tested against what: by LLVM's flags, by the files of tests, by the emulator's refusals."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from luthier_py.features.coverage.report import Certainty, collect_coverage, coverage_facts
from luthier_py.isa import OpFlag, instruction_set, target
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.corners import CORNERS
from luthier_py.isa.semantics.evidence import COMPARED, ELSEWHERE, Against, evidence, instructions
from luthier_py.isa.semantics.readers.implementation_defined import ImplementationDefined, implementation_defined
from luthier_py.isa.semantics.refusals import WhyRefused, refusal

TESTS = Path(__file__).resolve().parents[3]
COMPARED_NAMES = ("gfx90a", "gfx1100")


@pytest.mark.parametrize("name", COMPARED)
def test_what_llvm_calls_transcendental_is_near_and_nothing_else(name):
    ops = [op for op in instructions(name).ops if find_meaning(op) is not None and "DUAL" not in op.base]
    assert {op.base for op in ops if OpFlag.TRANS in op.flags} == {
        op.base for op in ops if ImplementationDefined.NEAR in implementation_defined(op).own}


@pytest.mark.parametrize("name", COMPARED)
def test_sums_inside_are_those_of_matrices_and_dots_of_floats(name):
    for op in instructions(name).ops:
        if find_meaning(op) is not None and op.flags & (OpFlag.MATRIX | OpFlag.DOT):
            moves = op.base.startswith("V_ACCVGPR") or not {"src0", "src1"} <= {each.name for each in op.operands}
            whole = "_I32_" in op.base or "_U32_" in op.base
            assert (ImplementationDefined.SUM in implementation_defined(op).own) == (not whole and not moves), op.base


@pytest.mark.parametrize(("name", "base", "own"), [
    ("gfx90a", "V_ADD_U32", set()), ("gfx90a", "V_ADD_F32", {"NAN"}), ("gfx90a", "V_CMP_LT_F32", set()),
    ("gfx90a", "V_CVT_I32_F32", set()), ("gfx90a", "V_MAX_F32", set()), ("gfx90a", "V_DIV_SCALE_F32", {"NAN"}),
    ("gfx90a", "V_FMA_MIXLO_F16", {"NAN", "INSIDE"}), ("gfx90a", "V_RCP_F64", {"NAN", "NEAR"}),
    ("gfx90a", "S_MEMTIME", {"OUTSIDE"}), ("gfx90a", "ds_add_rtn_u32", {"TURN"}), ("gfx90a", "ds_add_u32", set()),
    ("gfx90a", "ds_add_f32", {"TURN", "NAN"}), ("gfx90a", "V_MFMA_I32_16X16X16I8", set()),
    ("gfx1201", "S_FMAC_F32", {"NAN"}),
])  # fmt: skip
def test_what_is_open(name, base, own):
    isa = instruction_set(target(name), target(name).wave_sizes[0])
    ops = [op for op in isa.ops if base in (op.base, op.mnemonic)]
    assert ops and all({each.name for each in implementation_defined(op).own} == own for op in ops)


@pytest.mark.parametrize(("name", "known", "open_ones"), [
    ("gfx900", {"V_MAD_MIX_F32"}, set()),
    ("gfx90a", {"V_DOT2_F32_F16", "DS_ADD_F32"}, {"GLOBAL_ATOMIC_ADD_F32", "V_FMA_MIX_F32"}),
    ("gfx942", {"V_DOT2_F32_F16", "GLOBAL_ATOMIC_ADD_F64"}, {"FLAT_ATOMIC_ADD_F32", "V_FMA_MIXLO_F16"}),
    ("gfx1201", {"V_DOT2_F32_BF16", "GLOBAL_ATOMIC_ADD_F32"}, {"V_DOT2_F16_F16", "V_FMA_MIX_F32"}),
])  # fmt: skip
def test_coverage_says_where_denormals_are_not_known(name, known, open_ones):
    found = {
        each.operation: ImplementationDefined.DENORMAL in each.implementation_defined
        for each in collect_coverage(target(name))
    }
    assert not any(found[operation] for operation in known) and all(found[operation] for operation in open_ones)


@pytest.mark.parametrize("name", ["gfx90a", "gfx1100", "gfx1201"])
def test_coverage_names_each_corner(name):
    found = {
        each.operation: ImplementationDefined.CORNER in each.implementation_defined
        for each in collect_coverage(target(name))
    }
    there = {"V_DIV_SCALE_F32", "V_DIV_FIXUP_F64", "V_CVT_RPI_I32_F32", "V_CVT_PKRTZ_F16_F32"}
    assert all(found[operation] for operation in there) and found["DS_MIN_F32"] == (name != "gfx1201")
    assert not found["DS_MIN_I32"] and not found["V_MIN_F32"]
    bases = {op.base for gpu in map(target, COMPARED_NAMES) for op in instruction_set(gpu, gpu.wave_sizes[0]).ops}
    assert all(any(re.fullmatch(each.names, base) for base in bases) for each in CORNERS)


def test_values_and_the_bits_of_a_nan_go_different_ways():
    """A comparison of floats does not see which NaN it is given; one of classes does, and so does a move."""
    isa = instruction_set(target("gfx90a"), 64)
    for base, seen in (("V_CMP_LT_F32", set()), ("V_CMP_LT_U32", {"src0", "src1"}), ("V_CVT_U32_F32", set()),
                       ("V_MOV_B32", {"src0"}), ("V_MUL_F32", {"src0", "src1"})):
        op = next(op for op in isa.ops if op.base == base)
        (result,) = implementation_defined(op).results
        assert result.of_nans == seen and result.of_values == {
            name for name in ("src0", "src1") if name in {each.name for each in op.operands}}


def test_files_of_tests_name_what_they_are_evidence_for():
    names: dict[object, set[str]] = {}
    for name in COMPARED:
        for op in instructions(name).ops:
            names.setdefault(find_meaning(op), set()).add(op.mnemonic)
    for row, file in ELSEWHERE.items():
        text = (TESTS / file).read_text("utf-8")
        assert any(mnemonic in text for mnemonic in names[row]), (row, file)


@pytest.mark.parametrize("name", ["gfx803", "gfx90a", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250"])
def test_everything_is_refused_with_a_reason_or_tested(name):
    gpu = target(name)
    isa = instruction_set(gpu, gpu.wave_sizes[0])
    untested = {op.base for op in isa.ops if refusal(op, gpu) is None and evidence(isa, op).against is Against.NOTHING}
    assert untested <= {"S_CODE_END", "GLOBAL_LOAD_DWORD_ADDTID", "GLOBAL_STORE_DWORD_ADDTID"}
    for op in isa.ops:
        assert find_meaning(op) is not None or refusal(op, gpu) is not None
    assert all(why.reason and why.advice for why in WhyRefused)


def test_a_target_that_is_not_compared_says_on_which_its_operations_are():
    gpu = target("gfx1102")
    isa = instruction_set(gpu, 32)
    op = next(op for op in isa.ops if op.base == "V_ADD_F32")
    assert str(evidence(isa, op)) == "reference reader, on gfx1100"


def test_an_operation_is_tested_as_its_least_tested_row_is():
    gpu, weak = target("gfx1201"), list[str]()
    isa, ops = instruction_set(gpu, gpu.wave_sizes[0]), defaultdict(list)
    for op in isa.ops:
        ops[op.base].append(op)
    for each in collect_coverage(gpu):
        if each.refused is None:
            rows = {evidence(isa, op).against for op in ops[each.operation]}
            assert all(against.value <= each.tested.against.value for against in rows)
            weak += [each.operation] * (len(rows) > 1)
    assert "GLOBAL_LOAD_DWORD_ADDTID" in weak


def test_facts_of_a_target():
    facts = coverage_facts(target("gfx90a"))
    assert sum(facts["counts"].values()) == facts["operations"] == len(facts["list"]) > 1000
    rows = {row["operation"]: row for row in facts["list"]}
    assert rows["V_ADD_U32"]["standing"] == "exact" and rows["V_ADD_U32"]["tested"] == "reference reader, gfx90a"
    assert rows["V_RCP_F32"]["implementation_defined"] == ["near", "nan"]
    assert rows["S_RFE_B64"]["reason"] == WhyRefused.PRIVILEGED.reason
    assert {each.standing for each in collect_coverage(target("gfx90a"))} == {*Certainty}
