"""Finding tools by name and in files; what a launch result says."""

from __future__ import annotations

import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from luthier_py.errors import Invalid
from luthier_py.tool import LaunchResult, Option, Tool, Variable, load_tool, tools, u32, u64

FILE = """\
from luthier_py.tool import Mutator, Option, Tool
class First(Tool):
    "One."
    limit = Option(3)
    def instrument(self, m: Mutator) -> None: pass
"""


class Registered(Tool):
    total = Variable(u64)
    bins = Variable(u32, 2)
    level = Option("a")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    entries: list[Any] = [SimpleNamespace(name="mine", value="my.package:Registered", load=lambda: Registered)]
    monkeypatch.setattr("luthier_py.tool.discover.entry_points", lambda group: entries if "tools" in group else [])
    return entries


def test_by_name(installed: list[Any]) -> None:
    assert tools() == {"mine": Registered}
    tool = load_tool("mine", {"level": "b"})
    assert isinstance(tool, Registered) and tool.level == "b"
    with pytest.raises(Invalid, match="no tool is called yours; there are: mine; or give the path of a .py file"):
        load_tool("yours")
    installed.append(SimpleNamespace(name="wrong", value="my.package:VALUE", load=lambda: 3))
    with pytest.raises(Invalid, match="my.package:VALUE is not a Tool"):
        load_tool("wrong")


def test_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "first.py"
    path.write_text(FILE)
    tool = load_tool(str(path), {"limit": "4"})
    assert (tool.name, tool.description(), tool.limit) == ("First", "One.", 4)  # type: ignore[attr-defined]
    path.write_text(FILE + FILE.replace("First", "Second"))
    assert load_tool(f"{path}:Second").name == "Second"
    with pytest.raises(Invalid, match=r"first.py: choose one of its tools with .*first.py:NAME; it has First, Second"):
        load_tool(str(path))
    with pytest.raises(Invalid, match="it has First, Second"):
        load_tool(f"{path}:Third")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 3", "it has none"),
        ("def f(:", r"bad.py:1: invalid syntax"),
        ("import nothing_called_so", "bad.py: No module named 'nothing_called_so'"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(Invalid, match=message):
        load_tool(str(path))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no such tool file"):
        load_tool(str(tmp_path / "none.py"))
    (tmp_path / "tool.txt").write_text("")
    with pytest.raises(Invalid, match="must end in .py"):
        load_tool(str(tmp_path / "tool.txt"))


def test_launch_results() -> None:
    memory = {"Registered.total": struct.pack("<Q", 9), "Registered.bins": struct.pack("<2I", 1, 2)}
    launch = LaunchResult(3, "kernel", (2, 3, 4), (64, 1, 1), memory)
    assert (launch[Registered.total], launch[Registered.bins], launch.workgroups) == (9, (1, 2), 24)
    tool = Registered()
    report = tool.report(launch)
    assert report == {"total": 9, "bins": (1, 2)}
    assert tool.text(launch, report) == "total = 9\nbins = (1, 2)"
    assert tool.text(launch, 5) == "Registered = 5"


def test_launches_have_the_tool_s_variables_only() -> None:
    launch = LaunchResult(0, "kernel", (1, 1, 1), (64, 1, 1), {"Registered.total": bytes(8)})
    for wrong in ("total", Registered.bins, 0):
        with pytest.raises(Invalid, match=r"^\S*test_discover.py:\d+: launch\[...\] takes .*it has: Registered.total"):
            launch[wrong]  # type: ignore[index]
