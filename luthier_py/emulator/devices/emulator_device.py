"""The emulator as a Device: memory, modules, launches of kernels by their handles.

In: the calls of emulator.interface.Device. Out: the same effects as on a GPU, and a profile of each launch.
Invariant: a kernel that fails ends in a DeviceError that names the place; the process and the
device live on.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid
from luthier_py.base.records import replace
from luthier_py.binary.loader import MEMORY, CodeObject, load
from luthier_py.binary.loader.origins import load_original, object_name
from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.devices.packet_device import DeviceLaunch, PacketDevice
from luthier_py.emulator.interface.device import Buffer, Dim3, KernelHandle
from luthier_py.emulator.launches.ready import LoadedLaunch
from luthier_py.emulator.memory.device_memory import Memory, read_bytes, write_bytes
from luthier_py.emulator.memory.poison import poison
from luthier_py.emulator.memory.touched import TouchedMemory
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import NO_OPTIONS, LaunchOptions
from luthier_py.emulator.options.settings import Settings, Weights
from luthier_py.emulator.records.layout import Outcome
from luthier_py.emulator.watching.findings import Finding, Reporter, no_report
from luthier_py.emulator.waves.residency import of_device
from luthier_py.emulator.waves.shape import shape_of
from luthier_py.isa.model.target import Target

if TYPE_CHECKING:
    from luthier_py.emulator.waves.profile import LaunchProfile


class EmulatorDevice(PacketDevice):
    """Mutable: one emulated GPU, with code that it has loaded. ``threads``: how many work-groups run at once;
    ``memory``: what several share.

    ``others_write``: the host or another device may write memory while a kernel runs; if not, one that waits for it
    is an error. ``counts``: there is a profile of each launch. ``report`` gets what checks and the cycle model say
    of each. """

    def __init__(self, target: Target, threads: int = 1, options: LaunchOptions = NO_OPTIONS,
                 memory: Memory | None = None, others_write: bool = False, counts: bool = True,
                 report: Reporter = no_report) -> None:
        super().__init__(target, memory or Memory(), threads=threads, options=options, counts=counts, report=report)
        self.limits = replace(self.limits, others_write=others_write)
        self.weights: Weights | None = None
        """Of the cycle model, for launches that are readied from now on."""
        self.last = DeviceLaunch()
        """The launch that was begun last."""
        self._modules: weakref.WeakSet[EmulatorModule] = weakref.WeakSet()

    def load(self, data: bytes, name: str = MEMORY, base: int | None = None) -> EmulatorModule:
        """``base``: where its address 0 is to be; DeviceError unless there is room."""
        code_object = load(data, name)
        if not self.target.runs(code_object.target):
            own, mine = code_object.target.name, self.target.name
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
        """What such launches have in common; ``fixed``: bytes of their arguments, by offset. ``touched``: record the
        memory they access. ``lacking``: work-items of the last work-groups. Valid until the module is unloaded."""
        module = kernel.module
        if not isinstance(module, EmulatorModule) or module.memory is not self.memory or not module.loaded:
            raise Invalid(f"kernel {kernel.name} is not loaded on this device")

        def make() -> LoadedLaunch:
            shape = shape_of(kernel.record, self.target, grid, block, lds_bytes, lacking)
            of_device(shape)  # refuses what does not fit
            bare = module.settings(kernel.record, shape.target)
            settings = self.options.settings(replace(bare, weights=self.weights))
            code = module.code(replace(settings, checks=settings.checks | Checks.TOUCHED) if touched else settings)
            code.require(shape.start, kernel.name)
            kernel_object = module.base + kernel.record.descriptor_address
            return LoadedLaunch(self.memory, self._pool, code, shape, kernel_object, kernarg_bytes, dict(fixed))

        with self._alone:
            key = id(kernel.record), grid, block, kernarg_bytes, lds_bytes, fixed, touched, self.weights, lacking
            return module.ready(key, make)

    def run(self, ready: LoadedLaunch, kernarg: bytes) -> None:
        """Launch it once."""
        with self._alone:
            self.last = DeviceLaunch()
            self._carry_out(self.last, ready, self.threads, kernarg)

    def go_on(self, ready: LoadedLaunch, outcome: Outcome) -> None:
        """With what native code has begun."""
        with self._alone:
            self.last = DeviceLaunch()
            self._carry_out(self.last, ready, self.threads, begun=outcome)

    @property
    def profile(self) -> LaunchProfile | None:
        """Of the last launch, where there are counts."""
        return self.last.profile

    @property
    def findings(self) -> list[Finding]:
        """Of the last launch."""
        return self.last.findings

    @property
    def touched(self) -> TouchedMemory | None:
        """Of the last launch, if it was readied so."""
        return self.last.touched

    def _code_at(self, pc: int, settings: Settings) -> HostedCode | None:
        """The code of the module that holds ``pc``: kernels may be given pointers to any function."""
        module = next((one for one in tuple(self._modules) if one.holds_code(pc)), None)
        return None if module is None else module.code(settings)

    def _object_named(self, name: bytes) -> CodeObject | None:
        """Loaded on this device, or stored by a tool, whose copies may run without the original."""
        loaded = (one.object for one in tuple(self._modules) if object_name(one.object.data) == name)
        return next(loaded, None) or load_original(name)
