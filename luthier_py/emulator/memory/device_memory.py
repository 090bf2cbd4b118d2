"""Device memory: one reserved range of this process, and the table of what is allocated in it.

In: allocations and frees by the host. Out: addresses, which are host addresses, and a sorted table
that native code searches. Invariant: allocations never touch: at least GAP bytes that belong to
none lie between two, so an access past an end is never an access of a neighbour. What is free is zero.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from luthier_py.base.errors import DeviceError, Invalid, how_many
from luthier_py.base.records import dataclass
from luthier_py.emulator.memory.allocations import AllocationTable
from luthier_py.emulator.memory.space import FreeSpace
from luthier_py.emulator.records.layout import FINE, WRITABLE

ALIGNMENT = 256
GAP = 256
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_LARGEST, _SMALLEST = 1 << 37, 1 << 28
_FAR = 1 << 30  # bytes from which on an allocation explains nothing
_REMEMBERED = 256  # of allocations that are no more
_GIVEN_BACK = 1 << 16  # bytes from which on the pages of what is freed go back to the system


@dataclass(frozen=True, slots=True)
class Allocation:
    """A range of device memory that kernels may touch. ``size``: bytes; ``name``: what errors call it."""

    address: int
    size: int
    name: str
    writable: bool = True
    fine: bool = False
    """Fine-grained, on a device whose float atomics do not reach such memory."""
    spare: int = 0
    """Bytes behind it that kernels may touch as well."""
    heap: int = 0
    """Address of the record of a heap from which kernels allocate, whose slabs may be in it; of whole pages."""

    @property
    def end(self) -> int:
        """First address behind it; ``spare`` bytes are not counted."""
        return self.address + self.size

    @property
    def usable_end(self) -> int:
        """Of what kernels may touch."""
        return self.end + self.spare

    @property
    def row(self) -> tuple[int, int, int]:
        """Its record for native code, layout.ALLOCATION."""
        return self.address, self.usable_end, self.writable * WRITABLE | self.fine * FINE | self.heap

    def __str__(self) -> str:
        return f"{self.name} (0x{self.address:x}, {self.size} bytes)"


def _distance(allocation: Allocation, address: int) -> int:
    return max(allocation.address - address, address - allocation.end + 1, 0)


def _place(address: int, allocation: Allocation) -> str:
    """Where it is from there."""
    if _distance(allocation, address) > _FAR:
        return "nothing is allocated within a gigabyte of it"
    if address >= allocation.end:
        past = address - allocation.end
        return f"{how_many(past, 'byte') if past else 'just'} past the end of {allocation}"
    if address < allocation.address:
        return f"{allocation.address - address} bytes before {allocation}"
    return f"{address - allocation.address} bytes into {allocation}"


class Memory:
    """Mutable: the device's memory. ``place``: address and size of memory to use; without it, some is reserved."""

    def __init__(self, place: tuple[int, int] | None = None) -> None:
        if place is None:
            self._range = _reserve()
            place = ctypes.addressof(ctypes.c_char.from_buffer(self._range)), len(self._range)
            self._advice = getattr(mmap, "MADV_DONTNEED", 0)  # makes private pages zero, on Linux
        else:
            self._advice = getattr(mmap, "MADV_REMOVE", 0)    # and this those of a shared file
        start, size = place
        self._space = FreeSpace(start + GAP, (size - GAP) // ALIGNMENT * ALIGNMENT)
        self._blocks: dict[int, int] = {}               # sizes of what is taken, by start, gaps not included
        self._allocations: dict[int, Allocation] = {}   # by address
        self._addresses: list[int] = []                 # of allocations, sorted
        self._table = AllocationTable()                 # the same, for native code
        self._gone = deque[Allocation](maxlen=_REMEMBERED)
        self._lock = threading.RLock()

    def allocate(self, size: int, name: str, alignment: int = ALIGNMENT) -> Allocation:
        """Zeroed memory that kernels may read and write."""
        start = self.reserve(size, alignment)
        return self.register(Allocation(start, size, name))

    def reserve(self, size: int, alignment: int = ALIGNMENT) -> int:
        """Zeroed memory that kernels cannot touch until parts of it are registered."""
        if size < 0:
            raise Invalid(f"cannot allocate {size} bytes")
        with self._lock:
            start = self._space.take(_with_gap(size), max(alignment, ALIGNMENT))
            if start is None:
                raise DeviceError(f"out of device memory: no room for {size} bytes")
            self._blocks[start] = size
        return start

    def reserve_at(self, address: int, size: int) -> int:
        """The same at a given address; DeviceError where something is."""
        with self._lock:
            if not self._space.take_at(address, _with_gap(size)):
                raise DeviceError(f"no room for {size} bytes at 0x{address:x}; {self.nearest(address)}")
            self._blocks[address] = size
        return address

    def register(self, allocation: Allocation) -> Allocation:
        """Let kernels touch ``allocation``, a part of reserved memory; it replaces one that starts at the same
        address."""
        with self._lock:
            place = bisect.bisect_left(self._addresses, allocation.address)
            if allocation.address in self._allocations:
                self._table.replace(place, *allocation.row)
            else:
                self._addresses.insert(place, allocation.address)
                self._table.insert(place, *allocation.row)
            self._allocations[allocation.address] = allocation
        return allocation

    def unregister(self, address: int) -> None:
        """Kernels can no longer touch what was registered at ``address``; its block stays."""
        with self._lock:
            gone = self._allocations.pop(address, None)
            if gone is None:
                raise Invalid(f"0x{address:x} is not the address of an allocation")
            self._gone.appendleft(gone)
            place = bisect.bisect_left(self._addresses, address)
            del self._addresses[place]
            self._table.remove(place, place + 1)

    def free(self, address: int) -> None:
        """Give back what ``allocate`` or ``reserve`` gave, with every allocation in it."""
        with self._lock:
            if address not in self._blocks:
                raise Invalid(f"0x{address:x} is not the address of an allocation")
            size = self._blocks.pop(address)
            end = address + max(size, 1)
            inside = slice(bisect.bisect_left(self._addresses, address), bisect.bisect_left(self._addresses, end))
            for inner in self._addresses[inside]:
                self._gone.appendleft(self._allocations.pop(inner))
            del self._addresses[inside]
            self._table.remove(inside.start, inside.stop)
            self._clear(address, size)
            self._space.give(address, _with_gap(size))

    def check(self, address: int, size: int) -> None:
        """Invalid unless the host may read or write these bytes."""
        found = self.find(address)
        if found is None or address + size > found.end or size < 0:
            raise Invalid(f"{size} bytes at 0x{address:x} are not inside an allocation; {self.nearest(address)}")

    def find(self, address: int) -> Allocation | None:
        """The allocation that ``address`` is in; None if it is in none. An empty allocation is found by its own
        address."""
        with self._lock:
            place = bisect.bisect_right(self._addresses, address) - 1
            found = self._allocations[self._addresses[place]] if place >= 0 else None
        return found if found is not None and address < max(found.end, found.address + 1) else None

    def between(self, start: int, end: int) -> list[Allocation]:
        """Those that have bytes there, ascending."""
        with self._lock:
            first = max(bisect.bisect_right(self._addresses, start) - 1, 0)
            last = bisect.bisect_left(self._addresses, end)
            found = [self._allocations[address] for address in self._addresses[first:last]]
        return [each for each in found if each.end > start]

    def nearest(self, address: int) -> str:
        """Words about what was at ``address``, and about the allocation that is closest to it."""
        with self._lock:
            known = list(self._allocations.values())
            gone = next((each for each in self._gone if each.address <= address < each.end), None)
        closest = min(known, key=lambda each: _distance(each, address), default=None)
        now = "nothing is allocated" if closest is None else _place(address, closest)
        if gone is None:
            return now
        if closest is not None and closest.address <= address < closest.end:
            return f"{now}, where {gone} was, which was freed"
        return f"{_place(address, gone)}, which was freed; {now}"

    def table(self) -> list[list[int]]:
        """Records of layout.ALLOCATION of what is not empty, ascending."""
        with self._lock:
            return [row for row in self._table.rows if row[0] < row[1]]

    @property
    def table_cell(self) -> int:
        """Address of a word that holds where the table of allocations is, inside of :meth:`publish_table`."""
        return self._table.cell

    @contextmanager
    def publish_table(self) -> Iterator[None]:
        """Native code may search the table; what is registered meanwhile is found at once."""
        with self._lock:
            self._table.enter()
        try:
            yield
        finally:
            with self._lock:
                self._table.leave()

    def _clear(self, start: int, size: int) -> None:
        """Make it zero; large parts by giving their pages back."""
        end = start + size
        first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, end // mmap.PAGESIZE * mmap.PAGESIZE
        if size < _GIVEN_BACK or sys.platform != "linux" or _madvise()(first, last - first, self._advice):
            first = last = end
        ctypes.memset(start, 0, first - start)
        ctypes.memset(last, 0, end - last)


def _with_gap(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT + GAP


@cache
def _madvise() -> Any:
    function = ctypes.CDLL(None).madvise
    function.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return function


def _reserve() -> mmap.mmap:
    """Address space that costs nothing until it is touched; less of it where the process is limited."""
    size = _LARGEST
    while True:
        try:
            return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
        except OSError as error:
            if size == _SMALLEST:
                raise DeviceError(f"cannot reserve {size} bytes of address space for device memory") from error
            size //= 2


def read_bytes(address: int, size: int) -> bytes:
    """A copy of ``size`` bytes at a host address; nothing is checked."""
    return ctypes.string_at(address, size)


def read_allocated_bytes(memory: Memory, address: int, size: int) -> bytes:
    """What an allocation has of them."""
    found = memory.find(address)
    return b"" if found is None else read_bytes(address, max(min(size, found.end - address), 0))


def write_bytes(address: int, data: bytes) -> None:
    """Copy ``data`` to a host address; nothing is checked."""
    ctypes.memmove(address, data, len(data))
