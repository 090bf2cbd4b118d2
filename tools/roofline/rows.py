"""Rows of a report: what each line, loop, function, region and the whole kernel did.

In: sites, and how often each ran, in how many lanes. Out: a report, sums of several, its text and its table. Invariant:
lines, and functions, share out all that was counted; regions and loops may have parts in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from luthier_py.base.names import shorten_name
from luthier_py.isa import instruction_set, target
from luthier_py.isa.timing.peaks import Peaks, peaks_of
from luthier_py.program.analysis import line_order
from luthier_py.report.columns import align_columns, percent
from luthier_py.rewrite.tool import SUM, Amounts, CountsBy, Omission, RowsBy, share

from .limits import Limits, limits_of
from .work import COUNTED, FLOPS, GLOBAL, Site, Sites

LEVELS = ("regions", "functions", "loops", "lines")
NO_LINE = "(no line)"
WORK: Amounts = {
    **{name: SUM.of(name.replace("_", " ")) for name in COUNTED}, "flops_by_type": CountsBy("flops"),
    "flops": SUM.of("flops"), "global_bytes": SUM.of("bytes of global memory"),
    "intensity": share("flops", "global_bytes", "flops per byte of global memory", more_is_better=True),
}  # fmt: skip
AMOUNTS: Amounts = {
    "launches": SUM, "cycles": SUM.of("cycles, with the tool"), "total": WORK,
    **{level: RowsBy(("name", "source", "function", "header"), WORK) for level in LEVELS},
    "left_out": RowsBy(("pc",), {"executions": SUM}),
}  # fmt: skip
Row = dict[str, Any]


def report_of(
    target: str, found: Sites, regions: Sequence[str], executions: Mapping[int, int], lanes: Mapping[int, int],
    cycles: int | None,
) -> Row:
    """``executions`` and ``lanes``, which were active in these, are by address; ``regions`` are names."""
    ran = {site: work for site in found.sites if (work := _work(site, executions, lanes))}
    loops = [{"source": place.lines, "function": place.function, "header": place.header}
             for place in found.loops]
    return {
        "target": target, "launches": 1, "cycles": cycles, "total": _row({}, ran.values()),
        "regions": _rows([{"name": name} for name in regions], lambda site: site.regions, ran),
        "functions": _rows_by("name", lambda site: site.place.function, ran),
        "loops": _rows(loops, lambda site: site.loops, ran),
        "lines": sorted(_rows_by("source", lambda site: site.place.line or "", ran),
                        key=lambda row: line_order(row["source"])),
        "left_out": [{**Omission(site.place, site.unsure).facts(), "executions": executions[site.place.pc]}
                     for site in ran if site.unsure],
    }  # fmt: skip


def _work(site: Site, executions: Mapping[int, int], lanes: Mapping[int, int]) -> Counter[str]:
    """What a site did, by quantity; nothing where it did not run."""
    found: Counter[str] = Counter()
    pc = site.place.pc
    for amounts, times in ((site.in_wave, executions.get(pc, 0)), (site.in_lane, lanes.get(pc, 0))):
        found.update({name: amount * times for name, amount in amounts.items() if times})
    return found


def _rows(heads: Sequence[Row], of: Callable[[Site], Iterable[int]], ran: Mapping[Site, Counter[str]]) -> list[Row]:
    """A row for each head, of the sites that are of its number."""
    works: list[list[Counter[str]]] = [[] for _ in heads]
    for site, work in ran.items():
        for number in of(site):
            works[number].append(work)
    return [_row(head, each) for head, each in zip(heads, works, strict=True)]


def _rows_by(key: str, name: Callable[[Site], str], ran: Mapping[Site, Counter[str]]) -> list[Row]:
    names = {each: number for number, each in enumerate(dict.fromkeys(map(name, ran)))}
    return _rows([{key: each} for each in names], lambda site: [names[name(site)]], ran)


def _row(head: Row, works: Iterable[Counter[str]]) -> Row:
    total = sum(works, Counter[str]())
    types = {name.removeprefix(FLOPS): total[name] for name in sorted(total) if name.startswith(FLOPS)}
    flops, moved = sum(types.values()), sum(total[name] for name in GLOBAL.values())
    return {**head, **{name: total[name] for name in COUNTED}, "flops_by_type": types, "flops": flops,
            "global_bytes": moved, "intensity": flops / moved if moved else None}


def text_of(headline: str, report: Row) -> str:
    total, cycles = report["total"], report["cycles"]
    types = ", ".join(f"{count} {type}" for type, count in total["flops_by_type"].items())
    lines = [f"{headline}: {total['flops']} flops{f' ({types})' if types else ''}, {total['global_bytes']} bytes of "
             f"global memory, {shown(total['intensity'])} flops per byte"]
    if cycles:
        lines.append(f"  {cycles} cycles with the tool: {total['flops'] / cycles:.2f} flops and "
                     f"{total['global_bytes'] / cycles:.2f} bytes per cycle")
    peaks = peaks_for(report)
    if told := limit_text(limits_of(total, peaks)):
        lines.append(f"  {told}")
    table = [(level.removesuffix("s"), row) for level in LEVELS for row in ran(report, level)]
    if table:
        header = ("instructions", "flops", "loaded", "stored", "atomic", "LDS", "flops/byte", "of peak", "limit",
                  "", "")
        cells = [(row["instructions"], row["flops"], *(row[name] for name in GLOBAL.values()), row["lds_bytes"],
                  shown(row["intensity"]), *limit_cells(limits_of(row, peaks)), level, title(row))
                 for level, row in table]
        lines += [f"  {line}" for line in align_columns(header, cells, 3).splitlines()]
    return "\n".join([*lines, *(f"  {line}" for line in doubts(report))])


def ran(report: Mapping[str, Any], level: str) -> list[Row]:
    """What of a level did something; loops and functions that have most instructions first. What has no line at all is
    no row: the whole kernel is one."""
    rows = [row for row in report[level] if row["instructions"]]
    if level == "lines" and not any(row["source"] for row in rows):
        return []
    return sorted(rows, key=lambda row: -row["instructions"]) if level in ("functions", "loops") else rows


def peaks_for(report: Mapping[str, Any]) -> Peaks:
    return peaks_of(instruction_set(target(report["target"])))


def limit_text(limits: Limits) -> str:
    """What takes most of the time at best; empty where nothing is computed or moved."""
    if not limits.unit:
        return ""
    cycles = ", ".join(f"{unit} {round(count)}" for unit, count in limits.cycles.items())
    share = limits.share_of_peak
    most = "" if share is None else f"at most {percent(share)} of peak flops, "
    return f"cycles that one compute unit needs at least: {cycles}; {most}limited by {limits.unit}"


def limit_cells(limits: Limits) -> tuple[str, str]:
    """What part of the peak can be reached, and what limits it."""
    return percent(limits.share_of_peak), limits.unit


def doubts(report: Mapping[str, Any]) -> list[str]:
    """What is not certain, in a line for each reason."""
    found: dict[str, list[Row]] = {}
    for row in report["left_out"]:
        found.setdefault(row["why"], []).append(row)
    first = {why: f"{rows[0]['instruction']} at {rows[0]['pc']:#x}" for why, rows in found.items()}
    return [f"not in these bytes: {first[why]}{f' and {len(rows) - 1} more' if len(rows) > 1 else ''}, {why}"
            for why, rows in found.items()]


def flat(report: Row) -> list[Row]:
    """All rows of all levels, with the same columns."""
    types = report["total"]["flops_by_type"]
    rows = [("total", {"name": "", **report["total"]}), *((level, row) for level in LEVELS for row in report[level])]
    return [{"level": level.removesuffix("s"), "name": title(row), **{name: row[name] for name in COUNTED},
             **{f"flops_{type.replace(' ', '_')}": row["flops_by_type"].get(type, 0) for type in types},
             "flops": row["flops"], "global_bytes": row["global_bytes"], "intensity": row["intensity"]}
            for level, row in rows]  # fmt: skip


def title(row: Mapping[str, Any]) -> str:
    """The name of a region or function; the place of a loop or line, as far as it is known."""
    if "name" in row:
        return shorten_name(str(row["name"]))
    return row["source"] or (f"0x{row['header']:x}" if "header" in row else NO_LINE)


def shown(intensity: float | None) -> str:
    return "-" if intensity is None else f"{intensity:.4g}"
