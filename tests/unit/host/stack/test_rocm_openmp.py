"""OpenMP offload on ROCr, as clang 19 and its libomptarget do it: no HIP is in between."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from rocm_stack import RocmStack
from stacked_programs import PROGRAMS, Done, Stacked, some

from luthier_py.binary.loader import load
from luthier_py.features.code.info import describe

NAMES = sorted(path.stem for path in PROGRAMS.glob("openmp_*.c"))
CASES = [(name, "instr_count", "instructions") for name in NAMES]
CASES.append(("openmp_reduction", "opcode_histogram", "opcodes"))
ALWAYS = {("openmp_depend", "instr_count", "instructions"), ("openmp_declare_target", "instr_count", "instructions"),
          CASES[-1]}
MANDATORY = {"OMP_TARGET_OFFLOAD": "MANDATORY"}  # no fallback to the host


@pytest.fixture(scope="module")
def alone(
    openmp: Callable[[str], Path], rocm_stack: RocmStack, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Done]:
    """A program without a tool, once."""
    runner, runs = Stacked(rocm_stack, tmp_path_factory.mktemp("alone")), {}

    def run(name: str) -> Done:
        if name not in runs:
            runs[name] = runner.alone(openmp(name), **MANDATORY)
        found: Done = runs[name]
        assert found.code == 0 and found.out.endswith("PASSED\n"), found.err
        return found

    return run


@pytest.mark.parametrize("name", NAMES)
def test_alone(name: str, alone: Callable[[str], Done]) -> None:
    done = alone(name)
    assert done.profile and all(row["kernel"].startswith("__omp_offloading_") for row in done.profile)


@pytest.mark.parametrize("name, tool, key", some(CASES, ALWAYS))
def test_under_a_tool(
    name: str, tool: str, key: str, alone: Callable[[str], Done], openmp: Callable[[str], Path], stacked: Stacked
) -> None:
    """Below libomptarget: the same counts as the emulator's own, region by region."""
    done = stacked.under(tool, openmp(name), level="auto", **MANDATORY)  # there is no HIP in the program
    assert (done.code, done.out) == (0, alone(name).out), done.err
    found = Counter((row["kernel"], str(sorted_items(row["report"][key]))) for row in done.verdict["reports"])
    assert not done.verdict["refused"]
    assert found == Counter((row["kernel"], str(sorted_items(row[key]))) for row in alone(name).profile)
    assert re.search(r"^kernel 0 - main at line \d+ - ", done.err, re.MULTILINE)


def test_where_regions_are(openmp: Callable[[str], Path], tmp_path: Path) -> None:
    """The device's code object lies in the executable, in a section of its own; its line tables name the file."""
    with openmp("openmp_depend").open("rb") as file:
        packed = ELFFile(file).get_section_by_name(".llvm.offloading").data()
    code = tmp_path / "depend.co"
    code.write_bytes(packed[packed.index(b"\x7fELF") :])
    source = (PROGRAMS / "openmp_depend.c").read_text().splitlines()
    lines = [number for number, line in enumerate(source, 1) if "nowait" in line and line.startswith("#pragma")]
    regions = [kernel["region"] for kernel in describe(load(code.read_bytes(), str(code)))["kernels"]]
    assert sorted(regions) == [f"main at line {line} of {PROGRAMS}/openmp_depend.c" for line in lines]


def sorted_items(counts: Any) -> Any:
    return sorted(counts.items()) if isinstance(counts, dict) else counts


def test_several_devices(openmp: Callable[[str], Path], stacked: Stacked) -> None:
    done = stacked.alone(openmp("openmp_devices"), device="emulator:gfx90a*3", **MANDATORY)
    assert (done.code, done.out) == (0, "3 devices\nPASSED\n"), done.err
