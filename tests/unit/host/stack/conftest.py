"""What tests on ROCm's own stack share; all skipped where there is none, see tests/rocm_stack.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rocm_stack import RocmStack
from stacked_programs import OPENMP, Done, Programs, Stacked


@pytest.fixture(scope="session")
def programs(rocm_stack: RocmStack, require_tool: Callable[[str], str]) -> Programs:
    require_tool("cc")
    require_tool("clang++-22")
    return Programs(rocm_stack)


@pytest.fixture(scope="session")
def openmp(programs: Programs, require_tool: Callable[[str], str]) -> Callable[[str], Path]:
    for name in (OPENMP, "clang-linker-wrapper-19", "ld.lld-19"):
        require_tool(name)
    return programs.openmp


@pytest.fixture
def stacked(rocm_stack: RocmStack, tmp_path: Path) -> Stacked:
    return Stacked(rocm_stack, tmp_path)


@pytest.fixture(scope="session")
def hip_alone(
    programs: Programs, rocm_stack: RocmStack, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Done]:
    """A HIP program on ROCm without a tool, once for all tests."""
    runner, runs = Stacked(rocm_stack, tmp_path_factory.mktemp("alone")), {}

    def run(name: str) -> Done:
        if name not in runs:
            runs[name] = runner.alone(programs.hip(name))
        found: Done = runs[name]
        assert (found.code, found.out) == (0, "PASSED\n"), found.err
        return found

    return run
