"""HIP programs compiled for GPUs of every generation: their own checks pass, and a tool counts what the emulator does.

A part runs always, another one for each target; ``-m slow`` takes all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TARGETS = ("gfx803", "gfx900", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
PROGRAMS = ("vector_add", "reduction", "scan", "transpose", "bitonic_sort", "histogram", "softmax", "walsh_transform",
            "nbody", "lud_diagonal", "jacobi", "nearest_neighbour")
CASES = [
    pytest.param(name, target, marks=() if (at + 5 * number) % len(PROGRAMS) == 0 else pytest.mark.slow)
    for number, target in enumerate(TARGETS) for at, name in enumerate(PROGRAMS)
]


@pytest.mark.parametrize(("name", "target"), CASES)
def test_checks_pass_and_counts_are_equal(
    name: str, target: str, program: Callable[..., Path], run: Callable[..., Any], tooled: Callable[..., Any],
    tmp_path: Path,
) -> None:
    profile, path, device = tmp_path / "profile", program(name, targets=(target,)), f"emulator:{target}"
    bare = run(path, LUTHIER_DEVICE=device, LUTHIER_DEVICE_PROFILE=str(profile))
    assert (bare.returncode, bare.stdout) == (0, "PASSED\n"), bare.stderr
    done = tooled(path, LUTHIER_DEVICE=device)
    assert (done.code, done.out) == (0, "PASSED\n"), done.err
    counted = [json.loads(line)["instructions"] for line in profile.read_text().splitlines()]
    assert [row["report"]["instructions"] for row in done.verdict["reports"]] == counted and counted
