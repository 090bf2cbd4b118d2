"""What memory a launch came to: pages, and what each held before.

In: rows of native code (watching/touched.c). Out: the same as data. Invariant: a page is kept before the launch's first
access of it, so its bytes are those from before the launch unless somebody else wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from luthier_py.emulator.memory import read_bytes

PAGE_BYTES = 4096
TOUCHED_COLUMNS = 3  # its number and 1, whether it was written, where its bytes are kept


@dataclass(frozen=True, slots=True)
class TouchedPage:
    """``before``: all of it, whoever has what parts of it. ``written``: not only read."""

    address: int
    before: bytes
    written: bool


@dataclass(frozen=True, slots=True)
class Touched:
    """``pages`` ascend. ``elsewhere``: the launch ran code of other code objects, too."""

    pages: tuple[TouchedPage, ...]
    elsewhere: bool


def touched_page(row: Sequence[int]) -> TouchedPage:
    number, written, before = row
    return TouchedPage((number - 1) * PAGE_BYTES, read_bytes(before, PAGE_BYTES), bool(written))
