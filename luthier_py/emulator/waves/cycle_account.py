"""When work-groups of a launch begin and end in the cycle model, and which compute unit has them.

In: what generated code keeps of each wave (layout's TIME), and the scheduler's word when a work-group begins, releases
a barrier, or ends. Out: LaunchCycles. Work-groups are placed in the order of dispatch, each where one ends first; a
compute unit holds as many as it has room for. Waves that share a pipe cannot have more of it than there is: a barrier,
and a work-group's end, come no earlier than its pipes are through with what its waves issued to them; and a work-group
ends no earlier than its compute unit's pipes are through with it and all that came before. Invariant: the same launch
on the same clock takes the same cycles.
"""

from __future__ import annotations

import ctypes
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from luthier_py.base.records import dataclass, field
from luthier_py.emulator.memory.device_memory import write_bytes
from luthier_py.emulator.memory.pool import Pages
from luthier_py.emulator.native.clocks import CycleClock
from luthier_py.emulator.records.layout import (
    GROUP,
    LAUNCH,
    TIME,
    TIME_BYTES,
    TIME_PATTERNS_AT,
    WAVE,
    GroupEvent,
    Status,
    wave_stride,
)
from luthier_py.emulator.records.words import Words, address_of
from luthier_py.emulator.waves.launch import image_stride
from luthier_py.emulator.waves.residency import COMPUTE_UNITS, of_compute_unit
from luthier_py.emulator.waves.shape import Shape
from luthier_py.isa.timing.cycles import Pipe

Cycles: TypeAlias = NDArray[np.int64]
_TAKEN = np.iinfo(np.int64).max
_OF_UNIT = slice(Pipe.LDS.value, None)  # pipes
_BUSY = [TIME[pipe.name.lower()] // 8 for pipe in Pipe]
_NOW, _ARRIVED, _RELEASED = (TIME[name] // 8 for name in ("now", "arrived", "released"))


@dataclass(frozen=True, slots=True)
class LaunchCycles:
    """Of one launch. Times are cycles of the device's clock, work-groups and waves in the order of their numbers."""

    begin: int
    end: int
    units: Cycles    # compute unit of each work-group
    begins: Cycles   # of each work-group
    ends: Cycles
    waves: Cycles    # (work-groups, waves): how long each ran, without waiting for others' pipes at its end; -1: none

    @property
    def total(self) -> int:
        """Cycles from the launch's begin to the end of its last work-group."""
        return self.end - self.begin

    def of_units(self) -> list[int]:
        """From the launch's begin to the last end on each compute unit; 0 where none began."""
        found = [0] * COMPUTE_UNITS
        for unit, end in zip(self.units.tolist(), self.ends.tolist(), strict=True):
            found[unit] = max(found[unit], end - self.begin)
        return found

    @property
    def imbalance(self) -> float:
        """The longest of the compute units over their mean."""
        units = self.of_units()
        return max(units) * len(units) / sum(units) if any(units) else 1.0

    @property
    def wave_imbalance(self) -> float:
        """The longest wave of a work-group over the mean of its waves, at worst."""
        there = np.where(self.waves < 0, 0, self.waves)
        means = there.sum(axis=1) / np.maximum((self.waves >= 0).sum(axis=1), 1)
        return float(np.max(there.max(axis=1) / np.maximum(means, 1), initial=1.0))


    def facts(self) -> dict[str, int | float | list[int]]:
        """As data for JSON."""
        return {"cycles": self.total, "unit_cycles": self.of_units(), "imbalance": round(self.imbalance, 4),
                "wave_imbalance": round(self.wave_imbalance, 4)}

    def times(self) -> dict[str, int | list[int]]:
        """When it and its work-groups ran, and where, as data for JSON."""
        each = {"units": self.units, "begins": self.begins, "ends": self.ends, "waves": self.waves}
        return {"begin": self.begin, "end": self.end, **{name: part.tolist() for name, part in each.items()}}


def _nothing() -> Cycles:
    return np.zeros((0, 0), np.int64)


@dataclass(slots=True)
class _Resident:
    """Mutable: a record for a work-group, and the work-group in it."""

    record: Cycles
    pages: Pages
    times: Cycles            # (waves, words) of TIME
    statuses: NDArray[np.uint64]
    place: tuple[int, int] = (0, 0)
    begin: int = 0
    segment: int = 0         # when the last barrier was released
    before: Cycles = field(default_factory=_nothing)  # what its waves had issued to the pipes by then
    simds: Cycles = field(default_factory=_nothing)   # (waves, SIMDs): 1 where the wave is


class CycleAccount:
    """Mutable: one running launch's. What it keeps is as much as there are waves."""

    def __init__(self, clock: CycleClock, shape: Shape) -> None:
        self._clock, self._shape = clock, shape
        self.taken: LaunchCycles | None = None
        """What the launch took, when it is over."""
        room = of_compute_unit(shape.target, shape.record.descriptor, shape.waves, shape.lds_bytes).groups
        self._free: Cycles = np.full((room, COMPUTE_UNITS), clock.now, np.int64)
        self._pipes: Cycles = np.full((COMPUTE_UNITS, len(Pipe), shape.target.simds), clock.now, np.int64)
        self._waves_begun = [0] * COMPUTE_UNITS
        self._residents: dict[int, _Resident] = {}
        self._begin, self._ended = clock.now, 0
        self._units, self._begins, self._ends = (np.zeros(shape.groups, np.int64) for _ in range(3))
        self._ran: Cycles = np.full((shape.groups, shape.waves), -1, np.int64)
        self._told = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)(self._tell)

    def watch(self, launch: Words) -> None:
        """Become the watcher of a launch's record."""
        launch[LAUNCH["watcher"] // 8] = ctypes.cast(self._told, ctypes.c_void_p).value or 0

    def add(self, record: Words) -> None:
        """A record for a work-group, with the images of its waves made: they get a TIME record each."""
        waves, first = self._shape.waves, int(record[GROUP["waves"] // 8])
        pages = Pages(TIME_BYTES * waves)
        images, step = int(record[GROUP["images"] // 8]), image_stride(self._shape)
        for image in range(waves * (self._shape.edges + 1)):
            time = pages.address + TIME_BYTES * (image % waves)
            write_bytes(images + step * image + WAVE["time"], time.to_bytes(8, "little"))
        times = np.frombuffer(pages.memory, np.int64)[: waves * TIME_BYTES // 8].reshape(waves, -1)
        stride = wave_stride(self._shape.wave_size)
        memory = (ctypes.c_uint8 * (stride * waves)).from_address(first)
        statuses = np.ndarray((waves,), np.uint64, memoryview(memory), WAVE["status"], (stride,))
        self._residents[address_of(record)] = _Resident(np.frombuffer(record, np.int64), pages, times, statuses)

    def finish(self) -> None:
        """All work-groups have ended; the next launch begins when the last of them has."""
        assert self._ended == self._shape.groups, "what is raised where the scheduler calls is on stderr"
        self._clock.now = int(max(self._ends, default=self._begin))
        self.taken = LaunchCycles(self._begin, self._clock.now, self._units, self._begins, self._ends, self._ran)

    def _tell(self, address: int, event: int) -> None:
        resident = self._residents[address]
        {GroupEvent.BEGINS: self._begins_in, GroupEvent.RELEASES: self._releases,
         GroupEvent.ENDS: self._ends_in}[GroupEvent(event)](resident)

    def _begins_in(self, resident: _Resident) -> None:
        group, waves = (int(resident.record[GROUP[name] // 8]) for name in ("index", "left"))
        slot, unit = divmod(int(self._free.argmin()), COMPUTE_UNITS)
        resident.begin = resident.segment = begin = int(self._free[slot, unit])
        resident.place = slot, unit
        self._free[slot, unit] = _TAKEN
        resident.times[:, : TIME_PATTERNS_AT // 8] = 0
        resident.times[:, [_NOW, _RELEASED]] = begin
        resident.before = np.zeros((waves, len(Pipe)), np.int64)
        simds = (self._waves_begun[unit] + np.arange(waves)) % self._shape.target.simds
        resident.simds = (simds[:, None] == np.arange(self._shape.target.simds)).astype(np.int64)
        self._waves_begun[unit] += waves
        self._units[group], self._begins[group] = unit, begin

    def _by_simd(self, resident: _Resident, busy: Cycles) -> Cycles:
        """What ``busy`` (waves, pipes) comes to: (pipes, SIMDs); the compute unit's stand at the first SIMD."""
        found: Cycles = np.dot(busy.T, resident.simds)
        found[_OF_UNIT, 0] = busy[:, _OF_UNIT].sum(axis=0)
        found[_OF_UNIT, 1:] = 0
        return found

    def _releases(self, resident: _Resident) -> None:
        waves = len(resident.before)
        times, statuses = resident.times[:waves], resident.statuses[:waves]
        busy = times[:, _BUSY]
        asked = resident.segment + int(self._by_simd(resident, busy - resident.before).max())
        at = max(int(times[statuses != Status.DONE, _ARRIVED].max()), asked)
        times[:, _RELEASED] = at
        waiting = statuses == Status.BARRIER  # at a barrier in two parts maybe since later than all have come
        times[waiting, _NOW] = np.maximum(times[waiting, _NOW], at)
        resident.segment, resident.before = at, busy

    def _ends_in(self, resident: _Resident) -> None:
        group, waves = int(resident.record[GROUP["index"] // 8]), len(resident.before)
        slot, unit = resident.place
        ends = resident.times[:waves, _NOW]
        busy = resident.times[:waves, _BUSY]
        asked = resident.segment + int(self._by_simd(resident, busy - resident.before).max())
        all_asked = self._by_simd(resident, busy)
        through = np.where(all_asked > 0, np.maximum(self._pipes[unit], resident.begin) + all_asked, self._pipes[unit])
        self._pipes[unit] = through
        end = max(int(ends.max()), asked, int(through[all_asked > 0].max(initial=0)))
        self._free[slot, unit] = self._ends[group] = end
        self._ran[group, :waves] = ends - resident.begin
        self._ended += 1
