"""What a tool writes under a program: counts of each launch as a file, and its own files for each kernel."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loaded_command import run_luthier

Program = Callable[..., Path]
DEVICE = "emulator:gfx90a"


def exec_with(tool: str, program: Path, **options: object) -> str:
    """``luthier exec``; stderr."""
    given = [text for name, value in options.items() for text in ("-O", f"{name}={value}")]
    environment = {**os.environ, "LUTHIER_DEVICE": ""}
    done = run_luthier("exec", "-t", tool, *given, "--device", DEVICE, "--", program, environment=environment)
    assert (done.returncode, done.stdout[-7:]) == (0, "PASSED\n"), done.stdout + done.stderr
    return done.stderr


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open()))


def total(rows: list[dict[str, str]], name: str) -> int:
    return sum(int(row[name]) for row in rows)


def test_bank_conflicts_by_kernel(program: Program, tmp_path: Path) -> None:
    """3 x 2 tiles of 32 x 32 words: rows are stored in a cycle for each half wave, columns read in 32, or in 1."""
    report, output = tmp_path / "report", tmp_path / "out.csv"
    err = exec_with("lds_bank_conflicts", program("transpose"), LUTHIER_REPORT=report, LUTHIER_OUTPUT=output)
    assert "verdict: 2 launches, 2 selected, 2 instrumented by lds_bank_conflicts" in err and "accesses" not in err
    rows, half_waves = table(output), 3 * 2 * 32 * 32 // 32
    assert {row["kernel"] for row in rows} == {"transpose_plain", "transpose_padded"}
    for kernel, ways in (("transpose_plain", 32), ("transpose_padded", 1)):
        own = [row for row in rows if row["kernel"] == kernel]
        assert total(own, "conflict_free_cycles") == 2 * half_waves
        assert total(own, "cycles") == (1 + ways) * half_waves
        files = {path.suffix: path for path in (report / kernel).iterdir()}
        assert set(files) == {".csv", ".html", ".json", ".png", ".txt"}
        assert total(table(files[".csv"]), "conflict_cycles") == total(own, "conflict_cycles")
        assert f"LDS bank conflicts of {kernel}" in files[".html"].read_text()


def test_launches_of_a_kernel_together(program: Program, tmp_path: Path) -> None:
    """Each launch is in the counts; the kernel has one set of files, with their sum."""
    report, output = tmp_path / "report", tmp_path / "out.json"
    exec_with("lds_bank_conflicts", program("walsh_transform"), LUTHIER_REPORT=report, LUTHIER_OUTPUT=output)
    facts: dict[str, Any] = json.loads(output.read_text())
    kernels = {row["kernel"] for row in facts["launches"]}
    assert facts["verdict"]["instrumented"] == len(facts["launches"])
    for kernel in kernels:
        reports = [row["report"] for row in facts["launches"] if row["kernel"] == kernel]
        (file,) = report.rglob("lds_bank_conflicts.json")
        summed = json.loads(file.read_text())
        assert summed["launches"] == len(reports)
        assert summed["total"]["cycles"] == sum(one["total"]["cycles"] for one in reports) > 0
