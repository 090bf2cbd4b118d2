"""Which accesses to LDS race, counted by the instructions that make them.

In: the accesses of one work-group. Out: Races: for each two instructions how many pairs of accesses race, and one of
these. Invariant: memory and time grow with accesses and not with their pairs, which are never listed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from luthier_py.isa import AccessKind

from .trace import Accesses, Array


@dataclass(frozen=True, slots=True)
class Race:
    """``first`` and ``second``: numbers of two accesses, those at the lowest address."""

    first: int
    second: int
    count: int


def races(taken: Accesses) -> Iterator[Race]:
    yield from between_waves(taken)
    yield from between_lanes(taken)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Accesses in places of intervals between barriers, of which one is a write and that several waves have. Columns:
    ``old``: it was in the interval before, too."""

    which: Array
    cell: Array
    site: Array
    wave: Array
    value: Array
    old: Array


def between_waves(taken: Accesses) -> Iterator[Race]:
    """Two accesses are in order if one's wave had come to a barrier behind which the other's has waited. There are no
    races of loads, of atomics, and of stores of one value."""
    met = meeting(taken)
    sites = int(taken.site.max(initial=-1)) + 1
    kinds = np.zeros(sites, np.int64)
    kinds[taken.site] = taken.kind
    both = [(kinds == kind)[:, None] & (kinds == kind) for kind in (AccessKind.LOAD, AccessKind.ATOMIC)]
    stores = (kinds == AccessKind.STORE)[:, None] & (kinds == AccessKind.STORE)
    found = racing(met, np.full(len(met.which), True), sites, stores) - racing(met, met.old, sites, stores)
    found[both[0] | both[1]] = 0
    for one, other in zip(*np.nonzero(np.triu(found)), strict=True):
        count = int(found[one, other]) // (2 if one == other else 1)
        yield Race(*example(met, one, other, bool(stores[one, other])), count)


def meeting(taken: Accesses) -> Meeting:
    turns = taken.came - taken.waited + 1  # intervals that it is in: two between the halves of a barrier
    which = np.repeat(np.arange(len(turns)), turns)
    later = np.arange(len(which)) - np.repeat(np.cumsum(turns) - turns, turns)
    cell = numbered(taken.piece[which], taken.waited[which] + later)
    writes = np.zeros(cell.max(initial=-1) + 1, bool)
    np.logical_or.at(writes, cell, taken.kind[which] != AccessKind.LOAD)
    chosen = (writes & (distinct(cell, taken.wave[which], len(writes)) > 1))[cell]
    which, cell, old = which[chosen], cell[chosen], later[chosen] > 0
    once = np.sort(np.unique(numbered(cell, taken.wave[which], taken.site[which], taken.value[which]),
                             return_index=True)[1])
    which, cell, old = which[once], cell[once], old[once]
    return Meeting(which, cell, taken.site[which], taken.wave[which], taken.value[which], old)


def racing(met: Meeting, chosen: Array, sites: int, stores: Array) -> Array:
    """For each two sites the pairs in one cell of different waves, and of different values where both are ``stores``:
    by inclusion and exclusion. Two accesses of one site are two pairs."""
    cell, site, wave, value = (column[chosen] for column in (met.cell, met.site, met.wave, met.value))
    found = pairs(cell, site, sites) - pairs(numbered(cell, wave), site, sites)
    alike = pairs(numbered(cell, value), site, sites) - pairs(numbered(cell, wave, value), site, sites)
    different: Array = found - np.where(stores, alike, 0)
    return different


def pairs(bucket: Array, site: Array, sites: int) -> Array:
    """How many pairs lie in one bucket, for each two sites."""
    entries, counts = np.unique(bucket * sites + site, return_counts=True)
    buckets, site = entries // max(sites, 1), entries % max(sites, 1)
    size = np.bincount(buckets)[buckets] if len(buckets) else buckets
    one = np.repeat(np.arange(len(buckets)), size)
    other = np.searchsorted(buckets, buckets)[one] + np.arange(len(one)) - np.repeat(np.cumsum(size) - size, size)
    found = np.zeros((sites, sites), np.int64)
    np.add.at(found, (site[one], site[other]), counts[one] * counts[other])
    return found


def example(met: Meeting, one: int, other: int, stores: bool) -> tuple[int, int]:
    """The first two accesses of two sites that race: cells are in the order of addresses."""
    ones, others = np.flatnonzero(met.site == one), np.flatnonzero(met.site == other)
    ones = ones[np.lexsort((ones, met.cell[ones]))]
    others = others[np.lexsort((others, met.cell[others]))]
    for at in ones:
        first, last = np.searchsorted(met.cell[others], [met.cell[at], met.cell[at] + 1])
        beside = others[first:last]
        racing = met.wave[beside] != met.wave[at]
        if stores:
            racing &= met.value[beside] != met.value[at]
        if racing.any():
            return int(met.which[at]), int(met.which[beside[racing.argmax()]])
    raise AssertionError("racing() counts what is there")


def between_lanes(taken: Accesses) -> Iterator[Race]:
    """Of one store, lanes that begin at one place and write other values there: counted once for each place."""
    stores = np.flatnonzero(taken.kind == AccessKind.STORE)
    cell = numbered(taken.order[stores], taken.piece[stores])
    turn = np.lexsort((stores, cell))
    stores, cell = stores[turn], cell[turn]
    first = stores[np.searchsorted(cell, cell)]
    changes = taken.value[stores] ^ taken.value[first]
    racing = np.flatnonzero((changes != 0) & (changes >> 32 == 0))
    racing = racing[np.unique(cell[racing], return_index=True)[1]]
    for site in np.unique(taken.site[stores[racing]]):
        mine = racing[taken.site[stores[racing]] == site]
        at = mine[taken.piece[stores[mine]].argmin()]
        yield Race(int(first[at]), int(stores[at]), len(mine))


def numbered(*columns: Array) -> Array:
    """A number for each different row of columns, none of which is below 0, in their order."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        found = np.unique(found * (column.max(initial=0) + 1) + column, return_inverse=True)[1]
    return found


def distinct(number: Array, of: Array, count: int) -> Array:
    """How many different ``of`` each number has."""
    pairs = np.unique(number * (of.max(initial=0) + 1) + of)
    return np.bincount(pairs // (of.max(initial=0) + 1), minlength=count)
