"""What orders two accesses to memory, on records as racecheck keeps them, written by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from luthier_py.isa import AccessKind
from luthier_py.rewrite.tool import InstrPlace
from luthier_py.tools.racecheck.memory import ACQUIRED, BROUGHT, MemorySite
from luthier_py.tools.racecheck.orders import memory_races

STORE, TAKE, GIVE, LOAD = range(4)  # of data; an atomic on a lock; a store there; of data
PLACE = InstrPlace(0, "", "k", None)
SITES = [MemorySite(PLACE, AccessKind.STORE, 4, brings=False), MemorySite(PLACE, AccessKind.ATOMIC, 4, brings=True),
         MemorySite(PLACE, AccessKind.STORE, 4, brings=False), MemorySite(PLACE, AccessKind.LOAD, 4, brings=False)]
DATA, LOCK, OTHER = 0x1000, 0x2000, 0x3000
COLUMNS = np.dtype([("site", np.uint32), ("wave", np.uint32), ("came", np.uint32), ("waited", np.uint32),
                    ("lanes", np.uint64), ("address", np.uint64, 64), ("value", np.uint32, 64)])
Row = tuple[int, int, int]  # site, wave, address; in the order in which they happened


def taken(wave: int, lock: int) -> list[Row]:
    """A wave takes a lock: the atomic, what it brought, and what makes its plain loads find the rest."""
    return [(TAKE, wave, lock), (BROUGHT | TAKE, wave, 0), (ACQUIRED, wave, 0)]


def races(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """Pairs of sites that race; each wave is a work-group."""
    records = np.zeros(len(rows), COLUMNS)
    for record, (site, wave, address) in zip(records, rows, strict=True):
        record["site"], record["wave"] = site, wave
        record["lanes"], record["address"] = int(address != 0), address
    known, pieces, found = memory_races(records, SITES, 1)
    return [(int(known.site[pieces.record[each.first]]), int(known.site[pieces.record[each.second]])) for each in found]


@pytest.mark.parametrize("rows", [
    [*taken(0, LOCK), (STORE, 0, DATA), (GIVE, 0, LOCK), *taken(1, LOCK), (LOAD, 1, DATA)],
    [*taken(0, LOCK), (STORE, 0, DATA), (GIVE, 0, LOCK), *taken(1, LOCK), *taken(1, LOCK), (LOAD, 1, DATA)],
    [(STORE, 0, DATA), (LOAD, 0, DATA)],
])  # fmt: skip
def test_a_lock_orders_what_its_holders_do(rows: list[Row]) -> None:
    """Behind the second one's atomic the last write of the lock is its own: what came before that decides."""
    assert races(rows) == []


@pytest.mark.parametrize("rows", [
    [(STORE, 0, DATA), (LOAD, 1, DATA)],
    [*taken(0, LOCK), (STORE, 0, DATA), (GIVE, 0, LOCK), *taken(1, OTHER), *taken(1, OTHER), (LOAD, 1, DATA)],
    [*taken(0, LOCK), (GIVE, 0, LOCK), (STORE, 0, DATA), *taken(1, LOCK), (LOAD, 1, DATA)],
    [*taken(1, LOCK), *taken(0, LOCK), (STORE, 0, DATA), (GIVE, 0, LOCK), (LOAD, 1, DATA)],
])  # fmt: skip
def test_no_lock_another_lock_and_one_that_was_taken_or_given_too_early(rows: list[Row]) -> None:
    assert races(rows) == [(STORE, LOAD)]
