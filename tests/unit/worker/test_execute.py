"""luthier exec and luthier build: the short way to what test_preload sets up by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Program = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]

DEVICE = "emulator:gfx90a"
LANES = ("-O", "COUNT_WARP_LEVEL=0", "-O", "EXCLUDE_PRED_OFF=1")


def luthier(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", *map(str, arguments)]
    settings = {**os.environ, "LUTHIER_DEVICE": "", **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=settings)


def test_exec(program: Program) -> None:
    done = luthier("exec", "-t", "instr_count", *LANES, "--device", DEVICE, "--", program("vector_add"))
    assert (done.returncode, done.stdout) == (0, "PASSED\n")
    assert "kernel instructions 29192," in done.stderr
    assert "verdict: 1 launch, 1 selected, 1 instrumented" in done.stderr


def test_exec_without_a_tool(program: Program) -> None:
    done = luthier("exec", "--device", DEVICE, "--", program("vector_add"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


def test_exit_codes(program: Program) -> None:
    nothing = luthier("exec", "-t", "instr_count", "--device", DEVICE, "--", "true")
    assert nothing.returncode == 3 and "observed nothing" in nothing.stderr
    assert luthier("exec", "-t", "instr_count", "--device", DEVICE, "--", "sh", "-c", "exit 7").returncode == 7
    assert luthier("exec", "-t", "instr_count", "--device", DEVICE, "--", "sh", "-c", "kill -9 $$").returncode == 137
    for wrong in (
        ("-t", "no_such_tool", "--", "true"),
        ("--device", "toaster", "--", "true"),
        ("--", "no-such-program"),
    ):
        done = luthier("exec", *wrong)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


def test_build(program: Program, run: Run, tmp_path: Path) -> None:
    library = tmp_path / "count.so"
    assert luthier("build", "instr_count", *LANES, "-o", library).returncode == 0
    done = run(program("vector_add"), LD_PRELOAD=str(library))
    assert done.stdout == "PASSED\n" and "kernel instructions 29192," in done.stderr


def test_the_readme_s_commands_preload_on_the_emulator(program: Program, tmp_path: Path) -> None:
    """The lines as they stand there, in one shell."""
    text = (Path(__file__).resolve().parents[3] / "README.md").read_text()
    section = text[text.index("## Under a program") : text.index("## Commands")]
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    build = next(line for line in lines if line.startswith("luthier build")).partition(" && ")[0]
    start = next(at for at, line in enumerate(lines) if line.startswith("export LUTHIER_DEVICE"))
    (tmp_path / "app").symlink_to(program("vector_add"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-ec", "\n".join([build, *lines[start:]])], cwd=tmp_path, env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=120,
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
