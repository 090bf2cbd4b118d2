"""Kernels in shared libraries, which come to the runtime before the program does, or long after."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.host.hip import runtime_folder

ENTRY = "run_kernels"
SYMBOL = "_Z11run_kernelsv"
CALL = f"int {SYMBOL}(void);"
SOURCES = {
    "program": f"{CALL} int main(void) {{ return {SYMBOL}(); }}",
    "constructor": f"{CALL} static int code; int result(void) {{ return code; }}"
                   f"__attribute__((constructor)) static void early(void) {{ code = {SYMBOL}(); }}",
    "last": "int result(void); int main(void) { return result(); }",
}  # fmt: skip
OPEN = f"import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).{SYMBOL}())"
REOPEN = f"""
import _ctypes, ctypes, sys
for _ in range(3):
    library = ctypes.CDLL(sys.argv[1])
    assert library.{SYMBOL}() == 0
    _ctypes.dlclose(library._handle)
"""


def compiled(folder: Path, name: str, library: Path, *options: str) -> Path:
    source, output = folder / f"{name}.c", folder / f"{name}.out"
    source.write_text(SOURCES[name])
    path = [f"-Wl,-rpath,{library.parent}", f"-Wl,-rpath-link,{runtime_folder()}"]
    subprocess.run(["cc", *options, str(source), str(library), *path, "-o", str(output)], check=True)
    return output


@pytest.mark.parametrize("how", ("linked", "early", "opened", "reopened"))
def test_kernels_of_a_library(
    how: str, program: Callable[..., Path], tooled: Callable[..., Any], counted: Callable[..., list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    """Linked: it registers its kernels before the tool's constructors have run. Early: another library even launches
    them then. Opened: the program knows nothing of the runtime, which comes with the library and for it alone.
    Reopened: and goes with it, several times."""
    library = program("vector_add", entry=ENTRY)
    command: tuple[str | Path, ...] = (sys.executable, "-c", REOPEN if how == "reopened" else OPEN, library)
    if how == "linked":
        command = (compiled(tmp_path, "program", library),)
    elif how == "early":
        caller = compiled(tmp_path, "constructor", library, "-shared", "-fPIC")
        command = (compiled(tmp_path, "last", caller),)
    expected = [(row["kernel"], row["instructions"]) for row in counted(*command)]
    done = tooled(*command)
    times = 3 if how == "reopened" else 1
    assert (done.code, done.out) == (0, times * "PASSED\n"), done.out + done.err
    assert [(row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"]] == expected
    assert len(expected) == times
