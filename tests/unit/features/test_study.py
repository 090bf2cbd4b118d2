"""luthier study: whatever programs do is a row; what is done is not done again; killed studies go on."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from patience import PATIENCE, until

from luthier_py.features.campaign.engine import Variation
from luthier_py.features.campaign.workers import on_cluster
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.features.study.cells import Cell
from luthier_py.features.study.plan import plan_study
from luthier_py.features.study.runs import make_lost_record, run_cell
from luthier_py.features.study.store import COLUMNS, rows_of
from luthier_py.features.study.summary import _beside, _items

Study = Callable[..., Any]
DEVICE = "emulator:gfx90a"
COUNTED = """
title = "a program"
devices = ["emulator:gfx90a"]
repeat = 2
jobs = 2
bare = true
[[tool]]
tool = "instr_count"
[[program]]
name = "reduction"
command = ["{reduction}"]
[[figure]]
name = "counts"
title = "Wave instructions"
parts = {{ instructions = "instr_count:instructions", wrong = "instr_count:no.such" }}
bars = ["program", "kernel"]
"""
SHELL = """
[[program]]
name = "good"
command = ["sh", "-c", "echo $0 >> runs; echo out; echo $N", "good"]
environment = { N = 3 }
[[program]]
name = "bad"
command = ["sh", "-c", "echo $0 >> runs; (echo first; echo last words; echo luthier: verdict: 3) >&2; exit 7", "bad"]
"""


def data(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / "out" / "results.parquet").to_pylist()
    return rows


def runs_in(folder: Path) -> list[str]:
    path = folder / "runs"
    return sorted(path.read_text().split()) if path.exists() else []


def test_programs_under_a_tool(
    study: Study, summary: Callable[[], Any], program: Callable[..., Path], tmp_path: Path
) -> None:
    text = COUNTED.format(reduction=program("reduction"))
    planned = study(text, "--dry-run")
    assert planned.code == 0 and planned.out.count("to run") == 4 and not (tmp_path / "out").exists()
    done = study(text)
    assert (done.code, done.err) == (ExitCode.ERROR, "luthier: no run has what some figure shows\n")
    assert "verdict: 4 runs: 4 ok; all counts and outputs are equal in all repeats" in done.out
    assert "figure counts: no run has instr_count:no.such\n" in done.out
    rows = data(tmp_path)
    counts = {(r["program"], r["kernel"], r["repeat"]): r["count"] for r in rows if r["metric"] == "instructions"}
    emulated = counted_by_the_emulator(program("reduction"), tmp_path / "profile")
    assert counts == {("reduction", kernel, repeat): n for kernel, n in emulated.items() for repeat in (0, 1)}
    assert len(emulated) == 2
    launches = {(r["launch"], r["grid"], r["block"]) for r in rows if r["program"] == "reduction" and r["kernel"]}
    assert launches == {(0, "8,1,1", "256,1,1"), (1, "8,1,1", "256,1,1")}
    assert all(r["status"] == "ok" and r["exit_code"] == 0 and r["seconds"] > 0 and r["device"] == DEVICE for r in rows)
    bare = [r for r in rows if r["tool"] == "bare"]
    assert len(bare) == 2 and all(r["metric"] is None for r in bare) and len({r["output_sha256"] for r in rows}) == 1
    facts = summary()
    assert {row["bar"]: row["values"] for row in facts["figures"][0]["rows"]} == {
        f"reduction {kernel}": [n, 0] for kernel, n in emulated.items()}  # fmt: skip
    assert [group["ratio"] for group in facts["groups"] if group["tool"] == "bare"] == [1]
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("data:image/png;base64,") == 2 and "reduce_sequential" in page
    assert (tmp_path / "out" / "counts.png").read_bytes().startswith(b"\x89PNG")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    again = json.loads(study(text, "--json").out)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()} == before
    assert again["groups"] == facts["groups"] and data(tmp_path) == rows


def counted_by_the_emulator(path: Path, profile: Path) -> dict[str, int]:
    settings = {**RunSettings(DEVICE).environment(), "LUTHIER_DEVICE_PROFILE": str(profile)}
    subprocess.run([path], env={**os.environ, **settings}, check=True, capture_output=True)
    return {row["kernel"]: row["instructions"] for row in map(json.loads, profile.read_text().splitlines())}


def test_processes_of_a_run_have_numbers_that_do_not_depend_on_which_ends_first() -> None:
    def verdict(count: int) -> dict[str, Any]:
        row = {"launch": 0, "launches": 1, "kernel": "k", "grid": [1, 1, 1], "block": [64, 1, 1]}
        return {"reports": [{**row, "report": {"n": count, "text": "t", "none": None, "half": 0.5}}]}

    def rows(*counts: int) -> list[dict[str, Any]]:
        outcome = {"verdicts": [{"reports": []}, *map(verdict, counts)], "status": "ok", "exit_code": 0, "seconds": 1.0,
                   "output_sha256": "", "said": "", "machine": ""}  # fmt: skip
        return list(rows_of(Cell("id", "p", "", "t", "d", "", 0, {"options": {}}, 1.0), outcome))

    assert rows(3, 2**60) == rows(2**60, 3)
    told = [(r["process"], r["metric"], r.get("count"), r.get("value"), r.get("text")) for r in rows(3, 2**60)]
    assert told[3:] == [(1, "n", 3, 3.0, None), (1, "text", None, None, "t"), (1, "half", None, 0.5, None)]
    assert told[0] == (0, "n", 2**60, float(2**60), None)


def test_rows_say_which_launch_it_was_and_counts_as_far_as_they_fit() -> None:
    values = {"most": 2**63 - 1, "more": 2**63, "least": -(2**63), "less": -(2**63) - 1, "yes": True, "far": "Infinity"}
    launch = {"launch": 3, "launches": 2, "kernel": "k", "grid": [1, 2, 3], "block": [64, 1, 1], "report": values}
    outcome = {"verdicts": [{"reports": [launch]}], "status": "ok", "exit_code": 0, "seconds": 1.0,
               "output_sha256": "sum", "said": "", "machine": "m"}  # fmt: skip
    cell = Cell("id", "p", "a", "t", "d", "s", 4, {"options": {"z": "1", "b": "2"}}, 1.0)
    rows = {row["metric"]: row for row in rows_of(cell, outcome)}
    counts = {name: (row.get("count"), row.get("value"), row.get("text")) for name, row in rows.items()}
    assert counts == {
        "most": (2**63 - 1, 2.0**63, None), "more": (None, 2.0**63, None), "least": (-(2**63), -(2.0**63), None),
        "less": (None, -(2.0**63), None), "yes": (None, None, "True"), "far": (None, math.inf, None),
    }  # fmt: skip
    told = {name: rows["most"][name] for name in COLUMNS if name not in ("count", "value", "text")}
    assert told == {
        "cell": "id", "program": "p", "arguments": "a", "tool": "t", "options": "b=2;z=1", "device": "d", "stack": "s",
        "repeat": 4, "status": "ok", "exit_code": 0, "seconds": 1.0, "output_sha256": "sum", "said": "",
        "machine": "m", "process": 0, "launch": 3, "launches": 2, "kernel": "k", "grid": "1,2,3", "block": "64,1,1",
        "metric": "most", "way": ("most",),
    }  # fmt: skip
    [bare] = rows_of(cell, {**outcome, "verdicts": None})
    assert bare == {name: told[name] for name in COLUMNS[: COLUMNS.index("process")]}


def test_failures_are_rows(study: Study, summary: Callable[[], Any], tmp_path: Path) -> None:
    done = study(SHELL)
    assert (done.code, done.err) == (ExitCode.ERROR, "luthier: 1 of 2 runs did not end well\n")
    assert "verdict: 2 runs: 1 ok, 1 failed" in done.out
    assert "bad bare gpu: failed, exit code 7: last words (1 of 1 runs)" in done.out
    rows = {row["program"]: row for row in data(tmp_path)}
    assert {name: (row["status"], row["exit_code"]) for name, row in rows.items()} == {
        "good": ("ok", 0), "bad": ("failed", 7)}  # fmt: skip
    assert rows["bad"]["said"] == "first\nlast words" and not rows["good"]["said"]
    assert rows["good"]["output_sha256"] == hashlib.sha256(b"out\n3\n").hexdigest()
    assert runs_in(tmp_path) == ["bad", "good"]
    study(SHELL)
    assert runs_in(tmp_path) == ["bad", "good"], "failures are results too"
    study(SHELL, "--retry")
    assert runs_in(tmp_path) == ["bad", "bad", "good"]
    assert {group["program"]: group["statuses"] for group in summary()["groups"]} == {
        "good": {"ok": 1}, "bad": {"failed": 1}}  # fmt: skip


def test_a_run_that_takes_too_long_is_a_row(study: Study, tmp_path: Path) -> None:
    """Alone: on a slow machine others would take as long."""
    done = study('timeout = 1\n[[program]]\nname = "late"\ncommand = ["sleep", "600"]\n')
    assert (done.code, done.err) == (ExitCode.ERROR, "luthier: 1 of 1 runs did not end well\n")
    assert "verdict: 1 runs: 1 timeout" in done.out or "1 timeout" in done.out
    assert [(row["status"], row["exit_code"]) for row in data(tmp_path)] == [("timeout", None)]


def test_nothing_observed_is_exit_code_3(study: Study, tmp_path: Path) -> None:
    nothing = '[[program]]\ncommand = ["true"]\n[[tool]]\ntool = "instr_count"\n'
    done = study(nothing)
    assert done.code == ExitCode.NOTHING_OBSERVED and "nothing was observed in any run" in done.err
    assert [row["status"] for row in data(tmp_path)] == ["nothing observed"]
    assert study('[[program]]\ncommand = ["true"]\n').code == 0, "no tool, nothing to observe"


def test_repeats_that_differ_are_told(study: Study) -> None:
    done = study('repeat = 2\n[[program]]\ncommand = ["sh", "-c", "date +%s%N"]\n')
    assert done.code == ExitCode.ERROR and done.err.splitlines() == [
        "luthier: counts or outputs differ between repeats"]  # fmt: skip
    assert "repeats differ: sh bare gpu: the program's output differs" in done.out


def test_a_wrong_file_is_one_line(study: Study, tmp_path: Path) -> None:
    done = study('[[program]]\ncomand = ["true"]\n')
    assert (done.code, done.err) == (2, "luthier: study.toml: program[0].command: is missing\n")
    assert not (tmp_path / "out").exists()


def test_a_device_that_is_not_there_is_a_row(study: Study, tmp_path: Path) -> None:
    done = study('devices = ["toaster"]\n[[program]]\ncommand = ["true"]\n')
    assert "error: device toaster is unknown" in done.out
    assert [row["status"] for row in data(tmp_path)] == ["error"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_study_that_was_stopped_goes_on(how: signal.Signals, study: Study, tmp_path: Path) -> None:
    text = """
jobs = 1
[[program]]
name = "quick"
command = ["sh", "-c", "echo $0 >> runs", "quick"]
[[program]]
name = "waits"
command = ["sh", "-c", "echo $0 >> runs; echo $$ > pid; test -e go || exec sleep 600", "waits"]
"""
    (tmp_path / "study.toml").write_text(text)
    command = [sys.executable, "-c", "from luthier_py.cli import main; main()", "study", "study.toml", "-o", "out"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
    running.send_signal(how)
    running.communicate(timeout=PATIENCE)
    assert running.returncode != 0
    until(lambda: not alive(int((tmp_path / "pid").read_text())))
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 1
    (tmp_path / "go").touch()
    done = study(text)
    assert done.code == 0 and "verdict: 2 runs: 2 ok" in done.out
    assert runs_in(tmp_path) == ["quick", "waits", "waits"]


def test_a_study_that_version_1_began_goes_on(study: Study, tmp_path: Path) -> None:
    """It kept each run in a file of its own; a newer version's folder is refused."""
    study(SHELL)
    kept = tmp_path / "out" / "cells" / "outcomes.ndjson"
    head, *outcomes = map(json.loads, kept.read_text().splitlines())
    kept.unlink()
    for outcome in outcomes:
        (kept.parent / f"{outcome.pop('cell')}.json").write_text(json.dumps(outcome))
    before = data(tmp_path)
    assert study(SHELL, "--dry-run").out.count("to run") == 0
    assert study(SHELL).code == ExitCode.ERROR and data(tmp_path) == before
    study(SHELL, "--retry")
    assert runs_in(tmp_path) == ["bad", "bad", "good"] and len(kept.read_text().splitlines()) == 2
    kept.write_text(json.dumps({**head, "version": head["version"] + 1}) + "\n")
    done = study(SHELL)
    assert done.code == ExitCode.ERROR and "cells/outcomes.ndjson: it is of version 3, and this" in done.err


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_tool_is_its_neighbours_too(tmp_path: Path) -> None:
    """What a tool's file imports from its folder is of its content; what it does not import is not."""
    (tmp_path / "counting.py").write_text(
        "from luthier_py import Tool\nimport step_of_counting, steps_of_counting\nclass Counting(Tool): ...\n"
    )
    package = tmp_path / "steps_of_counting"
    package.mkdir()
    contents = set()
    for path in (tmp_path / "step_of_counting.py", package / "__init__.py", package / "more.py"):
        for text in ("N = 1", "N = 2  # another size"):
            path.write_text(text)
            contents.add(content(tmp_path / "counting.py") if (package / "__init__.py").exists() else text)
    (tmp_path / "stranger.py").write_text("N = 3")
    contents.add(content(tmp_path / "counting.py"))
    assert len(contents) == 2 + 4


def content(tool: Path) -> str:
    """As another process finds it."""
    script = "import sys; from luthier_py.features.study.cells import tool_content as of; print(of(sys.argv[1]))"
    command = [sys.executable, "-c", script, str(tool)]
    return subprocess.run(command, text=True, timeout=PATIENCE, stdout=subprocess.PIPE, check=True).stdout


@patch.dict(os.environ)  # Dask's nannies change it
def test_on_a_cluster(study: Study, summary: Callable[[], Any], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=tmp_path / "dask"
    ) as cluster:
        done = study(SHELL, "--scheduler", cluster.scheduler_address)
    assert (done.code, done.err) == (ExitCode.ERROR, "luthier: 1 of 2 runs did not end well\n")
    assert {group["program"]: group["statuses"] for group in summary()["groups"]} == {
        "good": {"ok": 1}, "bad": {"failed": 1}}  # fmt: skip
    assert runs_in(tmp_path) == ["bad", "good"]


def test_a_run_whose_machine_died_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('[[program]]\ncommand = ["true"]\n')
    plan = plan_study(Path("s.toml"), tmp_path / "out")
    broken = [Variation(cell.identity, replace(cell, run={**cell.run, "folder": "no-such-folder"}), dict)
              for cell in plan.cells]
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, local_directory=tmp_path / "dask"
    ) as cluster:
        [(_, outcome)] = on_cluster(run_cell, cluster.scheduler_address, make_lost_record)(broken)
    assert outcome["status"] == "error" and "no-such-folder" in outcome["said"] and outcome["exit_code"] is None
    assert [row["seconds"] for row in rows_of(plan.cells[0], outcome)] == [None]


def test_no_scheduler_there(study: Study) -> None:
    pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        done = study(SHELL, "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 1 and "--scheduler tcp://127.0.0.1:1: " in done.err
    assert len(done.err.splitlines()) == 1


def test_bars_of_one_kernel_stand_together() -> None:
    """The kernel c is launched by the last run alone."""
    bars = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("c", "x"), ("c", "y")]
    assert _beside(bars) == [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "x"), ("c", "y")]
    assert _beside([]) == []


def test_rows_of_tables_name_their_device_where_there_are_several() -> None:
    report = {"kernel": "k", "process": 0, "launch": 0, "launches": 1, "report": {"rows": [{"n": 7}]}}
    table: Any = SimpleNamespace(tool="t", programs=("p",), items="rows", columns=("n",), title="")
    cells = [SimpleNamespace(tool="t", program="p", arguments="", device=each, stack="own") for each in ("one", "two")]
    runs: Any = [(cell, {"verdicts": [{"reports": [report]}]}) for cell in cells]
    assert [row["of"] for row in _items(table, runs)["rows"]] == ["p one", "p two"]
    assert [row["of"] for row in _items(table, runs[:1])["rows"]] == ["p"]
