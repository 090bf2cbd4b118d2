"""A device that keeps its last launch, for a file that `luthier replay` reads.

Invariant: recorded memory lies where a later process has nothing, so that a replay can have it at the same addresses.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.record_file import write_record
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch, record_launch
from luthier_py.emulator.memory.chosen_place import give_back, take_place
from luthier_py.emulator.memory.device_memory import Memory

if TYPE_CHECKING:
    from luthier_py.emulator.interface import KernelHandle
    from luthier_py.features.run.launch import Dim

_PLACES = 0x200000000000, 0x300000000000, 0x100000000000, 0x400000000000  # those of our HIP runtime (hip/device.c)
_BYTES = 1 << 37


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
    """Reserve memory where a program's would be, until the result is garbage."""
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
