"""Memory of the emulated GPUs, at the addresses that the program's side gives it.

In: what the memory ioctls say. Out: the emulator's table of what kernels may touch. Invariant: every byte of a buffer
is mapped here at its own address: the arena whole, other pages (user pointers) as long as some buffer has them.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import threading
from collections import Counter
from dataclasses import dataclass, field

from luthier_py.emulator.memory import Allocation, Memory
from luthier_py.errors import DeviceError
from luthier_py.runtime.kfd.protocol import ARENA_BYTES, ARENA_START, DRIVER_BYTES, DRIVER_START
from luthier_py.worker.arena import ARENA_FD
from luthier_py.worker.kfd.ioctls import DOORBELL, MMIO, USERPTR, VRAM

PAGE = mmap.PAGESIZE
_WRITABLE = 1 << 31
_NORESERVE, _FIXED, _FIXED_NOREPLACE = getattr(mmap, "MAP_NORESERVE", 0x4000), 0x10, 0x100000
_REMOVE = getattr(mmap, "MADV_REMOVE", 9)


@dataclass(slots=True)
class Buffer:
    """Mutable: a buffer object. ``user``: where its pages lie in the program, which may be elsewhere (user pointers);
    ``mapped``: GPUs that have it mapped."""

    handle: int
    address: int
    size: int
    flags: int
    gpu: int
    user: int
    mapped: set[int] = field(default_factory=set)

    @property
    def local(self) -> bool:
        return bool(self.flags & VRAM)

    @property
    def pages(self) -> range:
        return range(self.address // PAGE, (self.address + self.size) // PAGE)

    @property
    def memory(self) -> bool:
        """Whether there is memory behind it that kernels may touch."""
        return not self.flags & (DOORBELL | MMIO)


class Buffers:
    """Mutable: all buffers of one program."""

    def __init__(self, limit: int) -> None:
        self._limit = limit  # bytes of each GPU
        self._used: Counter[int] = Counter()
        self._buffers: dict[int, Buffer] = {}
        self._pages: Counter[int] = Counter()  # outside the arena
        self._next = 1
        self._lock = threading.RLock()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
        self._map(ARENA_START, ARENA_BYTES, ARENA_START, _FIXED_NOREPLACE)
        self._map(DRIVER_START, DRIVER_BYTES, DRIVER_START, _FIXED_NOREPLACE)
        self.memory = Memory((DRIVER_START, DRIVER_BYTES))

    def allocate(self, address: int, size: int, flags: int, gpu: int, user: int) -> Buffer:
        """Raises OSError, as the driver has its errors."""
        user = user if flags & USERPTR else address
        if not size or (address | size | user) % PAGE or max(address, user) + size > 1 << 47:
            raise OSError(errno.EINVAL, "address or size")
        with self._lock:
            if flags & VRAM and self._used[gpu] + size > self._limit:
                raise OSError(errno.ENOMEM, "memory of the device")
            buffer = Buffer(self._next, address, size, flags, gpu, user)
            if buffer.memory:
                self._enter(buffer)
            self._next += 1
            self._buffers[buffer.handle] = buffer
            self._used[gpu] += size if buffer.local else 0
        return buffer

    def free(self, handle: int) -> Buffer:
        with self._lock:
            buffer = self.of(handle)
            for gpu in list(buffer.mapped):
                self.unmap(handle, gpu)
            del self._buffers[handle]
            if buffer.local:
                self._used[buffer.gpu] -= buffer.size
            if buffer.memory:
                self._leave(buffer)
        return buffer

    def of(self, handle: int) -> Buffer:
        buffer = self._buffers.get(handle)
        if buffer is None:
            raise OSError(errno.EINVAL, "handle")
        return buffer

    def available(self, gpu: int) -> int:
        return max(self._limit - self._used[gpu], 0)

    def map(self, handle: int, gpu: int) -> None:
        """From now on kernels may touch it. All GPUs see the same memory: what one has mapped is mapped."""
        with self._lock:
            buffer = self.of(handle)
            if buffer.memory and not buffer.mapped:
                kind = "user memory" if buffer.flags & USERPTR and not in_arena(buffer.user) else "buffer"
                writable = bool(buffer.flags & _WRITABLE)
                self.memory.register(Allocation(buffer.address, buffer.size, kind, writable))
            buffer.mapped.add(gpu)

    def unmap(self, handle: int, gpu: int) -> None:
        with self._lock:
            buffer = self.of(handle)
            buffer.mapped.discard(gpu)
            if buffer.memory and not buffer.mapped and self.memory.find(buffer.address) is not None:
                self.memory.unregister(buffer.address)

    def check(self, address: int, size: int) -> None:
        """DeviceError unless the driver itself may read and write there."""
        if in_arena(address) and in_arena(address + size - 1):
            return
        pages = range(address // PAGE, -(-(address + size) // PAGE))
        if not all(page in self._pages for page in pages):
            raise DeviceError(f"bad address 0x{address:x} in a packet; {self.memory.nearest(address)}")

    def _enter(self, buffer: Buffer) -> None:
        if in_arena(buffer.address):
            if buffer.user != buffer.address:
                self._map(buffer.address, buffer.size, buffer.user)
            return
        pages = buffer.pages
        if buffer.user != buffer.address:
            raise OSError(errno.EINVAL, "user memory at an address outside of the arena that is not its own")
        new = [page for page in pages if page not in self._pages]
        for start, end in runs(new):
            self._map(start * PAGE, (end - start) * PAGE, start * PAGE, _FIXED_NOREPLACE)
        self._pages.update(pages)

    def _leave(self, buffer: Buffer) -> None:
        """Gives the pages of the arena back; others are unmapped where no other buffer has them."""
        if in_arena(buffer.address):
            if buffer.user != buffer.address:
                self._map(buffer.address, buffer.size, buffer.address)
            self._libc.madvise(ctypes.c_void_p(buffer.address), ctypes.c_size_t(buffer.size), _REMOVE)
            return
        pages = buffer.pages
        self._pages.subtract(pages)
        gone = [page for page in pages if not self._pages[page]]
        for page in gone:
            del self._pages[page]
        for start, end in runs(gone):
            self._libc.munmap(ctypes.c_void_p(start * PAGE), ctypes.c_size_t((end - start) * PAGE))

    def _map(self, address: int, size: int, offset: int, how: int = _FIXED) -> None:
        flags = mmap.MAP_SHARED | _NORESERVE | how
        got = self._libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, ARENA_FD, offset)
        if got != address:
            raise OSError(errno.ENOMEM, f"cannot map 0x{address:x}: {os.strerror(ctypes.get_errno())}")


def in_arena(address: int) -> bool:
    return ARENA_START <= address < ARENA_START + ARENA_BYTES


def runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Ascending numbers as half-open ranges."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return found
