"""How the addresses of a wave's lanes lie to each other, and how many cache lines that is.

In: what is known of an address before a launch, and the size of work-groups. Out: :class:`Pattern`. Invariant: in each
row of lanes, addresses of active lanes are ``stride`` bytes apart, modulo 2^32, for each lane between them; where there
are ``offsets``, addresses of all active lanes have the differences of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

from luthier_py.isa.semantics.readers.numbers import Number, Varying

Block = tuple[int, int, int]


class Shape(Enum):
    """In a row of lanes."""

    BROADCAST = "broadcast"
    UNIT = "unit stride"
    STRIDED = "strided"
    GATHER = "gather"  # or a scatter: addresses are made of what lanes loaded
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Of waves in work-groups of one size. ``row``: how many lanes are a row, of the wave where it is no row."""

    shape: Shape
    stride: int = 0
    row: int = 0
    offsets: tuple[tuple[int, ...], ...] = ()
    """Of each lane from the first one, for waves of a work-group that differ; empty where not known across rows."""

    @property
    def known(self) -> bool:
        return bool(self.offsets)


def pattern_of(known: Number | None, block: Block, wave_size: int, size: int) -> Pattern:
    """``size``: bytes that a lane accesses."""
    if known is None:
        return Pattern(Shape.UNKNOWN)
    terms, (x, y, z) = dict(known.terms), block
    by_lane, by_x = terms.get(Varying.LANE, 0), terms.get(Varying.X, 0)
    rows = x % wave_size != 0 and y * z > 1  # a wave has lanes of several
    if rows and by_lane and terms.keys() - {Varying.LANE}:
        return Pattern(Shape.UNKNOWN)
    stride = by_lane + by_x
    offsets = () if rows and Varying.ROW in terms else _offsets(terms, block, wave_size)
    straight = bool(offsets) and all(own == tuple(range(0, stride * len(own), stride)) if stride else not any(own)
                                     for own in offsets)
    return Pattern(_shape(stride, size), stride, min(wave_size, x * y * z if straight else x), offsets)


def _shape(stride: int, size: int) -> Shape:
    return Shape.BROADCAST if stride == 0 else Shape.UNIT if abs(stride) == size else Shape.STRIDED


def _offsets(terms: Mapping[Varying, int], block: Block, wave_size: int) -> tuple[tuple[int, ...], ...]:
    """A row's number counts for nothing: where it is not known, it is the same in all lanes."""
    x, y, z = block
    found = []
    for first in range(0, x * y * z, wave_size):
        items = range(first, min(first + wave_size, x * y * z))
        places = ({Varying.LANE: item - first, Varying.X: item % x, Varying.Y: item // x % y,
                   Varying.Z: item // (x * y)} for item in items)
        sums = [sum(terms.get(what, 0) * at for what, at in place.items()) for place in places]
        found.append(tuple(each - sums[0] for each in sums))
    return tuple(dict.fromkeys(found))


def lines_of(pattern: Pattern, size: int, line: int, lanes: int) -> tuple[int, int] | None:
    """The fewest and the most lines that an access of ``lanes`` lanes touches, wherever it begins, at a multiple of the
    power of two that ``size`` has, up to 4."""
    step = min(size & -size, 4)
    if pattern.shape in (Shape.UNKNOWN, Shape.GATHER):
        return None
    if pattern.known:
        counts = [_lines(own, size, line, step) for own in pattern.offsets]
        return min(low for low, _ in counts), max(high for _, high in counts)
    low, high = _lines(tuple(pattern.stride * lane for lane in range(pattern.row)), size, line, step)
    return low, high * -(-lanes // pattern.row)


@cache
def _lines(offsets: tuple[int, ...], size: int, line: int, step: int) -> tuple[int, int]:
    counts = [len({at // line for offset in offsets for at in (start + offset, start + offset + size - 1)})
              for start in range(0, line, step)]
    return min(counts), max(counts)
