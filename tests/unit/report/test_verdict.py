"""What a run's verdict says, to people and to programs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from crowded import EASY, FULL, EveryWave, full_and_easy

from luthier_py.base.errors import Location
from luthier_py.binary.loader import load
from luthier_py.features.exec.missing_output import describe_undelivered
from luthier_py.report.verdict import Verdict
from luthier_py.rewrite.pipeline import Instrumented, instrument
from luthier_py.rewrite.tool import Refusal, load_tool
from luthier_py.samples import sample

STAGES = ["lift", "analyse", "visit", "jit", "inject", "link", "check"]
PARTS = ["place", "inline_calls", "wait_states", "relax", "layout"]  # of inject


@pytest.fixture(scope="module")
def made() -> Instrumented:
    return instrument(sample("saxpy").path.read_bytes(), load_tool("instr_count"))


def test_nothing_happened() -> None:
    verdict = Verdict(load_tool("instr_count"), launches=3)
    assert not verdict.observed
    assert verdict.text() == (
        "verdict: 3 launches, 0 selected, 0 instrumented by instr_count; 0 kernels, 0 sites, 0 refused")


def test_launches_that_went_past_the_tool() -> None:
    verdict = Verdict(load_tool("instr_count"), launches=3, unseen=1)
    assert verdict.text().endswith("0 refused; 1 more launch that the tool did not see")
    assert verdict.facts()["unseen"] == 1


def test_launches_while_the_tool_was_detached() -> None:
    """Told beside what the options leave out; with ACTIVE_FROM_START=0 that is the reason."""
    detached = "the tool was detached in 2 of 6 launches: by hipProfilerStop, roctxProfilerPause, or from outside"
    assert Verdict(load_tool("instr_count"), launches=6, selected=4, detached=2).reasons() == [detached]
    bounded = load_tool("instr_count", {"START_GRID_NUM": 1})
    assert Verdict(bounded, launches=6, selected=3, detached=2).reasons() == [
        detached, "START_GRID_NUM=1 leaves out 1 of 6 launches"]
    off = load_tool("instr_count", {"ACTIVE_FROM_START": 0})
    assert Verdict(off, launches=6, selected=4, detached=2).reasons() == [
        "ACTIVE_FROM_START=0 leaves out 2 of 6 launches"]


def test_launches_without_a_count() -> None:
    """Whatever else is told: another reason explains other launches."""
    verdict = Verdict(load_tool("instr_count"), launches=5, selected=5, instrumented=1, failed=1, lost=3, unfinished=1)
    failed, unfinished, lost = verdict.reasons()
    assert failed.startswith("1 launch did not begin") and lost.startswith("2 launches left no count, and it is not ")
    assert unfinished == "1 launch left no count: the device failed first"
    assert verdict.facts()["lost_launches"] == 3
    facts = {**verdict.facts(), "ended": True, "failed": []}
    assert describe_undelivered(verdict.tool, [facts]) == ("tool instr_count: 3 of 5 selected launches left no count",)
    verdict.without_binary = "the program has code for others"
    assert verdict.reasons()[2] == "2 launches left no count; the program has code for others"


def test_one_line(made: Instrumented) -> None:
    verdict = Verdict(load_tool("instr_count"), launches=1, selected=1, instrumented=1)
    verdict.add_instrumented(replace(made, seconds={"jit": 0.25, "check": 0.5}, cached=True))
    assert verdict.observed and verdict.text() == (
        "verdict: 1 launch, 1 selected, 1 instrumented by instr_count; 1 kernel, 3 sites, 0 refused; "
        "waves/SIMD 8 with the tool, counts without it; instrumented in 0.75 s, 1 from cache")


def test_facts(made: Instrumented) -> None:
    verdict = Verdict(load_tool("instr_count"), launches=7, selected=6, instrumented=5)
    verdict.add_instrumented(made)
    facts = json.loads(json.dumps(verdict.facts()))
    counts = [facts[name] for name in ("tool", "launches", "selected", "instrumented", "observed", "sites", "refused")]
    assert counts == ["instr_count", 7, 6, 5, True, len(made.edits.insertions), []]
    (kernel,) = facts["kernels"]
    assert (kernel["name"], kernel["clone"], kernel["waves_per_simd"]) == ("saxpy", "saxpy.luthier", [8, 8])
    took = facts["seconds"]
    parts = [f"inject.{part}" for part in PARTS]
    assert kernel["seconds"] == took and set(took) == {*STAGES, *parts} and all(took.values())
    assert sum(took[part] for part in parts) <= took["inject"]
    assert f"instrumented in {sum(took[stage] for stage in STAGES):.2f} s" in verdict.text()
    assert kernel["cached"] is made.cached


def test_a_hook_is_compiled_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first time it is not from the cache, the second time it is; which numbers a hook adds is part of it."""
    monkeypatch.setenv("LUTHIER_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("luthier_py.rewrite.jit.compile._codes", {})
    code = sample("saxpy").path.read_bytes()
    assert [instrument(code, load_tool("instr_count")).cached for _ in range(2)] == [False, True]
    assert not instrument(code, load_tool("opcode_histogram")).cached


def test_refusals_and_the_worst_occupancy() -> None:
    """One kernel is full; one is served from what is free; verbose says more of each."""
    verdict = Verdict(EveryWave(tool_verbose=1), launches=2, selected=2, instrumented=1)
    verdict.add_instrumented(instrument(full_and_easy(), verdict.tool, kernels=[FULL, EASY], keep_going=True))
    first, refused, easy, stages = verdict.text().splitlines()
    assert "1 kernel, 1 site, 1 refused" in first
    assert refused.startswith("  refused: full: ") and "s_nop 7" in refused
    assert easy.startswith("  easy(): 1 site, ") and all(f"{stage} " in stages for stage in STAGES)
    assert re.search(rf"inject [\d.]+ \({', '.join(f'{part} [0-9.]+' for part in PARTS)}\), link ", stages)
    assert [row["kernel"] for row in verdict.facts()["refused"]] == ["full"]
    verdict.refuse(Refusal("late", "no registers", Location("late", 16)))
    assert verdict.refused["late"] == "no registers [kernel late, pc 0x10]"


def test_kernels_that_are_not_selected_are_left_alone() -> None:
    data = sample("saxpy").path.read_bytes()
    assert instrument(data, load_tool("instr_count", {"LUTHIER_KERNELS": "nbody"})).data == data
    made = instrument(data, load_tool("instr_count", {"LUTHIER_KERNELS": "^sax"}))
    assert len(load(made.data).kernels) == 2
