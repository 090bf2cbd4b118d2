"""What may differ, and what it decides: told by the tool, and shown by an emulator whose reciprocals are a unit off."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from emulated import ISA, Bench, code_object

from luthier_py.base.storage import CACHE
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import sgpr, vgpr
from luthier_py.isa.encoding.instruction import Space
from luthier_py.isa.model.registers import EXEC, VCC
from luthier_py.isa.semantics import rows
from luthier_py.isa.semantics.algebra import F32, U32
from luthier_py.isa.semantics.readers.implementation_defined import VALUES
from luthier_py.program.analysis import analyse
from luthier_py.program.analysis.differing import Decides, find_device_dependence
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

TOOL = f"{Path(__file__).resolve().parents[2] / 'tools'}/exactness/"
LOADED = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_lshlrev_b32", vgpr(0), 2, vgpr(0)),
          ISA.make("global_load_dword", vgpr(1), vgpr(0), sgpr(0, 2)).raw, ("s_waitcnt", 0)]
OWN = [("v_cvt_f32_u32", vgpr(1), vgpr(0)), ("v_add_f32", vgpr(1), 1.0, vgpr(1))]  # of the lane's number: no memory
STORE = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("v_lshlrev_b32", vgpr(5), 2, vgpr(0)), ("s_waitcnt", 0),
         ISA.make("global_store_dword", vgpr(5), vgpr(2), sgpr(0, 2)).raw, ("s_endpgm",)]
RCP, SUM = ("v_rcp_f32", vgpr(2), vgpr(1)), ("v_mul_f32", vgpr(2), vgpr(1), vgpr(1))
THIRD = np.float32(1 / 3).view(np.uint32).item()
EXEC_PAIR, VCC_PAIR = sgpr(EXEC, 2), sgpr(VCC, 2)


def branching(made):
    """Around an instruction where no lane has a reciprocal above a third."""
    return [*OWN, made, ("v_cmp_eq_f32", VCC_PAIR, vgpr(2), sgpr(9)), ("s_cbranch_vccz", "past"),
            ("v_add_f32", vgpr(2), vgpr(2), vgpr(2)), "past:", *STORE]


def with_third(rows_):
    return [("s_mov_b32", sgpr(9), THIRD), *rows_]


KERNELS = {
    "stored": [*OWN, RCP, *STORE],
    "compared": with_third(branching(RCP)),
    "exact": with_third(branching(SUM)),
    "address": [*OWN, RCP, ("v_lshrrev_b32", vgpr(3), 20, vgpr(2)), ("v_and_b32", vgpr(3), 12, vgpr(3)),
                ("v_mov_b32", vgpr(4), 0), ("ds_write_b32", vgpr(3), vgpr(4)), *STORE],
    "masked": with_third([*OWN, RCP, ("v_cmp_eq_f32", VCC_PAIR, vgpr(2), sgpr(9)),
                          ("s_and_saveexec_b64", sgpr(10, 2), VCC_PAIR), ("v_mov_b32", vgpr(2), 0),
                          ("s_mov_b64", EXEC_PAIR, sgpr(10, 2)), *STORE]),
    "overwritten": with_third([*OWN, RCP, ("v_mov_b32", vgpr(2), vgpr(0)),
                               ("v_cmp_gt_u32", VCC_PAIR, vgpr(2), sgpr(9)), ("s_cbranch_vccz", "past"), "past:",
                               *STORE]),
    "through_lds": with_third([*OWN, RCP, ("v_lshlrev_b32", vgpr(3), 2, vgpr(0)), ("ds_write_b32", vgpr(3), vgpr(2)),
                               ("ds_read_b32", vgpr(4), vgpr(3)), ("s_waitcnt", 0),
                               ("v_cmp_gt_f32", VCC_PAIR, vgpr(4), sgpr(9)), ("s_cbranch_vccz", "past"), "past:",
                               *STORE]),
    "loaded": [*LOADED, ("v_cmp_gt_u32", VCC_PAIR, vgpr(1), sgpr(9)), ("s_cbranch_vccz", "past"), "past:",
               ("s_endpgm",)],
}
DECIDED = {
    "stored": set(), "compared": {Decides.BRANCH}, "exact": set(), "address": {Decides.ADDRESS},
    "masked": {Decides.MASK}, "overwritten": set(), "through_lds": {Decides.BRANCH}, "loaded": {Decides.BRANCH},
}


def found(name):
    program = lift(load(code_object({"k": KERNELS[name]})))
    return find_device_dependence(program, analyse(program))


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_decided(name):
    decisions = found(name).decisions
    assert {each.decides for each in decisions} == DECIDED[name]
    for each in decisions:
        mnemonics = {source.op.mnemonic for source,
                     implementation_defined in each.sources.items() if implementation_defined & VALUES}
        assert mnemonics == (set() if name == "loaded" else {"v_rcp_f32_e32"})
        assert each.earlier == (name == "loaded") and each.through == (name == "through_lds")


def test_what_is_left_in_memory():
    own = [instr.op.mnemonic for instr in found("stored").leaves]
    assert own == [*(instr.op.mnemonic for instr in found("loaded").leaves), "v_add_f32_e32", "v_rcp_f32_e32"]


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "loaded"])
def test_an_emulator_that_is_one_unit_off(name, monkeypatch):
    """Executions or lanes change in no kernel of which nothing is decided, and in two that are made to show it; what
    decides an address alone changes neither."""
    monkeypatch.setenv(CACHE, "off")  # what is kept knows nothing of another meaning
    data, bench = code_object({"k": KERNELS[name]}), Bench(bytes(4096))
    exact = bench.run(data, "k").profile
    row = rows()["V_RCP_F32"]
    monkeypatch.setitem(rows(), "V_RCP_F32", replace(
        row, compute=lambda a: (row.compute(a).as_(U32) + 1).as_(F32)))
    other = Bench(bytes(4096)).run(data, "k").profile
    same = exact.counts == other.counts and exact.lanes == other.lanes
    if name in ("compared", "masked"):
        assert not same
    elif not DECIDED[name]:
        assert same


def test_counts_are_the_emulators(sample):
    code, launch = sample.path.read_bytes(), launch_of(sample)
    device, tool = EmulatorDevice(load(code).target), load_tool(TOOL)
    before = run_original(device, code, launch).outputs
    profile = device.profile
    after = run_instrumented(device, instrument(code, tool), tool, launch)
    assert all(data.tobytes() == before[number].tobytes() for number, data in after.outputs.items())
    report = after.report
    assert report["exact"] + report["exact_but_nan"] + report["free"] == profile.total
    assert sum(row["executions"] for row in report["free_instructions"]) == report["free"]
    assert all(row["executions"] == profile.counts[row["pc"]] for row in (*report["free_instructions"],
                                                                         *report["decided"]))
    assert ("no result" in report["verdict"]) == (not report["decided"])


def test_an_earlier_launch_counts_once_it_left_something():
    """A kernel that branches by what it loads, before and after one that stores reciprocals."""
    tool = load_tool(TOOL)
    device = EmulatorDevice(ISA.target)
    kernarg = tuple(map(parse_argument, ["inout:u32[1024]=arange"] * 3))
    launch = Launch("k", (1, 1, 1), (64, 1, 1), kernarg)
    made = {name: instrument(code_object({"k": KERNELS[name]}), tool) for name in ("loaded", "stored")}
    reports = [run_instrumented(device, made[name], tool, launch, index).report
               for index, name in enumerate(("loaded", "stored", "loaded"))]
    assert [len(report["decided"]) for report in reports] == [0, 0, 1]
    whole = tool.combined([reports[0], reports[2]])
    assert whole["exact"] == 2 * reports[0]["exact"] and whole["decided"] == reports[2]["decided"]
    assert tool.combined([reports[2]] * 3)["decided"][0]["executions"] == 3 * reports[2]["decided"][0]["executions"]
    assert reports[2]["decided"][0]["earlier_launch"] and reports[2]["memory_held_such_results"]


RECURSIVE = """
static __attribute__((device, noinline)) int ack(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ack(m - 1, 1) : ack(m - 1, ack(m, n - 1));
}
extern "C" __attribute__((global)) void recursive(int *out) {
    unsigned x = __builtin_amdgcn_workitem_id_x();
    out[x] = ack(2, x % 5);
}
"""


@pytest.mark.parametrize("target", ["gfx803", "gfx90a", "gfx942", "gfx1100"])
def test_a_stack_is_no_earlier_launch(target, require_tool, tmp_path):
    """Registers that calls keep in private memory come back as they were: nothing in it may differ."""
    (tmp_path / "k.hip").write_text(RECURSIVE)
    options = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
    subprocess.run([require_tool("clang-22"), *options, f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                   cwd=tmp_path, check=True)
    program = lift(load((tmp_path / "k.co").read_bytes()))
    found = find_device_dependence(program, analyse(program))
    assert not found.decisions and any(
        instr.op.spaces & Space.SCRATCH for function in program.functions for instr in function.instrs)
