"""docs/regions.md: its commands are typed one after the other, and print the lines that stand below each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "regions.md"


def test_the_example(tmp_path: Path, typed: Callable[[str], Any], require_tool: Callable[[str], str]) -> None:
    require_tool("clang-22")
    shown = [line.removeprefix("    ") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("    ")]
    printed: list[str] = []
    checked = 0
    for line in shown:
        if line.startswith("clang-22 "):
            subprocess.run(line, shell=True, cwd=tmp_path, check=True)
        elif line.startswith("luthier "):
            done = typed(line)
            assert done.code == 0, done.err
            printed = [each.rstrip() for each in (done.out + done.err).splitlines()]
        else:
            assert line in printed
            checked += 1
    assert checked == 5
