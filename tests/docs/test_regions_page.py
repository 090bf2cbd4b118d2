"""docs/regions.md: its commands are typed one after the other, and print the lines that stand below each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example(tmp_path: Path, require_tool: Callable[[str], str]) -> None:
    require_tool("clang-22")
    text = (ROOT / "docs" / "regions.md").read_text("utf-8")
    shown = [line.removeprefix("    ") for line in text.splitlines() if line.startswith("    ")]
    (tmp_path / "luthier_py").symlink_to(ROOT / "luthier_py")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    printed: list[str] = []
    checked = 0
    for line in shown:
        if re.match("clang-22 |luthier ", line):
            done = subprocess.run(line, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, text=True,
                                  timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            assert done.returncode == 0, done.stdout
            printed = [each.rstrip() for each in done.stdout.splitlines()]
        else:
            assert line in printed
            checked += 1
    assert checked == 5
