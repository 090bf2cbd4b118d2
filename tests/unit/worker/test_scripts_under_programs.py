"""One-liners under programs: with `luthier exec`, and again from what was kept of the first time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from test_execute import DEVICE, luthier


def test_a_script_under_a_program(program: Callable[..., Path]) -> None:
    lines = ["-e", 'on("*"): sum(active)', "-e", r'launch: printf("launch %d of %s\n", launch_number, kernel)']
    for _ in range(2):
        done = luthier("exec", *lines, "--device", DEVICE, "--", program("vector_add"))
        assert (done.returncode, done.stdout) == (0, "PASSED\n")
        told = done.stderr.splitlines()
        at = told.index("sum(active):")
        assert told[at + 2].split()[0] == "29192" and "launch 0 of vector_add" in done.stderr
        assert "verdict: 1 launch, 1 selected, 1 instrumented by script" in done.stderr
