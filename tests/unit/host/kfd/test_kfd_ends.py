"""However a program or its worker ends, nothing of them is left: no process and no file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from driven import PRELUDE
from patience import PATIENCE, until

from luthier_py.host.kfd import device_library

WORK = """
ring = Ring(kfd, drm, ARENA + (1 << 20), 1)
own = place(64 * PAGE)
print("working", flush=True)
for turn in range(1 << 30):
    user = Memory(kfd, drm, own, 64 * PAGE, USERPTR | WRITABLE)
    at = ring.doorbell.value
    ring.put(at, struct.pack("<7I", 1, PAGE - 1, 0, own & 0xffffffff, own >> 32, (own + PAGE) & 0xffffffff, own >> 32))
    ring.doorbell.value = at + 28
    until(lambda: ioctl(kfd, 0x01, "II", 0, 0) and ring.read_index() == at + 28)  # OSError when there is no worker
    user.free()
"""


def marked(mark: str) -> set[int]:
    """Processes that have these words in their environment."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "environ").read_bytes():
                    found.add(int(entry.name))
            except OSError:
                continue  # it is somebody else's, or has ended
    return found


@pytest.mark.parametrize("whom", ["program", "worker"])
def test_nothing_is_left_of_what_is_killed(whom: str, tmp_path: Path) -> None:
    mark = f"LUTHIER_TEST_MARK={tmp_path}"
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + WORK)
    environment = {**os.environ, "LD_PRELOAD": str(device_library()), "LUTHIER_DEVICE": "emulator:gfx90a",
                   "TMPDIR": str(scratch), "LUTHIER_TEST_MARK": str(tmp_path)}  # fmt: skip
    for turn in range(3):
        running = subprocess.Popen(
            [sys.executable, str(program)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert running.stdout is not None and running.stdout.readline() == "working\n"
        workers = marked(mark) - {running.pid}
        assert len(workers) == 1, "a worker beside the program"
        time.sleep(0.03 * turn)  # into its work, each time elsewhere
        os.kill(running.pid if whom == "program" else workers.pop(), signal.SIGKILL)
        _, said = running.communicate(timeout=PATIENCE)
        if whom == "program":
            assert (running.returncode, said) == (-signal.SIGKILL, "")
        else:
            assert running.returncode == 1 and "luthier: the worker process has ended" in said
        until(lambda: not marked(mark))
    assert os.listdir(scratch) == []
