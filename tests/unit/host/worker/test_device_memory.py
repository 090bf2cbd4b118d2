"""Memory of the emulated device: what it says is there, what it gives, and whose it is after fork."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.host.worker.device.settings import parse_memory

HostProgram = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    "settings, total",
    (
        ({}, 16 << 30),
        ({"LUTHIER_DEVICE_MEMORY": "96M"}, 96 << 20),
        ({"LUTHIER_DEVICE_MEMORY": "1000001"}, 1000001),
        ({"LUTHIER_DEVICE": "emulator:gfx90a*16"}, 8 << 30),  # half of what there is, among all
    ),
)
def test_what_is_free_can_be_had(settings: dict[str, str], total: int, host_program: HostProgram, run: Run) -> None:
    done = run(host_program("memory_program"), "limits", **settings)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert total - (1 << 20) < int(done.stdout.splitlines()[0]) <= total


def test_wrong_sizes(host_program: HostProgram, run: Run) -> None:
    for size in ("0", "-1", "much", "4X"):
        with pytest.raises(Invalid, match=f"LUTHIER_DEVICE_MEMORY=`{size}`: give"):
            parse_memory(size)
    size = "1.5G"
    done = run(host_program("memory_program"), "limits", LUTHIER_DEVICE_MEMORY=size)
    assert done.returncode == 1 and f"LUTHIER_DEVICE_MEMORY=`{size}`: give" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("when", ("used", "unused", "busy", "pool"))
def test_children_of_fork(when: str, host_program: HostProgram, run: Run) -> None:
    """As with a GPU: a child of a process that has used the device can neither use it nor touch its memory; one that
    was made before has a device of its own, and can open its parent's pool.
    """
    done = run(host_program("memory_program"), when)
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


@pytest.mark.parametrize("major", (5, 6, 7))
def test_arrays_of_every_abi(major: int, host_program: HostProgram, run: Run) -> None:
    done = run(host_program("arrays_program", linked=False), str(major))
    assert (done.returncode, done.stdout, done.stderr) == (0, "PASSED\n", "")


@pytest.mark.parametrize("major, error", ((5, 1), (6, 1), (7, 0)))
def test_null_is_memory_of_the_host_since_hip_7(major: int, error: int, run: Run) -> None:
    """As ROCm 5.2.3 and 6.4.3 answer, and as the sources of HIP 7 do."""
    text = f"import ctypes; print(ctypes.CDLL('libamdhip64.so.{major}').hipPointerGetAttributes(bytes(64), None))"
    done = run(sys.executable, "-c", text)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{error}\n", "")
