"""Budgets: what limits mean, which kernels they are for, what a file may say, and how it is renewed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.features.budget.judge import budget_text, make_measuring, read_budget, renew_limits
from luthier_py.features.budget.report import BudgetSection, Judgement, Limit, budget_lines, judge
from luthier_py.features.exec.execute import Executed

TEXT = """
[kernels."saxpy*"]
instructions = {max = 100, tolerance = "2%"}
vgprs = 32
occupancy = {min = 8}
"t:rows.*.lines" = {max = 9, min = 3, tolerance = 1}
"""


@pytest.fixture
def budget(tmp_path: Path) -> Callable[[str], list[BudgetSection]]:
    def read(text: str) -> list[BudgetSection]:
        (tmp_path / "b.toml").write_text(text)
        return read_budget(tmp_path / "b.toml")

    return read


def test_what_limits_say(budget: Callable[[str], list[BudgetSection]]) -> None:
    [section] = budget(TEXT)
    assert section.limits == {
        "instructions": Limit(most=100, tolerance=0.02, share=True), "vgprs": Limit(most=32),
        "occupancy": Limit(least=8), "t:rows.*.lines": Limit(most=9, least=3, tolerance=1),
    }  # fmt: skip
    standings = {value: section.limits["instructions"].judge_value(value) for value in (97, 98, 102, 103, None)}
    assert list(standings.values()) == [
        Judgement.BETTER, Judgement.KEPT, Judgement.KEPT, Judgement.WORSE, Judgement.MISSING
    ]
    assert [section.limits["occupancy"].judge_value(waves) for waves in (7, 8, 10)] == [
        Judgement.WORSE, Judgement.KEPT, Judgement.BETTER
    ]


@pytest.mark.parametrize(("text", "said"), [
    ("[kernels.k]\nvgpr = 3", "kernels.k.vgpr: there is no such number; there are instructions"),
    ("[kernels.k]\nvgprs = true", "write a number"), ("[kernels.k]\nvgprs = {most = 3}", "write a number"),
    ('[kernels.k]\nvgprs = {max = 3, tolerance = "2"}', "a tolerance is a number, or a share"),
    ("[kernels.k]\nvgprs = {max = 3, tolerance = -1}", "a tolerance is a number, or a share"),
    ("[kernels.k]\nvgprs = nan", "write a number"), (f"[kernels.k]\nvgprs = 1{'0' * 400}", "write a number"),
    ("[kernels.k]\nvgprs = {max = nan}", "max and min are numbers"),
    ('[kernels.k]\nvgprs = {max = 3, tolerance = "inf%"}', "a tolerance is a number, or a share"),
    (f"[kernels.k]\nvgprs = {{max = 3, tolerance = 1{'0' * 400}}}", "a tolerance is a number, or a share"),
    ("[kernels]\nk = 3", r"write \[kernels.NAME\]"), ("", "with a limit"),
    ("kernel = 3\n[kernels.k]\nvgprs = 3", "there is no such key"), ("=", "no TOML"),
])
def test_mistakes_name_their_key(budget: Callable[[str], list[BudgetSection]], text: str, said: str) -> None:
    with pytest.raises(Invalid, match=said):
        budget(text)


def test_a_section_is_for_one_kernel_or_a_pattern() -> None:
    names = ["f(float*)", "f(float*, int)", "g"]
    assert BudgetSection("f(float*)", {}).match_kernels(names) == ["f(float*)"]
    assert (
        BudgetSection("f*", {}).match_kernels(names) == names[:2] and BudgetSection("h", {}).match_kernels(names) == []
    )


def test_a_kernel_that_is_gone_is_not_within_its_budget() -> None:
    verdict = judge("b", [BudgetSection("old", {"vgprs": Limit(most=3)})], {"new": {"vgprs": 1}})
    assert not verdict.kept and verdict.gone == ("old",) and verdict.without == ("new",)
    assert any("no kernel old ran" in line for line in budget_lines(verdict))
    missing = judge("b", [BudgetSection("new", {"t:x": Limit(most=3)})], {"new": {"vgprs": 1}})
    [broken] = missing.judged
    assert not missing.kept and broken.standing is Judgement.MISSING
    assert (broken.kernel, broken.number) == ("new", "t:x")


def test_what_is_worse_is_told_first() -> None:
    limits = {"t:x": Limit(most=4, tolerance=0.5, share=True), "occupancy": Limit(least=8), "vgprs": Limit(most=3)}
    verdict = judge("b", [BudgetSection("k", limits)], {"k": {"vgprs": 5, "t:x": 1, "occupancy": 8}, "l": {}})
    _, *rows, without, last = budget_lines(verdict)
    assert [row.split() for row in rows] == [
        "5 <= 3 +2 worse vgprs k".split(), "8 >= 8 +0 kept occupancy k".split(),
        "1 <= 4 +- 50% -3 better t:x k".split(),
    ]  # fmt: skip
    assert without == "no budget for l; --write b adds one"
    assert last == "budget b: 1 of 3 numbers not kept; 1 better: --write b keeps it so"


def test_a_budget_is_renewed_and_read_again(budget: Callable[[str], list[BudgetSection]]) -> None:
    measured = {
        "saxpy1": {"instructions": 80, "vgprs": 20, "occupancy": 6, "t:rows.*.lines": 5, "findings": 0},
        "saxpy2": {"instructions": 90, "vgprs": 10, "occupancy": 8, "t:rows.*.lines": 7, "findings": 0},
        'odd "\\name\u2764': {"instructions": 1, "vgprs": 2, "occupancy": 3, "findings": 4},
    }
    text = budget_text(renew_limits(budget(TEXT), measured))
    assert "\nvgprs = 20\noccupancy = 6\n" in text, "a number where that says it all"
    found = budget(text)
    assert found[0].limits == {
        "instructions": Limit(most=90, tolerance=0.02, share=True), "vgprs": Limit(most=20),
        "occupancy": Limit(least=6), "t:rows.*.lines": Limit(most=7, least=5, tolerance=1),
    }  # fmt: skip
    [odd] = found[1:]
    assert odd.kernels == 'odd "\\name\u2764' and odd.limits == {
        "instructions": Limit(most=1), "vgprs": Limit(most=2), "occupancy": Limit(least=3), "findings": Limit(most=4)
    }
    assert judge("b", found, measured).kept


def test_a_program_that_fails_is_not_measured() -> None:
    with pytest.raises(LuthierError, match="ended with 5 under checks; last words"):
        make_measuring(["sh", "-c", "echo last words; exit 5"], "emulator:gfx90a").measure(["findings"])


def test_numbers_are_of_all_launches_of_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts add up, and of code objects with a kernel of one name the worst counts; a program runs once for each tool
    that is wanted."""
    kernels = [[("k", 20, 8), ("k", 30, 4), ("k", 10, 6)], [("j", 5, 10)]]
    reports = {"instr_count": [[("k", {"instructions": 3}), ("k", {"instructions": 4})], [("k", {"instructions": 5})]],
               "racecheck": [[("k", {"races": [{}, {}]}), ("k", {"races": []})], [("j", {"races": [{}]})]]}
    runs = []

    def execute(command: Any, settings: Any, tool: str, *_: Any, **__: Any) -> Executed:
        runs.append(tool)
        return Executed(0, tuple({
            "kernels": [{"name": name, "vgprs": (vgprs, 0), "waves_per_simd": (waves, 0)} for name, vgprs, waves in of],
            "reports": [{"kernel": kernel, "report": report} for kernel, report in launches],
        } for of, launches in zip(kernels, reports[tool], strict=True)))  # fmt: skip

    monkeypatch.setattr("luthier_py.features.budget.judge.execute", execute)
    run = make_measuring(["app"], "emulator:gfx90a")
    assert run.measure(["vgprs", "occupancy"]) == {
        "k": {"vgprs": 30, "occupancy": 4}, "j": {"vgprs": 5, "occupancy": 10},
    }  # fmt: skip
    assert runs == ["instr_count"]
    assert run.measure(["instructions", "races", "instr_count:instructions"]) == {
        "k": {"instructions": 12, "races": 2, "instr_count:instructions": 12}, "j": {"instructions": 0, "races": 1},
    }  # fmt: skip
    assert runs == ["instr_count", "instr_count", "racecheck"]


def test_who_stops_a_run_stops_the_check(tmp_path: Path) -> None:
    """Ctrl-C of a terminal goes to all of the group."""
    marks = tmp_path / "marks"
    script = f"echo began >> {marks}; exec sleep 600"
    options = ("--write", str(tmp_path / "b.toml"), "--device", "emulator:gfx90a")
    command = (sys.executable, "-m", "luthier_py", "check", *options, "--", "sh", "-c", script)
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as running:
        while not marks.exists():
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        assert running.wait(60) == 130
    assert marks.read_text() == "began\n" and not (tmp_path / "b.toml").exists()
