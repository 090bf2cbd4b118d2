"""Traces: the document's shape, tracks without overlaps, and times that are the cycle model's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from trace_events import tracks

from luthier_py.base.errors import Invalid
from luthier_py.features.demo.samples import launch_of
from luthier_py.features.run.launched import launch_file, save_all
from luthier_py.features.settings.run_settings import run_settings
from luthier_py.features.trace.page import DEVICES, INSTRUMENTATION, LAUNCHES, MOST_GROUPS, SLOTS, trace_document
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample


def test_a_launch_is_what_the_model_says(tmp_path: Path) -> None:
    launch = launch_of(sample("reduce"))
    tool = load_tool("instr_count")
    done = launch_file(sample("reduce").path, launch, tool, run_settings("emulator", times=True))
    cycles = done.ran.cycles
    assert cycles is not None and done.verdict is not None
    _, [path] = save_all(done, launch.kernel, trace=tmp_path / "t.json.gz")
    found = tracks(json.loads(gzip.decompress(Path(path).read_bytes())))
    [whole] = found[DEVICES, LAUNCHES]
    assert (whole["name"], whole["ts"], whole["dur"]) == ("reduce", cycles.begin, cycles.total)
    groups = [event for (pid, tid), events in found.items() if pid == DEVICES and tid != LAUNCHES for event in events]
    assert sorted(event["name"] for event in groups) == sorted(f"work-group {n}" for n in range(len(cycles.units)))
    units = [0] * len(cycles.of_units())
    for event in groups:
        unit = (event["tid"] - 1) // SLOTS
        units[unit] = max(units[unit], event["ts"] + event["dur"] - cycles.begin)
        number = int(event["name"].split()[1])
        assert event["args"]["wave_cycles"] == [ran for ran in cycles.waves[number].tolist() if ran >= 0]
    assert units == cycles.of_units()
    stages = {event["name"]: event["dur"] for event in found[INSTRUMENTATION, LAUNCHES + 1]}
    seconds = done.verdict.facts()["kernels"][0]["seconds"]
    assert stages == pytest.approx({name: 1e6 * took for name, took in seconds.items()})


def test_work_groups_of_one_unit_have_a_track_each_and_large_launches_are_cut() -> None:
    count = MOST_GROUPS + 3
    times = {"begin": 0, "end": 30, "units": [0] * count, "begins": [0, 10] + [20] * (count - 2),
             "ends": [15, 20] + [20] * (count - 2), "waves": [[5, -1]] * count}  # fmt: skip
    found = tracks(trace_document([{"kernel": "k", "device": 1, "times": times}, {"kernel": "checked"}]))
    device = DEVICES + 1
    assert [event["args"]["left_out"] for event in found[device, LAUNCHES]] == [3]
    assert len(found[device, 1]) + len(found[device, 2]) == MOST_GROUPS
    assert found[device, 2][0]["name"] == "work-group 1" and found[device, 2][0]["args"] == {"wave_cycles": [5]}


def test_one_launch_has_no_other_times_than_the_models() -> None:
    settings = run_settings("emulator", {"--clock": "instructions"}, times=True)
    with pytest.raises(Invalid, match="--trace of one launch has the cycle model's times: leave out --clock"):
        launch_file(sample("reduce").path, launch_of(sample("reduce")), None, settings)


@pytest.mark.parametrize("device", ["hip", None])
def test_a_trace_needs_the_emulator(device: str | None) -> None:
    with pytest.raises(Invalid, match="--trace: for kernels on the emulator"):
        run_settings(device, times=True)
