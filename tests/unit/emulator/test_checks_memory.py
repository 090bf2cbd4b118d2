"""Checks take memory: where there is none the launch ends with an error, and the device lives on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE
from test_checks import BARRIER, END, LDS_READ, LDS_WRITE, NEXT_WAVES, WAIT, load_at, made, run, store_at

from luthier_py.base.errors import DeviceError
from luthier_py.emulator.launches import watch
from luthier_py.isa import sgpr, vgpr

BYTE = made("global_store_byte", vgpr(2), vgpr(3), sgpr(8, 2), offset=1)
PHASES = [row for _ in range(40) for row in (LDS_WRITE, WAIT, BARRIER)]
ROWS = [load_at(), WAIT, NEXT_WAVES, LDS_WRITE, WAIT, LDS_READ, WAIT, BYTE, store_at(512), *PHASES, END]


def launched():
    return run(ROWS, waves=2, groups=3, words=1 << 10)


def test_wherever_it_runs_out(monkeypatch):
    """Each thing that is asked for is the first for which there is nothing, as the limit grows."""
    whole, ended, limit = launched(), 0, 64
    assert whole.findings
    while limit < 1 << 30:
        monkeypatch.setattr(watch, "MOST_MEMORY", limit)
        try:
            done = launched()
        except DeviceError as error:
            assert "no memory for what checks know of 3 work-groups" in str(error) and error.where.kernel == "k"
            ended, limit = ended + 1, limit + limit // 16
        else:
            assert [(each.what.split(" 0x")[0], each.where, each.count) for each in done.findings] == [
                (each.what.split(" 0x")[0], each.where, each.count) for each in whole.findings]
            break
    assert ended > 40 and limit < 1 << 30


def test_a_process_without_memory_lives_on():
    """The system's own refusal, not ours."""
    script = """
import resource
from test_checks_memory import launched
from luthier_py.base.errors import DeviceError
from luthier_py.emulator.watching.watching_library import load_watching_library
launched()
library = load_watching_library()
try:
    library.luthier_watch_new(0, 64, 1 << 40, 1 << 20, 0, 0, 1 << 62, 0) and exit("there was memory")
finally:
    launched()
print("alive")
"""
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2]), *sys.path])
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}, text=True,
                          capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


@pytest.mark.parametrize("seed", [None, 3])
def test_a_device_checks_again_afterwards(monkeypatch, seed):
    monkeypatch.setattr(watch, "MOST_MEMORY", 20_000)
    with pytest.raises(DeviceError, match="no memory"):
        run(ROWS, waves=2, words=1 << 10, seed=seed)
    monkeypatch.undo()
    assert run(ROWS, waves=2, words=1 << 10, seed=seed).findings
