"""Tools under INSTRUMENT, INSTR_BEGIN and INSTR_END: what they tell of chosen instructions is what they tell of these
without it, and of all others they tell nothing."""

from __future__ import annotations

from functools import cache

import pytest

from luthier_py.emulator import EmulatorDevice
from luthier_py.errors import HookError
from luthier_py.loader import load
from luthier_py.pipeline import instrument
from luthier_py.samples import sample as sample_called
from luthier_py.session.demo import launch_of
from luthier_py.session.run import run_instrumented
from luthier_py.tool import load_tool

CHOICES = "INSTRUMENT=loop", "INSTR_BEGIN=20"
ROWS = {
    "branch_edges": ("edges", {}), "loop_counts": ("loops", {}), "mem_trace": ("sites", {"lines": 0}),
    "memory_divergence": ("instructions", {}), "fma_in_double": ("instructions", {}),
    "lds_bank_conflicts": ("instructions", {}), "compressibility": ("stores", {}),
}


@cache
def report_of(name: str, kernel: str, choice: str) -> tuple[dict, set[int]]:
    """What the tool reports, and the addresses of the chosen instructions."""
    chosen, given = sample_called(kernel), dict([choice.split("=", 1)] if choice else ())
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    tool = load_tool(name, {**ROWS[name][1], **given})
    made = instrument(code, tool)
    seen = load_tool("record_reg_vals", {"when": "read", **given})
    notes = instrument(code, seen).edits.notes
    report = run_instrumented(EmulatorDevice(load(code).target), made, tool, launch).report
    return report or {ROWS[name][0]: []}, {*notes.recorded, *notes.not_recorded}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", ROWS)
def test_chosen_instructions_alone(name: str, choice: str) -> None:
    whole, _ = report_of(name, "nbody", "")
    if name == "lds_bank_conflicts" and choice.startswith("INSTRUMENT"):
        with pytest.raises(HookError, match="chooses single instructions"):
            report_of(name, "nbody", choice)
        return
    part, chosen = report_of(name, "nbody", choice)
    rows = part[ROWS[name][0]]
    assert all(row in whole[ROWS[name][0]] for row in rows)
    if name != "loop_counts":
        key = "branch" if name == "branch_edges" else "pc"
        assert rows == [row for row in whole[ROWS[name][0]] if row[key] in chosen]


def test_loops_that_are_not_counted_are_named() -> None:
    """Control comes into the outer loop of bitonic_sort from outside of all, and into the inner one from there."""
    whole, part = (report_of("loop_counts", "bitonic_sort", choice)[0] for choice in ("", "INSTRUMENT=loop"))
    outer, inner = whole["loops"]
    assert (outer["depth"], inner["depth"], whole["not_counted"]) == (1, 2, [])
    why = "of the branches that lead to it not all are chosen"
    assert part["loops"] == [inner]
    assert part["not_counted"] == [{"function": "bitonic_sort", "header": outer["header"], "why": why}]
