"""Memory, lane addresses and masks that the tests of memory instructions share."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(11)
LANES = np.arange(64, dtype=np.uint64)
PARTIAL = 0x8F0F_FFFF_1248_FFF1
PRIVATE = 2 << 48
SHARED = 1 << 48


def lanes_of(mask):
    return (np.uint64(mask) >> LANES) & np.uint64(1) == 1


def memory(size=8192):
    return RNG.integers(0, 256, size).astype(np.uint8)


def pair(value):
    return {0: value & 0xFFFFFFFF, 1: value >> 32}


# Byte offsets of the lanes: consecutive, equal, equal in groups of 16, strided, backwards, another
# pattern in each 16 lanes, anywhere.
OFFSETS = {
    "consecutive": lambda size: LANES * size,
    "same": lambda size: LANES * 0 + 64, "rows": lambda size: LANES // 16 * 256,
    "tiles": lambda size: LANES % 16 * size,
    "strided": lambda size: LANES * 2 * size, "backwards": lambda size: (63 - LANES) * size,
    "mixed": lambda size: np.concatenate(
        [LANES[:16] * 48, LANES[:16] * 0 + 32, LANES[:16] * size, LANES[:16] * size + np.uint64(4)]
    ),
    "anywhere": lambda size: RNG.permutation(256).astype(np.uint64)[:64] * 16,
}  # fmt: skip


def loaded(data, offsets, size, kind):
    """(words, lanes) that a load gives."""
    words = max(size // 4, 1)
    step = np.dtype(kind).itemsize
    at = [np.array([data[int(o) + 4 * w : int(o) + 4 * w + step].view(kind)[0] for o in offsets]) for w in range(words)]
    return np.array([row.astype(np.int64).astype(np.uint32) for row in at])
