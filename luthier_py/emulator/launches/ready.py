"""A launch that is ready to begin, as often as requested, each time with other arguments.

In: a kernel in a shape. Out: records and memory for its first resident work-group, with which native code (beginning)
runs it. What that leaves unfinished continues in dispatch. Invariant: what a record names lives as long as the record.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from luthier_py.binary.loader.initial import user_sgpr_count
from luthier_py.emulator.code.code import HostedCode, Tally
from luthier_py.emulator.code.engine import begin_address, scheduler_address
from luthier_py.emulator.launches.outside_lds import outside_lds
from luthier_py.emulator.memory.device_memory import Memory, read_bytes, write_bytes
from luthier_py.emulator.memory.pool import PagePool
from luthier_py.emulator.records.budgets import SLICES, budget
from luthier_py.emulator.records.layout import EVERYTHING, LAUNCH, MEETINGS_BYTES, NAMED_SCALARS, READY, WORKER, Outcome
from luthier_py.emulator.records.words import Words, address_of, zero_words
from luthier_py.emulator.watching.findings import LaunchReport
from luthier_py.emulator.waves.launch import (
    SHARED_BASE,
    LaunchMemory,
    compute_preloaded_range,
    count_cleared_bytes,
    launch_record,
    preload_place,
    private_base,
    record,
    scalar_bytes,
    user_sgprs,
)
from luthier_py.emulator.waves.segments import LaunchSegments, apertures
from luthier_py.emulator.waves.shape import Shape
from luthier_py.emulator.waves.slot import ResidentGroup
from luthier_py.isa.model.target import Target

if TYPE_CHECKING:
    from luthier_py.emulator.waves.profile import LaunchProfile

ALONE_NANOSECONDS, EVER = 500_000, (1 << 64) - 1  # until threads pay
SHARED_ROUNDS = 16
SHARED_GROUPS = 16  # work-groups of a thread from which on threads pay
ROUNDS = 64  # turns of each wave before the caller checks how far the work-group got


def worker_record(memory: Memory, meetings: Words, target: Target, watch: int = 0) -> Words:
    """Of a worker that has entered no code yet. ``watch``: address of what watches the launch, or 0."""
    return record(WORKER, allocations=memory.table_cell, shared_base=SHARED_BASE, private_base=private_base(target),
                  meetings=address_of(meetings), watch=watch)


def enter_code(worker: Words, code: HostedCode, tally: Tally) -> None:
    """Waves run this code from now on."""
    values = {
        "counters": tally.places[0], "sites": tally.places[1], "code_base": code.base,
        "table": code.table_address, "table_entries": code.entries, "code_start": code.base + code.start,
        "clock": code.clock.address,
    }  # fmt: skip
    for name, value in values.items():
        worker[WORKER[name] // 8] = value


def threads_for(groups: int, threads: int) -> int:
    """How many of these share a launch."""
    return threads if groups >= SHARED_GROUPS * threads else 1


class ReadyLaunch:
    """Mutable: of one kernel in one shape; it runs once at a time. ``places``: of the first launch."""

    def __init__(self, memory: Memory, pool: PagePool, code: HostedCode, shape: Shape, places: LaunchMemory,
                 tally: Tally) -> None:
        self.memory, self.pool, self.shape, self.code, self.tally = memory, pool, shape, code, tally
        self.meetings = zero_words(MEETINGS_BYTES // 8)
        self.launch = launch_record(shape)[:]
        rows = code.rows_read_first.get(shape.start, EVERYTHING)
        for name, size in count_cleared_bytes(shape, rows).items():
            self.launch[LAUNCH[name] // 8] = size
        named = code.scalars_named.get(shape.start, NAMED_SCALARS)
        self.launch[LAUNCH["scalar_bytes"] // 8] = scalar_bytes(named)
        self.worker = worker_record(memory, self.meetings, shape.target)
        enter_code(self.worker, code, tally)
        entry = code.base + shape.start
        self.slot = ResidentGroup(pool, shape, places, entry, address_of(self.worker))
        self.record = record(
            READY, valid=1, run=scheduler_address(shape.wave_size), worker=address_of(self.worker),
            launch=address_of(self.launch), group=self.slot.address, meetings=address_of(self.meetings), rounds=ROUNDS,
            slice=budget(SLICES[0]), images=shape.waves * (shape.edges + 1), sites=tally.places[1],
            site_bytes=address_of(code.site_bytes))

    def _set(self, **values: int) -> None:
        for name, value in values.items():
            self.record[READY[name] // 8] = value

    def _give_registers(self, sgpr: int, source: int, size: int) -> None:
        """Each launch finds ``size`` bytes from ``source`` in the SGPRs from this one on."""
        self._set(preload=source, preload_bytes=size, preload_to=self.slot.images + 4 * sgpr)

    @property
    def address(self) -> int:
        """Host address of the launch's record (layout's READY), by which native code begins it."""
        return address_of(self.record)

    @property
    def places(self) -> LaunchMemory:
        """Of the launch that has begun."""
        raise NotImplementedError

    @property
    def alive(self) -> bool:
        """Whether it was not closed."""
        return bool(self.record[READY["valid"] // 8])

    def begin(self, arguments: bytes, limited: bool, shared: bool) -> Outcome:
        """``limited``: return after the first rounds; ``shared``: return after a while, so that threads can share the
        work. Launches that native code begins by ``address`` follow the same fields."""
        self._set(again=0 if limited else ALONE_NANOSECONDS if shared else EVER,
                  rounds=SHARED_ROUNDS if shared else ROUNDS)
        return Outcome(_begin()(self.address, arguments, len(arguments)))

    def set_alone(self, alone: bool) -> None:
        """Set for the next launches whether only they write memory while they run."""
        self.worker[WORKER["alone"] // 8] = alone

    def write(self, arguments: bytes) -> None:
        """What ``begin`` does with the arguments, for a launch that native code does not begin."""

    def stop(self) -> None:
        """From another thread: end it early; ``begin`` returns. Of use until :meth:`renew`."""
        self.launch[LAUNCH["stop"] // 8] = 1

    def report(self) -> LaunchReport | None:
        """Of a launch that has ended natively, if there is anything to say of it."""
        notes = outside_lds(self.worker, {self.code: self.tally}, self.shape)
        return LaunchReport(self.shape.kernel, [], notes=notes, looked_at=False) if notes else None

    def renew(self) -> None:
        """The next one begins in the kernel's code and is not stopped, wherever this one went."""
        enter_code(self.worker, self.code, self.tally)
        self.worker[WORKER["outside_lds"] // 8] = 0
        self.launch[LAUNCH["stop"] // 8] = 0

    def profile(self, seconds: float) -> Callable[[], LaunchProfile]:
        """Of a launch that has ended natively: counters are read now, and added up for who asks."""
        counted = self.tally.snapshot_counters(self.code.numbers)

        def profile() -> LaunchProfile:
            from luthier_py.emulator.launches.counted import launch_profile  # a program's start is not to wait for it

            return launch_profile(self.shape, [self.code], [{self.code: counted}], seconds)

        return profile

    def clear_counters(self) -> None:
        """Zero the counters of the launch that has ended; its profile is made before."""
        self.code.clear(self.tally)

    def close(self) -> None:
        """Give back what it holds; it begins no more."""
        if self.alive:
            self._set(valid=0)
            self.pool.give(self.slot.block)


class LoadedLaunch(ReadyLaunch):
    """Mutable: of a kernel that the emulator has loaded, with segments of its own. ``kernarg_bytes``: of the arguments
    that are given each time; ``fixed``: bytes of them that are always the same, by their offsets. Launches of a code
    run one at a time."""

    def __init__(self, memory: Memory, pool: PagePool, code: HostedCode, shape: Shape, kernel_object: int,
                 kernarg_bytes: int, fixed: Mapping[int, bytes]) -> None:
        self._segments = LaunchSegments(memory, shape, kernel_object, kernarg_bytes)
        super().__init__(memory, pool, code, shape, self._segments.places, code.first_tally)
        self._given, self._fixed = _overlay(kernarg_bytes, {**apertures(shape, kernarg_bytes), **fixed})
        self._preloaded = _inside(compute_preloaded_range(shape.record.descriptor), self._segments.kernarg_bytes)
        kernarg = self._segments.places.kernarg
        self._set(kernarg=kernarg, kernarg_words=len(self._given), given=address_of(self._given),
                  fixed=address_of(self._fixed))
        self._give_registers(preload_place(shape), kernarg + self._preloaded.start, len(self._preloaded))

    @property
    def places(self) -> LaunchMemory:
        places = self._segments.places
        preloaded = read_bytes(places.kernarg + self._preloaded.start, len(self._preloaded))
        return LaunchMemory(places.kernarg, places.packet, places.queue, preloaded=preloaded)

    @property
    def arguments(self) -> bytes:
        """The kernarg segment of the launch that was begun last, as far as it holds anything."""
        return read_bytes(self._segments.places.kernarg, 8 * len(self._given))

    def write(self, arguments: bytes) -> None:
        given, mask, fixed = (int.from_bytes(part, "little") for part in (arguments, self._given, self._fixed))
        content = (given & mask | fixed).to_bytes(8 * len(self._given), "little")
        write_bytes(self._segments.places.kernarg, content)

    def close(self) -> None:
        if self.alive:
            self._segments.give_back()
        super().close()


class PacketLaunch(ReadyLaunch):
    """Mutable: of packets of another runtime's queues, which have all that differs in user SGPRs."""

    def __init__(self, memory: Memory, pool: PagePool, code: HostedCode, shape: Shape, places: LaunchMemory) -> None:
        super().__init__(memory, pool, code, shape, places, code.take_tally())
        self._places = places
        self._registers = array("I", bytes(4 * user_sgpr_count(shape.target, shape.record.descriptor)))
        self._give_registers(0, address_of(self._registers), 4 * len(self._registers))

    @property
    def places(self) -> LaunchMemory:
        return self._places

    def move_to(self, places: LaunchMemory) -> None:
        """The next launch is the one of the packet there."""
        self._places = places

    def begin(self, arguments: bytes, limited: bool, shared: bool) -> Outcome:
        self._registers[:] = array("I", user_sgprs(self.shape, self._places, self.slot.scratch))
        return super().begin(arguments, limited, shared)

    def close(self) -> None:
        if self.alive:
            self.code.give_tally(self.tally)
        super().close()


def _overlay(given_bytes: int, fixed: Mapping[int, bytes]) -> tuple[Words, Words]:
    """For each word of the segment, as far as it holds anything: its bits that are given, and the others."""
    used = -(-max([given_bytes, *(offset + len(data) for offset, data in fixed.items())]) // 8) * 8
    given = bytearray(b"\xff" * given_bytes).ljust(used, b"\0")
    always = bytearray(used)
    for offset, data in fixed.items():
        given[offset : offset + len(data)] = bytes(len(data))
        always[offset : offset + len(data)] = data
    return array("Q", bytes(given)), array("Q", bytes(always))


def _inside(wanted: range, size: int) -> range:
    return range(min(wanted.start, size), min(wanted.stop, size))


@cache
def _begin() -> Any:
    kinds = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *kinds)(begin_address())
