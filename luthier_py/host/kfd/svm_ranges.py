"""What is known of shared virtual memory: attributes of pages, as the driver keeps and sums them up.

In: changes of ranges. Out: attributes of ranges, and what kernels may touch. Source: svm_range_apply_attrs and
svm_range_get_attr of drivers/gpu/drm/amd/amdkfd/kfd_svm.c; linux/kfd_ioctl.h. Invariant: pieces do not overlap, are
sorted, and of two that touch each other the attributes differ.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from luthier_py.base.records import dataclass, replace

PREFERRED_LOC, PREFETCH_LOC, ACCESS, ACCESS_IN_PLACE, NO_ACCESS, SET_FLAGS, CLR_FLAGS, GRANULARITY = range(8)
SYSTEM_MEMORY, UNDEFINED = 0, 0xFFFF_FFFF  # locations that are no GPU's
HOST_ACCESS, COHERENT = 1, 2
_ALL, _COARSEST = 0xFFFF_FFFF, 0x3F

SvmPair = tuple[int, int]
"""A kind of attribute and its value: kfd_ioctl_svm_attribute."""


@dataclass(frozen=True, slots=True)
class SvmAttributes:
    """``access``, ``in_place``: GPUs by their names, which have memory moved to them, or reach it where it is."""

    preferred: int = UNDEFINED
    prefetch: int = UNDEFINED
    access: frozenset[int] = frozenset()
    in_place: frozenset[int] = frozenset()
    flags: int = HOST_ACCESS | COHERENT
    granularity: int = 9

    def change(self, kind: int, value: int) -> SvmAttributes:
        """As one attribute of the driver's interface (kfd_ioctl_svm_attr_type) says."""
        if kind in (ACCESS, ACCESS_IN_PLACE, NO_ACCESS):
            gpu = {value}
            return replace(self, access=self.access | gpu if kind == ACCESS else self.access - gpu,
                           in_place=self.in_place | gpu if kind == ACCESS_IN_PLACE else self.in_place - gpu)
        if kind == PREFERRED_LOC:
            return replace(self, preferred=value)
        if kind == PREFETCH_LOC:
            return replace(self, prefetch=value)
        if kind == GRANULARITY:
            return replace(self, granularity=min(value, _COARSEST))
        return replace(self, flags=self.flags | value if kind == SET_FLAGS else self.flags & ~value)

    @property
    def reached(self) -> bool:
        """Whether any kernel may touch it."""
        return bool(self.access or self.in_place)


@dataclass(frozen=True, slots=True)
class SvmPiece:
    """A range of addresses, up to ``end``, with the same attributes."""

    start: int
    end: int
    attributes: SvmAttributes


class SvmRanges:
    """Mutable, and guarded by its owner."""

    def __init__(self) -> None:
        self._pieces: list[SvmPiece] = []

    def between(self, start: int, end: int) -> list[SvmPiece]:
        """Parts of pieces that are there."""
        first = max(bisect_right(self._pieces, start, key=lambda piece: piece.start) - 1, 0)
        last = bisect_right(self._pieces, end - 1, key=lambda piece: piece.start)
        return [replace(piece, start=max(piece.start, start), end=min(piece.end, end))
                for piece in self._pieces[first:last] if piece.end > start]

    def gaps(self, start: int, end: int) -> list[tuple[int, int]]:
        """What of a range nothing was said of."""
        found = list[tuple[int, int]]()
        for piece in self.between(start, end):
            if start < piece.start:
                found.append((start, piece.start))
            start = piece.end
        return [*found, (start, end)] if start < end else found

    def change(self, start: int, end: int, changes: Iterable[SvmPair]) -> None:
        """Set attributes of all of a range."""
        new = [*self.between(start, end), *(SvmPiece(*gap, SvmAttributes()) for gap in self.gaps(start, end))]
        for kind, value in changes:
            new = [replace(piece, attributes=piece.attributes.change(kind, value)) for piece in new]
        self._put(start, end, new)

    def remove(self, start: int, end: int) -> None:
        """Nothing is said of a range any more."""
        self._put(start, end, [])

    def _put(self, start: int, end: int, new: list[SvmPiece]) -> None:
        """In place of what is there."""
        whole = sorted([*self.between(0, start), *new, *self.between(end, 1 << 64)], key=lambda piece: piece.start)
        joined = list[SvmPiece]()
        for piece in whole:
            if joined and joined[-1].end == piece.start and joined[-1].attributes == piece.attributes:
                joined[-1] = replace(joined[-1], end=piece.end)
            else:
                joined.append(piece)
        self._pieces = joined

    def collect_reached(self) -> dict[int, int]:
        """What kernels may touch, each start with its end."""
        runs = list[tuple[int, int]]()
        for piece in self._pieces:
            if not piece.attributes.reached:
                continue
            if runs and runs[-1][1] == piece.start:
                runs[-1] = runs[-1][0], piece.end
            else:
                runs.append((piece.start, piece.end))
        return dict(runs)

    def answer(self, start: int, end: int, asked: Sequence[SvmPair], gpus: frozenset[int]) -> list[SvmPair]:
        """Of all of a range; parts that no change set do not count. Raises OSError for attributes without an answer."""
        if any(kind in (ACCESS_IN_PLACE, NO_ACCESS) or kind > GRANULARITY for kind, _ in asked):
            raise OSError(errno.EINVAL, "attribute")
        found = [piece.attributes for piece in self.between(start, end)]
        access, in_place, cleared = gpus, gpus, _ALL
        flags, granularity = _ALL, SvmAttributes().granularity
        if not found:
            found, access, in_place = [SvmAttributes()], frozenset(), frozenset()
        for each in found:
            access, in_place = access & each.access, in_place & each.in_place
            flags, cleared = flags & each.flags, cleared & ~each.flags
            granularity = min(granularity, each.granularity)
        values = {
            PREFERRED_LOC: _same({each.preferred for each in found}),
            PREFETCH_LOC: _same({each.prefetch for each in found}),
            SET_FLAGS: flags, CLR_FLAGS: cleared, GRANULARITY: granularity,
        }  # fmt: skip
        answers = list[SvmPair]()
        for kind, value in asked:
            if kind == ACCESS:
                kind = ACCESS if value in access else ACCESS_IN_PLACE if value in in_place else NO_ACCESS
                answers.append((kind, value))
            else:
                answers.append((kind, values[kind]))
        return answers


def _same(locations: set[int]) -> int:
    return locations.pop() if len(locations) == 1 else UNDEFINED
