"""Kernels that Triton makes, through hip-python, on the emulator and under tools; its sources by their lines."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocm_stack import lacking

from luthier_py.host.hip import runtime_folder

PROGRAM = Path(__file__).with_name("triton_program.py")
KERNELS = ["softmax", "multiply", "count"]


@pytest.fixture
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    for name in ("triton", "hip"):
        if importlib.util.find_spec(name) is None:
            lacking(f"no {name} in this Python: pip install --no-deps triton, pip install luthier-py[hip]")
    folder = tmp_path_factory.getbasetemp() / "triton"
    return {"ROCM_PATH": str(runtime_folder()), "TRITON_CACHE_DIR": str(folder), "TRITON_DEFAULT_FP_FUSION": "1"}


@pytest.mark.parametrize("target", [
    "gfx90a", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gfx908", "gfx942", "gfx950"))])
def test_counts(
    target: str, environment: dict[str, str], tooled: Callable[..., Any], counted: Callable[..., list[dict[str, Any]]]
) -> None:
    environment |= {"LUTHIER_DEVICE": f"emulator:{target}"}
    rows = counted(sys.executable, PROGRAM, **environment)
    done = tooled(sys.executable, PROGRAM, **environment)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    found = [(row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"]]
    assert found == [(row["kernel"], row["instructions"]) for row in rows]
    assert [kernel for kernel, _ in found] == KERNELS and not done.verdict["refused"]


@pytest.mark.parametrize("target", [
    "gfx942", "gfx1201", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gfx950", "gfx1100", "gfx1250"))])
def test_more_kernels(target: str, environment: dict[str, str], run: Callable[..., Any]) -> None:
    """Dot products of small floats, scans, sorting, atomics, mathematics: as NumPy's."""
    done = run(sys.executable, PROGRAM.with_name("triton_kernels.py"), **environment,
               LUTHIER_DEVICE=f"emulator:{target}")
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stdout + done.stderr


def test_bank_conflicts_by_line(environment: dict[str, str], tooled: Callable[..., Any]) -> None:
    """What tl.dot moves through LDS stands at its line."""
    done = tooled(sys.executable, PROGRAM, tool="lds_bank_conflicts", **environment)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    report = next(row["report"] for row in done.verdict["reports"] if row["kernel"] == "multiply")
    line = 1 + next(number for number, text in enumerate(PROGRAM.read_text().splitlines()) if "tl.dot(" in text)
    places = {row["source"] for row in report["instructions"] if row["accesses"]}
    assert places == {f"{PROGRAM}:{line}"} and report["total"]["accesses"] > 0
