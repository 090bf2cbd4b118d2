"""A part of `make table`: for each target and wave size a sample and a program, at levels and under tools by lot.

Some of each wave size run always, ``-m slow`` takes the others. LUTHIER_TEST_SEED is another lot. What judges the tools
of samples is tested by tests/tools/test_pressure_truth.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TABLE = Path(__file__).resolve().parents[2] / "benchmarks" / "table"
SEED = int(os.environ.get("LUTHIER_TEST_SEED", "1"))
TARGETS = [f"{name}/{size}" for name, size in (
    ("gfx803", 64), ("gfx900", 64), ("gfx906", 64), ("gfx908", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx950", 64),
    ("gfx1010", 32), ("gfx1010", 64), ("gfx1030", 32), ("gfx1030", 64), ("gfx1100", 32), ("gfx1100", 64),
    ("gfx1151", 32), ("gfx1151", 64), ("gfx1201", 32), ("gfx1201", 64), ("gfx1250", 32))]
SAMPLED = "gfx90a/64", "gfx950/64", "gfx1100/32", "gfx1100/64", "gfx1201/32", "gfx1250/32"
PROGRAMMED = "gfx90a/64", "gfx1201/32"
SMALL = ("vector_add", "saxpy", "reduce", "histogram", "device_call", "function_pointers", "scratch", "transpose")
PROGRAMS = ("vector_add", "reduction", "scan", "symbols", "pointers", "nearest_neighbour")
TOOLS = 1


def always(some: tuple[str, ...]) -> list[Any]:
    return [pytest.param(where, marks=() if where in some else pytest.mark.slow) for where in TARGETS]


@pytest.fixture(scope="module")
def table(require_tool) -> Iterator[ModuleType]:
    """The campaign as a module, with what it imports; gone again behind these tests."""
    require_tool("clang++-22")
    before = set(sys.modules), list(sys.path)
    sys.path[:0] = [str(TABLE)]
    import run as campaign  # type: ignore[import-not-found]

    yield campaign
    sys.path[:] = before[1]
    for name in set(sys.modules) - before[0]:
        if str(TABLE.parent) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def here(table: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clang: str) -> None:
    """What is compiled goes into a folder of the test's own."""
    monkeypatch.setattr(table.tried_samples, "OBJECTS", tmp_path)
    monkeypatch.setattr(table.tried_programs, "EXECUTABLES", tmp_path)


def cell_of(table: ModuleType, kind: str, where: str) -> object:
    lot = random.Random(f"{kind} {where} {SEED}")
    name, size = where.split("/")
    return table.Cell(kind, lot.choice(SMALL if kind == "sample" else PROGRAMS), name, int(size), lot.choice(range(4)))


def tools_of(table: ModuleType, cell: object) -> list[str]:
    return list(table.chosen_tools(cell, table.HOWS, TOOLS, SEED))


def test_targets_are_those_of_the_table(table: ModuleType) -> None:
    assert [f"{name}/{size}" for name, size in table.TARGETS] == TARGETS


@pytest.mark.parametrize("where", always(SAMPLED))
def test_a_sample(table: ModuleType, where: str) -> None:
    cell = cell_of(table, "sample", where)
    rows = table.tried((cell, tools_of(table, cell)))
    assert len(rows) == 1 + TOOLS and not [row for row in rows if row.sort in ("wrong", "crash", "not compiled")]


@pytest.mark.usefixtures("program")  # which says what is lacking to compile one
@pytest.mark.parametrize("where", always(PROGRAMMED))
def test_a_program(table: ModuleType, where: str) -> None:
    cell = cell_of(table, "program", where)
    rows = table.tried((cell, tools_of(table, cell)))
    assert len(rows) == 1 + TOOLS and not [row for row in rows if row.sort in ("wrong", "crash", "not compiled")]


def test_what_is_wrong_is_told(table: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that are not NumPy's, counts that are not the emulator's, sources that no compiler takes."""
    samples = table.tried_samples
    cell = table.Cell("sample", "saxpy", "gfx90a", 64, 2)
    assert [row.outcome for row in table.tried((cell, ["", "instr_count"]))] == ["", ""]
    known = samples.bare(cell)
    wrong_profile = replace(known.profile, counts={**known.profile.counts, -1: 1})
    monkeypatch.setattr(samples, "bare", lambda cell: replace(known, profile=wrong_profile))
    assert [row.sort for row in table.tried((cell, ["", "instr_count"]))] == ["", "wrong"]
    monkeypatch.setattr(samples, "bare", lambda cell: replace(known, right=False))
    assert [row.outcome for row in table.tried((cell, ["", "instr_count"]))] == ["wrong: not as NumPy's"]


def test_what_is_not_compiled_is_no_pass(table: ModuleType) -> None:
    """Matrix instructions, for one, on a target without them: here in inline assembly that gfx1250 does not know."""
    cell = table.Cell("sample", "lds_widths", "gfx1250", 64, 2)
    (row,) = table.tried((cell, ["", "instr_count"]))
    assert row.sort == "not compiled" and "error:" in row.outcome


@pytest.mark.parametrize("tool", ("instr_count", "opcode_histogram", "mem_trace", "branch_edges", "mem_printf"))
def test_wrong_counts_of_programs_are_told(table: ModuleType, tool: str) -> None:
    """Beside a profile in which each opcode was executed once more."""
    programs = table.tried_programs
    report = {"instructions": 2, "opcodes": {"s_cbranch_scc1": 1, "global_load_dword": 1}, "accesses": 1,
              "left_out": [], "edges": [{"count": 1}]}
    executed = {"s_cbranch_scc1": 1, "global_load_dword": 1}
    row = {"kernel": "k", "instructions": 2, "opcodes": executed, "active_opcodes": executed, "lane_opcodes": executed}
    more = {name: count + 1 for name, count in executed.items()}
    other = {**row, "instructions": 4, "opcodes": more, "active_opcodes": more, "lane_opcodes": more}
    ran = programs.Output(0, "", f"0x1{programs.PRINTED}1\n", {"reports": [{"kernel": "k", "report": report}]})
    ops = programs.opcodes("gfx90a")
    assert programs.wrong(tool, ran, [row], ops) == "" and programs.wrong(tool, ran, [other], ops)
    assert programs.wrong(tool, ran, [{**row, "kernel": "other"}], ops) or tool == "mem_printf"
