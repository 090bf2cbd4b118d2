"""Regions that compute masks and little else: all strips of the wave, one behind the other, without a loop.

In: what `region.LaneStrip` gets, for each strip. Out: code without branches, and masks as
scalars; the host packs the flags of two strips at once. Invariant: no row is written.
"""

from __future__ import annotations

from luthier_py.emulator.records.layout import STRIP
from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.emulator.vector_regions.lane_strip import FULL, LaneStrip
from luthier_py.isa.semantics.algebra import Value

MOST_LINES = 24
"""Of a strip's code."""


class MaskStrip(LaneStrip):
    """EXEC is applied to a mask when it is whole; ``masks``: which, by the scalar register that gets it."""

    def __init__(self, emitter: Emitter, wave_size: int, first: int, wave: str) -> None:
        pointer = emitter.let(f"getelementptr i32, ptr {wave}, i64 {first}")
        super().__init__(emitter, wave_size, str(first), pointer, wave, "")
        self.masks: dict[int, str] = {}

    def write_mask(self, index: int, value: Value) -> None:
        self.results[index], self.masks[index] = value, self.mask

    def result(self, index: int) -> Value:
        value, mask = super().result(index), self.masks.get(index, FULL)
        return value if mask == FULL else value & self.lanes_of(mask)

    @property
    def plain(self) -> bool:
        """Whether there is nothing but masks, and no branch."""
        return not self.label and not any(cell.written for cell in self._cells.values())


def join_masks(emitter: Emitter, flags: list[str]) -> str:
    """Flags of all strips, in vectors of i1, as a scalar."""
    pair, order = f"<{STRIP} x i1>", ", ".join(f"i32 {lane}" for lane in range(2 * STRIP))
    found = ""
    for first in range(0, len(flags), 2):
        both = f"{pair} {flags[first]}, {pair} {flags[first + 1]}, <{2 * STRIP} x i32> <{order}>"
        word = emitter.let(f"bitcast <{2 * STRIP} x i1> {emitter.let(f'shufflevector {both}')} to i32")
        if not found:
            found = word
            continue
        high = emitter.let(f"shl i64 {emitter.let(f'zext i32 {word} to i64')}, 32")
        found = emitter.let(f"or i64 {emitter.let(f'zext i32 {found} to i64')}, {high}")
    return found
