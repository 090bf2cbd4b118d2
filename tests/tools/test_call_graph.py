"""Calls and stacks: those that an interpreter finds in a trace of all blocks, with the emulator's instructions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from io import BytesIO

import pytest
from block_traces import TARGETS, compiled, launched, walks

from luthier_py.base.names import demangle
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.program.analysis import source_frames
from luthier_py.program.ir import lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample as sample_called
from luthier_py.tools import call_graph
from luthier_py.tools.call_graph.contexts import contexts

# What https://github.com/jlfwong/speedscope/blob/main/src/lib/file-format-spec.ts requires of sampled profiles.
NUMBER = {"type": "number"}
NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
SPEEDSCOPE = {
    "type": "object", "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "shared": {"type": "object", "required": ["frames"], "properties": {"frames": {"type": "array", "items": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}},
        "profiles": {"type": "array", "items": {
            "type": "object",
            "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
            "properties": {
                "type": {"const": "sampled"}, "unit": {"enum": ["none", "nanoseconds", "microseconds", "bytes"]},
                "startValue": NUMBER, "endValue": NUMBER, "weights": {"type": "array", "items": NUMBER},
                "samples": {"type": "array", "items": NUMBERS},
            }}},
    },
}  # fmt: skip


def run(code: bytes, launch: Launch):
    """The run, and what the emulator counted of the original, whose memory it leaves."""
    device, tool = EmulatorDevice(load(code).target), load_tool("call_graph")
    before, counts = run_original(device, code, launch).outputs, device.profile.counts
    after = run_instrumented(device, instrument(code, tool, kernels=launch.kernel), tool, launch)
    assert {n: data.tobytes() for n, data in after.outputs.items()} == {n: data.tobytes() for n, data in before.items()}
    assert sum(row["instructions"] for row in after.report["stacks"]) == sum(counts.values())
    return after, counts, tool


def check(code: bytes, launch: Launch) -> dict:
    report, (_, waves) = run(code, launch)[0].report, walks(code, launch)
    stacks, calls, entered = Counter(), Counter(), Counter()
    for step in (step for walk in waves for step in walk):
        names = [demangle(function.name) for function in step.active]
        stacks[tuple(names)] += len(step.block.instrs)
        entered[names[-1]] += step.entered
        if step.caller is not None:
            calls[demangle(step.caller.name), names[-1]] += 1
    assert {tuple(row["stack"]): row["instructions"] for row in report["stacks"]} == stacks
    made = Counter()
    for row in report["calls"]:
        made[row["caller"], row["callee"]] += row["count"]
    assert made == calls
    for row in report["functions"]:
        assert row["calls"] == entered[row["function"]]
        assert row["inclusive"] == sum(n for stack, n in stacks.items() if row["function"] in stack)
        assert row["exclusive"] == sum(n for stack, n in stacks.items() if row["function"] == stack[-1])
    return report


@pytest.fixture(scope="module")
def code(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    return partial(compiled, require_tool("clang-22"), tmp_path_factory.mktemp("calls"))


@pytest.mark.parametrize("name", ["device_call", "function_pointers"])
def test_samples(name: str) -> None:
    one = sample_called(name)
    check(one.path.read_bytes(), launch_of(one))


@pytest.mark.parametrize(("kernel", "target"), [("chains", TARGETS[0]), ("pointed", TARGETS[2]), ("tails", TARGETS[4])])
def test_calls_on_targets(code, kernel: str, target: tuple[str, int]) -> None:
    report = check(code(*target), launched(kernel))
    assert report["apart"] and all(row["indirect"] == (kernel == "pointed") for row in report["calls"]
                                   if row["caller"] == kernel)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", ["chains", "pointed", "tails"])
def test_every_kernel_on_every_target(code, kernel: str, target: tuple[str, int]) -> None:
    check(code(*target), launched(kernel))


def test_each_call_of_a_function_that_is_no_kernel_is_one_of_its_contexts() -> None:
    program = lift(load(sample_called("device_call").path.read_bytes()))
    found = contexts(program, program.functions, lambda _: True)
    for function in program.functions:
        callers = [caller for caller in program.functions for site in program.calls(caller) if function in site.targets]
        assert found.many[function.address] == sum(found.many[caller.address] for caller in callers) + bool(
            function.kernel)
        assert len(found.ranges[function.address]) == len(callers)
    assert sum(not function.kernel for function in program.functions) > 0


def test_recursion_has_the_context_in_which_it_began(code) -> None:
    data = code(*TARGETS[1])
    ran, counts, _ = run(data, launched("trees"))
    made = instrument(data, load_tool("none"))
    by_function = Counter()
    for pc, n in counts.items():
        by_function[next(demangle(f.name) for f in made.program.functions if f.address <= pc < f.end)] += n
    assert {row["function"]: row["exclusive"] for row in ran.report["functions"]} == by_function
    stacks = {tuple(name.partition("(")[0] for name in row["stack"]) for row in ran.report["stacks"]}
    assert stacks == {("trees",), ("trees", "tree"), ("trees", "tree", "mixed"), ("trees", "mixed")}
    itself = sum(row["count"] for row in ran.report["calls"] if row["caller"] == row["callee"])
    tree = next(row for row in ran.report["functions"] if row["function"].startswith("tree("))
    assert itself + sum(row["count"] for row in ran.report["calls"] if row["caller"] == "trees"
                        and row["callee"] == tree["function"]) == tree["calls"]


def test_callers_are_not_told_apart_where_that_takes_too_much(code, monkeypatch: pytest.MonkeyPatch) -> None:
    data = code(*TARGETS[0])
    apart = run(data, launched("chains"))[0].report
    monkeypatch.setattr(call_graph, "MOST", 1)
    report = run(data, launched("chains"))[0].report
    assert apart["apart"] and not report["apart"] and all(len(row["stack"]) == 1 for row in report["stacks"])
    for which in ("calls", "exclusive"):
        assert {row["function"]: row[which] for row in report["functions"]} == {
            row["function"]: row[which] for row in apart["functions"]}  # fmt: skip
    assert report["calls"] == apart["calls"]


def test_inlined_functions_are_frames_and_files_agree(code) -> None:
    from jsonschema import validate  # takes long to import, as NetworkX does
    from networkx import read_graphml

    data = code(*TARGETS[3], "-g")
    ran, counts, tool = run(data, launched("chains"))
    frames, expected = source_frames(load(data)), Counter()
    for pc, n in counts.items():
        innermost = frames.at(pc)
        expected[demangle(innermost[0].function)] += n
    found = Counter()
    for row in ran.report["stacks"]:
        found[row["stack"][-1]] += row["instructions"]
    assert found == expected and any(name.startswith("scaled(") for name in found)
    files = tool.files(ran.result, ran.report)
    lines = [line.rpartition(" ") for line in files["call_graph.folded"].decode().splitlines()]
    stacks = {tuple(row["stack"]): row["instructions"] for row in ran.report["stacks"]}
    assert {tuple(stack.split(";")): int(n) for stack, _, n in lines} == stacks
    scope = json.loads(files["call_graph.speedscope.json"])
    validate(scope, SPEEDSCOPE)
    (profile,) = scope["profiles"]
    names = [frame["name"] for frame in scope["shared"]["frames"]]
    assert {tuple(names[n] for n in sample): weight
            for sample, weight in zip(profile["samples"], profile["weights"], strict=True)} == stacks
    assert profile["endValue"] == sum(counts.values())
    graph = read_graphml(BytesIO(files["call_graph.graphml"]))
    assert {name: node["exclusive"] for name, node in graph.nodes(data=True)} == {
        row["function"]: row["exclusive"] for row in ran.report["functions"]}  # fmt: skip
    assert sum(n for _, _, n in graph.edges(data="calls")) == sum(row["count"] for row in ran.report["calls"])
    assert files["call_graph.dot"].count(b"->") == graph.number_of_edges()
