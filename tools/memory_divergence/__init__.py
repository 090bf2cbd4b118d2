"""Counts what part of the memory that a wave's access touches was requested, and how many cache lines that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from luthier_py import (
    Lane,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    Variable,
    access_bytes,
    address,
    device,
    hook,
    ptr,
    u32,
    u64,
)
from luthier_py.intrinsics import (
    active_mask,
    atomic_add,
    ballot,
    count_trailing_zeros,
    is_first_lane,
    popcount,
    read_lane,
)
from luthier_py.program.analysis import line_order
from luthier_py.report.columns import align_columns, idle_line, percent
from luthier_py.rewrite.tool import (
    SUM,
    Amounts,
    CountsBy,
    InstrPlace,
    InstrPlaces,
    Omission,
    RowsBy,
    left_out_lines,
    left_out_rows,
    loop_of,
    worked_out,
)

MOST = 128  # lines of one instruction: two of each lane
LANES = MOST + 1  # where a row has the active lanes, behind the histogram
SEGMENTS = (32, 64, 128)  # bytes: what memory is moved in, from the least that AMD's caches ask for to a line
ROW = LANES + 1 + len(SEGMENTS)


@device
def touched(first: Lane[u64], last: Lane[u64]) -> u32:
    """How many different numbers the active lanes have, of two that each has."""
    firsts, lasts, count = active_mask(), ballot(last != first), u32(0)
    while firsts | lasts != 0:  # one number each time: that of the lowest lane that has one left
        number = read_lane(first, count_trailing_zeros(firsts))
        if firsts == 0:
            number = read_lane(last, count_trailing_zeros(lasts))
        firsts &= ~ballot(first == number)
        lasts &= ~ballot(last == number)
        count += 1
    return count


@hook
def note(row: ptr[u64], first: Lane[u64], more: u32, shift: u32) -> None:
    """One access, whose last byte in each lane is ``more`` bytes behind its first; no access is wider than a segment.
    """
    last = first + more
    of_32 = touched(first >> 5, last >> 5)
    of_64 = touched(first >> 6, last >> 6)
    of_128 = touched(first >> 7, last >> 7)
    lines = of_128
    if shift != 7:
        lines = touched(first >> shift, last >> shift)
    lanes = popcount(active_mask())
    if is_first_lane():
        atomic_add(row + lines, 1)
        atomic_add(row + LANES, lanes)
        atomic_add(row + (LANES + 1), of_32)
        atomic_add(row + (LANES + 2), of_64)
        atomic_add(row + (LANES + 3), of_128)


@dataclass(frozen=True, slots=True)
class Accesses:
    """Memory instructions of one program and the bytes of a lane, with their counts one behind the other."""

    sites: tuple[tuple[InstrPlace, int], ...]
    left_out: tuple[Omission, ...]
    counts: Variable


def efficiency(row: Mapping[str, Any], report: Mapping[str, Any]) -> dict[int, float | None]:
    """Above 1 where lanes ask for the same bytes; None where nothing was touched."""
    return {size: row["bytes"] / (int(size) * count) if count else None for size, count in row["segments"].items()}


SUMS: Amounts = {
    "lanes": SUM.of("lanes that accessed"), "bytes": SUM.of("bytes asked for"),
    "segments": CountsBy("segments touched, by their bytes"),
    "efficiency": worked_out(efficiency, "bytes asked for over those of segments", more_is_better=True),
}  # fmt: skip


class MemoryDivergence(Tool):
    """Lines and segments of global memory that each access of a wave touches, and what part of them it asked for."""

    name = "memory_divergence"
    cacheable = True
    amounts = {
        "instructions": RowsBy(("pc",), {
            "executions": SUM.of("executions by waves"), "lines": SUM.of("lines that these touched"), **SUMS,
            "histogram": CountsBy("executions by how many lines they touched")}),
        "total": SUMS,
        "lines": RowsBy(("source",), SUMS),
    }  # fmt: skip
    aliases = ("memory_efficiency",)
    line_bytes = Option(128, choices=tuple(16 << shift for shift in range(9)), help="bytes of a cache line")

    def instrument(self, m: Mutator) -> Accesses:
        found = [instr for function in m.functions() for instr in m.instrs(function, where="global")]
        counts = Variable(u64, max(len(found), 1) * ROW, name="MemoryDivergence.counts")
        places, sites = InstrPlaces(m.program), list[tuple[InstrPlace, int]]()
        for instr in found:
            with places.unless_refused(instr):  # images, and what moves no data
                row, size = counts[len(sites) * ROW], access_bytes(instr)
                m.before(instr, note, row, address(instr), size - 1, self.line_bytes.bit_length() - 1)
                sites.append((places.of(instr), size))
        return Accesses(tuple(sites), places.left_out, counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Accesses = launch.notes
        values = np.reshape(launch[notes.counts], (-1, ROW)).tolist()
        rows = [_row(*site, counts) for site, counts in zip(notes.sites, values, strict=False)]
        return _summed(sorted(rows, key=lambda row: (-row["lines"], row["pc"])), left_out_rows(notes.left_out))

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        total = report["total"]
        head = f"{self.headline(launch)}, {total['bytes']} bytes asked for, {_percents(total)}"
        columns = ("executions", "lanes", "bytes", "lines", "each", *(f"of {size}" for size in SEGMENTS))
        ran = [row for row in report["instructions"] if row["executions"]]
        rows = [(*_cells(row), f"{row['pc']:#x}", loop_of(row), row["instruction"], row["source"]) for row in ran]
        lines = [head, align_columns((*columns, "pc", "loop", "instruction", "source"), rows, left=3),
                 *idle_line(len(report["instructions"]) - len(ran))]
        for row in ran:
            if len(row["histogram"]) > 1:
                times = (f"{count} of {number}" for number, count in row["histogram"].items())
                lines.append(f"  {row['pc']:#x}, executions by lines: {', '.join(times)}")
        lines += [f"  {row['source']}: {row['bytes']} bytes, {_percents(row)}" for row in report["lines"]]
        return "\n".join([*lines, *left_out_lines(report["left_out"])])

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if name != "histogram"} for row in report["instructions"]]


def _row(place: InstrPlace, size_bytes: int, counts: Sequence[int]) -> dict[str, Any]:
    histogram = {lines: count for lines, count in enumerate(counts[:LANES]) if count}
    return {
        **place.row(),
        "executions": sum(histogram.values()), "lines": sum(lines * count for lines, count in histogram.items()),
        **_efficiency(counts[LANES], counts[LANES] * size_bytes, counts[LANES + 1 :]), "histogram": histogram,
    }  # fmt: skip


def _efficiency(lanes: int, asked: int, segments: Iterable[int]) -> dict[str, Any]:
    found = {"lanes": lanes, "bytes": asked, "segments": dict(zip(SEGMENTS, segments, strict=True))}
    return {**found, "efficiency": efficiency(found, {})}


def _sums(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    rows = list(rows)
    lanes, asked = (sum(row[name] for row in rows) for name in ("lanes", "bytes"))
    return _efficiency(lanes, asked, [sum(row["segments"][size] for row in rows) for size in SEGMENTS])


def _summed(rows: list[dict[str, Any]], left_out: list[dict[str, Any]]) -> dict[str, Any]:
    sources = sorted({row["source"] for row in rows if row["source"]}, key=line_order)
    lines = [{"source": source, **_sums(row for row in rows if row["source"] == source)} for source in sources]
    return {"total": _sums(rows), "instructions": rows, "left_out": left_out, "lines": lines}


def _cells(row: dict[str, Any]) -> tuple[Any, ...]:
    each = row["lines"] / row["executions"] if row["executions"] else 0.0
    return (row["executions"], row["lanes"], row["bytes"], row["lines"], f"{each:.2f}",
            *(percent(row["efficiency"][size]) for size in SEGMENTS))


def _percents(sums: dict[str, Any]) -> str:
    """Of the segments of each size that were touched."""
    return "of what was touched: " + ", ".join(
        f"{percent(part)} in segments of {size}" for size, part in sums["efficiency"].items())
