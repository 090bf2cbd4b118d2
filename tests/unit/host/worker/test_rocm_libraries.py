"""Libraries that people install, unchanged, on the emulator and under tools: rocRAND, rocSPARSE, bitsandbytes.

LUTHIER_ROCM_LIBRARIES says where Debian's are; see tests/differential/test_elf_real.py. bitsandbytes is PyPI's package;
only its library is used, not the module, which wants PyTorch.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rocm_stack import lacking
from stand_ins import stand_in

from luthier_py.host.hip import runtime_folder

HERE = Path(__file__).parent
FOLDERS = [str(Path(path).parent) for path in os.environ.get("LUTHIER_ROCM_LIBRARIES", "").split(":") if path]
CALLS = (
    ("rocrand", "philox"), ("rocrand", "sobol"), ("rocsparse", "multiply"), ("rocsparse", "dot"), ("rocsparse", "sort"),
    ("rocsparse", "solve"),
)  # fmt: skip
SPINNING = "csrsv_solve"  # its waves wait for each other: how often they look is chance


@pytest.mark.parametrize("library, name", CALLS)
def test_debian(
    library: str, name: str, tooled: Callable[..., Any], counted: Callable[..., list[dict[str, Any]]]
) -> None:
    if not any(found for folder in FOLDERS for found in Path(folder).glob(f"lib{library}.so.?")):
        lacking(f"no lib{library}: see LUTHIER_ROCM_LIBRARIES in tests/differential/test_elf_real.py")
    path = os.pathsep.join([str(runtime_folder()), *FOLDERS])
    check([sys.executable, HERE / f"{library}_program.py", name], {"LD_LIBRARY_PATH": path}, tooled, counted)


@pytest.fixture(scope="module")
def bitsandbytes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Its library, and a folder with the libraries that this one wants and that none of the calls here needs."""
    spec = importlib.util.find_spec("bitsandbytes")
    if spec is None or spec.origin is None:
        lacking("no bitsandbytes: pip install --no-deps bitsandbytes")
    library, folder = Path(spec.origin).parent / "libbitsandbytes_rocm715.so", tmp_path_factory.mktemp("stubs")
    stand_in(library, folder)
    return library, folder


@pytest.mark.parametrize("target", [
    "gfx1100", *(pytest.param(name, marks=pytest.mark.slow) for name in (
        "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1201"))])
def test_bitsandbytes(
    target: str, bitsandbytes: tuple[Path, Path], tooled: Callable[..., Any],
    counted: Callable[..., list[dict[str, Any]]],
) -> None:
    """Compressed fat binaries of ROCm 7, in code object version 6. With waves of 64: test_bitsandbytes_foreseen."""
    library, stubs = bitsandbytes
    path = os.pathsep.join([str(runtime_folder()), str(stubs)])
    environment = {"LD_LIBRARY_PATH": path, "LUTHIER_DEVICE": f"emulator:{target}"}
    check([sys.executable, HERE / "bitsandbytes_program.py", library, "few"], environment, tooled, counted)


PROFILES: dict[str, Callable[[Any], int]] = {
    "path_profile": lambda report: sum(row["instructions"] for row in report["paths"]),
    "hot_blocks": lambda report: sum(row["instructions"] for row in report["blocks"]),
    "call_graph": lambda report: sum(row["instructions"] for row in report["stacks"]),
}
"""The executed instructions of a report."""


@pytest.mark.slow
@pytest.mark.parametrize("tool", PROFILES)
@pytest.mark.parametrize("target", ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"))
def test_profiles_of_bitsandbytes(
    target: str, tool: str, bitsandbytes: tuple[Path, Path], tooled: Callable[..., Any],
    counted: Callable[..., list[dict[str, Any]]],
) -> None:
    """Of its first launches."""
    library, stubs = bitsandbytes
    path = os.pathsep.join([str(runtime_folder()), str(stubs)])
    environment = {"LD_LIBRARY_PATH": path, "LUTHIER_DEVICE": f"emulator:{target}"}
    command = [sys.executable, HERE / "bitsandbytes_program.py", library, "few"]
    done = tooled(*command, tool=tool, END_GRID_NUM="2", **environment)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    reports = done.verdict["reports"]
    assert not any(row["report"].get("left_out") or row["report"].get("lost") for row in reports)
    assert len(reports) == 2 and [(row["kernel"], PROFILES[tool](row["report"])) for row in reports] == [
        (row["kernel"], row["instructions"]) for row in counted(*command, **environment)[:2]]


@pytest.mark.parametrize("target", [
    "gfx90a", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gfx942", "gfx1030", "gfx1100", "gfx1201")),
])
def test_bitsandbytes_foreseen(
    target: str, bitsandbytes: tuple[Path, Path], tooled: Callable[..., Any],
    counted: Callable[..., list[dict[str, Any]]],
) -> None:
    """What is computed before each launch and what is counted in it are together what the emulator counts."""
    library, stubs = bitsandbytes
    path = os.pathsep.join([str(runtime_folder()), str(stubs)])
    environment = {"LD_LIBRARY_PATH": path, "LUTHIER_DEVICE": f"emulator:{target}"}
    command = [sys.executable, HERE / "bitsandbytes_program.py", library, "few"]
    verdict = check(command, environment, tooled, counted, "wave_metrics")
    assert any(0 < row["report"]["computed"] == row["report"]["instructions"] for row in verdict["reports"])


@pytest.mark.slow
@pytest.mark.parametrize("target", ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"))
def test_metrics_of_bitsandbytes(
    target: str, bitsandbytes: tuple[Path, Path], tooled: Callable[..., Any],
    counted: Callable[..., list[dict[str, Any]]], tmp_path: Path,
) -> None:
    """Four tools in one copy: instructions and lanes are the emulator's of the bare run, in the order of launches, and
    segments those that NumPy finds in the addresses of the same run."""
    library, stubs = bitsandbytes
    command = [sys.executable, HERE / "bitsandbytes_program.py", library, "few"]
    environment = {"LD_LIBRARY_PATH": os.pathsep.join([str(runtime_folder()), str(stubs)]),
                   "LUTHIER_DEVICE": f"emulator:{target}"}
    bare, trace = counted(*command, **environment), tmp_path / "trace.ndjson"
    done = tooled(*command, tool="branch_divergence,load_balance,memory_divergence,mem_trace", **environment,
                  LUTHIER_RECORDS=str(trace), LUTHIER_TOOL_OPTIONS="counting=waves\nspaces=global\nprint_records=0")
    assert (done.code, done.out, done.verdict["refused"]) == (0, "PASSED\n", []), done.out + done.err
    accesses: dict[int, list[dict[str, Any]]] = {}
    for record in map(json.loads, trace.read_text().splitlines()):
        accesses.setdefault(record["launch"], []).append(record)
    assert len(bare) == len(done.verdict["reports"])
    for known, row in zip(bare, done.verdict["reports"], strict=True):
        report, lanes = row["report"], sum(known["lane_opcodes"].values())
        lanes -= sum(count for name, count in known["lane_opcodes"].items() if name.startswith("v_dual_")) // 2
        assert (row["kernel"], report["load_balance"]["instructions"]["total"]) == (
            known["kernel"], known["instructions"])
        assert report["load_balance"]["instructions"]["total_threads"] == lanes
        total = report["branch_divergence"]["total"]
        assert (total["instructions"], total["lanes"]) == (known["instructions"], lanes)
        assert not report["branch_divergence"]["left_out"]
        sizes = {each["pc"]: each["bytes"] // each["lanes"] for each in report["memory_divergence"]["instructions"]
                 if each["lanes"]}
        assert report["memory_divergence"]["total"] == touched(accesses.get(row["launch"], []), sizes)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ("memcheck", "racecheck", "initcheck"))
def test_mistakes_of_bitsandbytes(
    tool: str, bitsandbytes: tuple[Path, Path], tooled: Callable[..., Any],
) -> None:
    """None, but for first loads of compare-and-swap loops, which atomics on floats have become."""
    library, stubs = bitsandbytes
    path = os.pathsep.join([str(runtime_folder()), str(stubs)])
    done = tooled(sys.executable, HERE / "bitsandbytes_program.py", library, "few", tool=tool, LD_LIBRARY_PATH=path,
                  LUTHIER_DEVICE="emulator:gfx90a")
    assert (done.out, done.verdict["refused"]) == ("PASSED\n", []), done.out + done.err
    assert len(done.verdict["reports"]) == done.verdict["launches"] > 0
    reports = [(row["kernel"], row["report"]) for row in done.verdict["reports"]]
    if tool != "racecheck":
        assert not any(report["bad" if tool == "memcheck" else "unwritten"] for _, report in reports)
        return
    races = [(kernel, race) for kernel, report in reports for race in report["races"]]
    assert len(races) == 2 and all("kPreconditionOptimizer32bit2State" in kernel for kernel, _ in races)
    assert all([place["instruction"].split()[0] for place in race["where"]] == [
        "global_load_dword", "global_atomic_cmpswap"] for _, race in races)


def touched(records: list[dict[str, Any]], sizes: dict[int, int]) -> dict[str, Any]:
    """Of one launch, as the tool has it in JSON. ``sizes``: bytes of a lane's access, by instruction."""
    lanes, asked, segments = 0, 0, dict.fromkeys((32, 64, 128), 0)
    for record in records:
        first = np.array([at for lane, at in enumerate(record["address"]) if record["lanes"] >> lane & 1], np.uint64)
        last = first + np.uint64(sizes.get(record["pc"], 1) - 1)
        lanes, asked = lanes + len(first), asked + len(first) * sizes.get(record["pc"], 1)
        for size in segments:
            segments[size] += len(np.union1d(first // size, last // size))
    efficiency = {str(size): asked / (size * count) if count else None for size, count in segments.items()}
    return {"lanes": lanes, "bytes": asked, "segments": {str(size): count for size, count in segments.items()},
            "efficiency": efficiency}


def check(
    command: list[str | Path], environment: dict[str, str], tooled: Callable[..., Any],
    counted: Callable[..., list[dict[str, Any]]], tool: str = "instr_count",
) -> Any:
    """Right on the emulator alone; under a tool as well, and each launch counted as the emulator counts it."""
    rows = [row for row in counted(*command, **environment) if SPINNING not in row["kernel"]]
    done = tooled(*command, tool=tool, **environment)
    assert (done.code, done.out) == (0, "PASSED\n"), done.out + done.err
    found = [(row["kernel"], row["report"]["instructions"]) for row in done.verdict["reports"]]
    told = done.verdict["instrumented"] + done.verdict["without_code"]
    assert not done.verdict["refused"] and told == done.verdict["launches"] == len(found)
    assert Counter(row for row in found if SPINNING not in row[0]) == Counter(
        (row["kernel"], row["instructions"]) for row in rows
    )
    assert rows
    return done.verdict
