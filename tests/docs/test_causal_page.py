"""docs/causal.md: its commands are typed one after the other, and print the lines that stand below each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    require_tool("clang-22")
    text = (ROOT / "docs" / "causal.md").read_text("utf-8")
    example = text[text.index("## An example") : text.index("## Why it works")]
    (tmp_path / "luthier_py").symlink_to(ROOT / "luthier_py")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    printed, checked = list[str](), 0
    for line in (line.removeprefix("    ") for line in example.splitlines() if line.startswith("    ")):
        if line.startswith(("clang-22 ", "luthier ")):
            done = subprocess.run(line, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, text=True,
                                  timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert done.returncode == 0, done.stdout
            printed = done.stdout.splitlines()
        else:
            assert line in printed
            checked += 1
    assert checked == 7
    pages = sorted(path.name for path in (tmp_path / "causal").iterdir())
    assert pages == ["transpose.csv", "transpose.html", "transpose.json", "transpose.txt"]
