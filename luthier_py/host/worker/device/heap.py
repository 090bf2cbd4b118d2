"""The heap from which kernels allocate (malloc, new): what hidden_heap_v1 points to.

In: memory that program and kernels share. Out: the heap as __ockl_dm_init_v1 of AMD's device library leaves it (ROCm
device libraries, ockl/src/dm.cl, heap_t): zeros, but for the slabs that it begins with. Invariant: kernels alone change
it from then on; for what these slabs do not hold they ask the program (hostcalls.c).
"""

from __future__ import annotations

import mmap
import struct

from luthier_py.base.errors import DeviceError
from luthier_py.emulator.memory.device_memory import Allocation, Memory, write_bytes

ARGUMENT = "hidden_heap_v1"
SLAB_BYTES = 2 << 20  # and their alignment: a block's slab is where its address has zeros from there on
_HEAP_BYTES = 1 << 17
_KINDS, _LINE, _SLABS_OF_A_KIND, _SLAB_RECORD = 16, 128, 256, 24
_INITIAL_SLABS = 5 * _KINDS * _LINE + _KINDS * _SLABS_OF_A_KIND * _SLAB_RECORD
"""Where three words are: the next slab, the end, the first."""
INITIAL_BYTES = 8 << 20  # of slabs (clr, flags.hpp, HIP_INITIAL_DM_SIZE)


class Heap:
    """Mutable: one device's, made when a kernel that allocates is first launched."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._initial_bytes = INITIAL_BYTES
        self._address = 0

    def begin_with(self, size: int) -> None:
        """Slabs of so many bytes; of no effect once the heap is there."""
        self._initial_bytes = size

    def address(self) -> int:
        """Device address of the heap, which the first call makes; DeviceError where there is no room."""
        if not self._address:
            self._address = self._memory.allocate(_HEAP_BYTES, "heap of kernels", mmap.PAGESIZE).address
            write_bytes(self._address + _INITIAL_SLABS, struct.pack("<3Q", *self._slabs()))
        return self._address

    @property
    def made(self) -> int:
        """Its address, or 0 as long as it is not there."""
        return self._address

    def _slabs(self) -> tuple[int, int, int]:
        """All 0 where there is no room: then the host refuses what kernels request."""
        size = self._initial_bytes // SLAB_BYTES * SLAB_BYTES
        try:
            first = self._memory.reserve(size, SLAB_BYTES) if size else 0
        except DeviceError:
            return 0, 0, 0
        if size:
            self._memory.register(Allocation(first, size, "heap of kernels", heap=self._address))
        return first, first + size, first
