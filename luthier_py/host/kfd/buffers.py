"""Memory of the emulated GPUs, at the addresses that the program's side gives it.

In: what the memory ioctls say. Out: the emulator's table of what kernels may touch. Invariant: every byte of a buffer
is mapped here at its own address: the arena whole, other pages (user pointers, shared virtual memory) as long as some
buffer or range has them, or a thread here may access them.
"""

from __future__ import annotations

import bisect
import ctypes
import errno
import mmap
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from luthier_py.base.errors import DeviceError, DeviceFault, FaultKind
from luthier_py.base.records import dataclass, field
from luthier_py.emulator.memory.device_memory import Allocation, Memory
from luthier_py.host.kfd.ioctls import DOORBELL, MMIO, USERPTR, VRAM
from luthier_py.host.kfd.protocol import ARENA_BYTES, ARENA_START, CONTROL_BYTES, DRIVER_BYTES, DRIVER_START
from luthier_py.host.kfd.svm_ranges import SvmPair, SvmRanges
from luthier_py.host.worker.arena import ARENA_FD
from luthier_py.host.worker.mapped_files import MESSAGE, MappedFiles

PAGE = mmap.PAGESIZE
_WRITABLE = 1 << 31
_HOST_BYTES = os.sysconf("SC_PHYS_PAGES") * PAGE
_NORESERVE, _FIXED, _FIXED_NOREPLACE = getattr(mmap, "MAP_NORESERVE", 0x4000), 0x10, 0x100000
_REMOVE = getattr(mmap, "MADV_REMOVE", 9)


@dataclass(slots=True)
class DriverBuffer:
    """Mutable: a buffer object. ``user``: where its pages lie in the program, which may be elsewhere (user pointers);
    ``foreign``: they are another process's; ``mapped``: GPUs that have it mapped."""

    handle: int
    address: int
    size: int
    flags: int
    gpu: int
    user: int
    foreign: bool = False
    mapped: set[int] = field(default_factory=set)

    @property
    def local(self) -> bool:
        """Whether it is VRAM, which counts against the memory of its GPU."""
        return bool(self.flags & VRAM)

    @property
    def pages(self) -> range:
        """Numbers of its pages: addresses by the host's page size."""
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
        self._buffers: dict[int, DriverBuffer] = {}
        self._starts: list[int] = []  # of those in the arena, sorted
        self._at: dict[int, DriverBuffer] = {}
        self._pages: Counter[int] = Counter()  # outside the arena
        self._files = MappedFiles()
        self.svm = SvmRanges()
        self._reached: dict[int, int] = {}  # of it, what kernels may touch
        self._left: set[int] = set()  # pages of no buffer or range, mapped until no thread is touching memory
        self._touching = 0
        self._next = 1
        self._lock = threading.RLock()
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long
        self._map(ARENA_START, ARENA_BYTES, ARENA_START, _FIXED_NOREPLACE)
        self._map(DRIVER_START, DRIVER_BYTES, DRIVER_START, _FIXED_NOREPLACE)
        self.memory = Memory((DRIVER_START, DRIVER_BYTES))

    def allocate(self, address: int, size: int, flags: int, gpu: int, user: int) -> DriverBuffer:
        """Raises OSError, as the driver has its errors."""
        user = user if flags & USERPTR else address
        if not size or (address | size | user) % PAGE or max(address, user) + size > 1 << 47:
            raise OSError(errno.EINVAL, "address or size")
        if not flags & (VRAM | DOORBELL | MMIO) and size > _HOST_BYTES:
            raise OSError(errno.ENOMEM, "memory of the host")
        with self._lock:
            if flags & VRAM and self._used[gpu] + size > self._limit:
                raise OSError(errno.ENOMEM, "memory of the device")
            buffer = DriverBuffer(self._next, address, size, flags, gpu, user)
            if buffer.memory:
                self._enter(buffer)
            self._next += 1
            self._buffers[buffer.handle] = buffer
            self._used[gpu] += size if buffer.local else 0
        return buffer

    @contextmanager
    def defer_unmapping(self) -> Iterator[None]:
        """Keep pages mapped while a thread here accesses the program's memory, also those freed meanwhile."""
        with self._lock:
            self._touching += 1
        try:
            yield
        finally:
            with self._lock:
                self._touching -= 1
                if not self._touching and self._left:
                    self._unmap(sorted(self._left))
                    self._left.clear()

    def free(self, handle: int) -> DriverBuffer:
        """Unmap a buffer from all GPUs, and give its pages back. Raises OSError for an unknown handle."""
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

    def map_file(self, handle: int, name: bytes, offset: int, inode: int) -> None:
        """Pages of a file, which other processes may have, are a buffer's memory from now on."""
        with self._lock, _open_same_file(name, inode) as file:
            buffer = self.of(handle)
            self._map(buffer.address, buffer.size, offset, file=file)
            self._files.add(buffer.address, buffer.size)

    def check_files(self) -> None:
        """DeviceError where a kernel was at pages of a file that it has no more."""
        if lost := self._files.take_lost():
            raise DeviceError(f"bad address 0x{lost:x}: {MESSAGE}", fault=DeviceFault(FaultKind.BAD_ADDRESS, 0, lost))

    # -- shared virtual memory ---------------------------------------------------------------------------------------

    def change_svm(self, start: int, end: int, changes: Iterable[SvmPair]) -> None:
        """Attributes of pages that are the shared file's; raises OSError where they cannot be seen here."""
        with self._lock:
            self._map_gaps(start, end)
            self.svm.change(start, end, changes)
            self._reach()

    def map_svm_file(self, start: int, size: int, offset: int, name: bytes, inode: int) -> None:
        """The same with pages of another file."""
        with self._lock, _open_same_file(name, inode) as file:
            self._map_gaps(start, start + size)
            self._map(start, size, offset, file=file)
            self._files.add(start, size)
            self.svm.change(start, start + size, ())

    def leave_svm(self, start: int, end: int) -> None:
        """The program has unmapped these pages."""
        with self._lock:
            gone = self.svm.between(start, end)
            self.svm.remove(start, end)
            self._reach()
            for each in gone:
                self._files.remove(each.start)
                if self._touching or any(each.start <= page * PAGE < each.end for page in self._pages):
                    pages = range(each.start // PAGE, each.end // PAGE)
                    self._give_up([page for page in pages if page not in self._pages])
                else:  # all at once: it may be large
                    self._libc.munmap(ctypes.c_void_p(each.start), ctypes.c_size_t(each.end - each.start))

    def _map_gaps(self, start: int, end: int) -> None:
        """What is not mapped here yet; as with user pointers, nothing of ours may lie there."""
        done = list[tuple[int, int]]()
        try:
            for gap in self.svm.gaps(start, end):
                known = {page for page in (*self._pages, *self._left) if gap[0] <= page * PAGE < gap[1]}
                if not known:
                    self._map(gap[0], gap[1] - gap[0], gap[0], _FIXED_NOREPLACE)
                    done.append(gap)
                    continue
                for page in range(gap[0] // PAGE, gap[1] // PAGE):
                    self._map(page * PAGE, PAGE, page * PAGE, _FIXED if page in known else _FIXED_NOREPLACE)
                self._left -= known
        except OSError:
            for first, last in done:
                self._libc.munmap(ctypes.c_void_p(first), ctypes.c_size_t(last - first))
            raise

    def _reach(self) -> None:
        """Register what kernels may touch; ranges grow before others are removed, since kernels may use them."""
        reached = self.svm.collect_reached()
        for start, end in reached.items():
            if self._reached.get(start) != end:
                self.memory.register(Allocation(start, end - start, "shared virtual memory"))
        for start in self._reached.keys() - reached.keys():
            self.memory.unregister(start)
        self._reached = reached

    # -- memory of other processes -----------------------------------------------------------------------------------

    def handle_of(self, handle: int) -> tuple[int, int]:
        """Of memory that other processes may map: its address with its flags where an address has no bits, its pages.
        What lies in files that are shared already, or outside of the arena, is the program's own to share; what another
        process has shared is that one's."""
        buffer = self.of(handle)
        if not buffer.memory or not in_arena(buffer.address) or buffer.user != buffer.address or buffer.foreign:
            raise OSError(errno.EINVAL, "memory that cannot be shared")
        return buffer.address | buffer.flags >> 26 << 48 | buffer.flags & 0x1F, buffer.size // PAGE

    def import_memory(self, address: int, gpu: int, worker: int, place: int, pages: int) -> tuple[int, int]:
        """Memory that another process's worker has given a handle for, at ``address``: handle and flags."""
        flags, there = ((place >> 48 & 0x3F) << 26 | place & 0x1F) & ~USERPTR, place & (1 << 48) - PAGE
        if flags & (DOORBELL | MMIO) or not in_arena(address):
            raise OSError(errno.EINVAL, "handle or address")
        name = f"/proc/{worker}/fd/{ARENA_FD}"
        if "luthier-memory" not in os.readlink(name):  # that worker has ended, and its number is another process's
            raise OSError(errno.EINVAL, "handle of memory that is gone")
        file = os.open(name, os.O_RDWR | os.O_CLOEXEC)
        try:
            with self._lock:
                buffer = self.allocate(address, pages * PAGE, flags & ~VRAM, gpu, address)  # the other one counts it
                buffer.foreign = True
                try:
                    self._map(address, buffer.size, there, file=file)
                except OSError:
                    self.free(buffer.handle)
                    raise
        finally:
            os.close(file)
        return buffer.handle, flags

    def of(self, handle: int) -> DriverBuffer:
        """The buffer with a handle; OSError (EINVAL) where there is none."""
        buffer = self._buffers.get(handle)
        if buffer is None:
            raise OSError(errno.EINVAL, "handle")
        return buffer

    def available(self, gpu: int) -> int:
        """Bytes of a GPU's memory that are not allocated; ``gpu``: its number, not KFD's gpu_id."""
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
        """When the last GPU has unmapped it, kernels may touch it no longer. Raises OSError for an unknown handle."""
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
        with self._lock:
            shared = not self.svm.gaps(address, address + size)
        if not shared and not all(page in self._pages for page in pages):
            raise DeviceError(f"bad address 0x{address:x} in a packet; {self.memory.nearest(address)}")

    def _enter(self, buffer: DriverBuffer) -> None:
        if in_arena(buffer.address):
            self._take_place(buffer)
            if buffer.user != buffer.address:
                self._map(buffer.address, buffer.size, buffer.user)
            return
        pages = buffer.pages
        if buffer.user != buffer.address:
            raise OSError(errno.EINVAL, "user memory at an address outside of the arena that is not its own")
        shared = {page for each in self.svm.between(buffer.address, buffer.address + buffer.size)
                  for page in range(each.start // PAGE, each.end // PAGE)}
        new = [page for page in pages if page not in self._pages and page not in shared]
        done: list[int] = []
        try:
            for again in (True, False):
                for start, end in runs([page for page in new if (page in self._left) == again]):
                    how = _FIXED if again else _FIXED_NOREPLACE
                    self._map(start * PAGE, (end - start) * PAGE, start * PAGE, how)
                    done += range(start, end)
        except OSError:
            self._give_up(sorted(done))
            raise
        self._left.difference_update(new)
        self._pages.update(pages)

    def _take_place(self, buffer: DriverBuffer) -> None:
        """In the arena every address is one buffer's."""
        place = bisect.bisect_left(self._starts, buffer.address)
        before, behind = self._starts[max(place - 1, 0) : place], self._starts[place : place + 1]
        end = buffer.address + buffer.size
        if buffer.address < ARENA_START + CONTROL_BYTES or end > ARENA_START + ARENA_BYTES:
            raise OSError(errno.EINVAL, "address")
        if any(start < end and buffer.address < start + self._at[start].size for start in before + behind):
            raise OSError(errno.EINVAL, "address of another buffer")
        self._starts.insert(place, buffer.address)
        self._at[buffer.address] = buffer

    def _leave(self, buffer: DriverBuffer) -> None:
        """Gives the pages of the arena back; others are unmapped where no other buffer has them."""
        self._files.remove(buffer.address)
        if in_arena(buffer.address):
            del self._starts[bisect.bisect_left(self._starts, buffer.address)], self._at[buffer.address]
            if buffer.user != buffer.address or buffer.foreign:
                self._map(buffer.address, buffer.size, buffer.address)
            self._libc.madvise(ctypes.c_void_p(buffer.address), ctypes.c_size_t(buffer.size), _REMOVE)
            return
        pages = buffer.pages
        self._pages.subtract(pages)
        gone = [page for page in pages if not self._pages[page]]
        for page in gone:
            del self._pages[page]
        self._give_up([page for page in gone if self.svm.gaps(page * PAGE, (page + 1) * PAGE)])

    def _give_up(self, pages: list[int]) -> None:
        """Drop pages of no buffer or range. What a kernel or a copy may still write there is lost."""
        if not self._touching:
            return self._unmap(pages)
        for start, end in runs(pages):
            self._map(start * PAGE, (end - start) * PAGE, None)
        self._left.update(pages)

    def _unmap(self, pages: list[int]) -> None:
        for start, end in runs(pages):
            self._libc.munmap(ctypes.c_void_p(start * PAGE), ctypes.c_size_t((end - start) * PAGE))

    def _map(self, address: int, size: int, offset: int | None, how: int = _FIXED, file: int = ARENA_FD) -> None:
        """Pages of a file, or without an offset fresh ones."""
        kind, file = (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1) if offset is None else (mmap.MAP_SHARED, file)
        flags = kind | _NORESERVE | how
        got = self._libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, offset or 0)
        if got != address:
            raise OSError(errno.ENOMEM, f"cannot map 0x{address:x}: {os.strerror(ctypes.get_errno())}")


@contextmanager
def _open_same_file(name: bytes, inode: int) -> Iterator[int]:
    """A file of the program's, by a name that another one may have got meanwhile."""
    file = os.open(name, os.O_RDWR | os.O_CLOEXEC)
    try:
        if os.fstat(file).st_ino != inode:
            raise OSError(errno.EFAULT, "another file has its name now")
        yield file
    finally:
        os.close(file)


def in_arena(address: int) -> bool:
    """Whether an address is in the range that program and worker map as a whole."""
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
