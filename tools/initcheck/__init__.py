"""Finds reads of LDS that no wave had written, whatever the order in which waves ran; and of memory likewise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from luthier_py import Channel, LaunchResult, Mutator, Option
from luthier_py.base.errors import how_many
from luthier_py.isa import AccessKind
from luthier_py.rewrite.tool import (
    FIRST,
    SUM,
    Allocations,
    RowsBy,
    left_out_lines,
    left_out_rows,
    number_waves,
    place_text,
)
from luthier_py.tools.initcheck.memory import ReadSites, UnwrittenRead, look_at_reads, unwritten_reads
from luthier_py.tools.racecheck.races import numbered
from luthier_py.tools.racecheck.trace import (
    LDS_AMOUNTS,
    Accesses,
    Array,
    LdsSites,
    LdsTrace,
    cut,
    waves,
)

NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class InitSites(LdsSites):
    """``reads``: of memory; None where these are not looked at."""

    reads: ReadSites | None = None


class InitCheck(LdsTrace):
    """Reads of LDS that no wave had written before or between the same barriers, and of memory that nobody had."""

    name = "initcheck"
    cacheable = True
    finds = True
    amounts = {
        **LDS_AMOUNTS,
        "unwritten": RowsBy(("pc", "space"), {"count": SUM.of("reads of what nobody wrote"), "first": FIRST},
                            ascending=True),
    }  # fmt: skip
    memory = Option(True, help="0: LDS alone, which costs less")
    in_memory = Channel(UnwrittenRead)
    known = Allocations()

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.marks_memory = bool(self.memory)

    def instrument(self, m: Mutator) -> InitSites:
        lds = super().instrument(m)
        reads = look_at_reads(m, self.known, self.in_memory, self.wave) if self.memory else None
        if reads is not None and reads.reads and not lds.traced:
            number_waves(m, self.wave)
        return InitSites(lds.traced, lds.left_out + (() if reads is None else reads.left_out), lds.wave_size, reads)

    def received(self, channel: Channel, launch: LaunchResult, records: Array) -> None:
        if channel is not self.in_memory:
            super().received(channel, launch, records)
            return
        kept = self.gathered.setdefault((launch.index, channel), {})
        for record in records:
            kept.setdefault(int(record["site"]), record)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: InitSites = launch.notes
        rows, accesses, lost = list[dict[str, Any]](), 0, self.lost(launch)
        for taken in self.taken(launch):
            accesses += len(taken.order)
            rows += rows_of(notes, taken, waves(launch))
        kept = self.gathered.pop((launch.index, self.in_memory), {})
        if notes.reads is not None and notes.reads.reads:
            rows += unwritten_reads(launch, notes.reads, kept, notes.wave_size)
        return {"accesses": accesses, "unwritten": merged(rows), "left_out": left_out_rows(notes.left_out),
                "not_judged": lost}

    def findings(self, report: dict[str, Any]) -> int:
        return len(report["unwritten"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows = report["unwritten"]
        lines = [f"{self.headline(launch)}: {report['accesses']} accesses to LDS; what nobody wrote is read by "
                 f"{how_many(len(rows), 'instruction')}"]
        for row in rows:
            lines.append(f"  {place_text(row)}")
            first = row["first"]
            who = f"lane {first['lane']} of wave {first['wave']} of work-group {first['workgroup']}"
            times = how_many(row["count"], "time")
            place = f"byte {first['address']} of LDS" if row["space"] == "LDS" else f"{first['address']:#x} of memory"
            lines.append(f"    {place} and others, {times}; first: {who}")
        return "\n".join([*lines, *cut(report), *left_out_lines(report["left_out"])])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**{name: row[name] for name in ("pc", "instruction", "line", "space", "count")}, **row["first"]}
                for row in report["unwritten"]]


def rows_of(notes: LdsSites, taken: Accesses, in_group: int) -> Iterator[dict[str, Any]]:
    """One for each instruction, with the first of its reads."""
    unwritten = np.flatnonzero(reads_of_nothing(taken))
    for site in np.unique(taken.site[unwritten]):
        mine = unwritten[taken.site[unwritten] == site]
        first, known = mine[np.lexsort((taken.piece[mine], taken.wave[mine]))[0]], notes.traced[site]
        yield {**known.place.facts(), "space": "LDS", "count": len(mine),
               "first": {"address": int(taken.piece[first]) * taken.piece_bytes, "workgroup": taken.group,
                         "wave": int(taken.wave[first]) % in_group, "lane": int(taken.lane[first])}}


def merged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each instruction, with the first example."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        known = found.setdefault(row["pc"], {**row, "count": 0})
        known["count"] += row["count"]
    return [found[pc] for pc in sorted(found)]


def reads_of_nothing(taken: Accesses) -> Array:
    """Whether each access reads what no wave has written. To an atomic others are no writers: it is reported
    itself."""
    stores = taken.kind == AccessKind.STORE
    loads = taken.kind == AccessKind.LOAD
    found: Array = loads & ~written(taken, ~loads) | ~loads & ~stores & ~written(taken, stores)
    return found


def written(taken: Accesses, writers: Array) -> Array:
    """Whether one of ``writers`` writes each place: of the same wave before, or of another before or meanwhile."""
    place = numbered(taken.piece)
    own = numbered(place, taken.wave)
    writes = np.flatnonzero(writers)
    first_own = np.full(own.max(initial=-1) + 1, NEVER)
    np.minimum.at(first_own, own[writes], taken.order[writes])
    earliest, whose, of_others = first_writers(place, taken, writes)
    other = np.where(whose[place] == taken.wave, of_others[place], earliest[place])
    return (first_own[own] < taken.order) | (other <= taken.came)


def first_writers(place: Array, taken: Accesses, writes: Array) -> tuple[Array, Array, Array]:
    """For each place: between which barriers it is written first, by which wave, and first by another one."""
    count = place.max(initial=-1) + 1
    earliest, whose, of_others = np.full(count, NEVER), np.full(count, -1), np.full(count, NEVER)
    turns = writes[np.argsort(-taken.waited[writes], kind="stable")]
    earliest[place[turns]] = taken.waited[turns]  # of several the last one counts
    whose[place[turns]] = taken.wave[turns]
    turns = turns[taken.wave[turns] != whose[place[turns]]]
    of_others[place[turns]] = taken.waited[turns]
    return earliest, whose, of_others
