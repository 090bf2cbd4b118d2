"""A mistake in a tool's ``instrument`` is told before the program starts, once; what depends on a kernel is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE

from luthier_py.base.errors import ToolError
from luthier_py.features.exec.check_tools import check_instrument
from luthier_py.rewrite.tool import load_tool

Program = Callable[..., Path]
DEVICE = "emulator:gfx90a"
TOOL = """
from luthier_py import Mutator, Tool, Variable, WaveVariable, hook, ptr, u32, u64
from luthier_py.base.errors import Unsupported
from luthier_py.intrinsics import atomic_add

@hook(lanes="one")
def add(count: ptr[u64]) -> None:
    atomic_add(count, 1)

@hook
def wrong(x: u32) -> u32:
    return [x]

class Mine(Tool):
    count = Variable(u64)
    number = WaveVariable(u32)

    def instrument(self, m: Mutator) -> None:
        print("asked")
        kernel, = m.kernels
        BODY
"""


@pytest.fixture
def tool(tmp_path: Path) -> Callable[[str], Path]:
    def make(body: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(TOOL.replace("BODY", body))
        return path

    return make


@pytest.mark.parametrize("body, said", [
    ("m.at_exti(kernel, add, self.count)", r"AttributeError: .*at_exti.*mine\.py:21, in instrument"),
    ("m.at_exit(kernel, ad, self.count)", r"NameError: .*'ad'.*mine\.py:21"),
    ("m.at_exit(kernel)", r"TypeError: .*mine\.py:21"),
    ("m.at_exit(kernel, add)", r"mine\.py:21: hook add has 1 argument"),
    ("m.at_exit(kernel, add, self)", r"mine\.py:21: hook add: .*cannot take"),
    ("m.at_exit(kernel, wrong, self.number, into=self.number)", r"mine\.py:12"),
    ("assert not m.functions()", r"AssertionError.*mine\.py:21"),
])  # fmt: skip
def test_mistakes_are_told_before_the_start(
    body: str, said: str, tool: Callable[[str], Path], program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ToolError, match=rf"^tool \w+: .*{said}.*; nothing was started$"):
        check_instrument(load_tool(str(tool(body))), program("vector_add"), DEVICE)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("body", [
    "m.at_exit(kernel, add, self.count)",
    "raise Unsupported('not this one')",
    "self.seen = getattr(self, 'seen', 0) + 1; return 1 // (self.seen - 1)",
])  # fmt: skip
@pytest.mark.parametrize("device", [DEVICE, None])
def test_what_may_be_a_kernel_s_own_is_left_to_its_launch(
    body: str, device: str | None, tool: Callable[[str], Path], program: Program
) -> None:
    check_instrument(load_tool(str(tool(body))), program("scan"), device)


@pytest.mark.parametrize("file", ["/bin/true", pytest.param(__file__, id="here"), "/dev/null", "/no/such/file"])
def test_files_without_code_say_nothing(file: str, tool: Callable[[str], Path]) -> None:
    check_instrument(load_tool(str(tool("nothing"))), Path(file), DEVICE)


def test_it_is_one_line(tool: Callable[[str], Path], program: Program) -> None:
    """And nothing runs."""
    words = "exec", "-t", tool("nothing"), "--device", DEVICE, "--", program("vector_add")
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (1, "") and len(done.stderr.splitlines()) == 1, done.stderr
    assert "NameError: name 'nothing' is not defined" in done.stderr
