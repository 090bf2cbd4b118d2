"""Host memory that launches use and give back: a launch should cost what it runs, not what it maps.

In: sizes. Out: blocks of memory, page aligned, zero when new and as they were left when used again.
Invariant: a block has one user at a time.
"""

from __future__ import annotations

import ctypes
import mmap
import threading

from luthier_py.base.errors import DeviceError

MAX_IDLE_BYTES = 1 << 28


class Pages:
    """Anonymous memory of this process."""

    def __init__(self, size: int) -> None:
        try:
            self.memory = mmap.mmap(-1, size)
        except (OSError, OverflowError, ValueError) as error:
            raise DeviceError(f"no room for the {size} bytes that a work-group needs on this computer") from error
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.size = size


class PagePool:
    """Mutable: idle blocks by size; sizes are powers of two."""

    def __init__(self) -> None:
        self._idle: dict[int, list[Pages]] = {}
        self._idle_bytes = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> Pages:
        """A block of ``size`` bytes or more, a power of two; not zero where it was used before. DeviceError where the
        computer has no room."""
        size = max(1 << (size - 1).bit_length(), mmap.PAGESIZE)
        with self._lock:
            if self._idle.get(size):
                self._idle_bytes -= size
                return self._idle[size].pop()
        return Pages(size)

    def give(self, block: Pages) -> None:
        """Store a block for the next launch, unless MAX_IDLE_BYTES would be exceeded."""
        with self._lock:
            if self._idle_bytes + block.size <= MAX_IDLE_BYTES:
                self._idle.setdefault(block.size, []).append(block)
                self._idle_bytes += block.size
