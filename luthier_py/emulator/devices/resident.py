"""Kernels that somebody else has loaded, dispatched by packets.

In: device memory, and addresses of kernel dispatch packets. Out: their effects, and a profile of each. Source: HSA
Platform System Architecture Specification 1.2, 2.9; AMDGPUUsage, "Kernel Dispatch", "Kernel Descriptor". Invariant:
what is executed is what lies in memory when the dispatch begins; what was translated before is used again only if
every byte of it is still the same. Code that a kernel writes and then executes in the same dispatch is out of scope.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial

from luthier_py.base.errors import DeviceError, DeviceFault, FaultKind, Location, Malformed
from luthier_py.binary.loader import KernelDescriptor, KernelRecord
from luthier_py.binary.loader.descriptor import DESCRIPTOR_BYTES
from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.launches.dispatch import RunningLaunch
from luthier_py.emulator.launches.faults import illegal_instruction
from luthier_py.emulator.launches.ready import Begun, PacketLaunch, threads_for
from luthier_py.emulator.memory.device_memory import Allocation, Memory, read_bytes, write_bytes
from luthier_py.emulator.memory.pool import PagePool
from luthier_py.emulator.native.clocks import CycleClock, ExecutedInstructions
from luthier_py.emulator.options.launch_options import NO_OPTIONS, LaunchOptions
from luthier_py.emulator.options.limits import LaunchLimits
from luthier_py.emulator.options.schedule import RandomTurns
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.reading.text import ImageText, MemoryText
from luthier_py.emulator.records.layout import Outcome
from luthier_py.emulator.watching.findings import Reporter, no_report
from luthier_py.emulator.waves.cycle_account import CycleAccount
from luthier_py.emulator.waves.launch import PRIVATE_BASE, SHARED_BASE, LaunchMemory, compute_preloaded_range
from luthier_py.emulator.waves.packet import QUEUE_BYTES, DispatchPacket, dispatch_id, queue_record
from luthier_py.emulator.waves.profile import LaunchProfile
from luthier_py.emulator.waves.shape import Shape, shape_of_packet
from luthier_py.isa.model.target import Target

KEPT_SHAPES = 256
KEPT_LAUNCHES, KEPT_BYTES = 64, 1 << 28
_HALTED = "its queue was destroyed while it ran"


class ResidentCode:
    """Mutable: what was translated of one allocation. ``executed``: on its device."""

    def __init__(self, text: MemoryText, executed: ExecutedInstructions) -> None:
        self.text, self._executed = text, executed
        self._codes: dict[Settings, HostedCode] = {}

    def code(self, settings: Settings) -> HostedCode:
        """The allocation's code as host functions for ``settings``, one for each of them; nothing is translated yet."""
        if settings not in self._codes:
            self._codes[settings] = HostedCode(self.text, settings, self._executed)
        return self._codes[settings]


class PacketDevice:
    """Mutable: a GPU below somebody's queues; packets may be dispatched from several threads at once.

    ``name_of`` gives the name of the kernel whose descriptor is at an address, ``base_of`` where address 0 is of the
    code object that has code at an address (otherwise, the start of the allocation): errors and profiles speak of
    addresses from there on. ``text_at`` gives what the file says that was loaded at such a base. ``interrupt`` is
    called when a wave interrupts the host (s_sendmsg), which it does after it wrote an event's mailbox. ``report``
    gets what checks and the cycle model say of each.
    """

    def __init__(self, target: Target, memory: Memory, *, threads: int = 1, options: LaunchOptions = NO_OPTIONS,
                 name_of: Callable[[int], str | None] = lambda kernel_object: None,
                 base_of: Callable[[int], int | None] = lambda pc: None,
                 text_at: Callable[[int], ImageText | None] = lambda base: None,
                 interrupt: Callable[[], None] = lambda: None, counts: bool = True,
                 report: Reporter = no_report) -> None:
        self.options, self._report, self._launches = options, report, itertools.count(1)
        self.target = target
        self.memory = memory
        self.threads = max(threads, 1)
        self.limits = LaunchLimits(options.time_limit, options.instruction_limit, others_write=True)
        self._counts = counts
        self._name_of, self._base_of, self._text_at, self._interrupt = name_of, base_of, text_at, interrupt
        self._pool = PagePool()
        self._executed = ExecutedInstructions()
        self._cycles = CycleClock() if options.models_cycles else None
        self._alone = threading.Lock()  # launches of the cycle model come one after the other
        self._resident: dict[tuple[int, int, int], ResidentCode] = {}  # by start and size of the allocation, and base
        self._running: dict[RunningLaunch, int] = {}  # launches, with their queues
        self._ready: dict[tuple[HostedCode, Shape], list[PacketLaunch]] = {}  # that nobody runs
        self._begun: dict[PacketLaunch, int] = {}  # with their queues
        self._halted: dict[PacketLaunch, str] = {}  # and why
        self._shapes: dict[tuple[DispatchPacket, bytes, str, int], Shape] = {}
        self._lock = threading.Lock()
        self._no_queue = 0

    def dispatch(self, packet: int, queue: int) -> LaunchProfile | None:
        """Carry out the packet at address ``packet``; ``queue`` is the address of its amd_queue_t, or 0. The profile is
        None unless the device ``counts``.

        DeviceError, with a fault where a wave made one; Invalid for a packet that makes no sense; TimeLimit;
        Unsupported.
        """
        fields = DispatchPacket.read(packet)
        kernel_object = fields.kernel_object
        name = self._name_of(kernel_object) or f"kernel@0x{kernel_object:x}"
        descriptor = self._descriptor(kernel_object, name)
        entry = kernel_object + descriptor.kernel_code_entry_byte_offset
        settings = self.options.settings(
            Settings(descriptor.wave_size, descriptor.mode(self.target), self.target,
                     d16_clears=self.target.sramecc))  # which devices that have it have on
        code = self._code(entry, settings)
        if code is None:
            what = f"kernel entry 0x{entry:x}; {self.memory.nearest(entry)}"
            raise DeviceError(what, Location(name), DeviceFault(FaultKind.BAD_JUMP, entry))
        shape = self._shape(fields, descriptor, name, code.base)
        try:
            code.require(shape.start, name)
        except Malformed as error:
            raise illegal_instruction(error, entry, name) from error
        places = self._places(packet, queue, fields, descriptor, name)
        find = partial(self._code, settings=settings)
        if self._cycles is not None:
            with self._alone:
                return self._run_looked_at(code, shape, places, queue, find, CycleAccount(self._cycles, shape))
        if self.options.watched:
            return self._run_looked_at(code, shape, places, queue, find)
        ready = self._take(code, shape, places)
        try:
            return self._run(ready, places, queue, find)
        finally:
            self._give(ready)

    def _run_looked_at(self, code: HostedCode, shape: Shape, places: LaunchMemory, queue: int,
                       find: Callable[[int], HostedCode | None], cycles: CycleAccount | None = None
                       ) -> LaunchProfile | None:
        """By the cycle model, at random or under checks: all of it by dispatch."""
        schedule = self.options.schedule
        random_turns = None if schedule is None else RandomTurns(schedule, next(self._launches))
        with RunningLaunch(self.memory, self._pool, code, shape, places, 1, self.limits, self._interrupt, find,
                           cycles=cycles, random_turns=random_turns, checks=self.options.checks) as run:
            return self._execute(run, queue, time.perf_counter())

    def _run(self, ready: PacketLaunch, places: LaunchMemory, queue: int,
             find: Callable[[int], HostedCode | None]) -> LaunchProfile | None:
        started, groups = time.perf_counter(), ready.shape.groups
        with self.memory.publish_table():
            with self._lock:
                self._begun[ready] = queue
            outcome = ready.begin_at(places, self.limits.limited)
            if outcome is Outcome.FINISHED:
                if report := ready.report():
                    self._report(report)
                return ready.profile(time.perf_counter() - started)() if self._counts else None
            threads = threads_for(groups, self.threads)
            with RunningLaunch(self.memory, self._pool, ready.code, ready.shape, places, threads, self.limits,
                               self._interrupt, find, begun=Begun(ready, outcome)) as run:
                return self._execute(run, queue, started, ready)

    def _execute(self, run: RunningLaunch, queue: int, started: float, ready: PacketLaunch | None = None
                 ) -> LaunchProfile | None:
        self._running[run] = queue
        if ready in self._halted:
            run.cancel(self._halted[ready])
        try:
            run.execute()
        finally:
            del self._running[run]
            report = run.report(self.options.reported)
            if report.looked_at or report.notes:
                self._report(report)
        return run.profile(time.perf_counter() - started) if self._counts else None

    @property
    def runs(self) -> bool:
        """Whether any launch does."""
        return bool(self._begun or self._running)

    def halt(self, queue: int | None = None, why: str = _HALTED) -> None:
        """What runs from this queue now, or from any, ends with a DeviceError that says why. Returns at once."""
        with self._lock:
            for ready in [ready for ready, of in self._begun.items() if queue in (None, of)]:
                self._halted[ready] = why
                ready.stop()
        for run, of in list(self._running.items()):
            if queue in (None, of):
                run.cancel(why)

    def _take(self, code: HostedCode, shape: Shape, places: LaunchMemory) -> PacketLaunch:
        """One that nobody runs."""
        with self._lock:
            idle = self._ready.get((code, shape))
            if idle:
                return idle.pop()
        return PacketLaunch(self.memory, self._pool, code, shape, places)

    def _give(self, ready: PacketLaunch) -> None:
        """Keep it, unless many are kept."""
        ready.clear_counters()
        with self._lock:
            self._begun.pop(ready, None)
            self._halted.pop(ready, None)
            ready.renew()
            kept = [one for idle in self._ready.values() for one in idle]
            if len(kept) >= KEPT_LAUNCHES or sum(one.slot.block.size for one in kept) > KEPT_BYTES:
                self._ready.clear()
                for one in kept:
                    one.close()
            self._ready.setdefault((ready.code, ready.shape), []).append(ready)

    def _shape(self, fields: DispatchPacket, descriptor: KernelDescriptor, name: str, base: int) -> Shape:
        """Most dispatches are like one before."""
        key = replace(fields, kernarg=0), descriptor.raw, name, base
        with self._lock:
            shape = self._shapes.get(key)
        if shape is None:
            place = fields.kernel_object - base
            entry = place + descriptor.kernel_code_entry_byte_offset
            shape = shape_of_packet(KernelRecord(name, "", place, descriptor, entry, {}, ()), self.target, fields)
            with self._lock:
                if len(self._shapes) >= KEPT_SHAPES:
                    self._shapes.clear()
                self._shapes[key] = shape
        return shape

    def forget(self, start: int, size: int) -> None:
        """Memory was freed: nothing that was translated of it is used again."""
        with self._lock:
            for key in [key for key in self._resident if key[0] < start + size and start < key[0] + key[1]]:
                del self._resident[key]
            for code, shape in [key for key in self._ready if key[0].overlaps(start, size)]:
                for ready in self._ready.pop((code, shape)):
                    ready.close()

    def _descriptor(self, address: int, name: str) -> KernelDescriptor:
        self._need(address, DESCRIPTOR_BYTES, name, "kernel descriptor")
        return _read_descriptor(read_bytes(address, DESCRIPTOR_BYTES))

    def _code(self, entry: int, settings: Settings) -> HostedCode | None:
        """What is in memory now; None where nothing is allocated."""
        found = self.memory.find(entry)
        if found is None:
            return None
        base = self._base_of(entry)
        base = found.address if base is None else base
        key = found.address, found.size, base
        with self._lock:
            resident = self._resident.get(key)
            if resident is None or not resident.text.is_unchanged():
                text = MemoryText(self.target, base, found.address, found.size, self._text_at(base))
                resident = self._resident[key] = ResidentCode(text, self._executed)
            return resident.code(settings)

    def _places(self, packet: int, queue: int, fields: DispatchPacket, descriptor: KernelDescriptor,
                name: str) -> LaunchMemory:
        preloaded = compute_preloaded_range(descriptor)
        arguments = b""
        if preloaded:
            self._need(fields.kernarg + preloaded.start, len(preloaded), name, "preloaded kernel arguments")
            arguments = read_bytes(fields.kernarg + preloaded.start, len(preloaded))
        if queue:
            return LaunchMemory(fields.kernarg, packet, queue, dispatch_id(packet, queue), arguments)
        return LaunchMemory(fields.kernarg, packet, self._queue(), 0, arguments)

    def _queue(self) -> int:
        """An amd_queue_t for packets whose queue nobody knows."""
        with self._lock:
            if not self._no_queue:
                self._no_queue = self.memory.reserve(QUEUE_BYTES)
                self.memory.register(Allocation(self._no_queue, QUEUE_BYTES, "queue", writable=False))
                write_bytes(self._no_queue, queue_record(SHARED_BASE, PRIVATE_BASE))
        return self._no_queue

    def _need(self, address: int, size: int, name: str, what: str) -> None:
        found = self.memory.find(address)
        if found is None or address + size > found.end:
            where = f"bad address 0x{address:x} of the {what}; {self.memory.nearest(address)}"
            raise DeviceError(where, Location(name), DeviceFault(FaultKind.BAD_ADDRESS, 0, address))


@lru_cache(4096)
def _read_descriptor(data: bytes) -> KernelDescriptor:
    return KernelDescriptor(data)
