"""Finds accesses to LDS that no barrier puts in an order, whether or not the launch showed it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from luthier_py import LaunchResult
from luthier_py.errors import how_many
from luthier_py.isa import AccessKind
from luthier_py.tools.racecheck.trace import Accesses, Array, LdsSite, LdsSites, LdsTrace

WORDS = {AccessKind.LOAD: "read", AccessKind.STORE: "write", AccessKind.ATOMIC: "atomic"}


class RaceCheck(LdsTrace):
    """Races in LDS: accesses of two waves between the same barriers, and of two lanes in one store."""

    name = "racecheck"

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: LdsSites = launch.notes
        taken = self.taken(launch)
        found = [*between_waves(taken), *between_lanes(taken)]
        return {"accesses": len(taken.order), "races": merged(row_of(notes.traced, taken, *pair) for pair in found),
                "untraced": list(notes.untraced)}

    def combined(self, reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
        races = merged(row for report in reports for row in report["races"])
        return {**reports[0], "accesses": sum(report["accesses"] for report in reports), "races": races}

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
        if report["untraced"]:
            lines.append(f"  not followed: {', '.join(sorted(set(report['untraced'])))}")
        return "\n".join(lines)

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{**{name: row[name] for name in ("kind", "pc", "other_pc")},
                 **{name: row["first"][name] for name in ("address", "workgroup")}, "count": row["count"]}
                for row in report["races"]]


Pair = tuple[int, int]  # numbers of accesses


def between_waves(taken: Accesses) -> Iterable[Pair]:
    """Two accesses are in order if one's wave had come to a barrier behind which the other's has waited."""
    turns = taken.came - taken.waited + 1  # intervals that it is in: two between the halves of a barrier
    which = np.repeat(np.arange(len(turns)), turns)
    interval = taken.waited[which] + np.arange(len(which)) - np.repeat(np.cumsum(turns) - turns, turns)
    number = numbered(taken.group[which], interval, taken.piece[which])
    writes = np.zeros(number.max(initial=-1) + 1, bool)
    np.logical_or.at(writes, number, taken.kind[which] != AccessKind.LOAD)
    shared = distinct(number, taken.wave[which], len(writes)) > 1
    chosen = (writes & shared)[number]
    which, number = which[chosen], number[chosen]
    kept = np.unique(numbered(number, taken.wave[which], taken.site[which], taken.value[which]), return_index=True)[1]
    seen = set[Pair]()
    for cell in cells(number[kept], which[kept]):
        for pair in pairs(taken, cell):
            if pair not in seen:
                seen.add(pair)
                yield pair


def pairs(taken: Accesses, cell: Array) -> Iterable[Pair]:
    """Of one place in one interval: those of which one writes, but for atomics, and stores of one value."""
    kinds, waves = taken.kind[cell], taken.wave[cell]
    for at in np.flatnonzero(kinds != AccessKind.LOAD):
        other = (waves != waves[at]) & ((kinds != AccessKind.ATOMIC) | (kinds[at] != AccessKind.ATOMIC))
        both = (kinds == AccessKind.STORE) & (kinds[at] == AccessKind.STORE)
        other &= ~(both & (taken.value[cell] == taken.value[cell[at]]))
        other &= (kinds == AccessKind.LOAD) | (np.arange(len(cell)) > at)
        yield from ((int(cell[at]), int(cell[each])) for each in np.flatnonzero(other))


def between_lanes(taken: Accesses) -> Iterable[Pair]:
    """Of one store, lanes that begin at one place and write other values there."""
    stores = np.flatnonzero(taken.kind == AccessKind.STORE)
    number = numbered(taken.order[stores], taken.piece[stores])
    for cell in cells(number, stores):
        same = (taken.value[cell] ^ taken.value[cell[0]]) >> 32 == 0  # they begin at one place
        others = cell[same & (taken.value[cell] != taken.value[cell[0]])]
        if len(others):
            yield int(cell[0]), int(others[0])


def numbered(*columns: Array) -> Array:
    """A number for each different row of columns, none of which is below 0."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        found = np.unique(found * (column.max(initial=0) + 1) + column, return_inverse=True)[1]
    return found


def distinct(number: Array, of: Array, count: int) -> Array:
    """How many different ``of`` each number has."""
    pairs = np.unique(number * (of.max(initial=0) + 1) + of)
    return np.bincount(pairs // (of.max(initial=0) + 1), minlength=count)


def cells(number: Array, which: Array) -> Iterable[Array]:
    """Those that have one number, in their order, where there are several."""
    several = np.bincount(number)[number] > 1 if len(number) else number > 0
    number, which = number[several], which[several]
    order = np.lexsort((which, number))
    yield from np.split(which[order], np.flatnonzero(np.diff(number[order])) + 1) if len(order) else ()


def row_of(sites: Sequence[LdsSite], taken: Accesses, first: int, second: int) -> dict[str, Any]:
    both = sorted((first, second), key=lambda each: (sites[int(taken.site[each])].pc, taken.wave[each], each))
    where = [sites[int(taken.site[each])] for each in both]
    waves = [int(taken.wave[each]) for each in both]
    kind = " and ".join(WORDS[site.kind] for site in where) + (" in one store" if waves[0] == waves[1] else "")
    return {
        "kind": kind, "count": 1, "pc": where[0].pc, "other_pc": where[1].pc,
        "where": [{"pc": site.pc, "instruction": site.text, "line": site.line} for site in where],
        "first": {
            "address": int(taken.piece[first]) * taken.piece_bytes, "workgroup": int(taken.group[first]),
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
