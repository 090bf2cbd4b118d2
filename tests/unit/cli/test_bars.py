"""The bar: what it says on a terminal, and silence everywhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray
from patience import PATIENCE, until
from rich.console import Console

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.packet_device import DeviceLaunch
from luthier_py.emulator.records.layout import LAUNCH
from luthier_py.features.commands.progress_bar import show_progress
from luthier_py.features.run.launch import Launch
from luthier_py.features.run.launched import launch_file
from luthier_py.features.run.specs import parse_argument
from luthier_py.features.settings.run_settings import RunSettings
from luthier_py.rewrite.pipeline import STAGES, instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

ARGUMENTS = ("u32=1000", "f32=0.7", "in:f32[1000]=random:1", "inout:f32[1000]=random:2")


def terminal() -> Console:
    return Console(file=StringIO(), force_terminal=True, width=100)


def drawn(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def await_drawn(console: Console, text: str) -> None:
    until(lambda: text in drawn(console))


def test_every_stage_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    instrument(sample("saxpy").path.read_bytes(), load_tool("instr_count"), watch=lambda *stage: told.append(stage))
    assert told == [(name, number, len(STAGES)) for number, name in enumerate(STAGES)]


def test_stages_and_work_groups_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    console = terminal()
    monkeypatch.setattr("luthier_py.features.commands.progress_bar.EVERY", 0.001)
    with show_progress(console=console, after=0) as bar:
        assert bar is not None
        bar.stage("inject", 4, 7)
        device = EmulatorDevice(load(sample("saxpy").path.read_bytes()).target)
        device._running[object()] = launch = DeviceLaunch()
        launch.run = running = SimpleNamespace(record=record(total=40, next=30))
        bar.launch(device)
        await_drawn(console, "30/40")
        running.record = record(total=40, next=60)
        await_drawn(console, "40/40")
    assert "work-groups" in drawn(console) and device.begun == (40, 40)


def record(**values: int) -> NDArray[np.uint64]:
    made = np.zeros(1 + max(LAUNCH.values()) // 8, np.uint64)
    for name, value in values.items():
        made[LAUNCH[name] // 8] = value
    return made


def test_nothing_where_nobody_looks() -> None:
    for console, wanted in ((Console(file=StringIO()), True), (terminal(), False)):
        with show_progress(wanted, console, after=0) as bar:
            assert bar is None
        assert drawn(console) == ""


def test_a_short_launch_shows_nothing() -> None:
    console = terminal()
    launch = Launch("saxpy", (4, 1, 1), (256, 1, 1), tuple(map(parse_argument, ARGUMENTS)))
    with show_progress(console=console, after=1e9) as bar:
        done = launch_file(sample("saxpy").path, launch, load_tool("instr_count"), RunSettings("emulator"), bar)
    assert done.observed and "work-groups" not in drawn(console) and "instrumenting" not in drawn(console)


def test_json_has_no_bar() -> None:
    """Not where stderr is a terminal either."""
    ours, theirs = pty.openpty()
    command = ["run", sample("saxpy").path, "--kernel", "saxpy", "--grid", "4", "--block", "256", "--json", *ARGUMENTS]
    script = "from luthier_py.cli import main; main()"
    words = [sys.executable, "-c", script, *command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, timeout=PATIENCE)
    os.close(theirs)
    assert done.returncode == 0
    with pytest.raises(OSError):  # the other side is closed, and nothing was written
        os.read(ours, 1)
    os.close(ours)
