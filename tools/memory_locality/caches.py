"""Set-associative caches with LRU replacement.

In: touches of lines, one after the other. Out: hits, misses, evictions and used bytes, by site. Invariant: a line that
is touched is there afterwards; a full set evicts the line that was not used for longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from luthier_py.base.errors import Invalid

from .touches import Array, touches

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class CacheShape:
    """``size_bytes`` in ``ways`` of each set, of lines of ``line_bytes``."""

    name: str
    size_bytes: int
    ways: int
    line_bytes: int

    @property
    def sets(self) -> int:
        return self.size_bytes // (self.ways * self.line_bytes)


def cache_shape(name: str, text: str) -> CacheShape:
    """The shape of ``4M:16:128``: size, ways, bytes of a line."""
    parts = text.upper().split(":")
    try:
        size, ways, line = (int(part[:-1] if part[-1:] in _UNITS else part) * _UNITS.get(part[-1:], 1)
                            for part in parts)
    except ValueError:
        size = ways = line = 0
    if not (size > 0 and ways > 0 and line in (16, 32, 64, 128, 256, 512) and size % (ways * line) == 0):
        raise Invalid(f"option {name}={text}: give size:ways:line, as in 4M:16:128; lines have 16 to 512 bytes, a "
                      "power of two, and the size is a multiple of ways x line")
    return CacheShape(name, size, ways, line)


@dataclass(slots=True)
class CacheCounts:
    """Of one launch, by site; all of them grow."""

    hits: list[int]
    misses: list[int]
    evictions: list[int]
    """By the site whose miss made room."""
    used_bytes: list[int]
    """Different bytes that were touched of lines while they were there, by the site that fetched the line."""

    @classmethod
    def of(cls, sites: int) -> CacheCounts:
        return cls([0] * sites, [0] * sites, [0] * sites, [0] * sites)


@dataclass(slots=True)
class _Line:
    counts: CacheCounts  # of the launch that fetched it
    site: int
    used: int = 0


@dataclass(slots=True)
class Cache:
    """One cache; mutable: what is in it. Python's dict remembers the order in which lines came in: the first one of a
    set was not used for longest."""

    shape: CacheShape
    sets: dict[int, dict[int, _Line]] = field(default_factory=dict)

    def touch(self, counts: CacheCounts, site: int, line: int, used: int) -> bool:
        """Whether the line was there."""
        lines = self.sets.setdefault(line % self.shape.sets, {})
        found = lines.pop(line, None)
        hit = found is not None
        if found is None:
            counts.misses[site] += 1
            if len(lines) == self.shape.ways:
                del lines[next(iter(lines))]
                counts.evictions[site] += 1
            found = _Line(counts, site)
        else:
            counts.hits[site] += 1
        lines[line] = found
        found.counts.used_bytes[found.site] += (used & ~found.used).bit_count()
        found.used |= used
        return hit


@dataclass(slots=True)
class Hierarchy:
    """A cache for each compute unit, if there is one, before the one that all share, if there is one. Loads access L1
    first, which fetches whole lines of its size from L2; stores and atomics bypass L1."""

    l1: CacheShape | None
    l2: CacheShape | None
    units: dict[int, Cache] = field(default_factory=dict)
    shared: Cache | None = None

    def __post_init__(self) -> None:
        if self.l1 and self.l2 and self.l1.line_bytes > self.l2.line_bytes:
            raise Invalid(f"lines of l1 have {self.l1.line_bytes} bytes and are longer than those of l2, "
                          f"{self.l2.line_bytes}: give l1 shorter ones")

    @property
    def shapes(self) -> tuple[CacheShape, ...]:
        return tuple(shape for shape in (self.l1, self.l2) if shape is not None)

    def run(self, records: Array, bytes_of: Array, loads: Array, counts: Mapping[str, CacheCounts]) -> None:
        """All records of a piece; ``loads``: whether each site is one."""
        by_l1 = loads[records["site"]] & (self.l1 is not None)
        asked: list[tuple[int, ...]] = []
        for shape, chosen in ((self.l1, by_l1), (self.l2, ~by_l1)):
            if shape is not None:
                found = touches(records, bytes_of, shape.line_bytes, chosen)
                asked += zip(found.record.tolist(), found.unit.tolist(), found.site.tolist(), found.line.tolist(),
                             found.masks(), strict=True)
        for record, unit, site, line, used in sorted(asked):
            if by_l1[record]:
                self._load(counts, unit, site, line, used)
            else:
                self._shared(counts, site, line, used)

    def _load(self, counts: Mapping[str, CacheCounts], unit: int, site: int, line: int, used: int) -> None:
        assert self.l1 is not None
        cache = self.units.setdefault(unit, Cache(self.l1))
        if not cache.touch(counts["l1"], site, line, used) and self.l2 is not None:
            line, part = divmod(line * self.l1.line_bytes, self.l2.line_bytes)
            self._shared(counts, site, line, (1 << self.l1.line_bytes) - 1 << part)

    def _shared(self, counts: Mapping[str, CacheCounts], site: int, line: int, used: int) -> None:
        assert self.l2 is not None
        self.shared = self.shared or Cache(self.l2)
        self.shared.touch(counts["l2"], site, line, used)
