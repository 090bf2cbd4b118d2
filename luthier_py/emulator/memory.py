"""Device memory: one reserved range of this process, and the table of what is allocated in it.

In: allocations and frees by the host. Out: addresses, which are host addresses, and a sorted table
that native code searches. Invariant: allocations never touch: at least GAP bytes that belong to
nobody lie between two, so an access past an end is never an access of a neighbour.
"""

from __future__ import annotations

import bisect
import ctypes
import itertools
import mmap
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luthier_py.emulator.layout import ALLOCATION_BYTES
from luthier_py.errors import DeviceError, Invalid

ALIGNMENT = 256
GAP = 256
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_LARGEST, _SMALLEST = 1 << 37, 1 << 28


@dataclass(frozen=True, slots=True)
class Allocation:
    address: int
    size: int
    name: str
    writable: bool = True

    @property
    def end(self) -> int:
        return self.address + self.size

    def __str__(self) -> str:
        return f"{self.name} (0x{self.address:x}, {self.size} bytes)"


class Memory:
    """Mutable: the device's memory. ``place``: address and size of memory to use; without it, some is reserved."""

    def __init__(self, place: tuple[int, int] | None = None) -> None:
        if place is None:
            self._range = _reserve()
            place = ctypes.addressof(ctypes.c_char.from_buffer(self._range)), len(self._range)
        self._start, self._size = place
        self._blocks: list[tuple[int, int]] = []        # (start, end) taken, gaps not included, sorted
        self._allocations: dict[int, Allocation] = {}   # by address
        self._addresses: list[int] = []                 # of allocations, sorted
        self._high_water = self._start
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
            start = self._hole(max(size, 1), alignment)
            bisect.insort(self._blocks, (start, start + max(size, 1)))
            used, self._high_water = self._high_water, max(self._high_water, start + size)
        if start < used:
            ctypes.memset(start, 0, size)
        return start

    def register(self, allocation: Allocation) -> Allocation:
        with self._lock:
            if allocation.address not in self._allocations:
                bisect.insort(self._addresses, allocation.address)
            self._allocations[allocation.address] = allocation
        return allocation

    def unregister(self, address: int) -> None:
        """Kernels can no longer touch what was registered at ``address``; its block stays."""
        with self._lock:
            if self._allocations.pop(address, None) is None:
                raise Invalid(f"0x{address:x} is not the address of an allocation")
            del self._addresses[bisect.bisect_left(self._addresses, address)]

    def free(self, address: int) -> None:
        """Give back what ``allocate`` or ``reserve`` gave, with every allocation in it."""
        with self._lock:
            place = bisect.bisect_left(self._blocks, (address, 0))
            if place == len(self._blocks) or self._blocks[place][0] != address:
                raise Invalid(f"0x{address:x} is not the address of an allocation")
            _, end = self._blocks.pop(place)
            inside = slice(bisect.bisect_left(self._addresses, address), bisect.bisect_left(self._addresses, end))
            for inner in self._addresses[inside]:
                del self._allocations[inner]
            del self._addresses[inside]

    def check(self, address: int, size: int) -> None:
        """Invalid unless the host may read or write these bytes."""
        found = self.find(address)
        if found is None or address + size > found.end or size < 0:
            raise Invalid(f"{size} bytes at 0x{address:x} are not inside an allocation; {self.nearest(address)}")

    def find(self, address: int) -> Allocation | None:
        with self._lock:
            place = bisect.bisect_right(self._addresses, address) - 1
            found = self._allocations[self._addresses[place]] if place >= 0 else None
        return found if found is not None and address < max(found.end, found.address + 1) else None

    def nearest(self, address: int) -> str:
        """Words about the allocation that is closest to ``address``."""
        with self._lock:
            known = list(self._allocations.values())
        if not known:
            return "nothing is allocated"

        def distance(a: Allocation) -> int:
            return max(a.address - address, address - a.end + 1, 0)

        closest = min(known, key=distance)
        if address >= closest.end:
            return f"{address - closest.end} bytes past the end of {closest}"
        if address < closest.address:
            return f"{closest.address - address} bytes before {closest}"
        return f"{address - closest.address} bytes into {closest}"

    def table(self) -> NDArray[np.uint64]:
        """Records of layout.ALLOCATION, ascending."""
        with self._lock:
            ordered = [self._allocations[address] for address in self._addresses]
        rows = [(a.address, a.end, int(a.writable)) for a in ordered if a.size]
        table = np.array(rows, dtype=np.uint64).reshape(-1, ALLOCATION_BYTES // 8)
        return np.ascontiguousarray(table)

    def _hole(self, size: int, alignment: int) -> int:
        """First place after the others if there is room, else between them."""
        align = max(alignment, ALIGNMENT)
        limit = self._start + self._size - GAP
        last = self._blocks[-1][1] if self._blocks else self._start
        for before in itertools.chain((last, self._start), (end for _, end in self._blocks)):
            start = -(-(before + GAP) // align) * align
            place = bisect.bisect_left(self._blocks, (start, 0))
            following = self._blocks[place][0] if place < len(self._blocks) else limit + GAP
            clear = place == 0 or self._blocks[place - 1][1] + GAP <= start
            if clear and start + size + GAP <= following and start + size <= limit:
                return start
        raise DeviceError(f"out of device memory: no room for {size} bytes")


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
    return ctypes.string_at(address, size)


def write_bytes(address: int, data: bytes) -> None:
    ctypes.memmove(address, data, len(data))
