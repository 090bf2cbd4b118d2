"""Every program under every tool, as `luthier exec` runs it: its own output, and what the emulator counts itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from programs_under_tools import PROGRAMS, SOURCES, Outcomes, reports, study

from luthier_py.session.study.cells import cells_of
from luthier_py.session.study.runs import run_here
from luthier_py.session.study.spec import BARE

WITH_LDS = [name for name in PROGRAMS if "__shared__" in (SOURCES / f"{name}.hip").read_text()]


@pytest.fixture(scope="module")
def outcomes(program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """By program and tool. The bare program's has ``profile``: what the emulator counted of each launch."""
    folder = tmp_path_factory.mktemp("profiles")
    cells = []
    for name in PROGRAMS:
        tools = ["none", "instr_count", "opcode_histogram", *["lds_bank_conflicts"] * (name in WITH_LDS)]
        cells += cells_of(study(name, program(name), tools))
        cells += cells_of(study(name, program(name), [BARE], LUTHIER_DEVICE_PROFILE=str(folder / name)))
    found = {(cell.program, cell.tool): outcome for cell, outcome in run_here(cells, 2)}
    for name in PROGRAMS:
        profile = (folder / name).read_text()
        found[name, BARE]["profile"] = [json.loads(line) for line in profile.splitlines()]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing(name: str, outcomes: Outcomes) -> None:
    assert not any(report for _, report in reports(outcomes, name, "none"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_instructions(name: str, outcomes: Outcomes) -> None:
    found = Counter((kernel, report["instructions"]) for kernel, report in reports(outcomes, name, "instr_count"))
    assert found == Counter((row["kernel"], row["instructions"]) for row in outcomes[name, BARE]["profile"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_opcodes(name: str, outcomes: Outcomes) -> None:
    found = reports(outcomes, name, "opcode_histogram")
    assert Counter((kernel, frozenset(report["opcodes"].items())) for kernel, report in found) == Counter(
        (row["kernel"], frozenset(row["opcodes"].items())) for row in outcomes[name, BARE]["profile"]
    )


@pytest.mark.parametrize("name", WITH_LDS)
def test_bank_conflicts(name: str, outcomes: Outcomes) -> None:
    """Every access that the emulator saw; test_lds_bank_conflicts compares cycles with hand calculations."""
    found = reports(outcomes, name, "lds_bank_conflicts")
    accesses = [(row["kernel"], lds(row["active_opcodes"])) for row in outcomes[name, BARE]["profile"]]
    assert Counter((kernel, report["total"]["accesses"]) for kernel, report in found) == Counter(
        (kernel, count) for kernel, count in accesses if count
    )


def lds(opcodes: dict[str, int]) -> int:
    return sum(count for mnemonic, count in opcodes.items() if mnemonic.startswith("ds_"))
