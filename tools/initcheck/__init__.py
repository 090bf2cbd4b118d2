"""Finds reads of LDS that nobody had written, whatever the order in which waves ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from luthier_py import LaunchResult
from luthier_py.errors import how_many
from luthier_py.isa import AccessKind
from luthier_py.tool import FIRST, SUM, RowsBy, left_out_lines, left_out_rows, place_text
from luthier_py.tools.racecheck.races import numbered
from luthier_py.tools.racecheck.trace import Accesses, Array, LdsSites, LdsTrace, cut

NEVER = np.iinfo(np.int64).max


class InitCheck(LdsTrace):
    """Reads of LDS that no wave had written before or between the same barriers."""

    name = "initcheck"
    amounts = {
        "accesses": SUM.of("accesses to LDS, by lane and dword"), "not_judged": SUM.of("work-groups beyond MOST"),
        "unwritten": RowsBy(("pc",), {"count": SUM.of("reads of what nobody wrote"), "first": FIRST}, ascending=True),
    }  # fmt: skip

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: LdsSites = launch.notes
        rows, accesses, lost = list[dict[str, Any]](), 0, self.lost(launch)
        for taken in self.taken(launch):
            accesses += len(taken.order)
            rows += rows_of(notes, taken)
        return {"accesses": accesses, "unwritten": merged(rows), "left_out": left_out_rows(notes.left_out),
                "not_judged": lost}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows = report["unwritten"]
        lines = [f"{self.headline(launch)}: {report['accesses']} accesses to LDS; what nobody wrote is read by "
                 f"{how_many(len(rows), 'instruction')}"]
        for row in rows:
            lines.append(f"  {place_text(row)}")
            first = row["first"]
            who = f"lane {first['lane']} of wave {first['wave']} of work-group {first['workgroup']}"
            times = how_many(row["count"], "time")
            lines.append(f"    byte {first['address']} of LDS and others, {times}; first: {who}")
        return "\n".join([*lines, *cut(report), *left_out_lines(report["left_out"])])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**{name: row[name] for name in ("pc", "instruction", "line", "count")}, **row["first"]}
                for row in report["unwritten"]]


def rows_of(notes: LdsSites, taken: Accesses) -> Iterator[dict[str, Any]]:
    """One for each instruction, with the first of its reads."""
    unwritten = np.flatnonzero(reads_of_nothing(taken))
    for site in np.unique(taken.site[unwritten]):
        mine = unwritten[taken.site[unwritten] == site]
        first, known = mine[np.lexsort((taken.piece[mine], taken.wave[mine]))[0]], notes.traced[site]
        yield {**known.place.facts(), "count": len(mine),
               "first": {"address": int(taken.piece[first]) * taken.piece_bytes, "workgroup": taken.group,
                         "wave": int(taken.wave[first]), "lane": int(taken.lane[first])}}


def merged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each instruction, with the first example."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        known = found.setdefault(row["pc"], {**row, "count": 0})
        known["count"] += row["count"]
    return [found[pc] for pc in sorted(found)]


def reads_of_nothing(taken: Accesses) -> Array:
    """Whether each access reads what nobody has written. To an atomic others are no writers: it is told itself."""
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
