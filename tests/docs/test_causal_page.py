"""docs/causal.md: its commands are typed one after the other, and print the lines that stand below each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "causal.md"


def test_the_example(tmp_path: Path, typed: Callable[[str], Any], require_tool: Callable[[str], str]) -> None:
    require_tool("clang-22")
    text = PAGE.read_text("utf-8")
    example = text[text.index("## An example") : text.index("## Why it works")]
    printed, checked = list[str](), 0
    for line in (line.removeprefix("    ") for line in example.splitlines() if line.startswith("    ")):
        if line.startswith("clang-22 "):
            subprocess.run(line, shell=True, cwd=tmp_path, check=True)
        elif line.startswith("luthier "):
            done = typed(line)
            assert done.code == 0, done.err
            printed = (done.out + done.err).splitlines()
        else:
            assert line in printed
            checked += 1
    assert checked == 7
    pages = sorted(path.name for path in (tmp_path / "causal").iterdir())
    assert pages == ["transpose.csv", "transpose.html", "transpose.json", "transpose.txt"]
