"""The tutorial is run: its files are saved, its commands are typed, and what they print is what the page shows."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"```(python|console|cpp)\n(.*?)```", re.DOTALL)
CHANGING = re.compile(r"instrumented in [\d.]+ s, \d+ from cache")
TREE_READS = re.compile(r"(\d+) lanes  ds_read2")


def blocks() -> Iterator[tuple[str, str, str]]:
    """Kind, the file name that the text before it gave last, content."""
    text = PAGE.read_text()
    for match in BLOCK.finditer(text):
        names = re.findall(r"`(\w+\.(?:py|hip))`", text[: match.start()])
        yield match[1], names[-1] if names else "", match[2]


def typed(content: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, and what follows it."""
    for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


@pytest.fixture
def shell(program: Callable[..., Path], tmp_path: Path) -> Callable[[str], str]:
    """Runs a line in a folder that has the program, with this installation's commands."""
    (tmp_path / "build" / "programs").mkdir(parents=True)
    (tmp_path / "build" / "programs" / "reduction").symlink_to(program("reduction"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(line: str) -> str:
        done = subprocess.run(
            line, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, text=True, timeout=600,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return CHANGING.sub("instrumented", done.stdout)

    return run


def test_the_tutorial(shell: Callable[[str], str], tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    require_tool("clang++-22")
    for kind, name, content in blocks():
        if kind != "console":
            (tmp_path / name).write_text(content)
            continue
        for command, output in typed(content):
            assert shell(command) == CHANGING.sub("instrumented", output), command


def test_records_and_structures_are_dataclasses() -> None:
    """As strict type checkers want classes whose annotations are all that they have (basedpyright's
    reportUninitializedInstanceVariable)."""
    pages = [page.read_text() for page in PAGE.parent.glob("*.md")]
    parts = [node for page in pages for kind, code in BLOCK.findall(page) if kind == "python" and "class " in code
             for node in ast.walk(ast.parse(code))]
    found = [node for node in parts if isinstance(node, ast.ClassDef) and any(
        isinstance(part, ast.AnnAssign) and part.value is None for part in node.body)]
    assert len(found) >= 3 and {ast.unparse(*node.decorator_list) for node in found} == {"dataclass"}


def test_the_tool_has_31_lines_and_the_hand_calculation_is_right() -> None:
    tools = {name: content for kind, name, content in blocks() if kind == "python"}
    assert list(tools)[:2] == ["accesses.py", "lanes.py"] and len(tools["lanes.py"].splitlines()) == 31
    [shown] = [output for kind, _, content in blocks() if kind == "console"
               for command, output in typed(content) if command == "cat lanes.txt"]  # fmt: skip
    assert sum(map(int, TREE_READS.findall(shown))) == 2040 == 8 * 255
