"""Variables that are as large as a launch: what each wave, work-group and work-item of it has left."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from balanced import Balanced, wrong

from luthier_py import LaunchVariable, Mutator, Tool, bf16, hook, ptr, u32, u64
from luthier_py.base.errors import HookError, Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool.arguments.launch_variable import MOST_BYTES, launch_bytes
from luthier_py.samples import sample

TOOL = Path(__file__).with_name("balanced.py")
Program = Callable[..., Path]
Tooled = Callable[..., Any]


def check(verdict: Any) -> None:
    assert verdict["reports"] and not verdict["failed"]
    assert verdict["launches"] == sum(row["launches"] for row in verdict["reports"])
    for row in verdict["reports"]:
        assert row["report"]["wrong"] == [], row
        assert len(row["report"]["waves"]) == prod(row["grid"]) * ceil(prod(row["block"]) / 64)


@pytest.mark.parametrize("name", ("vector_add", "streams_events", "jacobi", "graphs", "pools", "graph_nodes"))
def test_under_a_program(name: str, program: Program, tooled: Tooled, counted: Any) -> None:
    done = tooled(program(name), tool=TOOL, LUTHIER_TOOL_OPTIONS="whole=0")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)
    alone = sum(row["instructions"] for row in counted(program(name)))
    assert sum(row["report"]["total"] for row in done.verdict["reports"]) == alone


def test_a_graph_that_launches_a_kernel_in_two_sizes(program: Program, tooled: Tooled) -> None:
    """Its launches share what the tool has of them: with several sizes it runs as it is. Memory comes back."""
    done = tooled(program("graph_sizes"), tool=TOOL, LUTHIER_TOOL_OPTIONS="whole=0")
    assert done.out == "PASSED\n", done.err
    assert done.err.count("a graph runs as it is: it launches kernel _Z3addPii with grids of several sizes") == 1
    assert [(row["launches"], row["grid"], row["report"]["wrong"]) for row in done.verdict["reports"]] == [
        (2, [5, 1, 1], []), (1, [2, 1, 1], [])]
    assert done.verdict["lost_launches"] == 2


@pytest.mark.parametrize(("memory", "why"), [
    ("16G", "launches of kernel add(int*, int) run as they are: a launch of 5 x 1 x 1 work-groups of 64 x 1 x 1 "
            "work-items needs 2684354560 bytes for what it sizes, and has at most 2147483648: Oversized.each 5 "
            "workgroups x 67108864 x 8"),
    ("256M", "launches run as they are, as one of kernel _Z3addPii: there are no 1073741824 bytes for what the tool "
             "keeps of it"),
])
def test_launches_that_need_too_much_run_as_they_are(
    memory: str, why: str, program: Program, tooled: Tooled
) -> None:
    tool = TOOL.with_name("oversized.py")
    done = tooled(program("graph_sizes"), tool=tool, LUTHIER_DEVICE_MEMORY=memory, START_GRID_NUM="2")
    assert done.out == "PASSED\n" and done.verdict["refused"], done.err
    assert done.err.count(f"luthier: {why}") == 1
    reports = [row["report"] for row in done.verdict["reports"]]
    assert reports == ([] if memory == "256M" else [{"groups": 2, "touched": 2}])


def test_where_the_runtime_has_no_good_pools(program: Program, tooled: Tooled) -> None:
    done = tooled(program("graphs", 5), tool=TOOL, LUTHIER_TOOL_OPTIONS="whole=0")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)


def test_threads(program: Program, tooled: Tooled) -> None:
    done = tooled(program("threads"), tool=TOOL, LUTHIER_TOOL_OPTIONS="whole=0")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)


def test_several_devices(program: Program, tooled: Tooled) -> None:
    done = tooled(program("devices"), tool=TOOL, LUTHIER_TOOL_OPTIONS="whole=0", LUTHIER_DEVICE="emulator:gfx90a*3")
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    check(done.verdict)


def test_where_nobody_waits_for_launches_there_are_none(program: Program, tooled: Tooled) -> None:
    done = tooled(program("vector_add"), tool=TOOL, LUTHIER_TOOL_OPTIONS="per_launch=0")
    assert done.out == "PASSED\n"
    assert "Balanced.waves" in done.err and "is as large as a launch; with per_launch=False" in done.err
    assert done.verdict["instrumented"] == 0 and done.verdict["refused"]


def single_waves(groups: int) -> Launch:
    """Each work-group of one wave, of a kernel whose waves have more or less to do."""
    chosen = sample("mandelbrot")
    return Launch(chosen.kernel, (groups, 1, 1), (64, 1, 1), tuple(map(parse_argument, chosen.args)))


def test_each_wave_is_counted_as_the_emulator_counts_it() -> None:
    """The last wave of a launch is what the launch has more than one without it."""
    code, tool, waves = sample("mandelbrot").path.read_bytes(), Balanced(), 9
    device = EmulatorDevice(load(code).target)
    totals = [0, *(run_original(device, code, single_waves(groups)).counted or 0 for groups in range(1, waves + 1))]
    ran = run_instrumented(device, instrument(code, tool), tool, single_waves(waves))
    assert ran.report["waves"].tolist() == np.diff(totals).tolist()
    assert len(set(np.diff(totals).tolist())) > 1
    assert ran.result is not None and wrong(ran.result) == []


@pytest.mark.parametrize("name", ("reduce", "transpose", "matmul", "bitonic_sort", "scratch"))
def test_samples(name: str) -> None:
    chosen, tool = sample(name), Balanced()
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    device = EmulatorDevice(load(code).target)
    original = run_original(device, code, launch)
    ran = run_instrumented(device, instrument(code, tool), tool, launch)
    assert ran.result is not None and wrong(ran.result) == [] and ran.report["total"] == original.counted
    assert all(np.array_equal(data.view(np.uint8), original.outputs[number].view(np.uint8))
               for number, data in ran.outputs.items())


def test_one_copy_serves_all_sizes() -> None:
    code, tool = sample("mandelbrot").path.read_bytes(), Balanced()
    device, made = EmulatorDevice(load(code).target), instrument(code, tool)
    for groups in (5, 1, 12):
        ran = run_instrumented(device, made, tool, single_waves(groups))
        assert ran.report["groups"].shape == (groups, 2) and ran.result is not None and wrong(ran.result) == []


class Kinds(Tool):
    single = LaunchVariable(u32, "wave")
    several = LaunchVariable(u64, "workitem", 3)

    @hook(lanes="one")
    def note(single: ptr[u32]) -> None:
        single[0] = 1

    def instrument(self, m: Mutator) -> None:
        m.at_entry(m.kernels[0], self.note, self.single.own)


@pytest.mark.parametrize(("grid", "block", "wave_size", "waves", "items"), [
    ((1, 1, 1), (1, 1, 1), 64, 1, 1), ((7, 5, 3), (8, 4, 3), 64, 210, 10080), ((7, 5, 3), (8, 4, 3), 32, 315, 10080),
    ((4, 1, 1), (65, 1, 1), 64, 8, 260), ((0, 1, 1), (64, 1, 1), 64, 0, 0),
])
def test_sizes(grid: Any, block: Any, wave_size: int, waves: int, items: int) -> None:
    found = launch_bytes(Kinds.variables, grid, block, wave_size)
    assert found == {Kinds.single: 4 * waves, Kinds.several: 24 * items}
    assert Kinds.several.decode(bytes(24 * items)).shape == (items, 3)


def test_what_a_launch_may_need_has_an_end() -> None:
    groups = MOST_BYTES // (64 * 24 + 4)
    assert sum(launch_bytes(Kinds.variables, (groups, 1, 1), (64, 1, 1), 64).values()) <= MOST_BYTES
    for grid in ((groups + 1, 1, 1), (1 << 32, 1 << 32, 1)):
        items = prod(grid) * 64
        with pytest.raises(Invalid, match=rf"needs {prod(grid) * 4 + items * 24} bytes .* {MOST_BYTES}: Kinds.single "
                                          rf"{prod(grid)} waves x 4 \+ Kinds.several {items} workitems x 3 x 8"):
            launch_bytes(Kinds.variables, grid, (64, 1, 1), 64)


def test_a_launch_that_needs_too_much_does_not_begin() -> None:
    code, tool = sample("mandelbrot").path.read_bytes(), Kinds()
    device, made = EmulatorDevice(load(code).target), instrument(code, tool)
    with pytest.raises(Invalid, match="Kinds.several 4294967296 workitems x 3 x 8"):
        run_instrumented(device, made, tool, single_waves(1 << 26))


def test_wrong_declarations_are_refused() -> None:
    for given, message in (((bf16, "wave"), "NumPy has no bf16"), ((u32, "grid"), "give one of wave, workgroup"),
                           ((u32, "wave", 0), "at least one element"), ((u32, "wave", 1 << 70), "at most 2 GiB"),
                           ((u32, "wave", "x"), "length needs"), ((u32, "wave", 1.5), "length needs")):
        with pytest.raises((Invalid, HookError), match=message):
            LaunchVariable(*given)
    with pytest.raises(Invalid, match="is as large as the launch: pass single, or single.own"):
        Kinds.single[0]


@pytest.mark.parametrize("given", ("single", "several", "own"))
def test_another_type_is_refused(given: str) -> None:
    class Wrong(Tool):
        single = LaunchVariable(u64, "wave")
        several = LaunchVariable(u32, "workitem")

        def instrument(self, m: Mutator) -> None:
            m.at_entry(m.kernels[0], Kinds.note, {"single": self.single, "several": self.single.own,
                                                  "own": self.several.own}[given])

    with pytest.raises(HookError, match="Wrong.s.*(declare it|a plain @hook)"):
        instrument(sample("vector_add").path, Wrong())


def test_a_tool_for_which_nobody_waits_is_refused() -> None:
    with pytest.raises(Invalid, match=r"LaunchVariable\(Balanced.waves: u64 for each wave\) is as large"):
        instrument(sample("vector_add").path, Balanced(per_launch=False))
