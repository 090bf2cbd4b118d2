"""Tools name functions to people as C++ has them."""

from __future__ import annotations

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool, tools
from luthier_py.samples import sample

OPTIONS = {"script": {"text": "block: sum(instructions, by=function)"}}
ALWAYS = ("hot_blocks", "path_profile", "script")
OTHERS = sorted({tool.name for tool in tools().values()} - {*ALWAYS})


@pytest.mark.parametrize("name", [*ALWAYS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_functions_are_named_as_in_cpp(name: str) -> None:
    chosen = sample("device_call")
    code, tool = chosen.path.read_bytes(), load_tool(name, OPTIONS.get(name))
    ran = run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch_of(chosen))
    assert "_Z" not in ran.text and (name not in ALWAYS or "greatest_common_divisor(unsigned int" in ran.text)
    if ran.result is None:  # nothing here is what it looks at
        return
    assert b"label=\"_Z" not in b"".join(tool.files(ran.result, ran.report).values())
