"""What a program's start on the emulator imports when everything was translated before: nothing that translates.

And what `luthier exec` imports that starts it: nothing of tools, of code objects, or of what makes the libraries.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.host.hip import runtime_folder

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]

MOST = 115
"""Modules of this package; 111 when this was written, rooms among them, and 200 when all was imported."""
NEVER = ("luthier_py.isa.semantics", "luthier_py.isa.encoding.decode", "luthier_py.isa.text",
         "luthier_py.emulator.translation.translat(e|ing)$", "luthier_py.emulator.launches.dispatch",
         "luthier_py.emulator.native.accesses", "luthier_py.emulator.native.scheduler", "luthier_py.program.analysis",
         "luthier_py.rewrite.tool", "luthier_py.features", "luthier_py.cli", "zstandard", "rich", "click", "asyncio",
         "concurrent")  # fmt: skip
MOST_OF_EXEC = 60
"""53 when this was written, and 85 before."""
NEVER_BY_EXEC = ("pydantic", "typer", "rich", "numpy", "llvmlite", "elftools", "msgpack", "networkx", "concurrent",
                 "luthier_py.binary.loader", "luthier_py.rewrite.tool", "luthier_py.report", "luthier_py.base.llvm",
                 "luthier_py.program.analysis",
                 "luthier_py.emulator.interface.arguments", "luthier_py.host.hip.table", "luthier_py.host.preload",
                 "luthier_py.host.hsa",
                 "luthier_py.emulator.(?!options|watching$|watching.findings)")  # fmt: skip

NEVER_WITH_A_TOOL = ("numpy", "llvmlite", "elftools", "networkx", "rich", "luthier_py.proof.(?!claim)",
                     "luthier_py.rewrite.pipeline", "luthier_py.rewrite.jit.", "luthier_py.rewrite.inject.(?!cloned)",
                     "luthier_py.program.analysis.(facts|affine|definitions)", "luthier_py.program.ir.discover",
                     "luthier_py.isa.columns", "luthier_py.isa.semantics.")  # fmt: skip
TOOL_WORKER = ("import luthier_py.host.serve, luthier_py.host.worker.instrument.instrumentation, "
               "luthier_py.tools.instr_count")


@pytest.fixture
def imported(tmp_path: Path, program: Program, run: Run) -> Callable[..., list[str]]:
    """Names of the modules that a program's worker imports, in order."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -X importtime "$@"\n')
    python.chmod(0o755)

    def names(name: str, **environment: str) -> list[str]:
        environment = {"LUTHIER_PYTHON": str(python), "LUTHIER_CACHE_DIR": str(tmp_path / "cache"), **environment}
        done = run(program(name), **environment)
        assert (done.returncode, done.stdout) == (0, "PASSED\n")
        return names_in(done.stderr)

    return names


def names_in(text: str) -> list[str]:
    return re.findall(r"^import time:.*\| +(\S+)$", text, re.MULTILINE)


def never(names: list[str], forbidden: tuple[str, ...] = NEVER) -> list[str]:
    return [name for name in names if any(re.match(rf"{one}(\.|$)|{one}", name) for one in forbidden)]


@pytest.mark.parametrize("name", ("vector_add", "reduction", "bitonic_sort"))
def test_a_warm_start_imports_nothing_that_translates(name: str, imported: Callable[..., list[str]]) -> None:
    cold, warm = imported(name), imported(name)
    assert never(cold) and not never(warm)
    ours = {name for name in warm if name.startswith("luthier_py.")}
    assert "luthier_py.host.worker.device.emulated_device" in ours and len(ours) <= MOST


def test_luthier_exec_imports_little(tmp_path: Path) -> None:
    """Where its libraries were built before."""
    command = [sys.executable, "-X", "importtime", "-m", "luthier_py", "exec"]
    exec_ = [*command, "--device", "emulator:gfx90a", "--", "true"]
    runtime_folder()
    done = subprocess.run(exec_, capture_output=True, text=True, check=True)
    names = names_in(done.stderr)
    assert not never(names, NEVER_BY_EXEC)
    ours = {name for name in names if name.startswith("luthier_py.")}
    assert "luthier_py.features.exec.execute" in ours and len(ours) <= MOST_OF_EXEC
    help_ = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True)
    assert "luthier_py.features.exec.execute" not in names_in(help_.stderr)


def test_a_start_with_a_tool_imports_nothing_that_instruments(program: Program) -> None:
    """`luthier exec`, and the tool's worker until a kernel is not in the cache."""
    python = [sys.executable, "-X", "importtime"]
    exec_ = [*python, "-m", "luthier_py", "exec", "-t", "instr_count", "--device", "emulator:gfx90a", "--",
             str(program("vector_add"))]
    for command in (exec_, [*python, "-c", TOOL_WORKER]):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        names = names_in(done.stderr)
        assert "luthier_py.tools.instr_count.hooks" in names and not never(names, NEVER_WITH_A_TOOL)
