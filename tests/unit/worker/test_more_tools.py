"""Programs under tools that trace, edit and count ways: their own output stays, and totals are the emulator's own.

Each tool has a fourth of the programs here; all of them with ``-m slow``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from programs_under_tools import PROGRAMS, Outcomes, reports, study

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
TOOLS = (*KNOWN, *UNKNOWN)


def chosen(name: str, tool: str) -> bool:
    return (PROGRAMS.index(name) + TOOLS.index(tool)) % 4 == 0


PAIRS = [pytest.param(name, tool, marks=() if chosen(name, tool) else pytest.mark.slow)
         for name in PROGRAMS for tool in TOOLS]


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
def test_output_stays_and_totals_are_right(name: str, tool: str, outcomes: Outcomes) -> None:
    found = reports(outcomes, name, tool)
    if tool in KNOWN:
        known = KNOWN[tool]
        executed = [(row["kernel"], known.executed(row)) for row in outcomes[name, BARE]["profile"]]
        assert Counter((kernel, count) for kernel, report in found if (count := known.reported(report))) == Counter(
            (kernel, count) for kernel, count in executed if count)
