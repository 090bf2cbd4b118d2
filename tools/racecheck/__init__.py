"""Finds accesses to LDS that no barrier puts in an order, whether or not the launch showed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from luthier_py import LaunchResult
from luthier_py.errors import how_many
from luthier_py.isa import AccessKind
from luthier_py.tools.racecheck.races import Race, races
from luthier_py.tools.racecheck.trace import Accesses, LdsSite, LdsSites, LdsTrace, cut, summed

WORDS = {AccessKind.LOAD: "read", AccessKind.STORE: "write", AccessKind.ATOMIC: "atomic"}


class RaceCheck(LdsTrace):
    """Races in LDS: accesses of two waves between the same barriers, and of two lanes in one store."""

    name = "racecheck"
    finds = True

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: LdsSites = launch.notes
        rows, accesses, lost = list[dict[str, Any]](), 0, self.lost(launch)
        for taken in self.taken(launch):
            accesses += len(taken.order)
            rows += [row_of(notes.traced, taken, race) for race in races(taken)]
        return {"accesses": accesses, "races": merged(rows), "untraced": list(notes.untraced), "not_judged": lost}

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        rows = merged(row for report in reports for row in report["races"])
        return {**reports[0], **summed(reports), "races": rows}

    def findings(self, report: dict[str, Any]) -> int:
        return len(report["races"])

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [f"{self.headline(launch)}: {report['accesses']} accesses to LDS, "
                 f"{how_many(len(report['races']), 'race')}"]
        for row in report["races"]:
            first = row["first"]
            who = " and ".join(f"lane {each['lane']} of wave {each['wave']}" for each in first["who"])
            lines.append(f"  {row['kind']} at byte {first['address']} of LDS, {how_many(row['count'], 'time')}; first: "
                         f"{who} of work-group {first['workgroup']}")
            lines += [f"    {each['pc']:#x} {each['instruction']}" + (f" [{each['line']}]" if each["line"] else "")
                      for each in row["where"]]
        lines += cut(report)
        if report["untraced"]:
            lines.append(f"  not followed: {', '.join(sorted(set(report['untraced'])))}")
        return "\n".join(lines)

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**{name: row[name] for name in ("kind", "pc", "other_pc")},
                 **{name: row["first"][name] for name in ("address", "workgroup")}, "count": row["count"]}
                for row in report["races"]]


def row_of(sites: Sequence[LdsSite], taken: Accesses, race: Race) -> dict[str, Any]:
    both = sorted((race.first, race.second), key=lambda each: (sites[int(taken.site[each])].pc, taken.wave[each], each))
    where = [sites[int(taken.site[each])] for each in both]
    waves = [int(taken.wave[each]) for each in both]
    kind = " and ".join(WORDS[site.kind] for site in where) + (" in one store" if waves[0] == waves[1] else "")
    return {
        "kind": kind, "count": race.count, "pc": where[0].pc, "other_pc": where[1].pc,
        "where": [{"pc": site.pc, "instruction": site.text, "line": site.line} for site in where],
        "first": {
            "address": int(taken.piece[race.first]) * taken.piece_bytes, "workgroup": taken.group,
            "who": [{"wave": wave, "lane": int(taken.lane[each])} for wave, each in zip(waves, both, strict=True)],
        },
    }  # fmt: skip


def merged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each pair of instructions, with the first work-group's example."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        key = row["kind"], row["pc"], row["other_pc"]
        known = found.get(key, row)
        first = min(known, row, key=lambda each: (each["first"]["workgroup"], each["first"]["address"]))
        found[key] = {**first, "count": row["count"] + (known["count"] if key in found else 0)}
    return [found[key] for key in sorted(found, key=lambda key: (key[1:], key[0]))]
