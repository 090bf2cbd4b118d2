"""The emulator as a Device: memory, modules, launches.

In: the calls of runtime.Device. Out: the same effects as on a GPU, and a profile of each launch.
Invariant: a kernel that goes wrong ends in a DeviceError that names the place; the process and the
device live on.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid
from luthier_py.binary.loader import MEMORY, CodeObject, load
from luthier_py.binary.loader.origins import load_original, object_name
from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.interface.device import Buffer, Dim3, KernelHandle
from luthier_py.emulator.launches.ready import Begun, LoadedLaunch
from luthier_py.emulator.memory.device_memory import Memory, read_bytes, write_bytes
from luthier_py.emulator.memory.poison import poison
from luthier_py.emulator.memory.pool import PagePool
from luthier_py.emulator.memory.touched import TouchedMemory
from luthier_py.emulator.native.clocks import CycleClock, ExecutedInstructions
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import NO_OPTIONS, LaunchOptions
from luthier_py.emulator.options.limits import ExternalWriter, LaunchLimits
from luthier_py.emulator.options.schedule import RandomTurns
from luthier_py.emulator.options.settings import Settings, Weights
from luthier_py.emulator.records.layout import LAUNCH, Outcome
from luthier_py.emulator.watching.findings import Finding, Reporter, no_report
from luthier_py.emulator.waves.residency import of_device
from luthier_py.emulator.waves.shape import shape_of
from luthier_py.isa.model.target import Target

if TYPE_CHECKING:
    from luthier_py.emulator.launches.dispatch import RunningLaunch
    from luthier_py.emulator.waves.profile import LaunchProfile


class EmulatorDevice:
    """Mutable: one emulated GPU. ``threads``: how many work-groups run at once; ``memory``: what several share.

    ``others_write``: somebody else may write memory while a kernel runs; if not, one that waits for it is an error.
    ``counts``: there is a profile of each launch. ``report`` gets what checks and the cycle model say of each.
    """

    def __init__(self, target: Target, threads: int = 1, options: LaunchOptions = NO_OPTIONS,
                 memory: Memory | None = None, others_write: bool = False, counts: bool = True,
                 report: Reporter = no_report) -> None:
        self._target = target
        self.options, self._report, self._launches = options, report, 0
        self.weights: Weights | None = None
        """Of the cycle model, for launches that are readied from now on."""
        self.findings: list[Finding] = []
        """Of the last launch."""
        self.touched: TouchedMemory | None = None
        """Of the last launch, if it was readied so."""
        self.threads = max(threads, 1)
        self.limits = LaunchLimits(options.time_limit, options.instruction_limit, others_write)
        self.memory = memory or Memory()
        self._pool = PagePool()
        self._executed = ExecutedInstructions()
        self._cycles = CycleClock() if options.models_cycles else None
        self._profile: LaunchProfile | Callable[[], LaunchProfile] | None = None
        self.natively = not options.watched
        """Whether native code begins launches; if not, all of them are dispatch's from their start."""
        self._counts = counts
        self._running: RunningLaunch | None = None
        self._current: LoadedLaunch | None = None
        self._cancelled = ""  # why, before it runs
        self._changing = threading.Lock()  # these three
        self._lock = threading.Lock()
        self._modules: weakref.WeakSet[EmulatorModule] = weakref.WeakSet()
        self.external_writers: list[ExternalWriter] = []
        """Who writes memory while kernels run, and says so."""

    @property
    def target(self) -> Target:
        """The target that the device emulates; code objects of other targets that it runs may be loaded, too."""
        return self._target

    def load(self, data: bytes, name: str = MEMORY, base: int | None = None) -> EmulatorModule:
        """``base``: where its address 0 is to be; DeviceError unless there is room."""
        code_object = load(data, name)
        if not self._target.runs(code_object.target):
            own, mine = code_object.target.name, self._target.name
            raise Invalid(f"{name}: compiled for {own}, but this device is a {mine}; it runs on emulator:{own}")
        module = EmulatorModule(self.memory, code_object, self._executed, self._object_named, base)
        self._modules.add(module)
        return module

    def alloc(self, size: int) -> Buffer:
        """Zeroed memory of ``size`` bytes, filled with poison where uninitialised reads are looked for; DeviceError
        where there is no room."""
        buffer = self.alloc_shared(size)
        if self.options.checks & Checks.INIT:
            poison(buffer.address, size)
        return buffer

    def alloc_shared(self, size: int) -> Buffer:
        """Zeroed memory: device addresses are addresses of this process, so all of it is shared. Never poisoned."""
        return Buffer(self.memory.allocate(size, "buffer").address, size)

    def free(self, buffer: Buffer) -> None:
        """Free what ``alloc`` gave; Invalid for other addresses."""
        self.memory.free(buffer.address)

    def free_shared(self, buffer: Buffer) -> None:
        """Free what ``alloc_shared`` gave; Invalid for other addresses."""
        self.free(buffer)

    def write(self, address: int, data: bytes) -> None:
        """Copy ``data`` to device memory, also where kernels may only read; Invalid unless all bytes are in one
        allocation."""
        self.memory.check(address, len(data))
        write_bytes(address, data)

    def read(self, address: int, size: int) -> bytes:
        """Copy ``size`` bytes from device memory; Invalid unless all are in one allocation."""
        self.memory.check(address, size)
        return read_bytes(address, size)

    def synchronize(self) -> None:
        """Launches have ended when ``launch`` returns."""

    def launch(self, kernel: KernelHandle, grid: Dim3, block: Dim3, kernarg: bytes, lds_bytes: int = 0) -> None:
        """Run ``grid`` work-groups of ``block`` work-items to their end, with ``kernarg`` as the kernarg segment.
        DeviceError where a wave faults, all waves stand still, or a limit passes (TimeLimit); Invalid for a kernel of
        another device, or a shape that no device would start; Unsupported for code that is not emulated."""
        self.run(self.ready(kernel, grid, block, len(kernarg), lds_bytes), kernarg)

    def ready(self, kernel: KernelHandle, grid: Dim3, block: Dim3, kernarg_bytes: int, lds_bytes: int = 0,
              fixed: tuple[tuple[int, bytes], ...] = (), touched: bool = False, lacking: Dim3 = (0, 0, 0),
              ) -> LoadedLaunch:
        """What such launches have in common; ``fixed``: bytes of their arguments, by offset. ``touched``: what memory
        they come to is kept. ``lacking``: work-items of the last work-groups. Until the module goes."""
        module = kernel.module
        if not isinstance(module, EmulatorModule) or module.memory is not self.memory or not module.loaded:
            raise Invalid(f"kernel {kernel.name} is not loaded on this device")

        def make() -> LoadedLaunch:
            shape = shape_of(kernel.record, self._target, grid, block, lds_bytes, lacking)
            of_device(shape)  # refuses what does not fit
            bare = module.settings(kernel.record, shape.target)
            settings = self.options.settings(replace(bare, weights=self.weights))
            code = module.code(replace(settings, checks=settings.checks | Checks.TOUCHED) if touched else settings)
            code.require(shape.start, kernel.name)
            kernel_object = module.base + kernel.record.descriptor_address
            return LoadedLaunch(self.memory, self._pool, code, shape, kernel_object, kernarg_bytes, dict(fixed))

        with self._lock:
            key = id(kernel.record), grid, block, kernarg_bytes, lds_bytes, fixed, touched, self.weights, lacking
            return module.ready(key, make)

    def run(self, ready: LoadedLaunch, kernarg: bytes) -> None:
        """Launch it once."""
        self._profile, self.findings, self.touched = None, [], None
        with self._lock, self.memory.publish_table():
            started = time.perf_counter()
            self._enter(ready)
            try:
                begun = self._begin(ready, kernarg)
                profile = None
                if begun is None or begun.outcome is not Outcome.FINISHED:
                    profile = self._go_on(ready, begun)
                elif report := ready.report():
                    self._report(report)
                if self._counts:
                    self._profile = profile or ready.profile(time.perf_counter() - started)
            finally:
                self._enter(None)
                ready.renew()
                if self._counts:
                    ready.clear_counters()

    @property
    def profile(self) -> LaunchProfile | None:
        """Of the last launch, where there are counts."""
        if callable(self._profile):
            self._profile = self._profile()
        return self._profile

    def _enter(self, ready: LoadedLaunch | None) -> None:
        with self._changing:
            self._current, self._cancelled = ready, ""

    def _begin(self, ready: LoadedLaunch, kernarg: bytes) -> Begun | None:
        counts = self.limits.instruction_limit is not None  # which native code does not look at
        if self.natively and not (counts or ready.code.settings.checks):
            return Begun(ready, ready.begin(kernarg, self.limits.limited, self.threads > 1))
        ready.write(kernarg)
        return None

    def go_on(self, ready: LoadedLaunch, outcome: Outcome) -> None:
        """With what native code has begun."""
        with self._lock, self.memory.publish_table():
            self._go_on(ready, Begun(ready, outcome))

    def _go_on(self, ready: LoadedLaunch, begun: Begun | None) -> LaunchProfile | None:
        from luthier_py.emulator.launches.dispatch import RunningLaunch  # much that takes as long to import as a start
        from luthier_py.emulator.waves.cycle_account import (
            CycleAccount,  # most launches end natively: these two come with
        )

        started = time.perf_counter()
        cycles = None if self._cycles is None else CycleAccount(self._cycles, ready.shape)
        with RunningLaunch(self.memory, self._pool, ready.code, ready.shape, ready.places, self.threads, self.limits,
                           find=partial(self._code_of_others, ready.code.settings),
                           external_writers=tuple(self.external_writers), begun=begun, cycles=cycles,
                           random_turns=self._random_turns(), checks=ready.code.settings.checks) as run:
            with self._changing:
                self._running = run
                if self._cancelled:
                    run.cancel(self._cancelled)
            try:
                run.execute()
            finally:
                self._running = None
                report = run.report(self.options.reported)
                self.findings = report.findings
                if report.looked_at or report.notes:
                    self._report(report)
            if run.watch is not None and ready.code.settings.checks & Checks.TOUCHED:
                self.touched = TouchedMemory(run.watch.collect_touched_pages(), elsewhere=len(run.codes) > 1)
            return run.profile(time.perf_counter() - started) if self._counts else None

    def _code_of_others(self, settings: Settings, address: int) -> HostedCode | None:
        """Whichever module's it is: kernels may be given pointers to any function."""
        module = next((one for one in tuple(self._modules) if one.holds_code(address)), None)
        return None if module is None else module.code(settings)

    def _object_named(self, name: bytes) -> CodeObject | None:
        """Of this device, or what a tool has kept, whose copies may run without the original."""
        loaded = (one.object for one in tuple(self._modules) if object_name(one.object.data) == name)
        return next(loaded, None) or load_original(name)

    def _random_turns(self) -> RandomTurns | None:
        """Of the next launch."""
        self._launches += 1
        schedule = self.options.schedule
        return None if schedule is None else RandomTurns(schedule, self._launches)

    def cancel(self, why: str) -> None:
        """The launch in progress, if there is one, ends with a DeviceError that says why."""
        with self._changing:
            if self._running is not None:
                self._running.cancel(why)
            elif self._current is not None:
                self._cancelled = why
                self._current.stop()

    @property
    def begun(self) -> tuple[int, int] | None:
        """Of the launch in progress, if there is one: work-groups that have begun, and all."""
        with self._changing:
            if self._running is not None:
                record = self._running.record
            elif self._current is not None:
                record = self._current.launch
            else:
                return None
        total = int(record[LAUNCH["total"] // 8])
        return min(int(record[LAUNCH["next"] // 8]), total), total
