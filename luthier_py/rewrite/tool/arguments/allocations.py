"""Memory that a launch may access, as hooks and reports see it.

In: allocations that the launcher knows: the launch's buffers, or those of the program, and what the code object has in
memory itself. Out: a table for hooks, and names for reports. Invariant: the table is sorted by addresses, and what is
in it does not overlap; where allocations are unknown there is no table, which a hook can test.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack

from luthier_py.base.records import dataclass
from luthier_py.binary import loader
from luthier_py.rewrite.tool.arguments.computed import Computed
from luthier_py.rewrite.tool.arguments.launch_variable import first_element
from luthier_py.rewrite.tool.hooks.author_types import Lane, bool_, ptr, u32, u64
from luthier_py.rewrite.tool.hooks.hook import device
from luthier_py.rewrite.tool.hooks.types import U64, Pointer
from luthier_py.rewrite.tool.variables import Variable


@dataclass(frozen=True, slots=True, order=True)
class LiveAllocation:
    """Memory from ``start`` up to ``end``."""

    start: int
    end: int
    name: str
    writable: bool = True


def collect_loaded_segments(obj: loader.CodeObject, base: int, name: str) -> list[LiveAllocation]:
    """What a code object has in memory, where it is loaded at ``base``."""
    return [LiveAllocation(base + each.address, base + each.end, name, loader.SegmentFlag.WRITE in each.flags)
            for each in obj.segments if each.load and each.memory_size]


@device
def unwritten(address: Lane[u64]) -> Lane[u32]:
    """What the dword at an address holds until it is written, under a tool that `marks_memory`."""
    return u32((address >> 2) * u64(0x9E3779B97F4A7C15) >> 32)


@device
def is_outside(table: ptr[u64], at: Lane[u64], size: u32, writes: bool_) -> Lane[bool_]:
    """The last allocation that begins at or before ``at`` is the one that has all of it, or none has; ``writes``: and
    which may be written."""
    low, high = u32(0), u32(table[0])
    while low < high:
        middle = (low + high) // 2
        if table[1 + 2 * middle] <= at:
            low = middle + 1
        else:
            high = middle
    if low == 0 or table[2 * low] < at + u64(size):
        return True
    return writes and table[2 * u32(table[0]) + low] != 0


class Allocations(Variable):
    """A table of the memory that each launch may access, in the order of addresses.

    A hook takes it as ``ptr[u64]``, or ``Lane[ptr[u64]]``: how many there are, then start and end of each, then
    for each 1 where it may not be written. Where allocations are not known the pointer is 0.
    """

    __slots__ = ()

    def __init__(self, name: str = "") -> None:
        super().__init__(U64, None, name)

    @property
    def pointer(self) -> Pointer:
        """A pointer to the cell that holds the table's address."""
        return Pointer(Pointer(U64))

    @property
    def start(self) -> Computed:
        """What a hook gets that takes ``ptr[u64]``."""
        return Computed(first_element(U64), (self,), self.name)

    @staticmethod
    def encode_table(known: Sequence[LiveAllocation]) -> bytes:
        """The table as it is in memory."""
        rows = sorted(known)
        ends = (number for each in rows for number in (each.start, each.end))
        return pack(f"<{1 + 3 * len(rows)}Q", len(rows), *ends, *(not each.writable for each in rows))
