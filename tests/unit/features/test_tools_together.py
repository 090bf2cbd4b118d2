"""Several tools in one copy: each reports what it reports alone, from `run` and under a program."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Ran, run_instrumented, run_original
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Tool, load_tool
from luthier_py.samples import sample

TOOLS = "instr_count", "opcode_histogram", "branch_edges", "loop_counts", "lds_bank_conflicts", "mem_trace"
LANES = {"COUNT_WARP_LEVEL": "0", "EXCLUDE_PRED_OFF": "1"}
OPTIONS = {"instr_count": LANES, "opcode_histogram": LANES, "mem_trace": {"print_records": "0"}}


def run(code: bytes, launch, tool: Tool) -> Ran:
    return run_instrumented(EmulatorDevice(load(code).target), instrument(code, tool), tool, launch)


@pytest.mark.parametrize("name", ["reduce_strided", "device_call"])
def test_reports_are_those_of_each_alone(name: str) -> None:
    found = sample(name)
    code, launch = found.path.read_bytes(), launch_of(found)
    together = run(code, launch, load_tool(",".join(TOOLS), {
        f"{tool}.{option}": value for tool, options in OPTIONS.items() for option, value in options.items()}))
    for tool in TOOLS:  # `device_call` uses no LDS, so there is nothing for one of them
        assert together.report[tool] == run(code, launch, load_tool(tool, OPTIONS.get(tool))).report, tool
    original = run_original(EmulatorDevice(load(code).target), code, launch)
    assert {n: data.tobytes() for n, data in together.outputs.items()} == {
        n: data.tobytes() for n, data in original.outputs.items()}


def test_one_can_be_held_to_other_instructions() -> None:
    """Both count instructions in memory accesses' place, one of them only the stores."""
    found = sample("vector_add")
    code, launch = found.path.read_bytes(), launch_of(found)
    ran = run(code, launch, load_tool("instr_count,opcode_histogram", {
        "instr_count.mode": "instruction", "instr_count.INSTRUMENT": "store & global"}))
    opcodes = ran.report["opcode_histogram"]["opcodes"]
    assert ran.report["instr_count"]["instructions"] == opcodes["global_store_dword"] < sum(opcodes.values())


def test_one_that_needs_no_code_reports_beside_others() -> None:
    """All that `wave_metrics` tells of this kernel is computed: nothing of it is inserted."""
    found = sample("saxpy")
    code, launch = found.path.read_bytes(), launch_of(found)
    report = run(code, launch, load_tool("instr_count,wave_metrics")).report
    alone = run(code, launch, load_tool("wave_metrics")).report
    assert report["wave_metrics"] == alone and alone["instructions"] == report["instr_count"]["instructions"] > 0


def execute(program: Path, folder: Path, tools: str, *more: str) -> None:
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "exec", "-t", tools, "--device",
               "emulator:gfx90a", *more, "--", str(program)]
    settings = {**os.environ, "LUTHIER_VERDICT": str(folder / "verdict.json")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=settings, cwd=folder)
    assert done.returncode == 0, done.stderr


def reports(path: Path) -> list[Any]:
    return [launch["report"] for launch in json.loads(path.read_text())["launches"]]


def test_launches_are_reported_without_code_and_without_arguments(program: Callable[..., Path], tmp_path: Path) -> None:
    """`access_patterns` inserts nothing and asks for no arguments; `wave_metrics` asks for them."""
    scan = program("scan")
    execute(scan, tmp_path, "access_patterns,wave_metrics", "--output", "both.json")
    execute(scan, tmp_path, "access_patterns", "--output", "alone.json")
    alone, both = reports(tmp_path / "alone.json"), reports(tmp_path / "both.json")
    assert len(alone) == 2 and alone == [report["access_patterns"] for report in both]
    assert all(report["instructions"] for report in alone)
    assert all(report["wave_metrics"]["instructions"] > 0 for report in both)


def test_under_a_program(program: Callable[..., Path], tmp_path: Path) -> None:
    """Reports, rows and files of each; what was instrumented before is recalled without asking any of the tools."""
    scan, both = program("scan"), "instr_count,branch_edges"
    execute(scan, tmp_path, "instr_count", "--output", "alone.json")
    execute(scan, tmp_path, both, "--output", "both.json", "--report", "files")
    execute(scan, tmp_path, both, "--output", "rows.csv", "--report", "files")
    assert set(json.loads((tmp_path / "verdict.json").read_text())["seconds"]) == {"cache"}
    found = reports(tmp_path / "both.json")
    assert [report["instr_count"] for report in found] == reports(tmp_path / "alone.json")
    kernels = list((tmp_path / "files").iterdir())
    assert len(kernels) == len(found) == 2
    for kernel in kernels:
        assert {file.name for file in kernel.iterdir()} == {
            "instr_count.json", "instr_count.txt", "branch_edges.json", "branch_edges.txt", "branch_edges.html"}
    rows = list(csv.DictReader((tmp_path / "rows.csv").open()))
    assert [int(row["instructions"]) for row in rows if row["tool"] == "instr_count"] == [
        report["instr_count"]["instructions"] for report in found]
    assert [int(row["count"]) for row in rows if row["tool"] == "branch_edges"] == [
        row["count"] for report in found for row in report["branch_edges"]["edges"]]
