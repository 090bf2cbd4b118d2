"""Finds reads of LDS that nobody had written, whatever the order in which waves ran."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from luthier_py import LaunchResult
from luthier_py.errors import how_many
from luthier_py.isa import AccessKind
from luthier_py.tools.racecheck.races import numbered
from luthier_py.tools.racecheck.trace import Accesses, Array, LdsSites, LdsTrace, cut, summed, waves_in_group

NEVER = np.iinfo(np.int64).max


class InitCheck(LdsTrace):
    """Reads of LDS that no wave had written before or between the same barriers."""

    name = "initcheck"
    finds = True

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: LdsSites = launch.notes
        rows, accesses, lost = list[dict[str, Any]](), 0, self.lost(launch)
        for taken in self.taken(launch):
            accesses += len(taken.order)
            rows += rows_of(notes, taken, waves_in_group(launch))
        return {"accesses": accesses, "unwritten": merged(rows), "untraced": list(notes.untraced), "not_judged": lost}

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {**reports[0], **summed(reports),
                "unwritten": merged(row for report in reports for row in report["unwritten"])}

    def findings(self, report: dict[str, Any]) -> int:
        return len(report["unwritten"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        rows = report["unwritten"]
        lines = [f"{self.headline(launch)}: {report['accesses']} accesses to LDS; what nobody wrote is read by "
                 f"{how_many(len(rows), 'instruction')}"]
        for row in rows:
            lines.append(f"  {row['pc']:#x} {row['instruction']}" + (f" [{row['line']}]" if row["line"] else ""))
            first = row["first"]
            who = f"lane {first['lane']} of wave {first['wave']} of work-group {first['workgroup']}"
            times = how_many(row["count"], "time")
            lines.append(f"    byte {first['address']} of LDS and others, {times}; first: {who}")
        lines += cut(report)
        if report["untraced"]:
            lines.append(f"  not followed, and so perhaps writing: {', '.join(sorted(set(report['untraced'])))}")
        return "\n".join(lines)

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**{name: row[name] for name in ("pc", "instruction", "line", "count")}, **row["first"]}
                for row in report["unwritten"]]


def rows_of(notes: LdsSites, taken: Accesses, waves: int) -> Iterator[dict[str, Any]]:
    """One for each instruction, with the first of its reads."""
    unwritten = np.flatnonzero(reads_of_nothing(taken))
    for site in np.unique(taken.site[unwritten]):
        mine = unwritten[taken.site[unwritten] == site]
        first, known = mine[np.lexsort((taken.piece[mine], taken.wave[mine]))[0]], notes.traced[site]
        yield {"pc": known.pc, "instruction": known.text, "line": known.line, "count": len(mine),
               "first": {"address": int(taken.piece[first]) * taken.piece_bytes, "workgroup": taken.group,
                         "wave": int(taken.wave[first]) % waves, "lane": int(taken.lane[first])}}


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
