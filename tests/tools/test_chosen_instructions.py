"""Tools under INSTRUMENT, INSTR_BEGIN and INSTR_END: what they tell of chosen instructions is what they tell of these
without it, and of all others they tell nothing."""

from __future__ import annotations

from functools import cache

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample as sample_called

CHOICES = "INSTRUMENT=loop", "INSTR_BEGIN=20"
SLOW = "compressibility", "INSTR_BEGIN=20"  # most hooks of all; what is chosen is no tool's doing
ROWS = {
    "branch_edges": ("edges", {}), "loop_counts": ("loops", {}), "mem_trace": ("sites", {"print_records": 0}),
    "memory_divergence": ("instructions", {}), "fma_in_double": ("instructions", {}),
    "lds_bank_conflicts": ("instructions", {}), "compressibility": ("stores", {}),
}


def given(choice: str) -> dict[str, str]:
    return dict([choice.split("=", 1)] if choice else ())


@cache
def report_of(name: str, kernel: str, choice: str) -> dict:
    chosen, tool = sample_called(kernel), load_tool(name, {**ROWS[name][1], **given(choice)})
    code, launch = chosen.path.read_bytes(), launch_of(chosen)
    made = instrument(code, tool)
    return run_instrumented(EmulatorDevice(load(code).target), made, tool, launch).report or {ROWS[name][0]: []}


@cache
def chosen_by(kernel: str, choice: str) -> set[int]:
    """The addresses of the chosen instructions."""
    seen = load_tool("record_reg_vals", {"operands": "read", **given(choice)})
    notes = instrument(sample_called(kernel).path.read_bytes(), seen).edits.notes
    return {*notes.recorded, *notes.not_recorded}


@pytest.mark.parametrize(("name", "choice"), [
    pytest.param(name, choice, marks=pytest.mark.slow if (name, choice) == SLOW else ())
    for name in ROWS for choice in CHOICES])
def test_chosen_instructions_alone(name: str, choice: str) -> None:
    whole, part, chosen = report_of(name, "nbody", ""), report_of(name, "nbody", choice), chosen_by("nbody", choice)
    rows = part[ROWS[name][0]]
    assert all(row in whole[ROWS[name][0]] for row in rows)
    if name != "loop_counts":
        key = "branch" if name == "branch_edges" else "pc"
        assert rows == [row for row in whole[ROWS[name][0]] if row[key] in chosen]


@pytest.mark.parametrize(("choice", "chosen"), [("loop", slice(None)), ("depth = 2", slice(1, None))])
def test_a_loop_is_counted_with_its_header(choice: str, chosen: slice) -> None:
    """Control comes into the outer loop of bitonic_sort by a branch that is in no loop, into the inner one from there.
    """
    whole, part = (report_of("loop_counts", "bitonic_sort", each) for each in ("", f"INSTRUMENT={choice}"))
    assert [row["depth"] for row in whole["loops"]] == [1, 2]
    assert part == {"loops": whole["loops"][chosen], "left_out": []}
