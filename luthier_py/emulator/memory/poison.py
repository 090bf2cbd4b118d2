"""What memory holds that was never written, where checks look for its use.

In: an allocation. Out: its dwords, each a number made of its address, by which native code knows it again
(watching/accesses.c). Invariant: something else that is written there is taken for it once in 2**32 times.
"""

from __future__ import annotations

import ctypes

_FACTOR = 0x9E3779B97F4A7C15
_AT_ONCE = 1 << 22  # dwords
LARGEST = 1 << 32
"""Bytes of an allocation from which on it is left as it is: all of it would have to exist."""


def poison(address: int, size: int) -> None:
    """Fill the whole dwords of an allocation."""
    import numpy as np  # takes long to import, and is of use for checks alone

    first, count = -(-address // 4), (address + size) // 4 - -(-address // 4)
    if size > LARGEST:
        return
    for start in range(0, count, _AT_ONCE):
        part = np.arange(first + start, first + min(start + _AT_ONCE, count), dtype=np.uint64)
        words = (part * np.uint64(_FACTOR) >> np.uint64(32)).astype(np.uint32)
        ctypes.memmove(4 * (first + start), words.ctypes.data, words.nbytes)
