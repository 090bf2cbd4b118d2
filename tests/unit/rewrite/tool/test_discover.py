"""Finding tools by name and in files; what a launch result says."""

from __future__ import annotations

import struct
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from luthier_py.base.errors import Invalid, ToolError, one_line
from luthier_py.isa import instruction_set, target
from luthier_py.rewrite.tool import LaunchResult, Option, Tool, Variable, load_tool, tools, u32, u64
from luthier_py.rewrite.tool.discover import absolute, registered_tools, tools_in

FILE = """\
from luthier_py.rewrite.tool import Mutator, Option, Tool
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
    monkeypatch.setattr("importlib.metadata.entry_points",
                        lambda group: entries if "tools" in group else [])
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


def test_each_folder_of_a_package(installed: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is added is a tool; what it imports from its parts is none of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "toolbox_of_others"
    for folder, text in {"": "", "first": "from .base import Base\n" + FILE, "empty": "", "data": None}.items():
        (package / folder).mkdir()
        if text is not None:
            (package / folder / "__init__.py").write_text(text)
    (package / "first" / "base.py").write_text(FILE.replace("First", "Base"))
    (package / "shared.py").write_text("")
    installed.append(SimpleNamespace(name="any", value=package.name, load=lambda: import_module(package.name)))
    assert {tool.name: tool.place for tool in registered_tools().values()} == {
        "mine": "my.package:Registered", "empty": "toolbox_of_others.empty", "first": "toolbox_of_others.first"}
    assert load_tool("first", {"limit": "4"}).name == "First"
    with pytest.raises(Invalid, match=r"empty.__init__.py: a tool's folder declares one subclass .* here, not 0"):
        load_tool("empty")


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
        ("import nothing_called_so", "bad.py:1: No module named 'nothing_called_so'"),
        ("1 / 0", r"bad.py: ZeroDivisionError: division by zero \(.*bad.py:1"),
        ("import sys; sys.exit(0)", r"bad.py: it calls sys.exit\(0\) when it is imported"),
        ("raise BaseExceptionGroup('', [KeyError()])" if sys.version_info >= (3, 11) else "assert 0", "bad.py: "),
        ("x = '\0'", "bad.py.*null byte"),
        ("x = '\udc80'", "bad.py"),
        ("f = lambda: f()\nf()", "bad.py: RecursionError"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.py"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(ToolError if message != "it has none" else Invalid, match=message):
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
    head = "kernel 3 - kernel - #workgroups 24"
    assert tool.text(launch, report) == f"{head}\n  total = 9\n  bins = (1, 2)"
    assert tool.text(launch, 5) == f"{head}\n  Registered = 5"


def test_neighbours_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may import what is beside it, which hides nothing that is installed; a folder is a package."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "beside_the_tool.py").write_text("LIMIT = 5\n")
    (tmp_path / "graphlib.py").write_text("raise RuntimeError('this is not the library')\n")
    (tmp_path / "first.py").write_text("import graphlib\nfrom beside_the_tool import LIMIT\n" + FILE)
    assert load_tool(str(tmp_path / "first.py")).name == "First"
    folder = tmp_path / "whole"
    folder.mkdir()
    with pytest.raises(Invalid, match="whole: a tool's folder has an __init__.py"):
        load_tool(str(folder))
    (folder / "part.py").write_text(FILE)
    (folder / "__init__.py").write_text("from .part import First\n" + FILE.replace("First", "Second"))
    assert load_tool(f"{folder}:First").name == "First" and load_tool(f"{folder}/:Second").name == "Second"
    with pytest.raises(Invalid, match="it has First, Second"):
        load_tool(f"{folder}/")
    assert set(tools_in(str(folder))) == {"First", "Second"}
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Invalid, match="write ./whole for the folder here"):
        load_tool("whole")
    for spelled in ("./whole:First", "first.py", "./first.py:First"):
        assert load_tool(absolute(spelled)).name == "First" and absolute(spelled).startswith(str(tmp_path))
    assert absolute("instr_count") == "instr_count"


def test_launches_have_the_tool_s_variables_only() -> None:
    launch = LaunchResult(0, "kernel", (1, 1, 1), (64, 1, 1), {"Registered.total": bytes(8)})
    for wrong in ("total", Registered.bins, 0):
        with pytest.raises(Invalid, match=r"^\S*test_discover.py:\d+: launch\[...\] takes .*it has: Registered.total"):
            launch[wrong]  # type: ignore[index]


def test_errors_name_the_line_of_the_tool(tmp_path: Path) -> None:
    """Whatever raised, the place that is told is one that its author can mend."""
    path = tmp_path / "mine.py"
    path.write_text("import os\nfrom luthier_py import Nothing\n")
    with pytest.raises(ToolError, match=r"mine.py:2: cannot import name 'Nothing'"):
        load_tool(str(path))
    path.write_text(FILE.replace("pass", "\n        m.inst['src0']"))
    inst = instruction_set(target("gfx90a")).decode(bytes.fromhex("000080bf"))
    with pytest.raises(KeyError) as raised:
        load_tool(str(path)).instrument(SimpleNamespace(inst=inst))  # type: ignore[arg-type]
    assert "has no operand src0" in one_line(raised.value) and "mine.py:6, in instrument" in one_line(raised.value)
    path.write_text("from luthier_py import Tool\nclass Idle(Tool): pass\n")
    with pytest.raises(ToolError, match=r"write a method instrument\(self, m\)"):
        load_tool(str(path)).instrument(None)  # type: ignore[arg-type]


def test_a_file_that_is_meant_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_here.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Invalid, match=r"or write mine_here.py for the file here"):
        load_tool("mine_here")
