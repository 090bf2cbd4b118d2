"""What memory a launch came to: pages, and what each held before.

In: rows of native code (watching/touched.c). Out: the same as data. Invariant: a page is saved before the launch's
first access of it, so its bytes are those from before the launch unless another writer changed them meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from luthier_py.base.records import dataclass
from luthier_py.emulator.memory.device_memory import read_bytes

PAGE_BYTES = 4096
LINE_BYTES = PAGE_BYTES // 64
TOUCHED_COLUMNS = 4  # its number and 1, a bit for each line, whether it was written, where its bytes are saved


@dataclass(frozen=True, slots=True)
class TouchedPage:
    """``before``: the whole page, whichever allocations it is part of. ``lines``: a bit for each that was
    touched. ``written``: not only read."""

    address: int
    lines: int
    before: bytes
    written: bool

    def touches(self, start: int, end: int) -> bool:
        """Whether any line was touched that has bytes from ``start`` up to ``end``."""
        first, last = max(start - self.address, 0), min(end - self.address, PAGE_BYTES)
        if first >= last:
            return False
        return bool(self.lines >> first // LINE_BYTES & (1 << -(-last // LINE_BYTES) - first // LINE_BYTES) - 1)


@dataclass(frozen=True, slots=True)
class TouchedMemory:
    """``pages`` ascend. ``elsewhere``: the launch ran code of other code objects, too."""

    pages: tuple[TouchedPage, ...]
    elsewhere: bool


def make_touched_page(row: Sequence[int]) -> TouchedPage:
    """A row of TOUCHED_COLUMNS numbers as a page; its bytes are copied, so the launch may be closed after."""
    number, lines, written, before = row
    return TouchedPage((number - 1) * PAGE_BYTES, lines, read_bytes(before, PAGE_BYTES), bool(written))
