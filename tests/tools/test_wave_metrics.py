"""Computed or counted: instructions, memory instructions and active lanes are the emulator's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_samples import OPTIONS, CompiledSamples
from emulated import code_object
from patience import PATIENCE

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchProfile
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, Ran, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import OpFlag, sgpr
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import SAMPLES, sample

VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.EXPORT
FIGURES = ("instructions", "memory_instructions", "vector_instructions", "active_lanes")
MEASURED = {"mandelbrot", "histogram", "bitonic_sort", "device_call", "function_pointers", "lds_widths"}
TARGETS = [("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 32), ("gfx1100", 64), ("gfx1201", 32)]


def figures(code: bytes, launch: Launch, profile: LaunchProfile) -> tuple[int, ...]:
    """From the emulator's counts by address."""
    program = lift(load(code), [launch.kernel])
    instrs = [instr for function in program.functions for instr in function.instrs]
    counts = {instr: profile.counts.get(instr.pc, 0) for instr in instrs}
    assert sum(counts.values()) == profile.total
    vectors = [instr for instr in instrs if instr.op.flags & VECTOR]
    return (profile.total, sum(counts[instr] for instr in instrs if instr.memory is not None),
            sum(map(counts.get, vectors)), sum(profile.lanes.get(instr.pc, 0) for instr in vectors))


def check(code: bytes, launch: Launch, *choices: dict[str, str]) -> list[Ran]:
    """Runs with these options; each has the emulator's figures, and the memory of the run as it is."""
    device = EmulatorDevice(load(code).target)
    bare = run_original(device, code, launch)
    wanted, runs = figures(code, launch, device.profile), []
    for options in choices:
        tool = load_tool("wave_metrics", options)
        ran = run_instrumented(device, instrument(code, tool), tool, launch)
        found = tuple(ran.report[name] for name in FIGURES if name in ran.report)
        assert found == wanted[: len(found)] and len(found) == (1 if options.get("METRICS") else 4), options
        assert {number: data.tobytes() for number, data in ran.outputs.items()} == \
            {number: data.tobytes() for number, data in bare.outputs.items()}
        runs.append(ran)
    return runs


def test_every_sample(sample):
    launch_invariants, few = check(sample.path.read_bytes(), launch_of(sample), {}, {"METRICS": "instructions"})
    assert (launch_invariants.cloned is not None) == (few.cloned is not None) == (sample.name in MEASURED)
    assert launch_invariants.report["computed"] == launch_invariants.report["instructions"] or sample.name in MEASURED


@pytest.mark.parametrize("name", ["saxpy", "histogram"])
def test_all_can_be_counted_in_the_kernel(name):
    one = sample(name)
    launch_invariants, counted = check(one.path.read_bytes(), launch_of(one), {}, {"FORESEE": "0"})
    assert launch_invariants.counted < counted.counted and counted.report["computed"] == 0
    same = ("memory_intensity", "activity_factor", *FIGURES)
    assert [launch_invariants.report[each] for each in same] == [counted.report[each] for each in same]


def test_a_kernel_that_is_foreseen_has_no_code_and_its_lanes_by_hand():
    """1000 items in 16 waves: the block with the work runs in 16, the last time with 40 lanes."""
    code = sample("saxpy").path.read_bytes()
    [ran] = check(code, launch_of(sample("saxpy")), {})
    assert instrument(code, load_tool("wave_metrics")).data == code
    before, behind = 2, 12  # vector instructions
    assert ran.report["vector_instructions"] == 16 * (before + behind)
    assert ran.report["active_lanes"] == 16 * 64 * before + 1000 * behind


def test_a_loop_in_the_kernel_is_walked_with_the_arguments_of_each_launch():
    tool, code, launch = load_tool("wave_metrics"), sample("matmul").path.read_bytes(), launch_of(sample("matmul"))
    device, made = EmulatorDevice(load(code).target), instrument(code, tool)
    first, second = (run_instrumented(device, made, tool, launch, index) for index in range(2))
    assert first.report == second.report and first.result.arguments != b""
    assert [len(known) for known in tool.gathered.values()] == [1]


def test_under_a_program(program, tmp_path):
    """Kernels with nothing in them are reported like others, with the emulator's counts."""
    counts = tmp_path / "counts.json"
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", "-t", "wave_metrics",
               "--device", "emulator:gfx90a", "--output", str(counts), "--", str(program("scan"))]
    plain, profile = {**os.environ, "LUTHIER_DEVICE": ""}, tmp_path / "profile"
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True,
                          env={**plain, "LUTHIER_DEVICE_PROFILE": str(profile)})
    assert done.stdout == "PASSED\n" and "2 reported without code" in done.stderr
    facts = json.loads(counts.read_text())
    executed = [json.loads(line)["instructions"] for line in profile.read_text().splitlines()]
    assert [launch["report"]["instructions"] for launch in facts["launches"]] == executed
    assert facts["verdict"]["without_code"] == 2 and facts["verdict"]["observed"]


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target[0]}-{target[1]}")
def test_every_sample_on_other_targets(target, level, require_tool: Callable[[str], str], tmp_path: Path):
    compiled = CompiledSamples(require_tool("clang-22"), tmp_path)
    for one in SAMPLES:
        check(compiled.code(one.name, *target, level), launch_of(one), {}, {"METRICS": "instructions"})


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target[0]}-{target[1]}")
def test_long_loops_on_other_targets(target, require_tool: Callable[[str], str], tmp_path: Path):
    """Those of benchmarks/launch_invariant.py, with partial waves: all is computed, but behind v_pk_mov_b32, at -O1."""
    size = ["-mwavefrontsize64"] * (target[1] == 64 and target[0].startswith("gfx1"))
    loops = Path(__file__).parents[2] / "benchmarks" / "loops.hip"
    for level in (1, 3):
        made = tmp_path / f"loops-{level}.co"
        subprocess.run([require_tool("clang-22"), *OPTIONS, f"-O{level}", f"--offload-arch={target[0]}", *size, loops,
                        "-o", made], check=True)
        for record in load(made.read_bytes()).kernels:
            arguments = tuple(map(parse_argument, ("inout:f32[6144]=random:1", "u64=37", "u64=768")))
            one, _ = check(made.read_bytes(), Launch(record.name, (7, 1, 1), (90, 1, 1), arguments), {},
                           {"METRICS": "instructions"})
            whole = one.report["computed"] == one.report["instructions"] and one.cloned is None
            assert whole or (record.name, level) == ("grid_stride", 1), record.name


def test_equal_launches_of_other_code_are_others():
    """A number in the code decides how often a loop goes; all else of the two modules is the same."""
    tool, found = load_tool("wave_metrics"), []
    for turns in (10, 50):
        rows = [("s_mov_b32", sgpr(10), turns), "loop:", ("s_sub_u32", sgpr(10), sgpr(10), 1),
                ("s_cmp_lg_u32", sgpr(10), 0), ("s_cbranch_scc1", "loop"), ("s_endpgm",)]
        code = code_object({"k": rows})
        arguments = tuple(parse_argument("out:u32[1]") for _ in load(code).kernel("k").own_args)
        ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool, kernels=["k"]), tool,
                               Launch("k", (1, 1, 1), (64, 1, 1), arguments))
        found.append((ran.report["instructions"], ran.report["computed"]))
    assert found == [(32, 32), (152, 152)]
