"""How a device carries out a launch; and kernels that another runtime has loaded, dispatched by packets.

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
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from luthier_py.base.errors import DeviceError, DeviceFault, FaultKind, Location, Malformed
from luthier_py.base.records import dataclass, replace
from luthier_py.binary.loader import KernelDescriptor, KernelRecord
from luthier_py.binary.loader.descriptor import DESCRIPTOR_BYTES
from luthier_py.emulator.code.code import HostedCode, TextCode
from luthier_py.emulator.launches.ready import PacketLaunch, ReadyLaunch, threads_for
from luthier_py.emulator.memory.device_memory import Memory, read_bytes
from luthier_py.emulator.memory.pool import PagePool
from luthier_py.emulator.memory.touched import TouchedMemory
from luthier_py.emulator.native.clocks import CycleClock, ExecutedInstructions
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import NO_OPTIONS, LaunchOptions
from luthier_py.emulator.options.limits import ExternalWriter, LaunchLimits
from luthier_py.emulator.options.schedule import RandomTurns
from luthier_py.emulator.options.settings import Settings
from luthier_py.emulator.reading.text import ImageText, MemoryText
from luthier_py.emulator.records.layout import LAUNCH, Outcome
from luthier_py.emulator.watching.findings import Finding, Reporter, no_report
from luthier_py.emulator.waves.launch import LaunchMemory, compute_preloaded_range
from luthier_py.emulator.waves.packet import DispatchPacket, dispatch_id
from luthier_py.emulator.waves.shape import Shape, shape_of_packet
from luthier_py.isa.model.target import Target

if TYPE_CHECKING:
    from luthier_py.emulator.launches.dispatch import RunningLaunch
    from luthier_py.emulator.waves.profile import LaunchProfile

KEPT_SHAPES = 256
KEPT_LAUNCHES, KEPT_BYTES = 64, 1 << 28


class DeviceLaunch:
    """Mutable: one launch of a device, from its begin on; ``queue``: address of the amd_queue_t that it comes from."""

    __slots__ = "cancelled", "counted", "findings", "queue", "run", "touched"

    def __init__(self, queue: int = 0) -> None:
        self.queue = queue
        self.run: RunningLaunch | None = None
        """What continues it where native code alone cannot."""
        self.cancelled = ""  # why
        self.findings: list[Finding] = []
        self.touched: TouchedMemory | None = None
        """Of a launch that was readied so."""
        self.counted: LaunchProfile | Callable[[], LaunchProfile] | None = None
        """Its profile once it has ended, on a device that counts; or what adds that up."""

    @property
    def profile(self) -> LaunchProfile | None:
        """None as long as it has not ended, and unless its device counts."""
        if callable(self.counted):
            self.counted = self.counted()
        return self.counted


@dataclass(frozen=True, slots=True)
class CodeNames:
    """What errors and profiles call code in memory. ``name_of`` gives the name of the kernel whose descriptor is at an
    address, ``base_of`` where address 0 is of the code object that has code at an address (None: the start of the
    allocation), ``text_at`` what the file says that was loaded at such a base."""

    name_of: Callable[[int], str | None] = lambda kernel_object: None
    base_of: Callable[[int], int | None] = lambda pc: None
    text_at: Callable[[int], ImageText | None] = lambda base: None


NO_NAMES = CodeNames()


class PacketDevice:
    """Mutable: a GPU that executes packets of a foreign runtime, from several threads at once.

    ``names``: by which errors and profiles speak of kernels and places. ``interrupt`` is called when a wave interrupts
    the host (s_sendmsg), which it does after it wrote an event's mailbox. ``report`` gets what checks and the cycle
    model say of each launch.
    """

    def __init__(self, target: Target, memory: Memory, *, threads: int = 1, options: LaunchOptions = NO_OPTIONS,
                 names: CodeNames = NO_NAMES, interrupt: Callable[[], None] = lambda: None, counts: bool = True,
                 report: Reporter = no_report) -> None:
        self.options, self._report, self._launches = options, report, itertools.count(1)
        self.target, self.memory, self.threads = target, memory, max(threads, 1)
        self.limits = LaunchLimits(options.time_limit, options.instruction_limit, others_write=True)
        self.natively = not options.watched
        """Whether native code begins launches; if not, all of them are dispatch's from their start."""
        self.external_writers: list[ExternalWriter] = []
        """What else writes memory while kernels run."""
        self._counts = counts
        self._names, self._interrupt = names, interrupt
        self._pool = PagePool()
        self._executed = ExecutedInstructions()
        self._cycles = CycleClock() if options.models_cycles else None
        self._alone = threading.Lock()  # of launches beside which none runs, as those of the cycle model
        self._running: dict[ReadyLaunch, DeviceLaunch] = {}
        self._resident: dict[tuple[int, int, int], tuple[MemoryText, TextCode]] = {}
        """By start and size of the allocation, and base."""
        self._ready: dict[tuple[HostedCode, Shape], list[PacketLaunch]] = {}  # idle ones
        self._shapes: dict[tuple[DispatchPacket, bytes, str, int], Shape] = {}
        self._lock = threading.Lock()

    def dispatch(self, packet: int, queue: int) -> LaunchProfile | None:
        """Carry out the packet at address ``packet``; ``queue`` is the address of its amd_queue_t. The profile is None
        unless the device ``counts``.

        DeviceError, with a fault where a wave made one; Invalid for a packet that makes no sense; TimeLimit;
        Unsupported.
        """
        fields = DispatchPacket.read(packet)
        kernel_object = fields.kernel_object
        name = self._names.name_of(kernel_object) or f"kernel@0x{kernel_object:x}"
        descriptor = self._descriptor(kernel_object, name)
        entry = kernel_object + descriptor.kernel_code_entry_byte_offset
        settings = self.options.settings(
            Settings(descriptor.wave_size, descriptor.mode(self.target), self.target,
                     d16_clears=self.target.sramecc))  # which devices that have it have on
        code = self._code_at(entry, settings)
        if code is None:
            what = f"kernel entry 0x{entry:x}; {self.memory.nearest(entry)}"
            raise DeviceError(what, Location(name), DeviceFault(FaultKind.BAD_JUMP, entry))
        shape = self._shape(fields, descriptor, name, code.base)
        try:
            code.require(shape.start, name)
        except Malformed as error:
            from luthier_py.emulator.launches.faults import illegal_instruction  # as for _go_on

            raise illegal_instruction(error, entry, name) from error
        ready = self._take(code, shape, self._places(packet, queue, fields, descriptor, name))
        launch = DeviceLaunch(queue)
        try:
            with nullcontext() if self._cycles is None else self._alone:
                self._carry_out(launch, ready, threads_for(shape.groups, self.threads))
        finally:
            self._give(ready)
        return launch.profile

    def _carry_out(self, launch: DeviceLaunch, ready: ReadyLaunch, threads: int, arguments: bytes = b"",
                   begun: Outcome | None = None) -> None:
        """Run a ready launch to its end; ``begun``: the outcome that native code returned, if it has begun the launch
        already. Raises what :meth:`dispatch` does."""
        started = time.perf_counter()
        with self._lock:
            self._running[ready] = launch
        try:
            with self.memory.publish_table():
                outcome = self._begin(ready, threads, arguments) if begun is None else begun
                if outcome is not Outcome.FINISHED:
                    self._go_on(launch, ready, threads, outcome, started)
                    return
                if report := ready.report():
                    self._report(report)
                if self._counts:
                    launch.counted = ready.profile(time.perf_counter() - started)
        finally:
            with self._lock:
                del self._running[ready]
                launch.run = None
                ready.renew()
            if self._counts:
                ready.clear_counters()

    def _begin(self, ready: ReadyLaunch, threads: int, arguments: bytes) -> Outcome | None:
        """As far as native code gets with it; None where all of it is dispatch's."""
        counts = self.limits.instruction_limit is not None  # which native code does not look at
        if self.natively and not (counts or ready.code.settings.checks):
            ready.set_alone(not self.limits.others_write and not self.external_writers)
            return ready.begin(arguments, self.limits.limited, threads > 1)
        ready.write(arguments)
        return None

    def _go_on(self, launch: DeviceLaunch, ready: ReadyLaunch, threads: int, begun: Outcome | None,
               started: float) -> None:
        from luthier_py.emulator.launches.dispatch import (  # much that takes as long to import as a start
            RunningLaunch,
            RunOptions,
        )
        from luthier_py.emulator.waves.cycle_account import CycleAccount  # most launches end natively: these two come

        settings, schedule, number = ready.code.settings, self.options.schedule, next(self._launches)
        how = RunOptions(threads, self.limits,
                         None if self._cycles is None else CycleAccount(self._cycles, ready.shape),
                         None if schedule is None else RandomTurns(schedule, number))
        with RunningLaunch(ready, begun, how, self._interrupt, partial(self._code_at, settings=settings),
                           tuple(self.external_writers)) as run:
            with self._lock:
                launch.run = run
                if launch.cancelled:
                    run.cancel(launch.cancelled)
            try:
                run.execute()
            finally:
                report = run.report(self.options.reported)
                launch.findings = report.findings
                if report.looked_at or report.notes:
                    self._report(report)
            if run.watch is not None and settings.checks & Checks.TOUCHED:
                launch.touched = TouchedMemory(run.watch.collect_touched_pages(), elsewhere=len(run.codes) > 1)
            if self._counts:
                launch.counted = run.profile(time.perf_counter() - started)

    @property
    def runs(self) -> bool:
        """Whether any launch does."""
        return bool(self._running)

    @property
    def begun(self) -> tuple[int, int] | None:
        """Of a launch in progress, if there is one: work-groups that have begun, and all."""
        with self._lock:
            for ready, launch in self._running.items():
                record = ready.launch if launch.run is None else launch.run.record
                total = int(record[LAUNCH["total"] // 8])
                return min(int(record[LAUNCH["next"] // 8]), total), total
        return None

    def cancel(self, why: str, queue: int | None = None) -> None:
        """The launch in progress, if there is one, ends with a DeviceError that says why: of this queue, or all of
        them. Returns at once."""
        with self._lock:
            for ready, launch in self._running.items():
                if queue in (None, launch.queue):
                    launch.cancelled = why
                    if launch.run is None:
                        ready.stop()
                    else:
                        launch.run.cancel(why)

    def _take(self, code: HostedCode, shape: Shape, places: LaunchMemory) -> PacketLaunch:
        """An idle launch, or a new one, for the packet there."""
        with self._lock:
            idle = self._ready.get((code, shape))
            ready = idle.pop() if idle else None
        if ready is None:
            return PacketLaunch(self.memory, self._pool, code, shape, places)
        ready.move_to(places)
        return ready

    def _give(self, ready: PacketLaunch) -> None:
        """Make it idle; where too many are idle, close those first."""
        with self._lock:
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

    def _code_at(self, pc: int, settings: Settings) -> HostedCode | None:
        """What waves find there now; None where that is no code."""
        found = self.memory.find(pc)
        if found is None:
            return None
        base = self._names.base_of(pc)
        base = found.address if base is None else base
        key = found.address, found.size, base
        with self._lock:
            text, code = self._resident.get(key, (None, None))
            if text is None or code is None or not text.is_unchanged():
                text = MemoryText(self.target, base, found.address, found.size, self._names.text_at(base))
                _, code = self._resident[key] = text, TextCode(text, self._executed)
            return code.code(settings)

    def _places(self, packet: int, queue: int, fields: DispatchPacket, descriptor: KernelDescriptor,
                name: str) -> LaunchMemory:
        preloaded = compute_preloaded_range(descriptor)
        arguments = b""
        if preloaded:
            self._need(fields.kernarg + preloaded.start, len(preloaded), name, "preloaded kernel arguments")
            arguments = read_bytes(fields.kernarg + preloaded.start, len(preloaded))
        return LaunchMemory(fields.kernarg, packet, queue, dispatch_id(packet, queue), arguments)

    def _need(self, address: int, size: int, name: str, what: str) -> None:
        found = self.memory.find(address)
        if found is None or address + size > found.end:
            where = f"bad address 0x{address:x} of the {what}; {self.memory.nearest(address)}"
            raise DeviceError(where, Location(name), DeviceFault(FaultKind.BAD_ADDRESS, 0, address))


@lru_cache(4096)
def _read_descriptor(data: bytes) -> KernelDescriptor:
    return KernelDescriptor(data)
