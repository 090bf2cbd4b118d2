"""Every program under tools, as `luthier exec` runs it: its own output, and what the emulator counts itself.

opcode_histogram has every program, lds_bank_conflicts each with LDS, each other tool a fourth of them; all of them with
``-m slow``. instr_count has every program in test_preload.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from programs_under_tools import PROGRAMS, SOURCES, Outcomes, reports, study

from luthier_py.session.study.cells import cells_of
from luthier_py.session.study.runs import run_here
from luthier_py.session.study.spec import BARE

Opcodes = dict[str, int]


class Known(NamedTuple):
    """What a tool's report adds up to, and where the emulator has the same of the bare program's launch."""

    reported: Callable[[Any], int]
    executed: Callable[[dict[str, Opcodes]], int]
    options: dict[str, str] = {}


def total(opcodes: Opcodes, *starts: str) -> int:
    return sum(count for name, count in opcodes.items() if name.startswith(starts))


def addresses(opcodes: Opcodes) -> int:
    """Of memory by vector instructions: two of those that name two places in LDS."""
    return total(opcodes, "global_", "flat_", "buffer_", "scratch_", "ds_") + total(opcodes, "ds_read2", "ds_write2")


KNOWN = {
    "branch_edges": Known(lambda report: sum(row["count"] for row in report["edges"]),
                          lambda row: total(row["opcodes"], "s_cbranch_")),
    "mem_trace": Known(lambda report: sum(row["accesses"] for row in report["sites"]),
                       lambda row: addresses(row["active_opcodes"]), {"lines": "0"}),
    "memory_divergence": Known(lambda report: sum(row["executions"] for row in report["instructions"]),
                               lambda row: total(row["active_opcodes"], "global_", "flat_")),
    "compressibility": Known(lambda report: sum(row["executions"] for row in report["stores"]),
                             lambda row: total(row["active_opcodes"], "global_store_dword", "flat_store_dword")),
    "fma_in_double": Known(lambda report: sum(row["results"] for row in report["instructions"]),
                           lambda row: total(row["lane_opcodes"], "v_fma_f32", "v_fmac_f32")),
}
UNKNOWN = ("loop_counts", "mov_replace")  # tests/tools count what they do; here nothing is to change
SOME = (*KNOWN, *UNKNOWN)
NONE = "none"


def chosen(name: str, number: int) -> bool:
    return (PROGRAMS.index(name) + number) % 4 == 0


def part(tools: tuple[str, ...]) -> list[Any]:
    """(program, tool): a fourth of the programs with each tool, the others slow."""
    return [pytest.param(name, tool, marks=() if chosen(name, number) else pytest.mark.slow)
            for name in PROGRAMS for number, tool in enumerate(tools)]


HISTOGRAMS = [(name, "opcode_histogram") for name in PROGRAMS]
WITH_LDS = [(name, "lds_bank_conflicts") for name in PROGRAMS if "__shared__" in (SOURCES / f"{name}.hip").read_text()]


@pytest.fixture(scope="module")
def outcomes(
    program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Outcomes:
    """By program and tool, of those pairs that are asked for; the bare program's has ``profile``: what was executed."""
    folder = tmp_path_factory.mktemp("profiles")
    asked = {tuple(item.callspec.params[key] for key in ("name", "tool")) for item in request.session.items
             if item.path == request.path}
    cells = []
    for name, tool in sorted(asked):
        options = KNOWN[tool].options if tool in KNOWN else {}
        cells += cells_of(study(name, program(name), [tool], options=options))
    for name in sorted({name for name, _ in asked}):
        cells += cells_of(study(name, program(name), [BARE], LUTHIER_DEVICE_PROFILE=str(folder / name)))
    found = {(cell.program, cell.tool): outcome for cell, outcome in run_here(cells, 2)}
    for name in {name for name, _ in asked}:
        found[name, BARE]["profile"] = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return found


@pytest.mark.parametrize(("name", "tool"), part((NONE,)))
def test_nothing(name: str, tool: str, outcomes: Outcomes) -> None:
    assert not any(report for _, report in reports(outcomes, name, tool))


@pytest.mark.parametrize(("name", "tool"), HISTOGRAMS)
def test_opcodes(name: str, tool: str, outcomes: Outcomes) -> None:
    found = reports(outcomes, name, tool)
    assert Counter((kernel, frozenset(report["opcodes"].items())) for kernel, report in found) == Counter(
        (row["kernel"], frozenset(row["opcodes"].items())) for row in outcomes[name, BARE]["profile"]
    )


@pytest.mark.parametrize(("name", "tool"), WITH_LDS)
def test_bank_conflicts(name: str, tool: str, outcomes: Outcomes) -> None:
    """Every access that the emulator saw; test_lds_bank_conflicts compares cycles with hand calculations."""
    found = reports(outcomes, name, tool)
    accesses = [(row["kernel"], total(row["active_opcodes"], "ds_")) for row in outcomes[name, BARE]["profile"]]
    assert Counter((kernel, report["total"]["accesses"]) for kernel, report in found) == Counter(
        (kernel, count) for kernel, count in accesses if count
    )


@pytest.mark.parametrize(("name", "tool"), part(SOME))
def test_output_stays_and_totals_are_right(name: str, tool: str, outcomes: Outcomes) -> None:
    found = reports(outcomes, name, tool)
    if tool in KNOWN:
        known = KNOWN[tool]
        executed = [(row["kernel"], known.executed(row)) for row in outcomes[name, BARE]["profile"]]
        assert Counter((kernel, count) for kernel, report in found if (count := known.reported(report))) == Counter(
            (kernel, count) for kernel, count in executed if count)
