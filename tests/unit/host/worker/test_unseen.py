"""Launches that try to pass a preloaded tool by, and the count of those that do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from luthier_py.host.hip import runtime_folder
from luthier_py.samples import FOLDER

HostProgram = Callable[..., Path]
Tooled = Callable[..., Any]


def test_callers_that_find_their_own_symbols_first(host_program: HostProgram, tooled: Tooled) -> None:
    """RTLD_DEEPBIND: the library's calls, and its dlsym, go past whatever is preloaded."""
    library = host_program("deep_library", "-shared", "-fPIC")
    done = tooled(host_program("deep_program", linked=False), library, FOLDER / "vector_add.co")
    assert (done.code, done.out) == (0, "0\n"), done.err
    assert [row["grid"] for row in done.verdict["reports"]] == [[1, 1, 1], [2, 1, 1]]
    assert (done.verdict["launches"], done.verdict["unseen"]) == (2, 0) and "not see" not in done.err


def test_what_no_tool_can_see_is_counted(
    host_program: HostProgram, tooled: Tooled, require_tool: Callable[[str], str]
) -> None:
    command = require_tool("nm"), "-D", runtime_folder() / "libamdhip64.so.7"
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    offset = next(line.split()[0] for line in lines if " T hipModuleLaunchKernel@" in line)
    done = tooled(host_program("unseen_program"), FOLDER / "vector_add.co", offset)
    assert done.code == 0, done.err
    assert (done.verdict["launches"], done.verdict["unseen"], len(done.verdict["reports"])) == (1, 2, 1)
    assert "; 2 more launches that the tool did not see; " in done.err
