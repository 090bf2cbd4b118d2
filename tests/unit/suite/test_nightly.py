"""What a nightly run makes of its results, whole and in parts, and its parts: from rows that are written here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from suite.kept import Durations, Kept, Reach, write_durations
from suite.nightly import PLAIN_ENDS, durations_after, reach_after, read_rows
from suite.plugin import Suite

ROOT = Path(__file__).parents[3]
SOURCE, OTHER, NEW = "luthier_py/a.py", "luthier_py/b.py", "luthier_py/new.py"
A, B = "tests/a.py::test_it[0]", "tests/b.py::test_it"
BEFORE = Reach({SOURCE: "1", OTHER: "1"}, {"tests/a.py": frozenset({SOURCE}), "tests/b.py": frozenset({OTHER})},
               {"tests/a.py": "1", "tests/b.py": "1"})  # fmt: skip
NOW = {SOURCE: "2", OTHER: "2", NEW: "2"}
FOUND = Reach(NOW, {"tests/a.py": frozenset({SOURCE, NEW})}, {"tests/a.py": "2", "tests/b.py": "2"})


def row(outcome: str, seconds: float, marks: str = "") -> dict[str, object]:
    return {"outcome": outcome, "seconds": seconds, "marks": marks, "shared": 0.0}


def test_a_part_of_a_round_does_not_forget_what_changed() -> None:
    part = reach_after(BEFORE, [A, B], {A}, {A}, FOUND)
    assert part.tests == {"tests/a.py": {SOURCE, NEW}, "tests/b.py": {OTHER}}
    assert part.changed(NOW) >= {SOURCE, OTHER, NEW} and part.digests == {"tests/a.py": "2", "tests/b.py": "1"}
    whole = reach_after(part, [A, B], {A, B}, {A, B}, FOUND)
    assert not whole.changed(NOW) and whole.digests == FOUND.digests and whole.tests["tests/b.py"] == frozenset()


@pytest.mark.parametrize("outcome", ["skipped", "failed"])
def test_a_test_that_did_not_run_to_its_end_is_as_long_as_before(outcome: str) -> None:
    before = Durations({"tests/a.py": {"test_it[0]": Kept(60.0, "p", 0.0)}}, {"tests/b.py": 1, "tests/gone.py": 2})
    after = durations_after(before, [A, B], {A: row(outcome, 0.0)}, "2026-01-01")
    assert after.of(A) == before.of(A) and after.quick == {"tests/b.py": 1}
    assert durations_after(before, [A], {A: row(outcome, 70.0)}, "").of(A) == Kept(70.0, "", 0.0)
    assert durations_after(before, [A], {A: row("passed", 0.0)}, "").of(A) is None
    assert durations_after(before, [A], {}, "").of(A) == before.of(A)


def test_a_test_is_as_long_as_its_part_of_a_shared_fixture() -> None:
    tests = [f"tests/a.py::test_{number}" for number in range(50)]
    for shared, kept in ((30.0, 50), (0.5, 0)):
        rows = {test: {**row("passed", 0.0), "shared": shared} for test in tests}
        after = durations_after(Durations({}, {}), tests, rows, "")
        assert len(after.files.get("tests/a.py", {})) == kept == 50 - after.quick.get("tests/a.py", 0)


def test_half_a_line_of_results_is_none(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(f'{json.dumps({"id": A, "outcome": "passed"})}\n{{"id": "tests/b.py::te')
    assert read_rows(path).keys() == {A} and not read_rows(tmp_path / "none")


@pytest.mark.parametrize("parts", [1, 3, 7])
def test_each_test_is_in_one_part_though_it_takes_no_time(tmp_path: Path, parts: int) -> None:
    tests = [f"test_a.py::test_{number:02}" for number in range(20)]
    for seconds in ([0.0] * 20, [1.0] * 19 + [0.0], [0.0, *[0.1] * 19]):
        times = {f"test_{number:02}": Kept(one, "k", 0.0) for number, one in enumerate(seconds)}
        write_durations(Durations({"test_a.py": times}, {}), tmp_path / "kept.json")
        found = []
        for number in range(1, parts + 1):
            option = SimpleNamespace(tier="nightly", kept=tmp_path / "kept.json", part=(number, parts), cases=None,
                                     but=None, seconds=None, randomly_seed=1)  # fmt: skip
            found += Suite(SimpleNamespace(rootpath=tmp_path, option=option))._part(tests, set())
        assert sorted(found) == tests


def test_what_is_marked_slow_and_was_never_measured_takes_its_time(tmp_path: Path) -> None:
    tests = [f"test_a.py::test_{number}" for number in range(20)]
    option = SimpleNamespace(tier="nightly", kept=tmp_path / "none", part=None, cases=None, but=None,
                             seconds=20.0, randomly_seed=1)  # fmt: skip
    suite = Suite(SimpleNamespace(rootpath=tmp_path, option=option))
    assert len(suite._part(tests, set(tests))) == 4 and len(suite._part(tests, set())) == 20


def test_what_ran_in_this_round_is_left_out(tmp_path: Path) -> None:
    tests = [f"test_a.py::test_{number}" for number in range(6)]
    (tmp_path / "ran").write_text("".join(f"{test}\n" for test in (*tests[:4], "test_gone.py::test_it")))
    option = SimpleNamespace(tier="nightly", kept=tmp_path / "none", part=None, cases=None, but=tmp_path / "ran",
                             seconds=None, randomly_seed=1)  # fmt: skip
    assert Suite(SimpleNamespace(rootpath=tmp_path, option=option))._part(tests, set()) == {*tests[4:]}


@pytest.mark.parametrize("tier", ["check", "test", "nightly"])
def test_no_tier_runs_without_assertions(tmp_path: Path, tier: str) -> None:
    command = [sys.executable, "-O", "-m", "pytest", f"--tier={tier}", "--collect-only", "-q", str(Path(__file__))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode not in PLAIN_ENDS and "assertions" in done.stdout + done.stderr


@pytest.mark.parametrize("text", ["{", "<<<<<<< ours", "{}", '{"tests": [], "quick": {}, "date": ""}'])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "kept.json").write_text(text)
    with pytest.raises(pytest.UsageError, match="kept.json is damaged"):
        Suite(SimpleNamespace(rootpath=tmp_path, option=SimpleNamespace(tier="test", kept=tmp_path / "kept.json")))
