"""The library at the level of HSA by its two entries, with tables of functions that a test makes.

rocprofiler-register comes with ROCm 6.2 and later; here its call is made by the test, with a table of the same form.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.features.settings.levels import LEVELS, level_environment, level_library
from luthier_py.host.hip import runtime_folder
from luthier_py.host.hsa import hsa_tool_library

CORE, AMD = 125, 48  # functions in the tables of ROCm 5.2 (hsa_api_trace.h)
EXCHANGED = {
    "hsa_init": 0, "hsa_shut_down": 1, "hsa_queue_create": 7, "hsa_queue_destroy": 9, "hsa_executable_destroy": 84,
    "hsa_executable_freeze": 86,
}  # fmt: skip
PROGRAM = """
    import ctypes, sys
    library, core, amd, entry, preloaded = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]
    for path in preloaded:
        ctypes.CDLL(path)
    class Table(ctypes.Structure):
        _fields_ = [("head", ctypes.c_uint32 * 4), ("at", ctypes.c_void_p * 200)]
    class Root(ctypes.Structure):
        _fields_ = [("head", ctypes.c_uint32 * 4), ("at", ctypes.c_void_p * 4)]
    tables = []
    for count in (core, amd):
        table = Table((1, 16 + 8 * count, 0, 0))
        table.at[:count] = range(4096, 4096 + count)
        tables.append(table)
    root = Root((1, ctypes.sizeof(Root), 0, 0), tuple(map(ctypes.addressof, tables)))
    tool = ctypes.CDLL(library)
    def enter():
        if entry == "OnLoad":
            tool.OnLoad.restype = ctypes.c_bool
            return not tool.OnLoad(ctypes.byref(root), ctypes.c_uint64(1), ctypes.c_uint64(0), None)
        array = (ctypes.c_void_p * 1)(ctypes.addressof(root))
        call = tool.rocprofiler_set_api_table
        return call(entry.encode(), ctypes.c_uint64(60200), ctypes.c_uint64(0), array, ctypes.c_uint64(1))
    refused = enter() or enter()
    changed = [at for at in range(core) if tables[0].at[at] != 4096 + at]
    untouched = all(tables[1].at[at] == 4096 + at for at in range(amd))
    print(int(refused), changed, untouched)
"""


def load(
    entry: str, core: int = CORE, amd: int = AMD, tool: str = "none", level: str = "hsa",
    preloaded: tuple[Path, ...] = (),
) -> tuple[bool, list[int], str]:
    """Whether the library refused the tables, which functions it put its own in the place of, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(hsa_tool_library()), str(core), str(amd), entry,
         *map(str, preloaded)],
        env={"LUTHIER_TOOL": tool, "LUTHIER_LEVEL": level, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    refused, changed, untouched = re.fullmatch(r"(\d) \[(.*)\] (True|False)\n", done.stdout).groups()  # type: ignore[union-attr]
    assert untouched == "True"
    return refused == "1", [int(at) for at in changed.split(", ") if at], done.stderr


@pytest.mark.parametrize("entry", ["OnLoad", "hsa"])
def test_six_functions_are_exchanged(entry: str) -> None:
    """Also where both entries are taken, or one twice."""
    refused, changed, _ = load(entry)
    assert not refused and changed == sorted(EXCHANGED.values())


def test_longer_tables_are_as_good() -> None:
    refused, changed, _ = load("OnLoad", CORE + 20, AMD + 40)
    assert not refused and changed == sorted(EXCHANGED.values())


@pytest.mark.parametrize("core, amd, missing", [
    (CORE - 2, AMD, "hsa_executable_iterate_agent_symbols"),
    (CORE, 36, "hsa_amd_queue_intercept_register"),
])  # fmt: skip
@pytest.mark.parametrize("entry", ["OnLoad", "hsa"])
def test_a_table_that_is_too_short_is_refused_in_one_line(entry: str, core: int, amd: int, missing: str) -> None:
    refused, changed, said = load(entry, core, amd)
    assert refused and changed == []
    assert set(said.splitlines()) == {f"luthier: this HSA runtime gives tools no {missing}; the tool is not there"}


def test_tables_of_other_runtimes_are_left_alone() -> None:
    assert load("hip") == (False, [], "")


def test_without_a_tool_nothing_is_exchanged() -> None:
    assert load("OnLoad", tool="") == (False, [], "")


def test_a_hip_program_is_left_to_the_library_before_hip() -> None:
    hip = (runtime_folder() / "libamdhip64.so.6",)
    assert load("OnLoad", level="auto", preloaded=hip) == (False, [], "")
    for found in (load("OnLoad", level="hsa", preloaded=hip), load("OnLoad", level="auto")):
        assert found[1] == sorted(EXCHANGED.values())


def test_environments_of_levels() -> None:
    before = {"LD_PRELOAD": "/other.so", "HSA_TOOLS_LIB": "/tools.so"}
    found = {level: level_environment(level, before) for level in LEVELS}
    library = str(hsa_tool_library())
    assert found["hsa"] == {"LUTHIER_LEVEL": "hsa", "HSA_TOOLS_LIB": f"{library} /tools.so"}
    assert "HSA_TOOLS_LIB" not in found["hip"] and found["hip"]["LD_PRELOAD"].endswith("libluthier_tool.so /other.so")
    assert found["auto"] == {**found["hip"], **found["hsa"], "LUTHIER_LEVEL": "auto"}
    with pytest.raises(Invalid, match="level cuda is unknown; give auto, hip, hsa"):
        level_environment("cuda", {})


def test_a_library_with_a_tool_in_it() -> None:
    library = level_library("hsa", "no_such_tool", "")
    assert b"no_such_tool" in library.read_bytes()
    assert ctypes.CDLL(str(library)).OnLoad
