"""A launch that is ready to begin, as often as it is asked for, each time with other arguments.

In: a kernel in a shape. Out: records and memory for its first resident work-group, with which native code (beginning)
runs it. What that leaves unfinished goes on in dispatch. Invariant: what a record names lives as long as the record.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from luthier_py.emulator.code import HostedCode, Tally
from luthier_py.emulator.counted import launch_profile
from luthier_py.emulator.engine import begin_address, scheduler_address
from luthier_py.emulator.launch import (
    SHARED_BASE,
    LaunchMemory,
    Words,
    launch_record,
    preload_place,
    preloaded_range,
    private_base,
    record,
)
from luthier_py.emulator.layout import MEETINGS, READY, WORKER, Outcome
from luthier_py.emulator.memory import Memory, read_bytes, write_bytes
from luthier_py.emulator.pool import PagePool
from luthier_py.emulator.profile import LaunchProfile
from luthier_py.emulator.segments import LaunchSegments, apertures
from luthier_py.emulator.shape import Shape
from luthier_py.emulator.slot import SLICES, ResidentGroup
from luthier_py.isa.target import Target

ALONE_NANOSECONDS, EVER = 500_000, (1 << 64) - 1  # until threads pay
SHARED_ROUNDS = 16
ROUNDS = 64  # turns of each wave before somebody looks how far the work-group got


def worker_record(memory: Memory, meetings: Words, target: Target) -> Words:
    """Of a worker that has entered no code yet."""
    return record(WORKER, allocations=memory.table_cell, shared_base=SHARED_BASE, private_base=private_base(target),
                  meetings=meetings.ctypes.data)


def enter_code(worker: Words, code: HostedCode, tally: Tally) -> None:
    """Waves run this code from now on."""
    values = {
        "counters": tally.counters.ctypes.data, "sites": tally.sites.ctypes.data, "code_base": code.base,
        "table": code.table.ctypes.data, "table_entries": len(code.table), "code_start": code.base + code.start,
    }  # fmt: skip
    for name, value in values.items():
        worker[WORKER[name] // 8] = value


class ReadyLaunch:
    """Mutable. ``kernarg_bytes``: of the arguments that are given each time; ``fixed``: bytes of them that are always
    the same, by their offsets. One launch of a code runs at a time."""

    def __init__(self, memory: Memory, pool: PagePool, code: HostedCode, shape: Shape, kernel_object: int,
                 kernarg_bytes: int, fixed: Mapping[int, bytes]) -> None:
        self.shape, self.code, self._pool = shape, code, pool
        self._segments = LaunchSegments(memory, shape, kernel_object, kernarg_bytes)
        self.meetings: Words = np.zeros(MEETINGS, dtype=np.uint64)
        self.launch = launch_record(shape).copy()
        self.worker = worker_record(memory, self.meetings, shape.target)
        self.tally = code.first_tally
        enter_code(self.worker, code, self.tally)
        entry = code.base + shape.record.entry
        self.slot = ResidentGroup(pool, shape, self._segments.places, entry, self.worker.ctypes.data)
        self._given, self._fixed = _overlay(self._segments.kernarg_bytes, kernarg_bytes,
                                            {**apertures(shape, kernarg_bytes), **fixed})
        self._preloaded = _inside(preloaded_range(shape.record.descriptor), self._segments.kernarg_bytes)
        self.record = self._record()

    def _record(self) -> Words:
        kernarg = self._segments.places.kernarg
        return record(
            READY, valid=1, run=scheduler_address(self.shape.wave_size), worker=self.worker.ctypes.data,
            launch=self.launch.ctypes.data, group=self.slot.address, meetings=self.meetings.ctypes.data, rounds=ROUNDS,
            slice=SLICES[0], kernarg=kernarg, kernarg_words=len(self._given), given=self._given.ctypes.data,
            fixed=self._fixed.ctypes.data, preload=kernarg + self._preloaded.start, preload_bytes=len(self._preloaded),
            preload_to=self.slot.images + 4 * preload_place(self.shape),
            images=self.shape.waves * (self.shape.edges + 1),
            sites=self.tally.sites.ctypes.data, site_bytes=self.code.site_bytes.ctypes.data)

    @property
    def address(self) -> int:
        return self.record.ctypes.data

    @property
    def places(self) -> LaunchMemory:
        """With the arguments of the launch that has begun."""
        places = self._segments.places
        preloaded = read_bytes(places.kernarg + self._preloaded.start, len(self._preloaded))
        return LaunchMemory(places.kernarg, places.packet, places.queue, preloaded=preloaded)

    @property
    def alive(self) -> bool:
        """Whether it was not closed."""
        return bool(self.record[READY["valid"] // 8])

    def begin(self, arguments: bytes, limited: bool, shared: bool) -> Outcome:
        """``limited``: somebody looks at the time, and ``shared``: threads share the work, when it was run for a while;
        this is the same for launches that others begin by ``address``."""
        self.record[READY["again"] // 8] = 0 if limited else ALONE_NANOSECONDS if shared else EVER
        self.record[READY["rounds"] // 8] = SHARED_ROUNDS if shared else ROUNDS
        return Outcome(_begin()(self.address, arguments, len(arguments)))

    def write(self, arguments: bytes) -> None:
        """The kernarg segment alone, for a launch that somebody else begins."""
        given = np.frombuffer(arguments.ljust(self._given.nbytes, b"\0"), np.uint64)
        write_bytes(self._segments.places.kernarg, (given & self._given | self._fixed).tobytes())

    def profile(self, seconds: float) -> LaunchProfile:
        """Of a launch that has ended natively."""
        return launch_profile(self.shape, [self.code], [{self.code: self.tally}], seconds)

    def clear_counters(self) -> None:
        self.tally.clear(self.code.numbers)

    def close(self) -> None:
        """Give back what it holds; it begins no more."""
        if self.alive:
            self.record[READY["valid"] // 8] = 0
            self._segments.give_back()
            self._pool.give(self.slot.block)


def _overlay(segment_bytes: int, given_bytes: int, fixed: Mapping[int, bytes]) -> tuple[Words, Words]:
    """For each word of the segment: its bits that are given, and the others."""
    given = bytearray(b"\xff" * given_bytes).ljust(segment_bytes, b"\0")
    always = bytearray(segment_bytes)
    for offset, data in fixed.items():
        given[offset : offset + len(data)] = bytes(len(data))
        always[offset : offset + len(data)] = data
    return np.frombuffer(given, np.uint64), np.frombuffer(always, np.uint64)


def _inside(wanted: range, size: int) -> range:
    return range(min(wanted.start, size), min(wanted.stop, size))


@cache
def _begin() -> Any:
    kinds = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *kinds)(begin_address())
