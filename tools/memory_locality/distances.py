"""How many other lines are touched between two uses of a line: LRU stack distances, exactly.

In: a stream of lines, in pieces of any length. Out: a distance for each touch, or COLD where a line is used for the
first time. Invariant: a distance is the number of distinct lines that were touched since the line's last use, so that a
fully associative LRU cache of C lines has it exactly if the distance is below C (Mattson et al., "Evaluation
techniques for storage hierarchies", 1970).

Between two uses at times p < t lie as many distinct lines as touches j whose line was not used since p, those with
prev(j) <= p < j. All touches up to p have an earlier prev, so this is the number of j < t with prev(j) <= prev(t), less
the p + 1 up to p. Counting the earlier ones that are not greater is a merge sort, here level by level in NumPy, instead
of a tree that is searched touch by touch: O(n log n). What was before a piece counts only as the stack of lines by last
use, which is all that is stored: as much as the working set, not the stream.
"""

from __future__ import annotations

import numpy as np

from .touches import Array

COLD = -1


class ReuseDistances:
    """Of one stream. Mutable: the lines so far, by their last use."""

    def __init__(self) -> None:
        self._stack: Array = np.empty(0, np.int64)

    def __len__(self) -> int:
        """Distinct lines."""
        return len(self._stack)

    def of(self, lines: Array) -> Array:
        """The distance of each touch of the next piece."""
        before = len(self._stack)
        stream = np.concatenate([self._stack, lines])
        order = np.argsort(stream, kind="stable")
        again = stream[order][1:] == stream[order][:-1]
        previous = np.full(len(stream), COLD)
        previous[order[1:][again]] = order[:-1][again]
        last = np.ones(len(stream), bool)
        last[order[:-1][again]] = False
        self._stack = stream[last]
        since = previous[before:]
        return np.where(since == COLD, COLD, before + earlier_not_greater(since) - since - 1)


def earlier_not_greater(keys: Array) -> Array:
    """For each key how many before it are not greater.

    ``order`` has places, at first by key; then ever smaller blocks of neighbouring places, each by key. Where a block
    is halved, each place of the right half has in front of it those of the left half that count.
    """
    order = np.argsort(keys, kind="stable")
    at, found = np.arange(len(keys)), np.zeros(len(keys), np.int64)
    for bit in reversed(range(len(keys).bit_length())):
        right = order >> bit & 1 == 1
        start = order >> bit + 1 << bit + 1  # of the block: all blocks before it are full, and half of each is left
        left = np.cumsum(~right) - (start >> 1)
        found[order[right]] += left[right]
        halved = np.empty_like(order)
        halved[np.where(right, at - left + (1 << bit), start + left - 1)] = order
        order = halved
    return found


def sampled(lines: Array, one_of: int) -> Array:
    """Whether each line is among the one of so many that are looked at, by a hash of its number (Waldspurger et al.,
    "Efficient MRC construction with SHARDS", 2015; the hash is the finaliser of splitmix64)."""
    mixed = lines.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    chosen: Array = (mixed ^ mixed >> np.uint64(31)) % np.uint64(one_of) == 0
    return chosen
