"""Finds accesses to LDS and to memory that nothing puts in an order, whether or not the launch showed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from luthier_py import Channel, LaunchResult, Mutator, Option
from luthier_py.base.errors import how_many
from luthier_py.rewrite.tool import (
    FIRST,
    SUM,
    InstrPlaces,
    RowsBy,
    combined,
    left_out_lines,
    left_out_rows,
    number_waves,
    place_text,
)
from luthier_py.tools.racecheck.memory import WORDS, MemoryAccess, MemorySite, trace_memory
from luthier_py.tools.racecheck.orders import MemoryRace, Recorded, memory_races
from luthier_py.tools.racecheck.races import Race, races
from luthier_py.tools.racecheck.trace import (
    LDS_AMOUNTS,
    Accesses,
    Array,
    Kept,
    LdsSite,
    LdsSites,
    LdsTrace,
    Pieces,
    cut,
    waves,
)


@dataclass(frozen=True, slots=True)
class RaceSites(LdsSites):
    """``memory``: what is traced there."""

    memory: tuple[MemorySite, ...] = ()


class RaceCheck(LdsTrace):
    """Races in LDS and memory: accesses of two waves that nothing orders, and of two lanes in one store to LDS."""

    name = "racecheck"
    cacheable = True
    finds = True
    amounts = {
        **LDS_AMOUNTS,
        "memory_accesses": SUM.of("accesses to memory, by lane and dword"),
        "cut_off": SUM.of("work-groups of which accesses are beyond MOST_RECORDS"),
        "races": RowsBy(("kind", "pc", "other_pc"), {"count": SUM.of("times"), "first": FIRST}),
    }  # fmt: skip
    memory = Option(True, help="0: LDS alone, which costs less")
    in_memory = Channel(MemoryAccess)

    def instrument(self, m: Mutator) -> RaceSites:
        lds, places, sites = super().instrument(m), InstrPlaces(m.program, inlined=True), list[MemorySite]()
        if self.memory:
            sites = trace_memory(m, places, self.in_memory, self.wave, self.came, self.waited)
        if sites and not lds.traced:
            number_waves(m, self.wave)
        return RaceSites(lds.traced, lds.left_out + places.left_out, lds.wave_size, tuple(sites))

    def received(self, channel: Channel, launch: LaunchResult, records: Array) -> None:
        if channel is not self.in_memory:
            super().received(channel, launch, records)
            return
        kept = self.gathered.setdefault((launch.index, channel), Kept())
        kept.add(records, self.most_records, waves(launch))

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: RaceSites = launch.notes
        rows, accesses, lost = list[dict[str, Any]](), 0, self.lost(launch)
        for taken in self.taken(launch):
            accesses += len(taken.order)
            rows += [row_of(notes.traced, taken, race) for race in races(taken)]
        in_group = waves(launch)
        kept = self.gathered.pop((launch.index, self.in_memory), Kept())
        in_memory = 0
        if kept.parts:
            known, found, racing = memory_races(np.concatenate(kept.parts), notes.memory, in_group)
            in_memory = len(found.record)
            rows += [memory_row(notes.memory, known, found, race) for race in racing]
        for who in [each for row in rows for each in row["first"]["who"]]:
            who["wave"] %= in_group
        return {"accesses": accesses, "memory_accesses": in_memory, "races": merged(rows),
                "left_out": left_out_rows(notes.left_out), "not_judged": lost, "cut_off": len(kept.lost)}

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The example is that of the first work-group."""
        return {**combined(self.amounts, reports), "races": merged(row for each in reports for row in each["races"])}

    def findings(self, report: dict[str, Any]) -> int:
        return len(report["races"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [f"{self.headline(launch)}: {report['accesses']} accesses to LDS, {report['memory_accesses']} to "
                 f"memory, {how_many(len(report['races']), 'race')}"]
        for row in report["races"]:
            lines.append(f"  {row['kind']} at {place_of(row)}; first: {who_of(row['first'])}")
            lines += [f"    {place_text(each)}" for each in row["where"]]
        lines += cut(report)
        if report["cut_off"]:
            lines.append(f"  of {how_many(report['cut_off'], 'work-group')} accesses to memory beyond MOST_RECORDS "
                         "were not looked at")
        return "\n".join([*lines, *left_out_lines(report["left_out"])])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**{name: row[name] for name in ("kind", "space", "pc", "other_pc")},
                 **{name: row["first"][name] for name in ("address", "workgroup")}, "count": row["count"]}
                for row in report["races"]]


def row_of(sites: Sequence[LdsSite], taken: Accesses, race: Race) -> dict[str, Any]:
    both = sorted((race.first, race.second), key=lambda each: (sites[int(taken.site[each])].place.pc, taken.wave[each],
                                                               each))
    who = [(taken.group, int(taken.wave[each]), int(taken.lane[each])) for each in both]
    row = race_row("LDS", [sites[int(taken.site[each])] for each in both], race.count,
                   int(taken.piece[race.first]) * taken.piece_bytes, who)
    return {**row, "kind": f"{row['kind']} in one store"} if who[0][1] == who[1][1] else row


def memory_row(sites: Sequence[MemorySite], known: Recorded, taken: Pieces, race: MemoryRace) -> dict[str, Any]:
    both = [(int(taken.record[each]), int(taken.lane[each])) for each in (race.first, race.second)]
    who = [(int(known.group[record]), int(known.wave[record]), lane) for record, lane in both]
    row = race_row("memory", [sites[int(known.site[record])] for record, _ in both], race.count,
                   int(taken.piece[race.first]) * taken.piece_bytes, who)
    return {**row, "kind": f"{row['kind']} without an acquire"} if race.stale else row


def race_row(space: str, sites: Sequence[LdsSite | MemorySite], count: int, address: int,
             who: Sequence[tuple[int, int, int]]) -> dict[str, Any]:
    """``who``: of both accesses work-group, wave in the launch, and lane."""
    return {
        "kind": " and ".join(WORDS[site.kind] for site in sites), "space": space, "count": count,
        "pc": sites[0].place.pc, "other_pc": sites[1].place.pc,
        "where": [site.place.facts() for site in sites],
        "first": {"address": address, "workgroup": who[0][0],
                  "who": [{"workgroup": group, "wave": wave, "lane": lane} for group, wave, lane in who]},
    }  # fmt: skip


def place_of(row: dict[str, Any]) -> str:
    at, count = row["first"]["address"], row["count"]
    if row["space"] == "LDS":
        return f"byte {at} of LDS, {how_many(count, 'time')}"
    return f"{at:#x}, {how_many(count, 'place')} of memory"


def who_of(first: dict[str, Any]) -> str:
    one, other = first["who"]
    apart = one["workgroup"] != other["workgroup"]
    lanes = [f"lane {each['lane']} of wave {each['wave']}" + f" of work-group {each['workgroup']}" * apart
             for each in (one, other)]
    return " and ".join(lanes) + f" of work-group {one['workgroup']}" * (not apart)


def merged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each pair of instructions, with the first work-group's example."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["kind"], row["pc"], row["other_pc"]
        known = found.get(key, row)
        first = min(known, row, key=lambda each: (each["first"]["workgroup"], each["first"]["address"]))
        found[key] = {**first, "count": row["count"] + (known["count"] if key in found else 0)}
    return [found[key] for key in sorted(found, key=lambda key: (key[1:], key[0]))]
