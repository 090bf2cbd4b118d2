"""Launches kept in files: those of a program, or one that a command makes.

In: a command and what of it is to be kept, or a device to launch on. Out: files, and what became of each launch.
Invariant: recorded memory lies where a later process has nothing, so that a replay can have it at the same addresses.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.record_file import write_record
from luthier_py.emulator.devices.recorded import RecordedLaunch, record_launch
from luthier_py.emulator.memory.chosen_place import give_back, take_place
from luthier_py.emulator.memory.device_memory import Memory
from luthier_py.errors import DeviceError, Invalid
from luthier_py.runtime import KernelHandle
from luthier_py.session.execute import Executed, execute
from luthier_py.session.run import Dim
from luthier_py.session.run_settings import RunSettings

_PLACES = 0x200000000000, 0x300000000000, 0x100000000000, 0x400000000000  # those of our HIP runtime (hip/device.c)
_BYTES = 1 << 37


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """``launches``: chosen ones, in order: ``launch``, ``kernel``, and ``file`` and its sizes, or ``reason``."""

    executed: Executed
    launches: tuple[Mapping[str, Any], ...]

    @property
    def files(self) -> list[Mapping[str, Any]]:
        """The rows of launches that were recorded, and not refused."""
        return [row for row in self.launches if "file" in row]


def record_program(command: Sequence[str], settings: RunSettings) -> RecordedProgram:
    """Run ``command``, and keep the launches that ``settings.record`` names."""
    assert settings.record is not None
    if not settings.own_runtime:
        raise Invalid("launches are recorded under our own HIP runtime: give --stack luthier, or luthier-X.Y")
    with TemporaryDirectory(prefix="luthier-") as folder:
        journal = Path(folder) / "recorded"
        done = execute(command, replace(settings, record=replace(settings.record, journal=journal)))
        lines = journal.read_text().splitlines() if journal.exists() else []
    return RecordedProgram(done, tuple(map(json.loads, lines)))


class RecordingDevice(EmulatorDevice):
    """Mutable: an emulated GPU that keeps its last launch."""

    recorded: RecordedLaunch | None = None

    def launch(self, kernel: KernelHandle, grid: Dim, block: Dim, kernarg: bytes, lds_bytes: int = 0) -> None:
        self.recorded = record_launch(self, kernel, grid, block, kernarg, lds_bytes)

    def save(self, path: Path) -> int:
        """Returns the file's size."""
        if self.recorded is None:
            raise Invalid(f"{path}: nothing was launched that could be recorded")
        return write_record(path, self.recorded)


def reserve_recording_memory() -> Memory:
    """Where a program's would be, as long as somebody has it."""
    for start in _PLACES:
        try:
            place = take_place(start, _BYTES)
        except DeviceError:
            if start == _PLACES[-1]:
                raise
            continue
        memory = Memory(place)
        weakref.finalize(memory, give_back, place).atexit = False
        return memory
    raise AssertionError("there are places")
