"""Compiled hooks on disk, by content.

In: a text that decides what the code is. Out: code bytes, or None. Invariant: an entry is whole or not there.
"""

from __future__ import annotations

from luthier_py.base.storage import Shelf, cache_key

FORMAT = "5"  # of entries and of what makes their keys
_SHELF = Shelf("hooks", 64 << 20)

read = _SHELF.read
write = _SHELF.write


def key(*parts: str) -> str:
    """Name of the entry that depends on ``parts``."""
    return cache_key(FORMAT, *parts)
