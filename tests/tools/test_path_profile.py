"""Paths: those that an interpreter finds in a trace of all blocks; blocks run as often as the emulator counts.

The interpreter knows of no numbers: it follows each wave through calls, and cuts where a loop goes back to its header.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from block_traces import CLOSING, TARGETS, Step, compiled, launched, walks

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.program.analysis import loops_of
from luthier_py.program.ir import Block, Program
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample as sample_called

TOOL = f"{Path(__file__).resolve().parents[2] / 'tools' / 'path_profile'}/"


def paths_in(program: Program, walk: Sequence[Step]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Functions and blocks of the paths of one wave."""
    backs = {(edge.source, edge.target) for f in program.functions for loop in loops_of(f) for edge in loop.backs}
    open_paths: dict[int, list[Block]] = {}
    for step in walk:
        path = open_paths.setdefault(len(step.active), [])
        if path and (path[-1], step.block) in backs:
            yield step.active[-1].name, tuple(each.address for each in path)
            path.clear()
        path.append(step.block)
        if step.block.ending in CLOSING:
            yield step.active[-1].name, tuple(each.address for each in path)
            path.clear()


def agree(code: bytes, launch: Launch, **options: object) -> dict:
    """The report, after comparisons with the emulator's counts."""
    device, tool = EmulatorDevice(load(code).target), load_tool(TOOL, options)
    before, profile = run_original(device, code, launch).outputs, device.profile
    made = instrument(code, tool, kernels=launch.kernel)
    after = run_instrumented(device, made, tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    report, ran = after.report, Counter()
    for row in report["paths"]:
        ran.update(dict.fromkeys(row["blocks"], row["executions"]))
    left = {row["function"] for row in report["left_out"]}
    counted = [function for function in made.program.functions if function.name not in left]
    assert counted and not report["lost"]
    for block in (block for function in counted for block in function.blocks):
        assert ran[block.address] == profile.counts.get(block.address, 0)
    executed = sum(n for pc, n in profile.counts.items() if any(f.address <= pc < f.end for f in counted))
    assert sum(row["instructions"] for row in report["paths"]) == executed
    return report


def check(code: bytes, launch: Launch) -> dict:
    """The report, after comparisons with the interpreter, too."""
    report, (program, waves) = agree(code, launch), walks(code, launch)
    left = {row["function"] for row in report["left_out"]}
    traced = Counter(path for walk in waves for path in paths_in(program, walk) if path[0] not in left)
    assert reported(report) == traced
    return report


def reported(report: dict) -> Counter:
    found = Counter()
    for row in report["paths"]:
        found[row["function"], tuple(row["blocks"])] += row["executions"]
    return found


@pytest.mark.parametrize("name", ["bitonic_sort", "function_pointers"])
def test_samples(name: str) -> None:
    one = sample_called(name)
    assert not check(one.path.read_bytes(), launch_of(one))["left_out"]


@pytest.mark.slow
def test_every_sample(sample) -> None:
    check(sample.path.read_bytes(), launch_of(sample))


@pytest.fixture(scope="module")
def code(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    return partial(compiled, require_tool("clang-22"), tmp_path_factory.mktemp("paths"))


@pytest.mark.parametrize(("kernel", "target"), [("chains", TARGETS[0]), ("tails", TARGETS[4])])
def test_calls_on_targets(code, kernel: str, target: tuple[str, int]) -> None:
    assert not check(code(*target), launched(kernel))["left_out"]


def test_functions_that_call_themselves_are_named(code) -> None:
    report = agree(code(*TARGETS[1]), launched("trees"))
    ((name, why),) = ((row["function"], row["why"]) for row in report["left_out"])
    assert "tree" in name and why == "it may be called again before it returns"


def test_a_path_ends_with_a_call_that_may_end_the_wave(code) -> None:
    report = agree(code(*TARGETS[3]), launched("ended"))
    assert any(row["then"] == "s_swappc_b64" for row in report["paths"])


def test_many_paths_share_a_table_and_what_has_no_room_is_told(code) -> None:
    many, launch = code(*TARGETS[2]), launched("many")
    report = agree(many, launch)
    (function,) = report["functions"]
    assert function["table"] and function["paths"] >= 1 << 16 and function["taken"] > 100
    tool = load_tool(TOOL, {"table": 64})
    made = instrument(many, tool, kernels="many")
    few = run_instrumented(EmulatorDevice(load(many).target), made, tool, launch).report
    assert len(few["paths"]) <= 64 and few["lost"] > 0
    kept = sum(row["executions"] for row in few["paths"])
    assert kept + few["lost"] == sum(row["executions"] for row in report["paths"])
    assert reported(few).items() <= reported(report).items()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", ["chains", "tails", "trees", "pointed", "many"])
def test_every_kernel_on_every_target(code, kernel: str, target: tuple[str, int]) -> None:
    check(code(*target), launched(kernel))
