"""Hooks in C++ that need a stack, and what the larger one of them counts.

In: where a lane's sum is added. Out: text of `sorted`, with an array of 4 KiB that is indexed by numbers of lanes' own,
and of `last`, with a small one; NumPy's numbers for `sorted`.
"""

from __future__ import annotations

import numpy as np

HEAD = r"""
#include <luthier/hooks.h>
using namespace luthier;
"""
SORTED = r"""
LUTHIER_HOOK() void sorted(u32 *out, lane<u32> x) {
    u32 cells[1024];
    for (u32 k = 0; k < 1024; ++k) cells[k] = (x + k * 2654435761u) >> 7;
    for (u32 k = 0; k < 64; ++k) {
        u32 from = cells[(x + k) & 1023] & 1023;
        cells[from] += cells[(from + 1) & 1023] + k;
    }
    u32 sum = 0;
    for (u32 k = 0; k < 1024; ++k) sum = sum * 31 + cells[k];
    atomic_add(&out[PLACE], sum);
}
"""
LAST = r"""
LUTHIER_HOOK() lane<u32> last(lane<u32> x, u32 n) {
    u32 seen[32];
    for (u32 k = 0; k < 32; ++k) seen[k] = x * k + n;
    return seen[(x * n) & 31];
}
"""


def stack_hooks(place: str) -> str:
    """``place``: where in `out` `sorted` adds, in C++."""
    return HEAD + SORTED.replace("PLACE", place) + LAST


def sums(x):
    """What `sorted` adds for each number."""
    k = np.arange(1024, dtype=np.uint64)
    cells = ((x[:, None] + k * 2654435761) & 0xFFFFFFFF) >> 7
    lanes = np.arange(len(x))
    for step in range(64):
        at = cells[lanes, (x + step) & 1023] & 1023
        cells[lanes, at] = (cells[lanes, at] + cells[lanes, (at + 1) & 1023] + step) & 0xFFFFFFFF
    total = np.zeros(len(x), np.uint64)
    for step in range(1024):
        total = (total * 31 + cells[:, step]) & 0xFFFFFFFF
    return total
