"""How a run is to be made, as its options and the environment say it: on which device, and what of launches there.

In: options of a command, as text. Out: RunSettings; the environment by which a program finds the same. Invariant: what
only the emulator does is refused where there is none, before anything starts.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, replace
from luthier_py.base.storage import check_file, check_folder
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.clock_kind import ClockKind
from luthier_py.emulator.options.launch_options import LAUNCH_OPTIONS, NO_OPTIONS, LaunchOptions
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.features.settings.program import search_folders
from luthier_py.features.settings.stack import (
    LUTHIER,
    ROCM,
    choose_stack,
    has_our_runtime,
    release_of,
    stack_environment,
    topology_environment,
)
from luthier_py.host.worker.device.findings import TRACE
from luthier_py.host.worker.device.launch_settings import launch_environment, launch_options
from luthier_py.host.worker.device.recording import SUFFIX, RecordSettings
from luthier_py.host.worker.device.settings import GRANULARITY, device_settings
from luthier_py.host.worker.device.targets import VARIABLE, parse_targets

if TYPE_CHECKING:
    from luthier_py.host.releases.fetched import FetchedRelease

EMULATOR = "emulator"
GPU_GRANULARITY = 2 << 20
"""Bytes. ROCm's libraries read what lies behind their buffers, without using it (rocBLAS up to a whole tile, of 128
rows): allocations of a GPU lie in larger pieces of mapped memory, which ROCr takes by so many bytes."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """``device``: as --device has it; None for the GPU that a program finds. ``stack``: what is between an emulated
    device and the program, see :mod:`.stack`. ``shuffle``: how many other schedules are tried. ``record``: which
    launches are saved. ``times``: whether programs record what they do, and launches by the cycle model when their
    work-groups ran."""

    device: str | None
    stack: str = LUTHIER
    launch: LaunchOptions = NO_OPTIONS
    shuffle: int = 0
    record: RecordSettings | None = None
    times: bool = False

    @property
    def own_runtime(self) -> bool:
        """Whether a program has our HIP runtime."""
        return self.device is not None and has_our_runtime(self.stack)

    @property
    def words(self) -> list[str]:
        """Of a command line that has the same device, stack and limits."""
        given = {"--device": self.device if self.device != EMULATOR else None,
                 "--stack": self.stack if self.stack != LUTHIER else None,
                 **{row.option: getattr(self.launch, name) for name, row in LAUNCH_OPTIONS.items() if row.limits}}
        return [word for name, value in given.items() if value is not None for word in (name, str(value))]

    def release(self, program: str) -> FetchedRelease | None:
        """The fetched ROCm that a program is given; none on a GPU, unless one is named."""
        if self.stack != ROCM:
            return release_of(self.stack)
        path = shutil.which(program) if self.device is not None else None
        return release_of(self.stack, search_folders(Path(path))) if path else None

    def by(self, schedule: Schedule | None) -> RunSettings:
        """The same by this schedule."""
        return replace(self, launch=replace(self.launch, schedule=schedule))

    def environment(self) -> dict[str, str]:
        """What makes a program find the emulator, and it these options; Invalid if it could not start."""
        if self.device is None:
            return {}
        if not self.device.startswith(EMULATOR):
            raise Invalid(f"device {self.device} is unknown; give emulator:TARGET, or nothing for the GPU")
        targets = parse_targets(self.device)
        launch = launch_environment(self.launch)
        if self.record is not None:
            launch |= self.record.environment()
        if self.own_runtime and self.stack != LUTHIER and not self.launch.checks & Checks.BOUNDS:
            launch[GRANULARITY] = os.environ.get(GRANULARITY, str(GPU_GRANULARITY))
        memory = device_settings({**os.environ, **launch}).memory_bytes
        return {**launch, VARIABLE: self.device, TRACE: str(int(self.times)), **stack_environment(self.stack),
                **topology_environment(self.stack, targets, memory)}


def run_settings(device: str | None, given: Mapping[str, object] | None = None, stack: str | None = None,
                 shuffle: int = 0, record: Path | RecordSettings | None = None, times: bool = False) -> RunSettings:
    """``given``: values by option, None for those that were not given; the environment has the rest, of ``stack``,
    too. ``record``: a file for the one launch, or which of several. ``times``: for a trace, by the cycle model
    unless a clock is given."""
    keeps = "--record" if (in_file := isinstance(record, Path)) else "record"  # the command
    if isinstance(record, Path):
        record = RecordSettings(record)
    texts = {option: str(value) for option, value in (given or {}).items() if value is not None}
    if shuffle and "--schedule" in texts:
        raise Invalid("--shuffle takes the seeds 0 to COUNT-1; leave out --schedule")
    if device is not None and device.startswith(EMULATOR):
        if record is not None:
            output = record.output
            check = check_file if in_file or output.suffix == SUFFIX else check_folder
            check(output, f"{keeps if in_file else '--output'} {output}")
        launch = launch_options(os.environ, texts)
        launch = replace(launch, clock=ClockKind.MODEL) if times and "--clock" not in texts else launch
        return RunSettings(device, choose_stack(stack), launch, shuffle, record, times)
    if only := [*texts, *["--shuffle"] * bool(shuffle), *[keeps] * bool(record), *["--trace"] * times]:
        raise Invalid(f"{', '.join(only)}: for kernels on the emulator; give a device, as --device emulator:TARGET")
    return RunSettings(device, choose_stack(stack))
