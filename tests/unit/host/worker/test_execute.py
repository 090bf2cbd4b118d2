"""luthier exec and luthier build: the short way to what test_preload sets up by hand."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loaded_command import run_luthier

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]

DEVICE = "emulator:gfx90a"
SECONDS = 600
"""Only what hangs meets it."""
LANES = ("-O", "COUNT_WARP_LEVEL=0", "-O", "EXCLUDE_PRED_OFF=1")


def luthier(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_luthier(*arguments, environment={**os.environ, "LUTHIER_DEVICE": "", **environment})


def test_exec(program: Program) -> None:
    done = luthier("exec", "-t", "instr_count", *LANES, "--device", DEVICE, "--", program("vector_add"))
    assert (done.returncode, done.stdout) == (0, "PASSED\n")
    assert "kernel instructions 29192," in done.stderr
    assert "verdict: 1 launch, 1 selected, 1 instrumented" in done.stderr


def test_exec_without_a_tool(program: Program) -> None:
    done = luthier("exec", "--device", DEVICE, "--", program("vector_add"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


def test_what_a_tool_had_nothing_to_go_by_in_is_no_result(program: Program, tmp_path: Path) -> None:
    """With XNACK kernels may access all memory of the program."""
    def run(*options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        done = luthier("exec", "-t", "memcheck", *options, "--device", DEVICE, "--output", tmp_path / "it.json", "--",
                       program("vector_add"), HSA_XNACK="1")
        return done, json.loads((tmp_path / "it.json").read_text())

    done, facts = run()
    why = "what the launch may access is not known, so no access was judged"
    assert done.returncode == 3 and f"tool memcheck observed nothing: {why}" in done.stderr
    assert f"  nothing observed in 1 launch: {why}" in done.stderr
    assert not facts["verdict"]["observed"] and not facts["launches"][0]["report"]["judged"]
    done, facts = run("-O", "ALIGN=1")
    assert done.returncode == 0 and facts["verdict"]["observed"] and facts["launches"][0]["report"]["judged"]


def test_the_verdict_says_that_the_program_has_no_code_for_the_device(program: Program) -> None:
    done = luthier("exec", "-t", "instr_count", "--device", "emulator:gfx900", "--", program("vector_add"))
    why = "left no count; the program has code for gfx90a, but the device is gfx900:xnack-"
    assert done.returncode == 1 and why in done.stderr and "not known why" not in done.stderr


def test_a_program_without_launches_has_a_verdict(tmp_path: Path) -> None:
    for name in ("counts.json", "counts.txt"):
        done = luthier("exec", "-t", "instr_count", "--device", DEVICE, "--output", tmp_path / name, "--", "true")
        assert done.returncode == 3 and "verdict: 0 launches, 0 selected, 0 instrumented by instr_count" in done.stderr
    facts = json.loads((tmp_path / "counts.json").read_text())
    assert facts["launches"] == [] and facts["verdict"]["reasons"] == ["no launch came to the tool"]
    assert "verdict: 0 launches" in (tmp_path / "counts.txt").read_text()


def test_exit_codes(program: Program) -> None:
    nothing = luthier("exec", "-t", "instr_count", "--device", DEVICE, "--", "true")
    assert nothing.returncode == 3 and "observed nothing: no launch came to the tool" in nothing.stderr
    assert luthier("exec", "-t", "instr_count", "--device", DEVICE, "--", "sh", "-c", "exit 7").returncode == 7
    assert luthier("exec", "-t", "instr_count", "--device", DEVICE, "--", "sh", "-c", "kill -9 $$").returncode == 137
    for wrong in (
        ("-t", "no_such_tool", "--", "true"),
        ("--device", "toaster", "--", "true"),
        ("--", "no-such-program"),
    ):
        done = luthier("exec", *wrong)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_the_exit_code_where_the_parent_ignores_its_children() -> None:
    """A process that ignores SIGCHLD hands that on, and the kernel then keeps no exit codes."""
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", "--", "sh", "-c", "exit 7"]
    ignoring = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    assert subprocess.run(command, timeout=SECONDS, preexec_fn=ignoring).returncode == 7


def test_time_limit(program: Program) -> None:
    lines = {}
    for what in ("endless", "barrier"):
        done = luthier("exec", "--time-limit", "0.2", "--device", DEVICE, "--", program("faults"), what)
        assert (done.returncode, done.stdout) == (0, "PASSED\n"), done.stderr
        (lines[what],) = done.stderr.splitlines()
        assert "no end within the time limit of 0.2 s: wave 0 of work-group 0 at pc 0x" in lines[what]
    assert "[kernel forever(int volatile*)]" in lines["endless"]
    assert "`s_barrier" in lines["barrier"] and "wave 1 of work-group 0 at pc 0x" in lines["barrier"]


def test_a_kernel_may_wait_for_the_host(program: Program) -> None:
    done = luthier("exec", "--device", DEVICE, "--", program("faults"), "signal")
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


def test_what_cannot_run_is_said_at_once(program: Program) -> None:
    for wrong, code, said in (
        (("--device", "emulator:nothing"), 2, "unknown target"),
        (("--time-limit", "-1", "--device", DEVICE), 2, "give a positive number"),
        (("--time-limit", "1", "--shuffle", "2"), 2, "--time-limit, --shuffle: for kernels on the emulator"),
    ):
        done = luthier("exec", *wrong, "--", program("vector_add"))
        assert (done.returncode, done.stdout) == (code, "") and said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_build(program: Program, run: Run, tmp_path: Path) -> None:
    library = tmp_path / "count.so"
    assert luthier("build", "instr_count", *LANES, "-o", library).returncode == 0
    done = run(program("vector_add"), LD_PRELOAD=str(library))
    assert done.stdout == "PASSED\n" and "kernel instructions 29192," in done.stderr


def test_the_readme_s_commands_preload_on_the_emulator(program: Program, tmp_path: Path) -> None:
    """The lines as they stand there, in one shell."""
    text = (Path(__file__).resolve().parents[4] / "README.md").read_text()
    section = text[text.index("## Under a program") : text.index("## Commands")]
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    build = next(line for line in lines if line.startswith("luthier build")).partition(" && ")[0]
    start = next(at for at, line in enumerate(lines) if line.startswith("export LUTHIER_DEVICE"))
    (tmp_path / "app").symlink_to(program("vector_add"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", "\n".join([build, *lines[start:]])], cwd=tmp_path, env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "PASSED"), done.stderr
    assert "1 instrumented by instr_count" in done.stderr


def test_every_process_has_a_verdict(program: Program, tmp_path: Path) -> None:
    """LUTHIER_VERDICT gets that of the process that launched most."""
    verdict = tmp_path / "verdict.json"
    bitonic, vector = program("bitonic_sort"), program("vector_add")
    command = ("sh", "-c", f"{vector}; {bitonic}; {vector}")
    done = luthier("exec", "-t", "instr_count", "--device", DEVICE, "--", *command, LUTHIER_VERDICT=str(verdict))
    assert (done.returncode, done.stdout) == (0, 3 * "PASSED\n") and done.stderr.count("verdict: ") == 3
    assert json.loads(verdict.read_text())["launches"] > 1
