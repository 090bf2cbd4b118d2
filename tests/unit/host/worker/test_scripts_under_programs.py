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


def test_what_is_counted_so_far_ends_as_what_is_counted(program: Callable[..., Path]) -> None:
    lines = ["-e", 'on("global"): n = count(by=opcode)', "-e", 'end: print("ended", n)']
    told = [luthier("exec", *lines, *way, "--device", DEVICE, "--", program("jacobi")) for way in (["--live"], [])]
    assert [done.returncode for done in told] == [0, 0]
    live, plain = (done.stderr.rpartition("ended\n")[2].partition("luthier: verdict")[0] for done in told)
    assert live == plain and live.count("global_") > 1
    assert told[0].stderr.count("launches in") >= 1 and "launches in" not in told[1].stderr
