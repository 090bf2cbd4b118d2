"""What judges the tools in `make pressure`: right reports pass, and none that leaves out or changes something."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import which
from types import ModuleType
from typing import Any

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice, LaunchProfile
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import Ran, run_instrumented, run_original
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "pressure" / "truth.py"
TOOLS = {"branch_edges": "edges", "loop_counts": "loops", "lds_bank_conflicts": "instructions",
         "memory_divergence": "instructions", "compressibility": "stores", "mem_trace": "sites",
         "memory_locality": "instructions", "wave_metrics": "", "hot_blocks": "",
         "instr_count": "", "opcode_histogram": "opcodes"}
KEYS = ("count", "entries", "accesses", "executions")


@pytest.fixture(scope="module")
def truth() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pressure_truth", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ran(tool: str, monkeypatch: pytest.MonkeyPatch) -> tuple[EmulatorDevice, LaunchProfile, Ran]:
    """A kernel that has all that tools count, under one."""
    if tool == "compressibility":
        if which("clang++-22") is None:
            pytest.skip("clang++-22 is not installed")
        monkeypatch.setenv(CLANG, "clang++-22")
    chosen = sample("matmul")
    code, made = chosen.path.read_bytes(), load_tool(str(FILE.parents[2] / "tools" / tool))
    device = EmulatorDevice(load(code).target)
    run_original(device, code, launch_of(chosen))
    assert device.profile is not None
    return device, device.profile, run_instrumented(device, instrument(code, made), made, launch_of(chosen))


def damaged(report: Any, rows: str) -> Iterator[Any]:
    """The report without anything, without each of its rows, and with each row's number one off."""
    if not rows:
        yield {**report, "instructions": report["instructions"] + 1}
        return
    found = report[rows]
    yield {**report, rows: type(found)()}
    if isinstance(found, dict):
        yield from ({**report, rows: {**found, key: count + 1}} for key, count in found.items())
        return
    for number, row in enumerate(found):
        yield {**report, rows: [*found[:number], *found[number + 1:]]}
        key = next(key for key in KEYS if key in row)
        yield {**report, rows: [*found[:number], {**row, key: row[key] + 1}, *found[number + 1:]]}


@pytest.mark.parametrize("tool", TOOLS)
def test_no_damaged_report_passes(tool: str, truth: ModuleType, ran: tuple[EmulatorDevice, LaunchProfile, Ran]) -> None:
    device, profile, after = ran
    assert truth.wrong(tool, after, profile, device.target) == ""
    tried = list(damaged(after.report, TOOLS[tool]))
    assert tried and all(truth.wrong(tool, replace(after, report=each), profile, device.target) for each in tried)
