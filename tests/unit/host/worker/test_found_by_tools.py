"""What tools find in programs beside the emulator's checks, as an exit code, and in budgets."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from test_execute import DEVICE, Program, luthier

CALLS = {
    "bounds": "0 bytes past the end of hipMallocManaged, call 3 at .*allocations.hip:36",
    "constant": "bytes into the code object .*, which may not be written",
    "freed": "8 bytes into hipMallocManaged, call 3 at .*allocations.hip:36.* which was freed",
}


@pytest.mark.parametrize("mistake", ["", *CALLS, pytest.param("freed optimised", marks=pytest.mark.slow)])
def test_memory_of_a_program(mistake: str, program: Program, tmp_path: Path) -> None:
    """Of all kinds, with nothing told of right accesses; the instructions are those of which the check tells. Host code
    that is not optimised calls a function of HIP's header, which calls the runtime."""
    mistake, _, optimised = mistake.partition(" ")
    path = program("allocations", extra=("-gline-tables-only", *(["-Xarch_host", "-O2"] if optimised else [])))
    done = luthier("exec", "-t", "memcheck", "--error-exitcode", "9", "--device", DEVICE, "--output",
                   tmp_path / "it.json", "--", path, mistake)
    assert (done.returncode, done.stdout) == (9 if mistake else 0, "PASSED\n"), done.stderr
    facts = json.loads((tmp_path / "it.json").read_text())
    rows = [row for launch in facts["launches"] for row in launch["report"]["bad"]]
    assert facts["verdict"]["findings"] == len(rows) and bool(rows) == bool(mistake)
    assert not mistake or any(re.search(CALLS[mistake], each["what"]) for row in rows for each in row["first"])
    checked = luthier("exec", "--check", "bounds", "--device", DEVICE, "--", path, mistake, LUTHIER_FINDINGS=str(
        tmp_path / "found"))
    assert checked.returncode == 0
    told = [found for line in (tmp_path / "found").read_text().splitlines() for found in json.loads(line)["findings"]]
    assert {found["at"]["pc"] for found in told} == {row["pc"] for row in rows}


@pytest.mark.parametrize(("name", "mistake"), [
    ("mistakes", ""), ("mistakes", "unwritten"), ("flat_reads", ""), ("flat_reads", "unwritten")])
def test_memory_that_nobody_wrote(name: str, mistake: str, program: Program, tmp_path: Path) -> None:
    """Copies and kernels take away what new memory is filled with. Of flat reads those count that lead there."""
    path = program(name)
    done = luthier("exec", "-t", "initcheck", "--error-exitcode", "9", "--device", DEVICE, "--output",
                   tmp_path / "it.json", "--", path, mistake)
    assert (done.returncode, done.stdout) == (9 if mistake else 0, "PASSED\n"), done.stderr
    (launch,) = json.loads((tmp_path / "it.json").read_text())["launches"]
    checked = luthier("exec", "--check", "init", "--device", DEVICE, "--", path, mistake,
                      LUTHIER_FINDINGS=str(tmp_path / "found"))
    assert checked.returncode == 0
    (told,) = map(json.loads, (tmp_path / "found").read_text().splitlines())
    reads = {row["pc"]: row["count"] for row in launch["report"]["unwritten"]}
    assert reads == {found["at"]["pc"]: found["count"] for found in told["findings"]} and bool(reads) == bool(mistake)
    if name == "flat_reads" and mistake:
        (row,) = launch["report"]["unwritten"]
        assert (row["instruction"].split()[0], row["count"], row["space"]) == ("flat_load_dword", 512, "memory")


@pytest.mark.parametrize(("mistake", "tools"), [
    *((mistake, "memcheck,racecheck,initcheck,synccheck,waitcheck") for mistake in CALLS),
    ("bounds", "initcheck,memcheck"),
    *(pytest.param(mistake, "initcheck,memcheck", marks=pytest.mark.slow) for mistake in ("constant", "freed"))])
def test_tools_together_read_no_memory_that_is_not_there(mistake: str, tools: str, program: Program) -> None:
    """What memcheck keeps a wave from others do not access in its place."""
    path = program("allocations", extra=("-gline-tables-only",))
    done = luthier("exec", "-t", tools, "--error-exitcode", "9", "--device", DEVICE, "--", path, mistake)
    assert (done.returncode, done.stdout) == (9, "PASSED\n"), done.stderr
    assert re.search(CALLS[mistake], done.stderr)


def test_a_call_that_fails_has_written_nothing() -> None:
    """Where a program asks for no pitch there is none to look at."""
    program = ("import ctypes; hip = ctypes.CDLL('libamdhip64.so'); "
               "print(hip.hipMallocPitch(ctypes.byref(ctypes.c_void_p()), None, 16, 16))")
    done = luthier("exec", "-t", "memcheck", "--device", DEVICE, "--", sys.executable, "-c", program)
    assert (done.returncode, done.stdout) == (3, "1\n"), done.stderr


def test_a_budget_of_races(program: Program, tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text('[kernels."turned*"]\nraces = 0\n')
    for mistake, code in (("", 0), ("race", 1)):
        command = program("mistakes"), mistake
        done = luthier("check", "--budget", tmp_path / "budget.toml", "--device", DEVICE, "--", *command)
        assert done.returncode == code, done.stderr
        assert re.search(rf"{code} +<= 0 +\+{code} +{'worse' if code else 'kept'} +races", done.stdout), done.stdout


def test_a_budget_of_bad_accesses(program: Program, tmp_path: Path) -> None:
    """Under no other tool such a program comes to its end."""
    budget, command = tmp_path / "budget.toml", (program("allocations"), next(iter(CALLS)))
    for limits, out, err in (
        ("", r"3 +<= 0 +\+3 +worse +bad_accesses", ""),
        ("instructions = 9\n", "", "memcheck finds bad accesses in kernel .*: mend these first"),
    ):
        budget.write_text(f'[kernels."*"]\nbad_accesses = 0\n{limits}')
        done = luthier("check", "--budget", budget, "--device", DEVICE, "--", *command)
        assert done.returncode == 1 and re.search(out, done.stdout) and re.search(err, done.stderr), done


def test_a_tool_that_looks_for_no_mistakes_has_no_exit_code(program: Program) -> None:
    done = luthier("exec", "-t", "instr_count", "--error-exitcode", "9", "--device", DEVICE, "--", program("mistakes"))
    assert done.returncode == 2 and "a tool that looks for mistakes" in done.stderr
