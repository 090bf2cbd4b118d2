"""Programs under checks and by schedules: findings on stderr and as an exit code, seeds whose outcome is another."""

from __future__ import annotations

import pytest
from test_execute import DEVICE, Program, luthier


@pytest.mark.parametrize(("mistake", "kinds"), [
    ("", set()), ("race", {"race", "memory"}), ("bounds", {"bounds"}), ("unwritten", {"memory"}),
])
def test_mistakes_of_a_program(mistake: str, kinds: set[str], program: Program) -> None:
    checks = ("--check", "all", "--error-exitcode", "9")
    done = luthier("exec", "--device", DEVICE, *checks, "--", program("mistakes"), mistake)
    assert (done.returncode, done.stdout) == (9 if kinds else 0, "PASSED\n"), done.stderr
    lines = done.stderr.splitlines()
    assert all(line.startswith("luthier: check: ") and "kernel _Z6turned" in line for line in lines)
    assert bool(lines) == bool(kinds)
    by_environment = luthier("exec", "--device", DEVICE, "--", program("mistakes"), mistake, LUTHIER_CHECK="all")
    assert by_environment.returncode == 0 and len(by_environment.stderr.splitlines()) == len(lines)


def test_seeds_of_a_program(program: Program) -> None:
    many = ("--shuffle", "4", "--error-exitcode", "9")
    done = luthier("exec", "--device", DEVICE, *many, "--", program("mistakes"), "order")
    assert done.returncode == 9 and done.stdout == "0 1 2 3 PASSED\n"
    assert "luthier: shuffle: output differs with seed " in done.stderr
    seed = done.stderr.split("with seed ")[1].split(",")[0].split()[0]
    again = [luthier("exec", "--device", DEVICE, "--schedule", f"seed={seed}", "--", program("mistakes"), "order")
             for _ in range(2)]
    assert again[0].stdout == again[1].stdout != done.stdout
    same = luthier("exec", "--device", DEVICE, "--shuffle", "2", "--error-exitcode", "9", "--", program("vector_add"))
    assert same.returncode == 0 and "shuffle: the same by 2 schedules" in same.stderr


def test_what_makes_no_sense(program: Program) -> None:
    for wrong, why in (
        (("--device", DEVICE, "--check", "some"), "check `some` is unknown"),
        (("--device", DEVICE, "--schedule", "7"), "give seed=N"),
        (("--check", "all"), "for kernels on the emulator"),
        (("--shuffle", "2", "--device", DEVICE, "-t", "instr_count"), "leave out -t"),
    ):
        done = luthier("exec", *wrong, "--", "true")
        assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 1
