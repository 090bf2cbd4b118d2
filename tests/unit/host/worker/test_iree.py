"""Kernels that IREE compiles and runs through its own HIP driver, on the emulator and under a tool."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rocm_stack import lacking

PROGRAM = Path(__file__).with_name("iree_kernels.py")
TARGET = {"LUTHIER_DEVICE": "emulator:gfx942"}


@pytest.fixture(autouse=True)
def installed() -> None:
    if not all(importlib.util.find_spec(name) for name in ("iree", "iree.compiler", "iree.runtime")):
        lacking("no iree in this Python: pip install iree-base-compiler iree-base-runtime")


@pytest.mark.parametrize("kernels", ("matmul f16", "softmax"))
def test_counts(
    kernels: str, tooled: Callable[..., Any], counted: Callable[..., list[dict[str, Any]]]
) -> None:
    """As NumPy's; and each launch counted as the emulator counts it."""
    rows = counted(sys.executable, PROGRAM, kernels, **TARGET)
    done = tooled(sys.executable, PROGRAM, kernels, **TARGET)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    assert not done.verdict["refused"] and done.verdict["instrumented"] == done.verdict["launches"]
    found = Counter((row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"])
    assert found and found == Counter((row["kernel"], row["instructions"]) for row in rows)


@pytest.mark.parametrize("kernels", ("matmul f32", "matmul i8", "matmul f8E4M3FNUZ", "matmul f8E5M2FNUZ"))
def test_results(kernels: str, run: Callable[..., Any]) -> None:
    """As NumPy's, for a size that tiles divide and one that they do not."""
    done = run(sys.executable, PROGRAM, kernels, **TARGET)
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stdout + done.stderr


def test_graphs(run: Callable[..., Any]) -> None:
    """IREE's other way to launch: its command buffers are graphs of HIP."""
    done = run(sys.executable, PROGRAM, "scan,sort", **TARGET, IREE_PY_RUNTIME_FLAGS="--hip_use_streams=false")
    assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stdout + done.stderr
