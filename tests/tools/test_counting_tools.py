"""Every counting tool on every sample kernel: its counts are the emulator's, and the application notices nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.rewrite.tool.chosen.filters import parse_filter
from luthier_py.samples import SAMPLES
from luthier_py.samples import sample as sample_called

LANES = 64
# Per wave or per thread, all or those that EXEC leaves on: what the emulator counted, by opcode. All waves are full.
LEVELS = {
    (1, 0): lambda p: p.opcodes(),
    (1, 1): lambda p: p.active_opcodes(),
    (0, 0): lambda p: Counter({mnemonic: LANES * n for mnemonic, n in p.opcodes().items()}),
    (0, 1): lambda p: p.lane_opcodes(),
}


def options(level):
    return dict(zip(("COUNT_WARP_LEVEL", "EXCLUDE_PRED_OFF"), level, strict=True))


def run_bare(sample, launch):
    """Device, code, launch, outputs and what the emulator counted."""
    code = sample.path.read_bytes()
    device = EmulatorDevice(load(code, sample.name).target)
    outputs = run_original(device, code, launch).outputs
    return device, code, launch, outputs, device.profile


@pytest.fixture(scope="module")
def runs():
    """What each sample wrote and executed as it is, by name."""
    return {}


@pytest.fixture
def original(sample, runs):
    """The sample as it is, on a device of its own."""
    if sample.name not in runs:
        runs[sample.name] = run_bare(sample, launch_of(sample))
    device, code, launch, outputs, profile = runs[sample.name]
    return EmulatorDevice(device.target), code, launch, outputs, profile


def run(original, name, **options):
    device, code, launch, outputs, _ = original
    tool = load_tool(name, options)
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert ran.cloned is not None
    assert ran.outputs.keys() == outputs.keys()
    for number, data in ran.outputs.items():
        assert data.tobytes() == outputs[number].tobytes(), f"argument {number} changed"
    return tool, ran


every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


@every_sample
def test_outputs_agree_with_numpy(sample, original):
    _, _, launch, outputs, _ = original
    expected = sample.reference([argument.data for argument in launch.arguments])
    assert len(outputs) == len(expected)
    for got, want in zip(outputs.values(), expected, strict=True):
        assert sample.agrees(got, want)


@every_sample
def test_the_empty_tool_reproduces_the_file(sample):
    code = sample.path.read_bytes()
    assert instrument(code, load_tool("none")).data == code


def test_instr_count(original):
    tool, ran = run(original, "instr_count")
    profile, launch = original[-1], original[2]
    assert ran.report["instructions"] == profile.total == ran.counted - ran.inserted
    groups = int(np.prod(launch.grid))
    assert ran.text == (
        f"kernel 0 - {launch.kernel} - #workgroups {groups}, "
        f"kernel instructions {profile.total}, total instructions {profile.total}"
    )


@pytest.mark.parametrize("level", LEVELS)
def test_instr_count_at_every_level(original, level):
    _, ran = run(original, "instr_count_bb", **options(level))
    assert ran.report["instructions"] == sum(LEVELS[level](original[-1]).values())


def at_every_instruction(bare, level):
    _, ran = run(bare, "instr_count", mode="instruction", **options(level))
    assert ran.report["instructions"] == sum(LEVELS[level](bare[-1]).values())


def histogram(bare, level):
    _, ran = run(bare, "opcode_histogram", **options(level))
    assert ran.report["opcodes"] == LEVELS[level](bare[-1])


def test_instr_count_at_every_instruction(original):
    at_every_instruction(original, (1, 0))


@pytest.mark.parametrize("level", [(1, 0), (0, 1)])
def test_opcode_histogram(original, level):
    histogram(original, level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("check", [at_every_instruction, histogram])
@pytest.mark.parametrize("name", ["bitonic_sort", "function_pointers"])
def test_divergence_and_calls_at_every_level(name, check, level):
    check(run_bare(sample_called(name), launch_of(sample_called(name))), level)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("check", [at_every_instruction, histogram])
def test_every_sample_at_every_level(original, check, level):
    check(original, level)


@pytest.mark.parametrize("block", [40, 64, 100, 256])
def test_threads_are_those_that_a_wave_was_launched_with(block):
    """vector_add runs straight through: each instruction once for each work-item, where the last wave is not full."""
    one = sample_called("vector_add")
    texts = (f"in:f32[{3 * block}]=ones", f"in:f32[{3 * block}]=ones", f"out:f32[{3 * block}]")
    arguments = tuple(map(parse_argument, texts))
    bare = run_bare(one, replace(launch_of(one), grid=(3, 1, 1), block=(block, 1, 1), arguments=arguments))
    instructions = len(bare[-1].counts)
    for name, key in (("instr_count", "instructions"), ("opcode_histogram", "opcodes")):
        report = run(bare, name, **options((0, 0)))[1].report[key]
        assert (report if name == "instr_count" else sum(report.values())) == instructions * 3 * block


def check_chosen(name, level, chosen, options):
    """Both tools give the emulator's counts of instructions that ``chosen`` chooses."""
    bare, one = run_bare(sample_called(name), launch_of(sample_called(name))), sample_called(name)
    program = instrument(one.path.read_bytes(), load_tool("none")).program
    pcs = {instr.pc for f in program.functions for instr in chosen(program, list(f.instrs))}
    part = replace(bare[-1], **{kind: {pc: n for pc, n in getattr(bare[-1], kind).items() if pc in pcs}
                                for kind in ("counts", "lanes", "active")})  # fmt: skip
    expected = LEVELS[level](part)
    assert run(bare, "opcode_histogram", **options)[1].report["opcodes"] == expected
    for mode in ("block", "instruction"):
        assert run(bare, "instr_count", mode=mode, **options)[1].report["instructions"] == sum(expected.values())


@pytest.mark.parametrize("name, text, level", [
    ("nbody", "opcode = v_*_f32* & loop | store", (1, 0)), ("bitonic_sort", "index = 7 | index > 20 & !lds", (0, 1)),
    ("function_pointers", "!branch & function = *mul*", (1, 0)), ("mandelbrot", "float | conditional", (1, 1)),
    ("device_call", "call | end", (0, 0)),
])  # fmt: skip
def test_instructions_with_gaps_between_them(name, text, level):
    """INSTRUMENT chooses instructions here and there; what is counted as a whole counts these alone."""
    def chosen(program, instrs):
        return filter(parse_filter(text).of(program), instrs)

    check_chosen(name, level, chosen, {"INSTRUMENT": text, **options(level)})


@pytest.mark.parametrize("name, begin, end, level", [
    ("device_call", 3, 17, (1, 0)), ("device_call", 5, 4096, (0, 1)), ("mandelbrot", 0, 4, (0, 0)),
    ("mandelbrot", 5, 6, (1, 0)), ("mandelbrot", 20, 4096, (1, 0)), ("mandelbrot", 18, 30, (1, 1)),
])  # fmt: skip
def test_an_interval_of_instructions(name, begin, end, level):
    """Instructions count from 0 in each function; only those from INSTR_BEGIN on and before INSTR_END are counted."""
    interval = {"INSTR_BEGIN": begin, "INSTR_END": end, **options(level)}
    check_chosen(name, level, lambda _, instrs: instrs[begin:end], interval)


def test_counts_are_of_one_launch_and_totals_of_all(original):
    """Three launches of one loaded tool: variables are zero before each, totals add up."""
    device, code, launch, _, profile = original
    tool = load_tool("instr_count")
    made = instrument(code, tool)
    reports = [run_instrumented(device, made, tool, launch, index).report for index in range(3)]
    assert [r["instructions"] for r in reports] == [profile.total] * 3
    assert [r["total"] for r in reports] == [profile.total * n for n in (1, 2, 3)]


def test_one_tool_on_several_programs():
    """What it keeps of one program does not meet another's counts, in whatever order they are launched."""
    tool, names = load_tool("opcode_histogram"), ("transpose", "saxpy")
    bare = {name: run_bare(sample_called(name), launch_of(sample_called(name))) for name in names}
    made = {name: instrument(code, tool) for name, (_, code, *_) in bare.items()}
    for name in (*names, *names):
        device, _, launch, _, profile = bare[name]
        assert run_instrumented(device, made[name], tool, launch).report["opcodes"] == profile.opcodes()


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
