"""What tools declare of their numbers, beside reports: of each number twice of it is what the declaration says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.compare.sides import compare_files
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launch import run_instrumented
from luthier_py.features.tools.report import toolbox_facts
from luthier_py.report.plain import is_number, leaves
from luthier_py.report.tallies import NumberName, tally
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import (
    FIRST,
    MOST,
    SAME,
    SUM,
    CountsBy,
    OfSeveral,
    RowsBy,
    amount_at,
    amounts_of,
    as_data,
    combined,
    load_tool,
    share,
    tools,
)
from luthier_py.samples import sample

OPTIONS = {"mem_trace": {"print_records": "0"}, "record_reg_vals": {"print_records": "0"},
           "memory_locality": {"l1": "16K:64:64"}}
UNDECLARED = {"none", "script", "mem_printf", "load_balance", "fault_injection", "causal_profile"}
TWICE = {each: 2 if each is OfSeveral.SUM else 1 for each in OfSeveral}


def report_of(name: str) -> Any:
    code, tool = sample("reduce_strided").path.read_bytes(), load_tool(name, OPTIONS.get(name))
    device = EmulatorDevice(load(code).target)
    report = run_instrumented(device, instrument(code, tool), tool, launch_of(sample("reduce_strided"))).report
    return tool, report


def test_who_declares_nothing_is_known() -> None:
    assert {name for name, tool in tools().items() if tool.amounts is None} == UNDECLARED


@pytest.mark.parametrize("name", sorted({tool.name for tool in tools().values()} - UNDECLARED))
def test_two_launches_are_what_is_declared(name: str) -> None:
    tool, report = report_of(name)
    if report is None:  # nothing here is what it looks at
        return
    assert tool.combined([report]) == report
    one, two = (as_data(each, name) for each in (report, tool.combined([report, report])))
    for way, value in leaves(one):
        if is_number(value) and "first" not in way and way[0] not in ("traces",):
            kind, both = amount_at(tool.amounts, way), two
            for key in way:
                both = both[int(key) if isinstance(both, list) else key]
            wanted = value if kind.adding is OfSeveral.WORKED_OUT else TWICE[kind.adding] * value
            assert both == pytest.approx(wanted), way


def test_users_are_told() -> None:
    (found,) = toolbox_facts({"instr_count": tools()["instr_count"]})["tools"]
    assert found["numbers"] == [
        {"name": "instructions", "of_several": "sum", "what": "executed instructions"},
        {"name": "total", "of_several": "sum over all launches so far", "what": "executed instructions"}]


def test_a_declaration_makes_one_report_of_several() -> None:
    """By hand: rows by their keys, shares of sums, counts by name, the first example that there is."""
    declared = {"rows": RowsBy(("pc",), {"n": SUM, "worst": MOST, "by": CountsBy(), "each": share("n", "of"), "of": SUM,
                                         "first": FIRST}, ascending=True), "size": SAME, "cycles": SUM}
    one = {"rows": [{"pc": 8, "n": 1, "worst": 3, "by": {"x": 1}, "each": 0.5, "of": 2, "first": None}], "size": 64,
           "cycles": None}
    other = {"rows": [{"pc": 4, "n": 5, "worst": 1, "by": {}, "each": 1.0, "of": 5, "first": None},
                      {"pc": 8, "n": 2, "worst": 2, "by": {"a": 4, "x": 2}, "each": 1.0, "of": 2,
                       "first": {"lane": 3}}], "size": 64, "cycles": 7}
    assert combined(declared, [one, other]) == {
        "rows": [other["rows"][0], {"pc": 8, "n": 3, "worst": 3, "by": {"a": 4, "x": 3}, "each": 0.75, "of": 4,
                                    "first": {"lane": 3}}], "size": 64, "cycles": 7}  # fmt: skip


def test_runs_are_compared_as_is_declared(tmp_path: Any) -> None:
    """Two launches: the efficiency is that of both, where names alone would leave it out."""
    _, report = report_of("memory_divergence")
    launch = {"kernel": "k", "report": as_data(report, "the report")}
    for name, launches in (("one.json", [launch]), ("two.json", [launch, launch])):
        (tmp_path / name).write_text(json.dumps({
            "schema": 1, "tool": "memory_divergence", "options": {}, "verdict": None, "launches": launches}))
    [pair] = compare_files(tmp_path / "one.json", tmp_path / "two.json").pairs
    changed: Mapping[NumberName, Any] = {each.name: each for each in pair.differences}
    assert all(each.ratio == 2 for each in changed.values()) and NumberName("total", "bytes", "") in changed
    amounts = amounts_of("memory_divergence")
    assert NumberName("total efficiency", "64", "") in tally([launch["report"]], "k", amounts)
    assert NumberName("total efficiency", "64", "") not in changed  # unchanged, and there
