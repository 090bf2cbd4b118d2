"""Programs under checks and by schedules: findings on stderr and as an exit code, seeds whose outcome is another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_execute import DEVICE, Program, luthier

EVERYTHING = "bounds, waits, races, init, barriers, hardware"


@pytest.mark.parametrize(("mistake", "kinds"), [
    ("", set()), ("race", {"races", "init"}), ("bounds", {"bounds"}), ("unwritten", {"init"}),
])
def test_mistakes_of_a_program(mistake: str, kinds: set[str], program: Program, tmp_path: Path) -> None:
    checks = ("--check", "all", "--error-exitcode", "9")
    done = luthier("exec", "--device", DEVICE, *checks, "--", program("mistakes"), mistake)
    assert (done.returncode, done.stdout) == (9 if kinds else 0, "PASSED\n"), done.stderr
    *lines, summary = done.stderr.splitlines()
    told = [line for line in lines if not line.startswith("  ")]
    assert {line.split(": kernel turned(")[0] for line in told} == {f"luthier: check {kind}" for kind in kinds}
    found = f"{len(told)} finding{'s' * (len(told) != 1)}" if kinds else "nothing found"
    assert summary == f"luthier: checks ({EVERYTHING}): {found} in 1 launch"
    by_environment = luthier("exec", "--device", DEVICE, "--", program("mistakes"), mistake, LUTHIER_CHECK="all",
                             LUTHIER_FINDINGS=str(tmp_path / "found"))
    assert by_environment.returncode == 0 and len(by_environment.stderr.splitlines()) == len(lines) + 1
    (row,) = map(json.loads, (tmp_path / "found").read_text().splitlines())
    assert row["kernel"].startswith("_Z6turned") and len(row["findings"]) == len(told)


def test_findings_under_a_tool_name_the_program_s_lines(program: Program, tmp_path: Path) -> None:
    """The copy that runs has no line tables, and not the original's addresses."""
    mistakes, rows = program("mistakes", extra=("-gline-tables-only",)), []
    for name, tool in (("bare", ()), ("tooled", ("-t", "instr_count"))):
        done = luthier("exec", "--device", DEVICE, *tool, "--check", "all", "--", mistakes, "race",
                       LUTHIER_FINDINGS=str(tmp_path / name))
        assert done.returncode == 0, done.stderr
        rows += map(json.loads, (tmp_path / name).read_text().splitlines())
    bare, tooled = rows
    assert bare == tooled and all("mistakes.hip:" in found["at"]["line"] for found in bare["findings"])


def test_findings_by_many_seeds_count(program: Program) -> None:
    checked = ("--shuffle", "2", "--check", "races", "--error-exitcode", "9")
    done = luthier("exec", "--device", DEVICE, *checked, "--", program("mistakes"), "race")
    assert done.returncode == 9 and all(f"luthier: these by seed={seed}" in done.stderr for seed in range(2))
    done = luthier("exec", "--device", DEVICE, *checked, "--", program("mistakes"), "")
    assert done.returncode == 0 and "shuffle: the same by 2 schedules" in done.stderr


def test_who_stops_it_stops_all_schedules(program: Program, tmp_path: Path) -> None:
    """Ctrl-C of a terminal goes to all of the group."""
    marks = tmp_path / "marks"
    script = f"echo began >> {marks}; exec sleep 600"
    options = ("--device", DEVICE, "--shuffle", "5")
    command = (sys.executable, "-m", "luthier_py", "exec", *options, "--", "sh", "-c", script)
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as running:
        while not marks.exists():
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(500) == 130
    assert marks.read_text() == "began\n"


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
        (("--device", DEVICE, "--check", "some"), "--check=some: check `some` is unknown"),
        (("--device", DEVICE, "--schedule", "x"), "--schedule=x: give seed=N"),
        (("--check", "all"), "for kernels on the emulator"),
        (("--shuffle", "2", "--device", DEVICE, "-t", "instr_count"), "leave out -t"),
    ):
        done = luthier("exec", *wrong, "--", "true")
        assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 1
