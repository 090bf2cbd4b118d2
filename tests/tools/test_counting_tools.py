"""Every counting tool on every sample kernel: its counts are the emulator's, and the application notices nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from luthier_py.emulator import EmulatorDevice
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.session.demo import launch_of
from luthier_py.session.run import run_instrumented, run_original
from luthier_py.tool import load_tool


@pytest.fixture
def original(sample):
    """The sample run as it is: device, launch, outputs and what the emulator counted."""
    code, launch = sample.path.read_bytes(), launch_of(sample)
    device = EmulatorDevice(load(code, sample.name).target)
    outputs = run_original(device, code, launch).outputs
    return device, code, launch, outputs, device.profile


def run(original, name, **options):
    device, code, launch, outputs, _ = original
    tool = load_tool(name, options)
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert ran.cloned is not None
    assert ran.outputs.keys() == outputs.keys()
    for number, data in ran.outputs.items():
        assert data.tobytes() == outputs[number].tobytes(), f"argument {number} changed"
    return tool, ran


def test_outputs_agree_with_numpy(sample, original):
    _, _, launch, outputs, _ = original
    expected = sample.reference([argument.data for argument in launch.arguments])
    assert len(outputs) == len(expected)
    for got, want in zip(outputs.values(), expected, strict=True):
        assert sample.agrees(got, want)


def test_the_empty_tool_reproduces_the_file(sample):
    code = sample.path.read_bytes()
    assert instrument(code, load_tool("none")).data == code


def test_instr_count_per_wave(original):
    tool, ran = run(original, "instr_count")
    profile, launch = original[-1], original[2]
    assert ran.report["instructions"] == profile.total
    groups = int(np.prod(launch.grid))
    assert ran.text == (
        f"kernel 0 - {launch.kernel} - #workgroups {groups}, "
        f"kernel instructions {profile.total}, total instructions {profile.total}"
    )


def test_instr_count_per_active_lane(original):
    _, ran = run(original, "instr_count", COUNT_WARP_LEVEL=0, EXCLUDE_PRED_OFF=1)
    assert ran.report["instructions"] == original[-1].total_lanes


def test_opcode_histogram_per_wave(original):
    _, ran = run(original, "opcode_histogram")
    assert ran.report["opcodes"] == original[-1].opcodes()


def test_opcode_histogram_per_active_lane(original):
    _, ran = run(original, "opcode_histogram", COUNT_WARP_LEVEL=0, EXCLUDE_PRED_OFF=1)
    assert ran.report["opcodes"] == original[-1].lane_opcodes()


def test_counts_are_of_one_launch_and_totals_of_all(original):
    """Three launches of one loaded tool: variables are zero before each, totals add up."""
    device, code, launch, _, profile = original
    tool = load_tool("instr_count")
    made = instrument(code, tool)
    reports = [run_instrumented(device, made, tool, launch, index).report for index in range(3)]
    assert [r["instructions"] for r in reports] == [profile.total] * 3
    assert [r["total"] for r in reports] == [profile.total * n for n in (1, 2, 3)]


def test_the_clone_executes_every_application_instruction_as_often(original):
    """The emulator's own counts of the clone: application instructions run exactly as often as in the original."""
    device, code, launch, _, profile = original
    tool = load_tool("opcode_histogram")
    made = instrument(code, tool)
    run_instrumented(device, made, tool, launch)
    assert device.profile is not None
    linked = load(made.data)
    counts: Counter[int] = Counter()
    for source in made.patched.maps:
        base = linked.symbol(source.chunk).address
        for instr, offset in source.instructions.items():
            counts[instr.pc] += device.profile.counts.get(base + offset, 0)
    assert {pc: n for pc, n in counts.items() if n} == {pc: n for pc, n in profile.counts.items() if n}
