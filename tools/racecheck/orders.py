"""Which accesses to memory race: of two waves, of which one writes, and that nothing orders.

In: records of a launch, in an order of all waves. Out: MemoryRaces, one for each two instructions. Invariant: what
orders is what the emulator's check takes for an order (docs/checks.md), or more: a wave's own program; barriers of its
work-group; and an atomic or store after the first access, where the second one's wave has seen by a coherent load or
an atomic what came then, or later; and, if the second one is a plain load and the first one another work-group's, has
made its caches forget since, or a wave of its work-group has before a barrier. Behind a barrier of several work-groups
a wave, and its plain loads, know all that any wave had released by then, as far as it came to that barrier.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from luthier_py.isa import AccessKind

from .memory import ACQUIRED, BROUGHT, CAME, MET, MemorySite
from .races import numbered
from .trace import Array, Pieces, pieces

NEVER = np.iinfo(np.int64).max
EACH = 32  # accesses of one instruction to one place that are compared with others, of each wave the first ones first


@dataclass(frozen=True, slots=True)
class MemoryRace:
    """``first`` and ``second``: rows of accesses, those at the lowest address, in the order of instructions; ``count``:
    places; ``stale``: all that is missing is an acquire."""

    first: int
    second: int
    count: int
    stale: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """Records of accesses, as columns. ``at``: their numbers among all records. ``let_go``: when others could first
    know of it; ``known``: up to when its wave knows what others had released; ``acquired``: up to when its plain loads
    find it."""

    at: Array
    site: Array
    wave: Array
    group: Array
    came: Array
    waited: Array
    let_go: Array
    known: Array
    acquired: Array


@dataclass(frozen=True, slots=True)
class Events:
    """After which waves know what others had let go. Columns: ``at``: numbers of records; ``upto``: until when."""

    at: Array
    wave: Array
    group: Array
    came: Array
    upto: Array


def memory_races(records: Array, sites: Sequence[MemorySite], waves_in_group: int
                 ) -> tuple[Recorded, Pieces, list[MemoryRace]]:
    is_access = records["site"] < BROUGHT
    at, accesses = np.flatnonzero(is_access), records[is_access]
    taken = pieces(accesses, np.array([each.bytes for each in sites], np.int64))
    kinds = np.array([int(each.kind) for each in sites], np.int64)
    cell = numbered(taken.piece)
    seen = seen_writes(records, at, taken, cell, kinds)
    columns = [accesses[name].astype(np.int64) for name in ("site", "wave", "came", "waited")]
    site, wave, came, waited = columns
    group = wave // waves_in_group
    met = np.flatnonzero(records["site"] == MET)
    looks = events(records, *ascending(seen.at, seen.upto, met), waves_in_group)
    lets_go = np.sort(np.concatenate([at[kinds[site] != AccessKind.LOAD], np.flatnonzero(records["site"] == CAME)]))
    known = Recorded(at, site, wave, group, came, waited,
                     let_go(at, wave, group, came, records, lets_go, waves_in_group),
                     learnt(looks, at, wave, group, waited),
                     learnt(acquires(records, looks, met, waves_in_group), at, wave, group, waited))
    return known, taken, list(racing(known, taken, cell, sites, seen))


def events(records: Array, at: Array, upto: Array, waves_in_group: int) -> Events:
    wave, came = (records[name][at].astype(np.int64) for name in ("wave", "came"))
    return Events(at, wave, wave // waves_in_group, came, upto)


def ascending(at: Array, upto: Array, met: Array) -> tuple[Array, Array]:
    """Events and, among them, the barriers of several work-groups, at which all is known that there was by then."""
    both = np.concatenate([at, met])
    turn = np.argsort(both, kind="stable")
    return both[turn], np.concatenate([upto, met])[turn]


def acquires(records: Array, looks: Events, met: Array, waves_in_group: int) -> Events:
    """Acquires, after which plain loads find what the wave knows by then."""
    at = np.flatnonzero(records["site"] == ACQUIRED)
    wave, waited = (records[name][at].astype(np.int64) for name in ("wave", "waited"))
    upto = learnt(looks, at, wave, wave // waves_in_group, waited)
    return events(records, *ascending(at, upto, met), waves_in_group)


@dataclass(frozen=True, slots=True)
class Seen:
    """What coherent loads and atomics brought: ``at``: numbers of records; ``upto``: the last write of the place by
    then, if another wave has written there; ``looks``: of each, wave, cell and ``at``."""

    at: Array
    upto: Array
    looks: tuple[Array, Array, Array]


def seen_writes(records: Array, at: Array, taken: Pieces, cell: Array, kinds: Array) -> Seen:
    """``at``: numbers of the records of accesses."""
    brought = np.flatnonzero((records["site"] >= BROUGHT) & (records["site"] < MET))
    made = access_before(records, at, brought)
    rows = np.flatnonzero(np.isin(taken.record, made))
    event = np.searchsorted(made, taken.record[rows])  # of one access one record reports what it brought
    when, whose = brought[event], records["wave"][brought[event]].astype(np.int64)
    writes = np.flatnonzero(kinds[records["site"][at]][taken.record] != AccessKind.LOAD)
    writes = writes[np.lexsort((taken.record[writes], cell[writes]))]
    key = cell[writes] * (len(records) + 1) + at[taken.record[writes]]
    writer = records["wave"][at[taken.record[writes]]].astype(np.int64)
    start = np.searchsorted(key, cell[rows] * (len(records) + 1))
    end = np.searchsorted(key, cell[rows] * (len(records) + 1) + when)
    changes = np.concatenate([[0], np.cumsum(writer[1:] != writer[:-1])]) if len(writer) else np.zeros(0, np.int64)
    some = np.flatnonzero(end > start)
    last = end[some] - 1
    by_others = (writer[last] != whose[some]) | (changes[last] != changes[start[some]])
    upto = np.full(len(brought), -1)
    np.maximum.at(upto, event[some[by_others]], at[taken.record[writes[last[by_others]]]])
    return Seen(brought, upto, (whose, cell[rows], when))


def access_before(records: Array, at: Array, brought: Array) -> Array:
    """The number, among accesses, of the access of the same instruction and wave before each of these; they ascend."""
    key = (records["site"] % BROUGHT).astype(np.int64) * (int(records["wave"].max(initial=0)) + 1) + records["wave"]
    turn = np.lexsort((np.arange(len(records)), key))
    place = np.empty(len(turn), np.int64)
    place[turn] = np.arange(len(turn))
    return np.searchsorted(at, turn[place[brought] - 1])


def let_go(at: Array, wave: Array, group: Array, came: Array, records: Array, lets_go: Array, waves_in_group: int
           ) -> Array:
    """The next of these records by the same wave, or by one of its work-group behind a barrier to which it had come:
    atomics, stores, barriers of several work-groups."""
    whose, waited = (records[name][lets_go].astype(np.int64) for name in ("wave", "waited"))
    found = next_of(whose, lets_go, wave, at + 1)
    intervals = int(waited.max(initial=0)) + 2
    keys = whose // waves_in_group * intervals + waited
    first = np.full(int(keys.max(initial=-1)) + 1, NEVER)
    np.minimum.at(first, keys, lets_go)
    return np.minimum(found, from_interval(first, group, came + 1, intervals))


def from_interval(first: Array, group: Array, interval: Array, intervals: int) -> Array:
    """The least of a group's intervals from one on."""
    rows = np.full((max(int(group.max(initial=-1)) + 1, -(-len(first) // intervals)), intervals), NEVER)
    rows.ravel()[: len(first)] = first
    least = np.minimum.accumulate(rows[:, ::-1], axis=1)[:, ::-1]
    found: Array = np.where(interval < intervals, least[group, np.minimum(interval, intervals - 1)], NEVER)
    return found


def next_of(owner: Array, when: Array, who: Array, since: Array) -> Array:
    """The first ``when`` of each owner that is not before ``since``; ``when`` ascends for each."""
    size = int(max(when.max(initial=0), since.max(initial=0))) + 2
    keys = np.sort(owner * size + when)
    place = np.searchsorted(keys, who * size + since)
    there = np.flatnonzero(place < len(keys))
    found = np.full(len(who), NEVER)
    mine = there[keys[place[there]] // size == who[there]]
    found[mine] = keys[place[mine]] % size
    return found


def learnt(known: Events, at: Array, wave: Array, group: Array, waited: Array) -> Array:
    """Up to when the wave of each record knows it: by itself, or by one of its work-group before a barrier behind which
    it has waited."""
    found = latest(known.wave, known.at, known.upto, wave, at)
    intervals = int(max(known.came.max(initial=0), waited.max(initial=0))) + 2
    groups = int(max(known.group.max(initial=-1), group.max(initial=-1))) + 1
    rows = np.full((groups, intervals), -1)
    np.maximum.at(rows, (known.group, known.came + 1), known.upto)
    most: Array = np.maximum.accumulate(rows, axis=1)[group, waited]
    return np.maximum(found, most)


def latest(owner: Array, when: Array, value: Array, who: Array, before: Array) -> Array:
    """The greatest value of an owner before a time; ``when`` ascends."""
    turn = np.argsort(owner, kind="stable")
    size = int(max(when.max(initial=0), before.max(initial=0))) + 2
    keys = owner[turn] * size + when[turn]
    most = value[turn].copy()
    for first, end in spans(owner[turn]):
        most[first:end] = np.maximum.accumulate(most[first:end])
    place = np.searchsorted(keys, who * size + before) - 1
    good = np.flatnonzero(place >= 0)
    good = good[owner[turn][place[good]] == who[good]]
    found = np.full(len(who), -1)
    found[good] = most[place[good]]
    return found


def spans(column: Array) -> Iterator[tuple[int, int]]:
    """Where equal numbers stand."""
    ends = np.flatnonzero(np.diff(column, append=-1))
    yield from zip([0, *(ends[:-1] + 1).tolist()], (ends + 1).tolist(), strict=False)


def racing(known: Recorded, taken: Pieces, cell: Array, sites: Sequence[MemorySite], seen: Seen
           ) -> Iterator[MemoryRace]:
    kinds = np.array([int(each.kind) for each in sites])
    quiet = np.array([each.kind is AccessKind.LOAD and each.brings for each in sites])
    site, wave = known.site[taken.record], known.wave[taken.record]
    row = np.flatnonzero(~quiet[site])
    row = row[chosen(cell[row], site[row], wave[row], kinds[site[row]])]
    one, other = pairs(cell[row])
    one, other = row[one], row[other]
    one, other = np.where(taken.record[one] < taken.record[other], (one, other), (other, one))
    strange, stale = unordered(known, taken, kinds[site] == AccessKind.LOAD, one, other)
    bad = (strange | stale) & unlike(known, taken, cell, kinds[site], one, other, seen)
    one, other, stale = one[bad], other[bad], ~strange[bad]
    swap = site[one] > site[other]
    one, other = np.where(swap, other, one), np.where(swap, one, other)
    both = (site[one] * len(sites) + site[other]) * 2 + stale
    for each in np.unique(both):
        mine = np.flatnonzero(both == each)
        mine = mine[np.lexsort((taken.record[one[mine]], cell[one[mine]]))]
        yield MemoryRace(int(one[mine[0]]), int(other[mine[0]]), len(np.unique(cell[one[mine]])), bool(stale[mine[0]]))


def chosen(cell: Array, site: Array, wave: Array, kind: Array) -> Array:
    """Accesses of places that several waves come to and one writes; of one instruction and place the first few."""
    count = int(cell.max(initial=-1)) + 1
    written = np.zeros(count, bool)
    np.logical_or.at(written, cell, kind != AccessKind.LOAD)
    low, high = np.full(count, NEVER), np.full(count, -1)
    np.minimum.at(low, cell, wave)
    np.maximum.at(high, cell, wave)
    found = np.flatnonzero((written & (low != high))[cell])
    key = numbered(cell[found], site[found])
    turn = np.lexsort((rank_in(numbered(key, wave[found])), key))
    return np.sort(found[turn[rank_in(key[turn]) < EACH]])


def rank_in(key: Array) -> Array:
    """How many before each have the same number."""
    turn = np.argsort(key, kind="stable")
    rank = np.empty(len(turn), np.int64)
    rank[turn] = np.arange(len(turn)) - np.searchsorted(key[turn], key[turn])
    return rank


def pairs(bucket: Array) -> tuple[Array, Array]:
    """All pairs of rows that have the same number."""
    turn = np.argsort(bucket, kind="stable")
    ends = np.searchsorted(bucket[turn], bucket[turn], side="right")
    count = ends - np.arange(len(turn)) - 1
    one = np.repeat(np.arange(len(turn)), count)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
    return turn[one], turn[other]


def unordered(known: Recorded, taken: Pieces, loads: Array, one: Array, other: Array) -> tuple[Array, Array]:
    """Whether the second wave does not know of the first one's access, or loads what was before in spite of it.
    ``one`` is recorded first. By barriers either may be."""
    a, b = taken.record[one], taken.record[other]
    together = known.group[a] == known.group[b]
    barrier = together & ((known.came[a] < known.waited[b]) | (known.came[b] < known.waited[a]))
    strange = (known.wave[a] != known.wave[b]) & ~barrier & (known.let_go[a] > known.known[b])
    return strange, ~together & loads[other] & (known.let_go[a] > known.acquired[b])


def unlike(
    known: Recorded, taken: Pieces, cell: Array, kind: Array, one: Array, other: Array, seen: Seen
) -> Array:
    """Whether two accesses, ``one`` recorded first, are such that race where nothing orders them."""
    loads, stores, atomics = (kind == each for each in (AccessKind.LOAD, AccessKind.STORE, AccessKind.ATOMIC))
    first_atomic = np.full(int(cell.max(initial=-1)) + 1, NEVER)
    np.minimum.at(first_atomic, cell[atomics], known.at[taken.record[atomics]])
    behind = first_atomic[cell] < known.at[taken.record]  # an atomic was there before
    same = stores[one] & stores[other] & ((taken.value[one] == taken.value[other]) | (behind[one] & behind[other]))
    kept = atomics[one] & ~loads[other] | stores[one] & atomics[other] & behind[one]
    looked = stores[one] & ~loads[other] & has_looked(known, taken, cell, one, other, seen)
    found: Array = ~(loads[one] & loads[other]) & ~same & ~kept & ~looked
    return found


def has_looked(known: Recorded, taken: Pieces, cell: Array, one: Array, other: Array, seen: Seen) -> Array:
    """Whether the second wave has looked at the place after the first access, as a wave that takes a lock does."""
    wave, place, when = seen.looks
    owner = np.concatenate([wave, known.wave[taken.record[other]]])
    both = numbered(np.concatenate([place, cell[other]]), owner)
    turn = np.argsort(when, kind="stable")
    since = known.at[taken.record[one]]
    return next_of(both[: len(wave)][turn], when[turn], both[len(wave):], since) < known.at[taken.record[other]]
