"""racecheck beside the emulator's check of races where data are published by a flag: plain loads want an acquire behind
the load that saw it."""

from __future__ import annotations

import pytest
from published_by_flags import KERNELS, TOO_EARLY, WITHOUT, compiled

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool


@pytest.mark.parametrize("target", ["gfx90a", *(pytest.param(each, marks=pytest.mark.slow) for each in (
    "gfx906", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"))])
def test_plain_loads_want_an_acquire(target, require_tool, tmp_path):
    data, tool = compiled(require_tool("clang-22"), target, tmp_path), load_tool("racecheck")
    made = instrument(data, tool)
    for kernel in (*KERNELS, TOO_EARLY):
        launch = Launch(kernel, (2, 1, 1), (256, 1, 1), (parse_argument("inout:u32[16]=zeros"),) * 2)
        checked = EmulatorDevice(load(data).target, options=LaunchOptions(checks=Checks.RACES))
        before = run_original(checked, data, launch)
        after = run_instrumented(EmulatorDevice(load(data).target), made, tool, launch)
        rows = after.report["races"]
        if kernel == TOO_EARLY:  # what is let go counts as waited for
            assert [each.other.text[:12] for each in checked.findings] == ["global_store"] and not rows, kernel
            continue
        assert {(each["pc"], each["other_pc"]) for each in rows} == {
            tuple(sorted((each.where.pc, each.other.pc))) for each in checked.findings}, kernel
        assert bool(rows) == (kernel in WITHOUT), (kernel, rows)
        assert all(row["kind"].endswith(" without an acquire") for row in rows), rows
        assert [each.tobytes() for each in after.outputs.values()] == [
            each.tobytes() for each in before.outputs.values()]
