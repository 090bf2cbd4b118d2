"""hip-python, unmodified, on the emulator's HIP runtime: alone, and under a tool that is preloaded."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.host.hip import runtime_folder
from luthier_py.host.preload import tool_library

Run = Callable[..., subprocess.CompletedProcess[str]]

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "hip_device_program.py"
SAMPLES_PROGRAM = HERE / "hip_samples_program.py"
CODE = HERE.parents[2] / "data" / "vector_add.co"

# What each tool reports of a launch, and the same in the emulator's profile.
TOOLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "instr_count": (lambda report: report["instructions"], lambda row: row["instructions"]),
    "opcode_histogram": (lambda report: report["opcodes"], lambda row: row["opcodes"]),
    "lds_bank_conflicts": (
        lambda report: report["total"]["accesses"],
        lambda row: sum(count for opcode, count in row["active_opcodes"].items() if opcode.startswith("ds_")),
    ),
}

pytestmark = pytest.mark.skipif(importlib.util.find_spec("hip") is None, reason="hip-python is not installed")


@pytest.fixture(autouse=True)
def compiler(require_tool: Callable[[str], str]) -> None:
    require_tool("cc")


def test_device_through_hip_python(run: Run) -> None:
    done = run(sys.executable, PROGRAM, CODE, ROCM_PATH=str(runtime_folder()))
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["target"] == "gfx90a" and facts["right"]
    unknown, too_much, no_gpu = facts["refused"]
    assert "none" in unknown and "hipMemcpy gave hipErrorInvalidValue" in too_much and "sees 1" in no_gpu


def test_tool_under_hip_python(run: Run, tmp_path: Path) -> None:
    """The library is opened by hip-python itself, so the tool's functions come in through dlsym."""
    profile, verdict = tmp_path / "profile", tmp_path / "verdict"
    environment = {"ROCM_PATH": str(runtime_folder())}
    run(sys.executable, PROGRAM, CODE, **environment, LUTHIER_DEVICE_PROFILE=str(profile))
    counted = [json.loads(line)["instructions"] for line in profile.read_text().splitlines()]
    done = run(
        sys.executable, PROGRAM, CODE, **environment, LD_PRELOAD=str(tool_library()), LUTHIER_TOOL="instr_count",
        LUTHIER_VERDICT=str(verdict),
    )  # fmt: skip
    assert done.returncode == 0 and json.loads(done.stdout)["right"], done.stderr
    reports = json.loads(verdict.read_text())["reports"]
    assert [row["report"]["instructions"] for row in reports] == counted and len(counted) == 2


def test_every_sample_under_every_tool(run: Run, tmp_path: Path) -> None:
    """As modules through hip-python: NumPy's results, the same bits with every tool, and the emulator's own counts."""
    environment = {"ROCM_PATH": str(runtime_folder())}
    bare, profile = counting(run, SAMPLES_PROGRAM, tmp_path, environment)
    assert bare and all(facts["right"] for facts in bare.values()) and len(profile) == len(bare)
    for tool, (counted, expected) in TOOLS.items():
        verdict = tmp_path / "verdict"
        done = run(
            sys.executable, SAMPLES_PROGRAM, **environment, LD_PRELOAD=str(tool_library()), LUTHIER_TOOL=tool,
            LUTHIER_VERDICT=str(verdict),
        )  # fmt: skip
        assert done.returncode == 0 and json.loads(done.stdout) == bare, done.stderr
        facts = json.loads(verdict.read_text())
        found = [(row["kernel"], counted(row["report"])) for row in facts["reports"]]
        wanted = [(row["kernel"], expected(row)) for row in profile]
        assert not facts["refused"] and found == [(name, count) for name, count in wanted if count], tool


def counting(run: Run, program: Path, folder: Path, environment: dict[str, str]) -> tuple[Any, list[dict[str, Any]]]:
    """What a program prints, and what the emulator counts of each launch."""
    profile = folder / "profile"
    done = run(sys.executable, program, **environment, LUTHIER_DEVICE_PROFILE=str(profile))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), [json.loads(line) for line in profile.read_text().splitlines()]


@pytest.mark.parametrize("preloaded", (False, True))
def test_attached_from_python(preloaded: bool, run: Run, tmp_path: Path) -> None:
    """Same counts as preloaded. Modules from before run as they are, unless the library was there by then."""
    profile = tmp_path / "profile"
    library = {"LD_PRELOAD": str(tool_library())} if preloaded else {}
    environment = {"ROCM_PATH": str(runtime_folder()), **library}
    run(sys.executable, PROGRAM, CODE, **environment, LUTHIER_DEVICE_PROFILE=str(profile))
    (one,) = {json.loads(line)["instructions"] for line in profile.read_text().splitlines()}
    done = run(sys.executable, HERE / "attached_program.py", CODE, "instr_count", **environment)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["right"] == [True] * 6
    counts = [row["report"]["instructions"] for row in facts["first"]["reports"]]
    assert counts == [one] * (3 if preloaded else 2) == [one] * facts["between"]
    assert (facts["first"]["launches"], facts["first"]["instrumented"]) == (3, len(counts))
    assert [row["report"]["instructions"] for row in facts["second"]] == [one]
    assert "attached already" in facts["refused"] and "has no option none" in facts["refused"]
    before = "luthier: kernels run as they are whose code was loaded before the tool came"
    assert done.stderr.count(before) == (0 if preloaded else 1)
