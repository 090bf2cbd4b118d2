"""Blocks run as often as the emulator counts, ways between them as often as a trace of all blocks has them; and
traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from block_traces import CLOSING, TARGETS, compiled, launched, walks

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample as sample_called
from luthier_py.tools.hot_blocks.forms import dot
from luthier_py.tools.hot_blocks.traces import TraceOfBlocks, traces

TOOL = Path(__file__).resolve().parents[2] / "tools" / "hot_blocks"


def run(code: bytes, launch: Launch):
    """The run, and what the emulator counted of the original, whose memory it leaves."""
    device, tool = EmulatorDevice(load(code).target), load_tool(f"{TOOL}/", {"shown": 1})
    before, counts = run_original(device, code, launch).outputs, device.profile.counts
    after = run_instrumented(device, instrument(code, tool, kernels=launch.kernel), tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    return after, counts


def check(code: bytes, launch: Launch) -> None:
    after, counts = run(code, launch)
    report, (_, waves) = after.report, walks(code, launch)
    assert report["instructions"] == sum(counts.values())
    for row in report["blocks"]:
        assert row["executions"] == counts.get(row["pc"], 0)
    expected: Counter[tuple[int, int]] = Counter()
    for walk in waves:
        last: dict[int, int] = {}
        for step in walk:
            depth, block = len(step.active), step.block
            if depth in last:
                expected[last[depth], block.address] += 1
            last[depth] = block.address
            if block.ending in CLOSING:
                del last[depth]
    assert {(way["from"], way["to"]): way["executions"] for way in report["ways"] if way["executions"]} == expected
    for trace in report["traces"]:
        assert all(expected[way] == max(n for (of, _), n in expected.items() if of == way[0])
                   for way in pairwise(trace["blocks"]))
    assert dot(report, str).count(b" -> ") == len(expected)
    assert sum(trace["instructions"] for trace in report["traces"]) == report["instructions"]


@pytest.mark.parametrize("name", ["bitonic_sort", "mandelbrot"])
def test_samples(name: str) -> None:
    one = sample_called(name)
    check(one.path.read_bytes(), launch_of(one))


@pytest.fixture(scope="module")
def code(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    return partial(compiled, require_tool("clang-22"), tmp_path_factory.mktemp("blocks"))


@pytest.mark.parametrize(("kernel", "target"), [("chains", TARGETS[3])])
def test_calls_on_targets(code, kernel: str, target: tuple[str, int]) -> None:
    check(code(*target), launched(kernel))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", ["chains", "pointed", "tails", "many"])
def test_every_kernel_on_every_target(code, kernel: str, target: tuple[str, int]) -> None:
    check(code(*target), launched(kernel))


@pytest.mark.slow
def test_every_sample(sample) -> None:
    check(sample.path.read_bytes(), launch_of(sample))


def test_waves_that_callees_end(code) -> None:
    """Blocks before the call ran more often than what is behind it."""
    after, counts = run(code(*TARGETS[0]), launched("ended"))
    assert after.report["instructions"] == sum(counts.values())
    assert {row["pc"]: row["executions"] for row in after.report["blocks"]} == {
        row["pc"]: counts.get(row["pc"], 0) for row in after.report["blocks"]}  # fmt: skip


def test_traces_follow_the_likeliest_way_both_ways() -> None:
    executions = {1: 10, 2: 90, 3: 20, 4: 100, 5: 10, 6: 0}
    ways = {(1, 4): 10, (4, 2): 80, (4, 3): 20, (2, 4): 70, (2, 5): 10, (3, 4): 20, (3, 5): 0, (5, 2): 10}
    assert traces(executions, {block: 2 * n for block, n in executions.items()}, ways) == [
        TraceOfBlocks((4, 2), (0.8,), 380), TraceOfBlocks((3,), (), 40), TraceOfBlocks((1,), (), 20),
        TraceOfBlocks((5,), (), 20),
    ]  # fmt: skip
