"""Words that native code shares with Python: arrays of the standard library, since NumPy takes long to import.

In: how many. Out: arrays, and where they are. Invariant: an array whose address was taken keeps its length.
"""

from __future__ import annotations

from array import array
from typing import TypeAlias

Words: TypeAlias = "array[int]"


def zero_words(count: int) -> Words:
    """Of 64 bits."""
    return array("Q", bytes(8 * count))


def address_of(words: Words) -> int:
    """Host address of the first word; it holds as long as the array lives and keeps its length."""
    return words.buffer_info()[0]
