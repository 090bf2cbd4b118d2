"""Programs under tools, as `luthier exec` runs them: their own output stays, and reports are what the emulator counts.

Each tool has a fourth of the programs here; all of them with ``-m slow``. test_preload has all under instr_count.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from programs_under_tools import PROGRAMS, SOURCES, Outcomes, reports, study

from luthier_py.session.study.cells import cells_of
from luthier_py.session.study.runs import run_here
from luthier_py.session.study.spec import BARE

Opcodes = dict[str, int]


class Known(NamedTuple):
    """What a tool's report comes to, and where the emulator has the same of the bare program's launch."""

    reported: Callable[[Any], Hashable]
    executed: Callable[[dict[str, Opcodes]], Hashable]
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
                       lambda row: addresses(row["active_opcodes"]), {"print_records": "0"}),
    "memory_divergence": Known(lambda report: sum(row["executions"] for row in report["instructions"]),
                               lambda row: total(row["active_opcodes"], "global_", "flat_")),
    "compressibility": Known(lambda report: sum(row["executions"] for row in report["stores"]),
                             lambda row: total(row["active_opcodes"], "global_store_dword", "flat_store_dword")),
    "fma_in_double": Known(lambda report: sum(row["results"] for row in report["instructions"]),
                           lambda row: total(row["lane_opcodes"], "v_fma_f32", "v_fmac_f32")
                           + 2 * total(row["lane_opcodes"], "v_pk_fma_f32")),
    "none": Known(lambda report: report and "reports something", lambda row: None),
    "opcode_histogram": Known(lambda report: frozenset(report["opcodes"].items()),
                              lambda row: frozenset(row["opcodes"].items())),
    # test_lds_bank_conflicts compares cycles with hand calculations.
    "lds_bank_conflicts": Known(lambda report: report["total"]["accesses"] or "reports nothing",
                                lambda row: total(row["active_opcodes"], "ds_")),
}
UNKNOWN = ("loop_counts", "mov_replace")  # tests/tools count what they do; here nothing is to change
TOOLS = (*KNOWN, *UNKNOWN)
WITH_LDS = [name for name in PROGRAMS if "__shared__" in (SOURCES / f"{name}.hip").read_text()]


def programs_of(tool: str) -> list[str]:
    return WITH_LDS if tool == "lds_bank_conflicts" else PROGRAMS


PAIRS = [pytest.param(name, tool, marks=pytest.mark.slow if (place + turn) % 4 else ())
         for turn, tool in enumerate(TOOLS) for place, name in enumerate(programs_of(tool))]


@pytest.fixture(scope="module")
def outcomes(
    program: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Outcomes:
    """By program and tool, of those pairs that are asked for."""
    folder = tmp_path_factory.mktemp("profiles")
    asked = {tuple(item.callspec.params[key] for key in ("name", "tool")) for item in request.session.items
             if item.path == request.path}
    cells = []
    for name in sorted({name for name, _ in asked}):
        for tool in (tool for tool in TOOLS if (name, tool) in asked):
            options = KNOWN[tool].options if tool in KNOWN else {}
            cells += cells_of(study(name, program(name), [tool], options=options))
        cells += cells_of(study(name, program(name), [BARE], LUTHIER_DEVICE_PROFILE=str(folder / name)))
    found = {(cell.program, cell.tool): outcome for cell, outcome in run_here(cells, 2)}
    for name in {name for name, _ in asked}:
        found[name, BARE]["profile"] = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    return found


@pytest.mark.parametrize(("name", "tool"), PAIRS)
def test_output_stays_and_reports_are_right(name: str, tool: str, outcomes: Outcomes) -> None:
    found = reports(outcomes, name, tool)
    if tool in KNOWN:
        known = KNOWN[tool]
        executed = [(row["kernel"], known.executed(row)) for row in outcomes[name, BARE]["profile"]]
        assert Counter((kernel, what) for kernel, report in found if (what := known.reported(report))) == Counter(
            (kernel, what) for kernel, what in executed if what)
