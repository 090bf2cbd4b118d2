"""The driver of the emulated GPUs: what a program's ioctls of /dev/kfd and render nodes mean.

In: messages of runtime.kfd.protocol. Out: buffers, queues and events; dispatches on the emulator; faults as the
program's own runtime learns of them. Source: linux/kfd_ioctl.h; drivers/gpu/drm/amd/amdkfd. Invariant: what is not
known fails as in the driver (ENOTTY for a number, EINVAL for an argument); nothing that is not done reports success.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from types import SimpleNamespace

from luthier_py.base.errors import DeviceError, FaultKind, Invalid, TimeLimit
from luthier_py.emulator import CodeNames, PacketDevice
from luthier_py.emulator.memory.device_memory import read_allocated_bytes
from luthier_py.emulator.waves.launch import PRIVATE_BASE, SHARED_BASE
from luthier_py.emulator.waves.packet import QUEUE_BYTES
from luthier_py.host.kfd import drm, faults, ioctls, svm
from luthier_py.host.kfd.buffers import Buffers, in_arena
from luthier_py.host.kfd.events import PAGE_BYTES, Events
from luthier_py.host.kfd.ioctls import IOCTLS
from luthier_py.host.kfd.loaded_code import LoadedCode
from luthier_py.host.kfd.protocol import (
    ARENA_START,
    DOORBELL_BYTES,
    DOORBELL_TAG,
    DOORBELLS_OFFSET,
    GPU_SHIFT,
    KfdMessage,
)
from luthier_py.host.kfd.queues import AqlQueue, DriverQueue, QueueMemory, SdmaQueue
from luthier_py.host.kfd.topology import FIRST_RENDER, GWS, gpu_id, sysfs
from luthier_py.host.worker.device import targets
from luthier_py.host.worker.device.abandoned import end_launches
from luthier_py.host.worker.device.emulated_device import append_profile
from luthier_py.host.worker.device.findings import tell_failure
from luthier_py.host.worker.device.settings import device_settings
from luthier_py.host.worker.wire import Request

_OF_MEMORY = FaultKind.BAD_ADDRESS, FaultKind.READ_ONLY
_HEAD = struct.Struct("<iI")
_FILE, _SVM_FILE, _RANGE = struct.Struct("<3Q"), struct.Struct("<4Q"), struct.Struct("<2Q")
_APERTURE_BYTES = 1 << 32
_LAST_ADDRESS = (1 << 47) - 1


class DriverService:
    """Mutable: one program's GPUs."""

    def __init__(self, program: int) -> None:
        self._program = program
        self.targets = targets.parse_targets(os.environ.get(targets.VARIABLE, ""))
        self._settings = device_settings(os.environ)
        self._queues: dict[int, DriverQueue] = {}
        self._doorbells: set[tuple[int, int]] = set()  # taken, by GPU
        self._lock = threading.RLock()
        self._opened = self._left = False

    over = False

    def handle_exit(self) -> None:
        """End running launches, and report where they stand, unless the program announced its end."""
        if self._opened and not self._left:
            end_launches(self._runs, self._end_launches)

    def _runs(self) -> bool:
        return any(device.runs for device in self.devices)

    def _end_launches(self, why: str) -> None:
        for device in self.devices:
            device.cancel(why)

    def answer(self, request: Request) -> bytes | None:
        """OPEN, IOCTL and SHARED_FILE have replies; an ioctl that fails has its errno in the reply."""
        content = request.content
        if request.code == KfdMessage.OPEN:
            return self._open()
        if request.code == KfdMessage.IOCTL:
            return self._ioctl(content)
        if request.code == KfdMessage.SHARED_FILE:
            handle, offset, inode = _FILE.unpack_from(content)
            return _errno_of(partial(self.buffers.map_file, handle, content[_FILE.size :], offset, inode))
        if request.code == KfdMessage.SVM_FILE:
            start, size, offset, inode = _SVM_FILE.unpack_from(content)
            return _errno_of(partial(self.buffers.map_svm_file, start, size, offset, content[_SVM_FILE.size :], inode))
        if request.code == KfdMessage.RING:
            number, packets = struct.unpack("<IQ", content)
            queue = self._queues.get(number)
            if queue is not None:
                queue.ring(packets)
        elif request.code == KfdMessage.CODE:
            self.code.add(int.from_bytes(content[:8], "little"), content[8:])
        elif request.code == KfdMessage.EVENT_PAGE:
            self._use_event_page(*struct.unpack("<Q", content))
        elif request.code == KfdMessage.SVM_GONE:
            start, size = _RANGE.unpack(content)
            self.buffers.leave_svm(start, start + size)
            self._forget(start, size)
        elif request.code == KfdMessage.LEAVE:
            self._left = True
        else:
            raise Invalid(f"message {request.code} is unknown")
        return None

    def _open(self) -> bytes:
        self.buffers = Buffers(self._settings.memory_bytes)
        self.events = Events()
        self.code = LoadedCode(partial(read_allocated_bytes, self.buffers.memory))
        self.devices = [
            PacketDevice(
                target, self.buffers.memory, threads=os.cpu_count() or 1, options=self._settings.launch,
                names=CodeNames(self.code.name_of, self.code.base_of, self.code.text_at),
                interrupt=self.events.scan, counts=self._settings.profile is not None, report=self._settings.report,
            )
            for target in self.targets
        ]  # fmt: skip
        self._opened = True
        folder = sysfs(self.targets, self._settings.memory_bytes)
        return struct.pack("<I", len(self.targets)) + str(folder).encode() + b"\0"

    # -- ioctls ------------------------------------------------------------------------------------------------------

    def _ioctl(self, content: bytes) -> bytes:
        """errno, arguments and arrays as they are afterwards."""
        node, request = _HEAD.unpack_from(content)
        size = request >> 16 & 0x3FFF
        args, rest = content[_HEAD.size : _HEAD.size + size], content[_HEAD.size + size :]
        try:
            if node >= 0:
                return b"\0\0\0\0" + self._render(node - FIRST_RENDER, request & 255, args, rest)
            return b"\0\0\0\0" + self._kfd(request & 255, args, rest)
        except OSError as error:
            return struct.pack("<i", error.errno or errno.EIO) + args + rest

    def _render(self, gpu: int, number: int, args: bytes, rest: bytes) -> bytes:
        used = self._settings.memory_bytes - self.buffers.available(gpu)
        return drm.answer(number, args, rest, self.targets[gpu], self._settings.memory_bytes, used)

    def _kfd(self, number: int, args: bytes, rest: bytes) -> bytes:
        name, layout = IOCTLS.get(number, ("", None))
        if number == svm.NUMBER:
            return svm.svm(args, self.buffers, frozenset(map(gpu_id, range(len(self.targets)))))
        if layout is None:
            raise OSError(errno.EINVAL if number in ioctls.NUMBERS else errno.ENOTTY, "ioctl")
        fields = layout.read(args)
        if "gpu" in layout.names and name != "get_clock_counters":  # which node 0 has too
            self._gpu(fields.gpu)
        array = getattr(self, f"_{name}")(fields, rest)
        return layout.write(fields, args) + (rest if array is None else drm.cut(array, len(rest)))

    def _gpu(self, identity: int) -> int:
        for number in range(len(self.targets)):
            if gpu_id(number) == identity:
                return number
        raise OSError(errno.EINVAL, "gpu")

    def _get_version(self, a: SimpleNamespace, array: bytes) -> None:
        a.major, a.minor = ioctls.VERSION

    def _debug_trap(self, a: SimpleNamespace, array: bytes) -> None:
        if a.operation == ioctls.DEBUG_GET_VERSION:
            a.first, a.second = ioctls.DEBUG_VERSION
        elif a.operation != ioctls.DEBUG_RUNTIME:
            raise OSError(errno.EINVAL, "operation")

    def _runtime_enable(self, a: SimpleNamespace, array: bytes) -> None:
        """The list of loaded code objects is followed by the program's side."""

    def _get_clock_counters(self, a: SimpleNamespace, array: bytes) -> None:
        a.gpu_clock = a.cpu_clock = a.system_clock = time.monotonic_ns()
        a.frequency = 1_000_000_000

    def _get_process_apertures_new(self, a: SimpleNamespace, array: bytes) -> bytes:
        row = SimpleNamespace(
            lds_base=SHARED_BASE, lds_limit=SHARED_BASE + _APERTURE_BYTES - 1, scratch_base=PRIVATE_BASE,
            scratch_limit=PRIVATE_BASE + _APERTURE_BYTES - 1, gpuvm_base=1 << 16, gpuvm_limit=_LAST_ADDRESS, pad=0,
        )  # fmt: skip
        rows = b""
        for number in range(len(self.targets)):
            row.gpu = gpu_id(number)
            rows += ioctls.APERTURES.write(row)
        room = len(array) // ioctls.APERTURES.size
        a.count = min(len(self.targets), room) if a.count and array else len(self.targets)
        return rows

    def _set_memory_policy(self, a: SimpleNamespace, array: bytes) -> None:
        """All memory is coherent."""

    def _set_trap_handler(self, a: SimpleNamespace, array: bytes) -> None:
        """Does nothing: faults are reported without one."""

    def _set_scratch_backing_va(self, a: SimpleNamespace, array: bytes) -> None:
        """The emulator has scratch memory of its own."""

    def _acquire_vm(self, a: SimpleNamespace, array: bytes) -> None:
        """There is one address space."""

    def _set_xnack_mode(self, a: SimpleNamespace, array: bytes) -> None:
        """XNACK is off: memory that the program has not registered is out of a kernel's reach."""
        if a.enabled > 0:
            raise OSError(errno.EPERM, "XNACK")
        a.enabled = 0

    def _get_tile_config(self, a: SimpleNamespace, array: bytes) -> None:
        a.tile_count = a.macro_tile_count = a.address_config = a.banks = a.ranks = 0

    def _get_available_memory(self, a: SimpleNamespace, array: bytes) -> None:
        a.available = self.buffers.available(self._gpu(a.gpu))

    # -- memory ------------------------------------------------------------------------------------------------------

    def _alloc_memory_of_gpu(self, a: SimpleNamespace, array: bytes) -> None:
        buffer = self.buffers.allocate(a.address, a.bytes, a.flags, self._gpu(a.gpu), a.offset)
        a.handle = buffer.handle
        if not a.flags & (ioctls.USERPTR | ioctls.DOORBELL):
            a.offset = buffer.address

    def _free_memory_of_gpu(self, a: SimpleNamespace, array: bytes) -> None:
        self.events.leave_page(self.buffers.of(a.handle).address)  # before another buffer may have it
        buffer = self.buffers.free(a.handle)
        self._forget(buffer.address, buffer.size)

    def _forget(self, address: int, size: int) -> None:
        self.code.forget(address, size)
        for device in self.devices:
            device.forget(address, size)

    def _map_memory_to_gpu(self, a: SimpleNamespace, array: bytes) -> None:
        for gpu in self._gpus(a, array):
            self.buffers.map(a.handle, gpu)
        a.done = a.count

    def _unmap_memory_from_gpu(self, a: SimpleNamespace, array: bytes) -> None:
        for gpu in self._gpus(a, array):
            self.buffers.unmap(a.handle, gpu)
        a.done = a.count

    def _ipc_export_handle(self, a: SimpleNamespace, array: bytes) -> None:
        a.worker = os.getpid()
        a.place, a.pages = self.buffers.handle_of(a.handle)

    def _ipc_import_handle(self, a: SimpleNamespace, array: bytes) -> None:
        """The program's side maps it, too."""
        gpu = self._gpu(a.gpu)
        a.handle, a.flags = self.buffers.import_memory(a.address, gpu, a.worker, a.place, a.pages)
        a.offset = 0

    def _gpus(self, a: SimpleNamespace, array: bytes) -> list[int]:
        """Those that were not done by an earlier call."""
        self.buffers.of(a.handle)
        if not a.count or a.done > a.count:
            raise OSError(errno.EINVAL, "GPUs")
        if len(array) < 4 * a.count:
            raise OSError(errno.EFAULT, "GPUs")
        return [self._gpu(identity) for (identity,) in struct.iter_unpack("<I", array[4 * a.done :])]

    def _use_event_page(self, handle: int) -> None:
        try:
            buffer = self.buffers.of(handle)
        except OSError:
            raise Invalid(f"there is no buffer {handle} for a page of events") from None
        if buffer.size < PAGE_BYTES or not in_arena(buffer.address):
            raise Invalid(f"buffer {handle}, of {buffer.size} bytes at 0x{buffer.address:x}, is no page of events: "
                          f"{PAGE_BYTES} bytes of memory of the driver's")
        self.events.use_page(buffer.address)

    # -- queues ------------------------------------------------------------------------------------------------------
    def _create_queue(self, a: SimpleNamespace, array: bytes) -> None:
        gpu = self._gpu(a.gpu)
        kinds = {ioctls.QUEUE_AQL: AqlQueue, ioctls.QUEUE_SDMA: SdmaQueue, ioctls.QUEUE_SDMA_XGMI: SdmaQueue}
        if a.type not in kinds:
            raise OSError(ioctls.ENOTSUPP, "type")
        self._check_queue(a)
        with self._lock:
            slot = next((s for s in range(DOORBELL_BYTES // 8) if (gpu, s) not in self._doorbells), None)
            if slot is None:
                raise OSError(errno.ENOMEM, "doorbells")
            a.doorbell = DOORBELL_TAG | a.gpu << GPU_SHIFT | 8 * slot
            doorbell = ARENA_START + DOORBELLS_OFFSET + gpu * DOORBELL_BYTES + 8 * slot
            for address, size in ((a.ring, a.ring_bytes), (a.write_pointer, 8), (a.read_pointer, 8)):
                self._check_user(address, size)
            a.queue = next(number for number in range(1, len(self._queues) + 2) if number not in self._queues)
            place = QueueMemory(a.ring, a.ring_bytes, a.write_pointer, a.read_pointer, doorbell, a.save_area)
            queue = self._queues[a.queue] = kinds[a.type](a.queue, gpu, place, self)
            self._doorbells.add((gpu, slot))
        queue.percentage, queue.priority = a.percentage & 255, a.priority
        queue.start()

    def _check_queue(self, a: SimpleNamespace) -> None:
        """As set_queue_properties_from_user; what is shorter than a ring may be becomes the shortest."""
        if a.percentage & 255 > 100 or a.priority > 15 or a.ring_bytes & (a.ring_bytes - 1):
            raise OSError(errno.EINVAL, "queue")
        a.ring_bytes = max(a.ring_bytes, ioctls.MIN_RING_BYTES)

    def _check_user(self, address: int, size: int) -> None:
        try:
            self.check(address, size)
        except DeviceError:
            raise OSError(errno.EFAULT, "address") from None

    def _queue(self, number: int, unknown: int = errno.EINVAL) -> DriverQueue:
        queue = self._queues.get(number)
        if queue is None:
            raise OSError(unknown, "queue")
        return queue

    def _update_queue(self, a: SimpleNamespace, array: bytes) -> None:
        """Without a ring, or with 0 percent, it stops where it is; ROCr suspends queues so."""
        self._check_queue(a)
        queue = self._queue(a.queue, errno.EFAULT)
        if a.ring:
            self._check_user(a.ring, a.ring_bytes)
        queue.place.ring, queue.place.ring_bytes = a.ring, a.ring_bytes
        queue.percentage, queue.priority = a.percentage & 255, a.priority
        queue.ring()

    def _destroy_queue(self, a: SimpleNamespace, array: bytes) -> None:
        queue = self._queue(a.queue)
        queue.stop()
        with self._lock:
            del self._queues[a.queue]
            offset = queue.place.doorbell - ARENA_START - DOORBELLS_OFFSET - queue.gpu * DOORBELL_BYTES
            self._doorbells.discard((queue.gpu, offset // 8))

    def _set_cu_mask(self, a: SimpleNamespace, array: bytes) -> None:
        """A fact of the queue: work-groups run where there is room."""
        if not a.count or a.count % 32:
            raise OSError(errno.EINVAL, "mask")
        self._queue(a.queue, errno.EFAULT)

    def _alloc_queue_gws(self, a: SimpleNamespace, array: bytes) -> None:
        self._queue(a.queue)
        if a.count > GWS:
            raise OSError(errno.ENOMEM, "GWS")
        a.first = 0

    # -- what queues need --------------------------------------------------------------------------------------------
    def check(self, address: int, size: int) -> None:
        """DeviceError unless the driver itself may read and write there (`Buffers.check`)."""
        self.buffers.check(address, size)

    def defer_unmapping(self) -> AbstractContextManager[None]:
        """A context in which memory of the program stays mapped, whatever is freed (`Buffers.defer_unmapping`)."""
        return self.buffers.defer_unmapping()

    def interrupt(self, number: int) -> None:
        """Set the event that a packet or a signal names by its number."""
        self.events.set(number)

    def dispatch(self, gpu: int, packet: int, queue: int) -> None:
        """Run the kernel of the packet at ``packet``; ``queue``: address of its amd_queue_t. Raises DeviceError."""
        self.check(queue, QUEUE_BYTES)
        with self.events.poll_events():
            profile = self.devices[gpu].dispatch(packet, queue)
            self.buffers.check_files()
        if self._settings.profile is not None and profile is not None:
            with self._lock:
                append_profile(self._settings.profile, profile)

    def halt(self, gpu: int, queue: int) -> None:
        """End the kernel that a queue (address of its amd_queue_t) has on a GPU, if there is one."""
        self.devices[gpu].cancel("its queue was destroyed while it ran", queue)

    def report_failure(self, queue: DriverQueue, error: Exception) -> None:
        """Report it to the program's runtime as the driver does: by memory events, by the queue, or by a hang."""
        tell_failure(os.environ, error, self._program)
        fault = error.fault if isinstance(error, DeviceError) else None
        if fault is not None and fault.address is not None and fault.kind in _OF_MEMORY:
            read_only = fault.kind is FaultKind.READ_ONLY
            faults.raise_memory_fault(self.events, gpu_id(queue.gpu), fault.address, read_only)
        elif isinstance(queue, AqlQueue) and not (isinstance(error, TimeLimit) and self._raise_hang(queue.gpu)):
            self._tell(queue, error)
        elif not isinstance(queue, AqlQueue):
            self._raise_hang(queue.gpu)

    def _tell(self, queue: AqlQueue, error: Exception) -> None:
        try:
            faults.tell(queue, error, self)
        except DeviceError:  # it has no place for it
            self._raise_hang(queue.gpu)
            raise

    def _raise_hang(self, gpu: int) -> bool:
        return faults.raise_hang(self.events, gpu_id(gpu))


def _errno_of(action: Callable[[], None]) -> bytes:
    """Carry it out; what it failed with, as the program gets it."""
    try:
        action()
    except OSError as error:
        return struct.pack("<i", error.errno or errno.EIO)
    return struct.pack("<i", 0)
