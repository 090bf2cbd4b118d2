"""A tool that observes nothing says why: what it could not do, and not that there was nothing for it."""

from __future__ import annotations

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launched import launch_on
from luthier_py.report.verdict import Verdict
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.samples import sample
from luthier_py.tools.script import Script

OVERWRITTEN = "nothing of {} can be done in 1 kernel saxpy: left out, as"
SHIFT = 'on("v_lshlrev_b64"): sum(dst - src1)'  # which it overwrites


def reasons(tool: Tool) -> list[str]:
    path = sample("saxpy").path
    done = launch_on(EmulatorDevice(load(path).target), path, path.read_bytes(), launch_of(sample("saxpy")), tool)
    assert isinstance(done.verdict, Verdict) and not done.verdict.observed
    return done.verdict.reasons()


def test_an_instruction_that_overwrites_what_is_asked_for() -> None:
    [why] = reasons(Script(SHIFT))
    assert why.startswith(OVERWRITTEN.format("script")) and "overwrites v[0:1]" in why


def test_nothing_at_all() -> None:
    assert reasons(Script('on("lds"): count()')) == ["there is nothing for script in 1 kernel saxpy"]


@pytest.mark.parametrize(("options", "why"), [
    ({}, "nothing is under test: TEST=FILTER says what is to be faster"),
    ({"test": "lds"}, "TEST=lds chooses no instruction of this kernel"),
])  # fmt: skip
def test_nothing_under_test(options: dict[str, str], why: str) -> None:
    tool = load_tool("causal_profile", options)
    assert reasons(tool) == [why]
