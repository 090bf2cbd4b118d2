"""The emulator as a program's device.

In: messages of host/native/protocol. Out: memory from the arena, loaded code objects, launches in the order of their
commands, on a thread. Invariant: after a launch has failed no later one starts, and the program gets its error.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import queue
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from luthier_py.base.errors import DeviceError, FaultKind, Invalid, TimeLimit
from luthier_py.base.records import dataclass, replace
from luthier_py.binary.loader import KernelRecord
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.devices.module import EmulatorModule
from luthier_py.emulator.devices.recorded_launch import HOSTCALLS
from luthier_py.emulator.interface import compute_hidden_argument
from luthier_py.emulator.interface.device import Dim3
from luthier_py.emulator.launches.ready import LoadedLaunch, threads_for
from luthier_py.emulator.memory.device_memory import GAP, Allocation, Memory, write_bytes
from luthier_py.emulator.memory.poison import poison
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.records.layout import Outcome
from luthier_py.emulator.watching.findings import LaunchReport, Reporter
from luthier_py.emulator.waves.residency import of_compute_unit
from luthier_py.host.native import protocol
from luthier_py.host.native.protocol import Message
from luthier_py.host.worker import bundles
from luthier_py.host.worker.arena import Arena
from luthier_py.host.worker.device import heap, printing, properties
from luthier_py.host.worker.device.abandoned import end_launches
from luthier_py.host.worker.device.commands import CommandLoop
from luthier_py.host.worker.device.described import describe_device, describe_module
from luthier_py.host.worker.device.findings import tell_failure
from luthier_py.host.worker.device.recording import LaunchRecorder
from luthier_py.host.worker.device.settings import device_settings
from luthier_py.host.worker.device.targets import VARIABLE, parse_targets, visible_devices
from luthier_py.host.worker.device.traced import CommandTrace
from luthier_py.host.worker.error_boundary import Refused, run_guarded
from luthier_py.host.worker.native import Pause
from luthier_py.host.worker.wire import Request

if TYPE_CHECKING:
    from luthier_py.emulator import LaunchProfile

_LAUNCH = struct.Struct("<15I4x")
_GRID_SYNC_BYTES = 64
_OF_MEMORY = {FaultKind.BAD_ADDRESS, FaultKind.READ_ONLY, FaultKind.MISALIGNED, FaultKind.LDS, FaultKind.SCRATCH}
_RANGE = struct.Struct("<3Q")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A code object on one of the devices."""

    module: EmulatorModule
    device: EmulatorDevice
    number: int  # of the device


class DeviceService:
    """Mutable: one program's devices. They share their memory, and run one launch at a time."""

    def __init__(self, program: int = 0) -> None:
        self._program, self._trace = program, CommandTrace(os.environ, program)
        every = parse_targets(os.environ.get(VARIABLE, ""))
        self._numbers = visible_devices([properties.device_uuid(number) for number in range(len(every))], os.environ)
        self.targets = [every[number] for number in self._numbers]
        self._settings = device_settings(os.environ)
        in_fabric = any(target.fabric_float_atomics for target in self.targets)
        self._recorder = LaunchRecorder(self._settings.record) if self._settings.record is not None else None
        self._drops_in_fine = not self._settings.fine_atomics and not in_fabric
        self._modules: dict[int, Loaded] = {}
        self._queue: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._next_module = 1
        self._opened = self._in_hand = False  # the device; a command that Python carries out
        self._pointers: dict[str, int] = {}  # hidden arguments that every launch has
        self._threads = os.cpu_count() or 1

    over = False

    def handle_exit(self) -> None:
        """Abandon launches that still run, and report the place of each unless the program announced its exit."""
        if self._opened and not self.arena.left:
            end_launches(self._runs, self._end_launch)

    def _runs(self) -> bool:
        return not self.arena.failed and (self._in_hand or not self._commands.none_in_ring or not self._queue.empty())

    def _end_launch(self, why: str) -> None:
        self._commands.stop_known()
        for device in self.devices:
            device.cancel(why)

    def answer(self, request: Request) -> bytes | None:
        """Carry out one message of the program, or queue it for the launch thread (commands, from FIRST_COMMAND on).
        Refused where memory or a device is lacking; Invalid for an unknown message or address."""
        content = request.content
        if request.code >= protocol.FIRST_COMMAND:
            self._queue.put(request)
            self._commands.wake()
            return None
        if request.code == Message.OPEN:
            return self._open(*struct.unpack("<QQ", content))
        if request.code == Message.ALLOCATE:
            return struct.pack("<Q", self._allocate(*numbers(content, 2)))
        if request.code == Message.FREE:
            self.memory.free(*struct.unpack("<Q", content))
            return b""
        if request.code == Message.HOSTCALLS:
            self._pointers[HOSTCALLS], printed = struct.unpack("<2Q", content)
            self._printing.set_message_word(printed)
            self._commands.forget()
            return b""
        if request.code == Message.RESERVE:
            return struct.pack("<Q", self._reserve(*struct.unpack("<Q", content)))
        if request.code == Message.REGISTER:
            address, size, fine = numbers(content, 3)
            name = "registered host memory"
            self.memory.register(Allocation(address, size, name, fine=bool(fine) and self._drops_in_fine))
            return b""
        if request.code == Message.GRAIN:
            self._set_grain(*numbers(content, 2))
            return b""
        if request.code == Message.UNREGISTER:
            self.memory.unregister(*struct.unpack("<Q", content))
            return b""
        if request.code == Message.MAP:
            address, size, offset = _RANGE.unpack_from(content)
            self.arena.map_file(address, size, offset, content[_RANGE.size :])
            return b""
        if request.code == Message.UNMAP:
            self.arena.map_own(*struct.unpack("<QQ", content))
            return b""
        if request.code == Message.LOAD:
            return self._load(int.from_bytes(content[:4], "little"), content[4:])
        if request.code == Message.UNLOAD:
            self._modules.pop(*struct.unpack("<I", content)).module.unload()
            return b""
        if request.code == Message.HEAP:
            device, size = struct.unpack("<2Q", content)
            self._heaps[device].begin_with(size)
            return b""
        if request.code == Message.OCCUPANCY:
            return struct.pack("<I", self._occupancy(*struct.unpack("<4I", content)))
        raise Invalid(f"message {request.code} is unknown")

    def _open(self, address: int, size: int) -> bytes:
        if not self.targets:
            raise Refused("all devices are hidden", protocol.STATUS_NO_DEVICE)
        self.arena = Arena(address, size)
        self.memory = Memory((self.arena.address, self.arena.size))
        self.devices = [
            EmulatorDevice(target, options=self._settings.launch, memory=self.memory, others_write=True,
                           counts=self._settings.counts,
                           report=partial(_report_with_number, self._settings.report, number))
            for number, target in enumerate(self.targets)
        ]  # fmt: skip
        self._commands = CommandLoop(self.arena.control, self.memory.table_cell + 8, self._trace.on)
        self._heaps = [heap.Heap(self.memory) for _ in self.targets]
        self._grid_syncs = [self.memory.allocate(_GRID_SYNC_BYTES, "grid barrier").address for _ in self.targets]
        self._printing = printing.Printing(self.memory)
        threading.Thread(target=self._run, daemon=True).start()
        self._opened = True
        count = len(self.targets)
        half = self.arena.size // 2  # the other is for memory of the host
        each = min(self._settings.memory_bytes, half // count)
        numbered = zip(self._numbers, self.targets, strict=True)
        facts = [describe_device(target, number, each) for number, target in numbered]
        return struct.pack("<I", count) + b"".join(facts)

    def _allocate(self, size: int, fine: int) -> int:
        """Whole pages, as ROCm gives them; the device library finds a block's slab by its address."""
        spare = -size % self._settings.granularity
        block = -(-(size + spare + GAP) // mmap.PAGESIZE) * mmap.PAGESIZE - GAP
        with full_memory():
            start = self.memory.reserve(block, heap.SLAB_BYTES if size == heap.SLAB_BYTES else mmap.PAGESIZE)
        whose = self._heaps[0].made if size == heap.SLAB_BYTES and len(self._heaps) == 1 else 0
        self.memory.register(Allocation(start, size, "buffer", fine=bool(fine) and self._drops_in_fine, spare=spare,
                                        heap=whose))
        if self._settings.launch.checks & Checks.INIT and not fine and size != heap.SLAB_BYTES:
            poison(start, size)
        return start

    def _set_grain(self, address: int, fine: int) -> None:
        found = self.memory.find(address)
        if found is None:
            raise Invalid(f"0x{address:x} is not in an allocation")
        self.memory.register(replace(found, fine=bool(fine) and self._drops_in_fine))

    def _reserve(self, size: int) -> int:
        with full_memory():
            return self.memory.reserve(size, mmap.PAGESIZE)

    def _load(self, device: int, image: bytes) -> bytes:
        target = self.targets[device]
        module = self.devices[device].load(bundles.code_for(image, properties.architecture(target)), "code object")
        number, self._next_module = self._next_module, self._next_module + 1
        self._modules[number] = Loaded(module, self.devices[device], device)
        return describe_module(number, module, target)

    def _record(self, module: int, kernel: int) -> KernelRecord:
        return self._modules[module].module.object.kernels[kernel]

    def _occupancy(self, module: int, kernel: int, items: int, dynamic_lds: int) -> int:
        descriptor, target = self._record(module, kernel).descriptor, self._modules[module].device.target
        lds = descriptor.group_segment_fixed_size + dynamic_lds
        return of_compute_unit(target, descriptor, -(-items // descriptor.wave_size), lds).groups

    def _run(self) -> None:
        """The launch thread. What native code cannot continue is carried out here, one command at a time."""
        commands, done = self._commands, False
        while True:
            with self.memory.publish_table():
                pause = commands.carry_on(done)
            done = True
            if pause is Pause.NEW:
                self._guard(self._trace.time_action(commands.number, partial(self._carry_out, commands.request)))
            elif pause is Pause.STOPPED:
                self._guard(commands.go_on)
            elif pause is Pause.ELSEWHERE or not self._queue.empty() and commands.none_in_ring:
                commands.take_other()
                self._guard(self._trace.time_action(commands.number, partial(self._carry_out, self._queue.get())))
            else:
                done = False
                if pause is Pause.EMPTY:
                    commands.sleep(unless=lambda: not self._queue.empty())

    def _guard(self, action: Callable[[], None]) -> None:
        """Carry out a command, unless one before it has failed."""
        if self.arena.failed:
            return
        self._in_hand = True
        outcome = run_guarded(action)
        if isinstance(outcome, Exception):
            tell_failure(os.environ, outcome, self._program)
        if isinstance(outcome, TimeLimit):
            self.arena.fail(protocol.STATUS_LAUNCH_TIMEOUT)
        elif isinstance(outcome, Exception):
            fault = outcome.fault if isinstance(outcome, DeviceError) else None
            of_memory = fault is not None and fault.kind in _OF_MEMORY
            self.arena.fail(protocol.STATUS_ILLEGAL_ADDRESS if of_memory else protocol.STATUS_LAUNCH_FAILURE)
        self._in_hand = False

    def _carry_out(self, request: Request) -> None:
        if request.code == Message.STAMP:
            ctypes.c_uint64.from_address(*struct.unpack("<Q", request.content)).value = time.monotonic_ns()
        elif request.code == Message.COPY:
            ctypes.memmove(*struct.unpack("<3Q", request.content))
        elif request.code == Message.FILL:
            address, count, value, element = struct.unpack("<4Q", request.content)
            write_bytes(address, value.to_bytes(8, "little")[:element] * count)
        else:
            self._launch(request)

    def _launch(self, request: Request) -> None:
        module, kernel, *rest = _LAUNCH.unpack_from(request.content)
        *shape, lds, cooperative, grid_number, grids, x, y, z = rest
        grid, block, lacking = (shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5]), (x, y, z)
        loaded, record = self._modules[module], self._record(module, kernel)
        pointers = dict(self._pointers)
        if cooperative:
            place = self._grid_syncs[loaded.number]
            write_bytes(place, grid_sync(place, grid, block, grid_number, max(grids, 1)))
            pointers["hidden_multigrid_sync_arg"] = place
        hidden = {arg.value_kind for arg in record.args}
        if heap.ARGUMENT in hidden:
            pointers[heap.ARGUMENT] = self._heaps[loaded.number].address()
        prints = printing.ARGUMENT in hidden
        if prints:
            pointers[printing.ARGUMENT] = self._printing.empty()
        arguments, handle = request.content[_LAUNCH.size :], loaded.module.kernel(record.name)
        recorder = self._recorder if self._recorder is not None and self._recorder.wants(record.name) else None
        ready = loaded.device.ready(handle, grid, block, len(arguments), lds,
                                    compute_hidden_arguments(record, grid, block, lds, pointers, lacking),
                                    recorder is not None, lacking)
        loaded.device.threads = threads_for(ready.shape.groups, self._threads)
        try:
            loaded.device.run(ready, arguments)
        finally:
            if prints:
                self._printing.print(printing.formats(loaded.module.object.metadata))
        if recorder is not None:
            recorder.keep(loaded.device, handle, ready)
        if self._settings.profile is not None and loaded.device.profile is not None:
            append_profile(self._settings.profile, loaded.device.profile)
        elif loaded.device.natively and self._recorder is None and not (prints or cooperative):
            self._commands.know(request.content[: _LAUNCH.size], ready, partial(self._go_on, loaded.device, ready))

    def _go_on(self, device: EmulatorDevice, ready: LoadedLaunch, outcome: Outcome) -> None:
        device.threads = threads_for(ready.shape.groups, self._threads)
        device.go_on(ready, outcome)


@contextmanager
def full_memory() -> Iterator[None]:
    """What does not fit is the program's to know, and no news."""
    try:
        yield
    except DeviceError as error:
        raise Refused(error.message, protocol.STATUS_OUT_OF_MEMORY) from None


def numbers(content: bytes, count: int) -> tuple[int, ...]:
    """Of 64 bits each; those at the end may be left out."""
    return struct.unpack(f"<{count}Q", content.ljust(8 * count, b"\0"))


def _report_with_number(tell: Reporter, number: int, report: LaunchReport) -> None:
    tell(replace(report, device=number))


def append_profile(path: str, profile: LaunchProfile) -> None:
    """Add a line of JSON to the file of LUTHIER_DEVICE_PROFILE: what a launch executed, by opcode. Raises OSError."""
    row = {
        "kernel": profile.kernel,
        "waves": profile.waves,
        "instructions": profile.total,
        "lanes": profile.total_lanes,
        "opcodes": profile.opcodes(),
        "active_opcodes": profile.active_opcodes(),
        "lane_opcodes": profile.lane_opcodes(),
        **({} if profile.cycles is None else profile.cycles.facts()),
    }
    with open(path, "a") as file:
        file.write(json.dumps(row) + "\n")


def grid_sync(address: int, grid: Dim3, block: Dim3, number: int, grids: int) -> bytes:
    """What hidden_multigrid_sync_arg points to (ROCm device libraries, ockl/src/cg.cl).

    The words of the multi-grid barrier, number of this grid and of all, work-items before it and in all, the two words
    of this grid's barrier, its work-groups; the multi-grid barrier follows it. Grids run one after the other, so
    where there are several they have no such barrier: what waits at address 0 ends with a fault, and not never.
    """
    groups, items = (x * y * z for x, y, z in (grid, block))
    layout = struct.Struct("<Q2I2Q2II4x")
    words, size = address + layout.size if grids == 1 else 0, groups * items
    return layout.pack(words, number, grids, number * size, grids * size, 0, 0, groups)


def compute_hidden_arguments(
    record: KernelRecord, grid: Dim3, block: Dim3, lds: int, pointers: Mapping[str, int], lacking: Dim3 = (0, 0, 0)
) -> tuple[tuple[int, bytes], ...]:
    """What the runtime fills in, by offset in the kernarg segment; ``pointers`` are those that this launch has."""
    def value(kind: str) -> int:
        return pointers.get(kind) or compute_hidden_argument(kind, grid, block, lds, lacking)

    return tuple((arg.offset, value(arg.value_kind).to_bytes(arg.size, "little")) for arg in record.args if arg.hidden)
