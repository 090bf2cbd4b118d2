"""Work-groups that take turns at random.

In: a worker of a launch, and the numbers that turns are drawn from. Out: work-groups run to their end, and those that
get no further so. Invariant: what is drawn depends on what waves do, and on nothing else.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from threading import Event
from typing import Protocol

from luthier_py.emulator.code.engine import scheduler_address
from luthier_py.emulator.options.schedule import RandomTurns
from luthier_py.emulator.records.layout import GROUP, Outcome
from luthier_py.emulator.waves.cycle_account import CycleAccount
from luthier_py.emulator.waves.shape import Shape
from luthier_py.emulator.waves.slot import ResidentGroup

INTERLEAVED = 16  # work-groups that take turns
STUCK = 4096  # times that some work-group had turns, and nothing changed

Scheduler = Callable[[int, int, int, int], int]


def scheduler_call(wave_size: int, watched: bool = False, at_random: bool = False) -> Scheduler:
    """Addresses of a worker, a launch and a group, and a number of rounds: an Outcome."""
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 4)(scheduler_address(wave_size, watched, at_random))


class RandomLaunch(Protocol):
    """What a schedule needs of a launch."""

    @property
    def shape(self) -> Shape:
        """The launch's grid, work-groups and waves."""

    @property
    def cycles(self) -> CycleAccount | None: ...

    @property
    def progress(self) -> tuple[int, int]: ...

    @property
    def stop(self) -> Event: ...

    def take_place(self) -> bool: ...


class RandomWorker(Protocol):
    """And of its worker."""

    @property
    def run(self) -> RandomLaunch: ...

    def new_slot(self) -> ResidentGroup:
        """Memory for one more resident work-group, which the native scheduler fills with the next one that is to
        start."""

    def turn(self, native: Scheduler, slot: ResidentGroup) -> Outcome: ...


def work_at_random(worker: RandomWorker, random_turns: RandomTurns) -> deque[ResidentGroup]:
    """Turns of work-groups, drawn; gives those that get nowhere so, for whom it may take all in their order."""
    run, slots = worker.run, [worker.new_slot()]
    while len(slots) < INTERLEAVED and run.take_place():
        slots.append(worker.new_slot())
    for slot in slots:
        slot.record[GROUP["random"] // 8] = random_turns.state()
    native = scheduler_call(run.shape.wave_size, run.cycles is not None, at_random=True)
    moved, seen = 0, run.progress
    while slots and not run.stop.is_set() and moved < STUCK:
        slot = slots[random_turns.one_of(len(slots))]
        slot.record[GROUP["turns"] // 8] = random_turns.strip()
        while (outcome := worker.turn(native, slot)) not in (Outcome.FINISHED, Outcome.TIRED):
            if run.stop.is_set():
                break
        if outcome is Outcome.FINISHED:
            slot.over = True
            slots.remove(slot)
        moved, seen = (moved + 1, seen) if run.progress == seen else (0, run.progress)
    return deque(slots)
