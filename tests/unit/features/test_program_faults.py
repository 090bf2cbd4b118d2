"""Faults in programs: what the tool made wrong is what the program, its results and its end say."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from luthier_py import study_table
from luthier_py.features.exec.execute import Surroundings, execute
from luthier_py.features.faults.campaign import faults_of, run_campaign
from luthier_py.features.faults.drawing import FaultCampaign, InjectedFault, draw_fault
from luthier_py.features.faults.judging import FaultEffect, FaultSide, judge_fault
from luthier_py.features.faults.program import ProgramCheck, ProgramSubject
from luthier_py.features.settings.run_settings import run_settings

Program = Callable[..., Path]
DEVICE = "emulator:gfx90a"
SETTINGS = run_settings(DEVICE)
SUM = {"INSTRUMENT": "float"}
"""The only float instruction of vector_add is its sum, one in each of 1000 lanes."""
FLIP = InjectedFault(0, "flip", 3, 17, 22, 0)
PRINTED = ProgramCheck()


@pytest.mark.parametrize(("words", "check", "effect", "side", "why"), [
    ("{program}", PRINTED, FaultEffect.SDC, None, "exit code 1, not 0; what it prints: other from byte 0 on"),
    ("{program} > {results}; true", ProgramCheck((Path("results"),)), FaultEffect.SDC, None, "results: other from"),
    ("{program}; true", ProgramCheck(command="true"), FaultEffect.MASKED, None, ""),
    ("{program} || kill -SEGV $$", PRINTED, FaultEffect.CRASH, FaultSide.HOST, "signal 11 ended the program"),
])
def test_how_a_program_tells(words: str, check: ProgramCheck, effect: FaultEffect, side: FaultSide | None, why: str,
                             program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of an element has another exponent; the program compares all elements, prints so and exits with 1."""
    monkeypatch.chdir(tmp_path)
    script = words.format(program=program("vector_add"), results="results")
    subject = ProgramSubject(("sh", "-c", script), check)
    with subject.bench(SUM, SETTINGS) as bench:
        assert [sum(waves) for waves in bench.written] == [1000]
        found = judge_fault(bench, FLIP, SUM, every_lane=False).injection
    assert (found.effect, found.side) == (effect, side) and why in found.why and found.hit is not None
    element = 3 * 64 + 17
    before = np_bits(0.5 * element + 1000 - element)
    assert (found.hit["before"], found.hit["after"]) == (before, before ^ 1 << 22)


def np_bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def test_a_launch_that_fails(program: Program) -> None:
    """By a wrong address, and by what it executes; where the fault was is known all the same."""
    subject = ProgramSubject((str(program("vector_add")),), PRINTED)
    with subject.bench({}, SETTINGS) as bench:
        fault = draw_fault(0, 1, ("flip",), bench.written)
        found = judge_fault(bench, fault, {}, every_lane=False).injection
        assert (found.effect, found.side) == (FaultEffect.CRASH, FaultSide.DEVICE) and "bad address" in found.why
        assert found.hit is not None and found.hit["after"] is None and found.hit["wave"] == fault.wave
        short = replace(SETTINGS.launch, instruction_limit=50)
        slow = replace(bench, settings=replace(SETTINGS, launch=short))
        found = slow.inject(FLIP.options(), 0)
        assert (found.effect, found.side) == (FaultEffect.HANG, FaultSide.DEVICE)
        assert "limit of 50 instructions" in found.why


def test_the_command_for_a_fault_is_as_the_campaign_was() -> None:
    """A shell takes it as it is: device, stack, limits, and a filter with all that means something to shells."""
    settings = run_settings(DEVICE, {"--instruction-limit": 5000}, "rocm")
    text = ProgramSubject(("./my app", "$x"), PRINTED).again({"INSTRUMENT": "memory&width>=8|pc=0x10"}, settings, 3)
    assert shlex.split(text) == [
        "luthier", "exec", "--device", DEVICE, "--stack", "rocm", "--instruction-limit", "5000",
        "-t", "fault_injection", "-O", "INSTRUMENT=memory&width>=8|pc=0x10", "-O", "START_GRID_NUM=3",
        "-O", "END_GRID_NUM=4", "--", "./my app", "$x"]
    assert "'INSTRUMENT=memory&width>=8|pc=0x10'" in text and "'$x'" in text


def test_a_program_that_takes_too_long_is_killed() -> None:
    done = execute(["sleep", "60"], run_settings(None), around=Surroundings(seconds=0.1))
    assert done.killed and done.exit_code == 137
    assert not execute(["true"], run_settings(None), around=Surroundings(seconds=60)).killed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_a_run_stops_the_campaign(program: Program, tmp_path: Path, number: int) -> None:
    """What the signal did to the program is no effect of a fault; Ctrl-C of a terminal goes to all of the group."""
    marks = tmp_path / "marks"
    script = f"echo began >> {marks}; [ $(wc -l < {marks}) -ne 3 ] || exec sleep 600; exec {program('vector_add')}"
    options = ("--faults", "2", "--device", DEVICE, "-o", str(tmp_path / "faults"))
    command = (sys.executable, "-m", "luthier_py", "faults", *options, "--", "sh", "-c", script)
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE) as running:
        while not marks.exists() or marks.read_text().count("began") < 3:
            assert running.poll() is None
            time.sleep(0.05)
        os.killpg(running.pid, number)
        assert running.wait(60) == 128 + number
    assert marks.read_text() == "began\n" * 3 and not [*tmp_path.glob("faults/*.ndjson")]


def test_programs_that_cannot_be_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = FaultCampaign(1, 1, ("flip",), {})
    for script, check, words in (
        ("date +%N", PRINTED, "twice without a fault it comes to different results: what it prints: other from byte"),
        ("true", PRINTED, "nothing to inject a fault into: no launch came to the tool"),
        (f"{program('vector_add')}", ProgramCheck(command="false"), "without a fault --check ends with 1"),
        (f"{program('vector_add')}", ProgramCheck((Path("none"),)), "without a fault it writes no none"),
    ):
        with pytest.raises(Exception, match=words):
            faults_of(ProgramSubject(("sh", "-c", script), check), campaign, tmp_path, SETTINGS, lambda: None)


STUDY = """
devices = ["emulator:gfx90a"]
[[program]]
name = "adds"
command = ["{program}"]
[[campaign]]
name = "sums"
faults = 3
part = 2
models = ["flip", "stuck_0"]
options = {{ instrument = "float" }}
"""


@patch.dict(os.environ)  # Dask's nannies change it
def test_a_study_has_the_faults_of_a_campaign(study: Callable[..., Any], summary: Callable[[], Any], program: Program,
                                              tmp_path: Path) -> None:
    """On a cluster, in parts: the same as here in one, and none is injected again."""
    distributed = pytest.importorskip("distributed")
    text = STUDY.format(program=program("vector_add"))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=tmp_path / "dask"
    ) as cluster:
        done = study(text, "--scheduler", cluster.scheduler_address)
    assert done.code == 0 and "verdict: 2 runs: 2 ok\n" in done.out, done.err
    subject = ProgramSubject((str(program("vector_add")),), PRINTED)
    campaign = FaultCampaign(3, 1, ("flip", "stuck_0"), SUM)
    alone = run_campaign([subject], campaign, tmp_path / "alone", SETTINGS, lambda: None)
    (found,) = summary()["campaigns"]
    assert {name: found[name] for name in ("faults", "all", "by", "host")} == {
        name: alone[name] for name in ("faults", "all", "by", "host")}
    assert found["all"]["sdc"]["count"] + found["all"]["masked"]["count"] == 3
    rows = study_table(tmp_path / "out", metric="effect").to_pylist()
    assert sorted(row["text"] for row in rows) == sorted(each["effect"] for each in injected(tmp_path / "alone"))
    assert study(text, "--dry-run").out.count("to run") == 0


def injected(folder: Path) -> list[Mapping[str, Any]]:
    (path,) = folder.glob("*.ndjson")
    return [row for row in map(json.loads, path.read_text().splitlines()) if "number" in row]
