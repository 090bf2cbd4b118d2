"""One launch: memory for its waves, workers that run them, counters, faults.

In: a checked launch. Out: the kernel's effects on memory; counts. Work-groups start in order; one
that has used up its turns is put aside for others, so that work-groups may wait for each other.
Invariant: everything a launch takes is given back when it ends, however it ends.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from luthier_py.emulator.engine import scheduler_address
from luthier_py.emulator.launch import (
    PACKET_BYTES,
    PRIVATE_BASE,
    SHARED_BASE,
    Places,
    Residence,
    Shape,
    dispatch_packet,
    group_id_places,
    image_stride,
    wave_images,
    work_item_rows,
)
from luthier_py.emulator.layout import (
    AGPR_ROW,
    GROUP,
    LAUNCH,
    MEETINGS,
    WAVE,
    WAVE_HEADER_BYTES,
    WORKER,
    Fault,
    Outcome,
    wave_stride,
)
from luthier_py.emulator.memory import Allocation, Memory, write_bytes
from luthier_py.emulator.module import Code, EmulatorModule
from luthier_py.emulator.pool import Pool
from luthier_py.emulator.profile import LaunchProfile
from luthier_py.emulator.translate import Counted
from luthier_py.errors import DeviceError, Location

SLICE = 2000        # backward branches of a wave before the next one gets its turn
ROUNDS = 200        # rounds of a work-group before another work-group gets its turn
MAX_RESIDENT = 1024  # work-groups of one worker that may wait at a time
QUEUE_BYTES = 256
_LINE = 64

Words = NDArray[np.uint64]


class Slot:
    """Mutable: memory for one resident work-group."""

    def __init__(self, run: Run, worker: Worker) -> None:
        shape = run.shape
        waves = wave_stride(shape.wave_size) * shape.waves
        images = image_stride(shape) * shape.waves
        lds = -(-max(shape.lds_bytes, 1) // _LINE) * _LINE
        scratch = shape.scratch_bytes * shape.wave_size
        self.block = run.pool.take(waves + images + lds + scratch * shape.waves + _LINE)
        self.waves = self.block.address
        home = Residence(worker.address, self.waves + waves + images, self.waves + waves + images + lds, scratch)
        entry = run.module.base + shape.record.entry
        initial = wave_images(shape, run.places, run.kernarg, entry, home)
        write_bytes(self.waves + waves, initial.tobytes())
        self.record = _record(GROUP, waves=self.waves, images=self.waves + waves, lds=home.lds)

    @property
    def address(self) -> int:
        return self.record.ctypes.data


class Worker:
    """Mutable: one thread's share of a launch."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tally = run.code.take_tally()
        code = run.code
        self.record = _record(
            WORKER, counters=self.tally.counters.ctypes.data, sites=self.tally.sites.ctypes.data,
            allocations=run.allocations.ctypes.data, allocation_count=len(run.allocations),
            code_base=run.module.base, table=code.table.ctypes.data, table_entries=len(code.table),
            code_start=run.module.base + code.start, shared_base=SHARED_BASE, private_base=PRIVATE_BASE,
            meetings=run.meetings.ctypes.data)
        self.slots: list[Slot] = []

    @property
    def address(self) -> int:
        return self.record.ctypes.data

    def work(self) -> None:
        """Run work-groups until none is left; whatever goes wrong stops the other workers too."""
        ended = False
        try:
            self._work()
            ended = True
        finally:
            if not ended:
                self.run.stop.set()

    def _work(self) -> None:
        run = self.run
        waiting: deque[Slot] = deque()
        slot = self._new_slot()
        starting = True
        while not run.stop.is_set():
            outcome = Outcome(run.native(self.address, run.record.ctypes.data, slot.address, ROUNDS))
            if outcome is Outcome.FINISHED:
                starting = False
                if not waiting:
                    return
                slot = waiting.popleft()
            elif outcome is Outcome.NEEDS_CODE:
                pc = int(run.field(slot, "pc")) - run.module.base
                run.code.require(pc, run.shape.record.name)
            elif outcome is Outcome.FAULT:
                raise run.fault(slot)
            else:
                run.check_time()
                waiting.append(slot)
                slot = self._new_slot() if starting and len(waiting) < MAX_RESIDENT else waiting.popleft()

    def _new_slot(self) -> Slot:
        self.slots.append(Slot(self.run, self))
        return self.slots[-1]

    def leave(self) -> None:
        """Give back what was taken."""
        for slot in self.slots:
            self.run.pool.give(slot.block)
        self.run.code.give_tally(self.tally)


class Run:
    """Mutable: a launch in progress."""

    def __init__(self, memory: Memory, pool: Pool, module: EmulatorModule, code: Code, shape: Shape, kernarg: bytes,
                 threads: int, time_limit: float | None) -> None:
        self.memory, self.pool, self.module, self.code = memory, pool, module, code
        self.shape, self.kernarg = shape, kernarg
        self.stop = threading.Event()
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._taken: list[int] = []
        self.places = self._place_arguments()
        descriptor = shape.record.descriptor
        x, y, z, _ = group_id_places(descriptor)
        row_bytes = 4 * shape.wave_size
        total = descriptor.vgpr_count(shape.target)
        vgprs = min(descriptor.accum_offset, total) if shape.target.unified_agprs else total
        agprs = total - vgprs if shape.target.unified_agprs else AGPR_ROW
        image_rows = work_item_rows(shape).shape[1]
        self.record = _record(
            LAUNCH, total=shape.groups, count_x=shape.grid[0], count_y=shape.grid[1], sgpr_x=x, sgpr_y=y, sgpr_z=z,
            waves=shape.waves, image_stride=image_stride(shape),
            image_bytes=WAVE_HEADER_BYTES + image_rows * row_bytes,
            vector_bytes=max(vgprs - image_rows, 0) * row_bytes,
            agpr_bytes=agprs * row_bytes, lds_bytes=shape.lds_bytes, slice=SLICE)
        self.allocations = memory.table()
        self.meetings: Words = np.zeros(MEETINGS, dtype=np.uint64)
        self.native = ctypes.CFUNCTYPE(ctypes.c_uint64, *[ctypes.c_uint64] * 4)(scheduler_address(shape.wave_size))
        self.workers = [Worker(self) for _ in range(min(threads, shape.groups))]

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        for worker in self.workers:
            worker.leave()
        for address in self._taken:
            self.memory.free(address)

    def _place_arguments(self) -> Places:
        """Kernarg segment, dispatch packet and queue in device memory, which kernels may only read.

        Compilers join loads of arguments to wider ones that end behind the last argument, inside its cache line.
        """
        size = max(len(self.kernarg), self.shape.record.descriptor.kernarg_size, 1)
        size = -(-size // _LINE) * _LINE
        kernarg = self._read_only(size, self.kernarg, "kernel arguments")
        kernel_object = self.module.base + self.shape.record.descriptor_address
        packet = self._read_only(PACKET_BYTES, dispatch_packet(self.shape, kernel_object, kernarg), "dispatch packet")
        queue = bytearray(QUEUE_BYTES)
        queue[0x40:0x48] = (SHARED_BASE >> 32).to_bytes(4, "little") + (PRIVATE_BASE >> 32).to_bytes(4, "little")
        return Places(kernarg, packet, self._read_only(QUEUE_BYTES, bytes(queue), "queue"))

    def _read_only(self, size: int, data: bytes, name: str) -> int:
        address = self.memory.reserve(size)
        self.memory.register(Allocation(address, size, name, writable=False))
        self._taken.append(address)
        write_bytes(address, data)
        return address

    def execute(self) -> None:
        """Run all work-groups; raises what the first worker that failed raised."""
        if len(self.workers) == 1:
            self.workers[0].work()
            return
        with ThreadPoolExecutor(len(self.workers)) as pool:
            for future in [pool.submit(worker.work) for worker in self.workers]:
                future.result()

    def check_time(self) -> None:
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise DeviceError("no end within the time limit: the kernel may loop for ever",
                              Location(self.shape.record.name))

    def field(self, slot: Slot, name: str) -> int:
        """A field of the wave that needs attention."""
        wave = int(slot.record[GROUP["wave"] // 8])
        address = slot.waves + wave * wave_stride(self.shape.wave_size) + WAVE[name]
        return int(ctypes.c_uint64.from_address(address).value)

    def fault(self, slot: Slot) -> DeviceError:
        kind, kernel = Fault(self.field(slot, "fault_kind")), self.shape.record.name
        if kind is Fault.JUMP:
            pc = self.field(slot, "pc") - self.module.base
            return DeviceError(f"jump to 0x{pc & (1 << 64) - 1:x}, which is not code", Location(kernel))
        if kind is Fault.MODE:
            pc = self.field(slot, "pc") - self.module.base
            what = (f"MODE is 0x{self.field(slot, 'fault_address'):x} here, from a register: it may become what it was "
                    "before in the function, and must be at calls and returns what it is at the start")
            return DeviceError(what, Location(kernel, pc, self.code.text(pc)))
        pc = self.code.numbers.sites[self.field(slot, "fault_site")]
        lane, address = self.field(slot, "fault_lane"), self.field(slot, "fault_address")
        wave, group = (int(slot.record[GROUP[name] // 8]) for name in ("wave", "index"))
        what = f"lane {lane} of wave {wave} of work-group {group}: {self._what(kind, address)}"
        return DeviceError(what, Location(kernel, pc, self.code.text(pc)))

    def _what(self, kind: Fault, address: int) -> str:
        if kind is Fault.LDS:
            return f"LDS address 0x{address & 0xFFFFFFFF:x} is outside the work-group's {self.shape.lds_bytes} bytes"
        if kind is Fault.SCRATCH:
            return f"scratch address 0x{address & 0xFFFFFFFF:x} is outside the lane's {self.shape.scratch_bytes} bytes"
        if kind is Fault.TRAP:
            return "s_trap"
        reason = {Fault.MISALIGNED: "misaligned address", Fault.READ_ONLY: "write to read-only memory at"}
        return f"{reason.get(kind, 'bad address')} 0x{address:x}; {self.memory.nearest(address)}"

    def profile(self, seconds: float) -> LaunchProfile:
        numbers = self.code.numbers.counters
        tallies = [worker.tally.counters[: len(numbers)] for worker in self.workers]
        totals = sum(tallies, np.zeros(len(numbers), np.uint64))
        found: dict[Counted, dict[int, int]] = {what: {} for what in Counted}
        for (what, pcs), total in zip(numbers, totals.tolist(), strict=True):
            for pc in pcs if total else ():
                found[what][pc] = found[what].get(pc, 0) + total
        shape = self.shape
        waves = shape.groups * shape.waves
        return LaunchProfile(shape.record.name, shape.groups, waves, found[Counted.WAVES], found[Counted.LANES],
                             found[Counted.ACTIVE_WAVES], seconds, self.code.insts)


def _record(fields: dict[str, int], **values: int) -> Words:
    record: Words = np.zeros(len(fields), dtype=np.uint64)
    for name, value in values.items():
        record[fields[name] // 8] = value
    return record
