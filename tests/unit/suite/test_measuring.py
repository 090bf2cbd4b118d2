"""What a run keeps of each test, seen in a small suite of its own, on two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from suite.reach import is_python

TESTS = Path(__file__).parents[2]
SUITE = '''
import subprocess, sys, time
import pytest

@pytest.fixture(scope="module")
def shared():
    time.sleep(0.3)

def test_quick(): pass
def test_process(): subprocess.run([sys.executable, "-c", ""], check=True)
def test_one(shared): pass
def test_other(shared): time.sleep(0.05)
def test_fails(shared): assert False
def test_skipped(): pytest.skip("why")
@pytest.mark.slow
def test_slow(): pass
'''


def rows(folder: Path, *words: str) -> dict[str, dict[str, object]]:
    (folder / "test_small.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\n")
    results = folder / "results.jsonl"
    command = [sys.executable, "-m", "pytest", "-p", "suite.plugin", f"--results={results}", "-q", *words]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    found = [json.loads(line) for line in results.read_text().splitlines()]
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"].partition("::test_")[2]: row for row in found}


def test_rows(tmp_path: Path) -> None:
    found = rows(tmp_path, "-n", "2", "--tier", "nightly")
    assert found.keys() == {"quick", "process", "one", "other", "fails", "skipped", "slow"}
    outcomes = {name: row["outcome"] for name, row in found.items()}
    assert outcomes == {**dict.fromkeys(found, "passed"), "fails": "failed", "skipped": "skipped"}
    assert {name for name, row in found.items() if row["marks"]} == {"process"} and found["process"]["marks"] == "p"
    for name in ("one", "other", "fails"):
        assert found[name]["shared"] >= 0.3, name
    assert found["other"]["seconds"] >= 0.05
    assert all(row["shared"] == 0.0 for name, row in found.items() if name not in ("one", "other", "fails"))


def test_what_is_slow_is_left_out_where_no_tier_is_named(tmp_path: Path) -> None:
    assert "slow" not in rows(tmp_path)


def test_templates_are_no_python() -> None:
    """Coverage has them by their own names, where what they are compiled to runs."""
    assert is_python(__file__) and not is_python("luthier_py/report/templates/page.html")


ENDING = '''
import os, pytest

@pytest.mark.parametrize("number", range(3))
def test_other(number): pass
def test_ends(): os._exit(3)
'''


@pytest.mark.parametrize("seed", range(3))
def test_a_test_that_ends_its_process_fails_once_and_all_others_run(tmp_path: Path, seed: int) -> None:
    names = [f"test_{letter}.py" for letter in "abc"]
    for name in names:
        (tmp_path / name).write_text(ENDING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    results = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "pytest", "-p", "suite.plugin", "-n", "2", "--tier=nightly",
               f"--results={results}", f"--randomly-seed={seed}", f"--kept={tmp_path / 'none'}"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "3 failed, 9 passed" in done.stdout, done.stdout + done.stderr
    found = [json.loads(line) for line in results.read_text().splitlines()]
    assert {row["id"] for row in found if row["outcome"] == "failed"} == {f"{name}::test_ends" for name in names}
    assert len({row["id"] for row in found}) == len(found) == 12
