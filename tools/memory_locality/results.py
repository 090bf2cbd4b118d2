"""What is counted of one launch, and reports of it.

In: touches with their reuse distances, and what caches counted. Out: report, text, rows. Invariant: the rows of
instructions add up to the totals, but for working sets, since instructions touch the same lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from luthier_py.base.errors import how_many
from luthier_py.isa import AccessKind
from luthier_py.program.analysis import line_order
from luthier_py.report.columns import align_columns
from luthier_py.rewrite.tool import (
    MOST,
    SAME,
    SO_FAR,
    SUM,
    Amounts,
    CountsBy,
    InstrPlace,
    Omission,
    RowsBy,
    combined,
    left_out_lines,
    left_out_rows,
)

from .caches import CacheCounts, CacheShape
from .distances import COLD
from .touches import Array

BUCKETS = 50  # 0, 1, 2 to 3, 4 to 7, ...
CACHE_COUNTS = ("hits", "misses", "evictions", "used_bytes")
Report = dict[str, Any]
COUNTED: Amounts = {
    "lines": MOST.of("lines of a launch that were touched"), "executions": SUM.of("executions by waves"),
    "touches": SUM.of("lines that these touched"), "cold": SUM.of("first touches"),
    "reuse": CountsBy("touches by reuse distance"),
    **{cache: {what: SUM.of(what.replace("_", " ")) for what in CACHE_COUNTS} for cache in ("l1", "l2")},
}  # fmt: skip
AMOUNTS: Amounts = {
    "line": SAME, "sample": SAME, "window": {"launches": SAME, "lines": SO_FAR}, "total": COUNTED,
    "instructions": RowsBy(("pc",), COUNTED), "sources": {"*": COUNTED},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Site:
    """A memory instruction. ``bytes``: of a lane."""

    place: InstrPlace
    kind: AccessKind
    bytes: int


@dataclass(frozen=True, slots=True)
class Sites:
    """Of one program."""

    known: tuple[Site, ...]
    left_out: tuple[Omission, ...]
    wave_size: int


class Distinct:
    """Rows of two numbers, each once; mutable."""

    def __init__(self) -> None:
        self._parts: list[Array] = [np.empty((0, 2), np.int64)]
        self._waiting = 0

    def add(self, first: Array, second: Array) -> None:
        self._parts.append(np.stack([first, second], axis=1))
        self._waiting += len(first)
        if self._waiting > len(self._parts[0]):
            _ = self.rows

    @property
    def rows(self) -> Array:
        rows = np.concatenate(self._parts)
        rows = rows[np.lexsort((rows[:, 0], rows[:, 1]))]
        new = np.ones(len(rows), bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        self._parts, self._waiting = [rows[new]], 0
        return self._parts[0]

    def mapped(self, second: Array) -> Distinct:
        """The same with ``second`` of each second number in its place."""
        found, rows = Distinct(), self.rows
        found.add(rows[:, 0], second[rows[:, 1]])
        return found

    def by_second(self, count: int) -> list[int]:
        """How many rows have each second number, of so many."""
        found: list[int] = np.bincount(self.rows[:, 1], minlength=count).tolist()
        return found

    def sharing(self) -> dict[int, int]:
        """How many first numbers stand in 1, 2, 3 ... rows."""
        return dict(sorted(Counter(np.unique(self.rows[:, 0], return_counts=True)[1].tolist()).items()))


@dataclass(slots=True)
class Counts:
    """Of one launch, by site; all of them grow."""

    sites: Sites
    executions: Array
    touches: Array
    cold: Array
    reuse: Array
    caches: dict[str, CacheCounts]
    by_site: Distinct = field(default_factory=Distinct)
    by_wave: Distinct = field(default_factory=Distinct)

    @classmethod
    def of(cls, sites: Sites, shapes: Iterable[CacheShape]) -> Counts:
        count = len(sites.known)
        executions, touches, cold = np.zeros((3, count), np.int64)
        caches = {shape.name: CacheCounts.of(count) for shape in shapes}
        return cls(sites, executions, touches, cold, np.zeros((count, BUCKETS), np.int64), caches)

    def add(self, site: Array, distances: Array, one_of: int) -> None:
        """Touches of a sample of lines, each of which represents ``one_of``, as do those between two uses."""
        cold = distances == COLD
        bucket = np.frexp(np.where(cold, 0, distances * one_of).astype(np.float64))[1]  # bits that the number has
        self.touches += one_of * np.bincount(site, minlength=len(self.touches))
        self.cold += one_of * np.bincount(site[cold], minlength=len(self.cold))
        reused = site[~cold] * BUCKETS + bucket[~cold]
        self.reuse += one_of * np.bincount(reused, minlength=self.reuse.size).reshape(self.reuse.shape)


def report_of(counts: Counts, workgroup_waves: int, shapes: Sequence[CacheShape], head: Report, one_of: int) -> Report:
    """``head``: what is known beside the counts."""
    sites, wave = counts.sites.known, counts.by_wave.rows
    names = sorted({site.place.line for site in sites if site.place.line}, key=line_order)
    number = {name: at for at, name in enumerate(names)}
    sources = [number.get(site.place.line or "", len(names)) for site in sites]
    of_source = counts.by_site.mapped(np.array(sources, np.int64))
    groups = Distinct()
    groups.add(wave[:, 0], wave[:, 1] // workgroup_waves)
    lines = len(np.unique(wave[:, 0])) * one_of
    own = counts.by_site.by_second(len(sites))
    rows = [_row(counts, at, {"lines": own[at] * one_of}) for at in range(len(sites))]
    of_lines = of_source.by_second(len(names) + 1)
    return {
        **head, "total": {"lines": lines, **_sums(rows)},
        "caches": {shape.name: {"size": shape.size_bytes, "ways": shape.ways, "line": shape.line_bytes}
                   for shape in shapes},
        "sharing": {"waves": _scaled(counts.by_wave.sharing(), one_of),
                    "workgroups": _scaled(groups.sharing(), one_of)},
        "instructions": rows,
        "sources": {name: {"lines": of_lines[at] * one_of, **_sums(row for row in rows if row["source"] == name)}
                    for name, at in number.items()},
        "left_out": left_out_rows(counts.sites.left_out),
    }  # fmt: skip


def _scaled(numbers: Mapping[int, int], one_of: int) -> dict[int, int]:
    return {size: count * one_of for size, count in numbers.items()}


def _row(counts: Counts, at: int, working_set: Report) -> Report:
    site = counts.sites.known[at]
    reuse = {1 << bits >> 1: int(count) for bits, count in enumerate(counts.reuse[at]) if count}
    return {
        **site.place.row(), "kind": site.kind.name.lower(), **working_set, "executions": int(counts.executions[at]),
        "touches": int(counts.touches[at]), "cold": int(counts.cold[at]), "reuse": reuse,
        **{name: {what: getattr(of, what)[at] for what in CACHE_COUNTS} for name, of in counts.caches.items()},
    }  # fmt: skip


def _sums(rows: Iterable[Report]) -> Report:
    """But for working sets."""
    rows = list(rows)
    reuse: Counter[int] = sum((Counter(row["reuse"]) for row in rows), Counter())
    caches = [name for name in ("l1", "l2") if rows and name in rows[0]]
    return {
        **{name: sum(row[name] for row in rows) for name in ("executions", "touches", "cold")},
        "reuse": dict(sorted(reuse.items())),
        **{name: {what: sum(row[name][what] for row in rows) for what in CACHE_COUNTS} for name in caches},
    }


def combined_of(reports: Sequence[Report]) -> Report:
    """Counts add up; of working sets and of sharing the largest launch represents all."""
    return combined(AMOUNTS, sorted(reports, key=lambda report: -report["total"]["lines"]))


def text_of(headline: str, report: Report) -> str:
    total, line = report["total"], report["line"]
    sample = f", by one of {report['sample']} lines" if report["sample"] > 1 else ""
    head = (f"{headline}, working set {how_many(total['lines'], 'line')} of {line} bytes, "
            f"{size_text(total['lines'] * line)}; {total['touches']} touches{sample}")
    caches = list(report["caches"])
    columns = ("executions", "touches", "lines", "cold", "half within", *(f"{name} {what}" for name in caches
               for what in ("hits", "misses", "evictions", "used")))
    rows = [(*_cells(row, report["caches"]), f"{row['pc']:#x}", row["instruction"], row["source"])
            for row in report["instructions"] if row["executions"]]
    lines = [head, align_columns((*columns, "pc", "instruction", "source"), rows, left=3)]
    lines += [f"  {source}: {how_many(sums['lines'], 'line')}, {', '.join(reuse_texts(sums))}"
              for source, sums in report["sources"].items()]
    lines.append(f"  reuse distances: {', '.join(reuse_texts(total))}")
    lines += [f"  lines by how many {what} touch them: {', '.join(f'{n} by {by}' for by, n in _few(found).items())}"
              for what, found in (("waves", report["sharing"]["waves"]),
                                  ("work-groups", report["sharing"]["workgroups"]))]
    if report["window"]["launches"] > 1:
        lines.append(f"  window of {report['window']['launches']} launches, so far: "
                     f"{how_many(report['window']['lines'], 'line')}")
    lines += [_cache_text(name, shape, total[name]) for name, shape in report["caches"].items()]
    return "\n".join([*lines, *left_out_lines(report["left_out"])])


def _few(sharing: Mapping[int, int]) -> dict[str, int]:
    """By powers of two where there are many different numbers."""
    if len(sharing) <= 8:
        return {str(by): count for by, count in sharing.items()}
    found: Counter[int] = Counter()
    for by, count in sharing.items():
        found[1 << by.bit_length() - 1] += count
    return {bucket_text(by): count for by, count in found.items()}


def bucket_text(first: int) -> str:
    """The text of a bucket that begins there."""
    return str(first) if first < 2 else f"{first}-{2 * first - 1}"


def reuse_texts(sums: Report) -> list[str]:
    return [f"{sums['cold']} first uses", *(f"{count} at {bucket_text(at)}" for at, count in sums["reuse"].items())]


def half_within(row: Report) -> int | None:
    """The fewest lines, a power of two, of a fully associative LRU cache that has half of all touches."""
    seen = 0
    for first, count in sorted(row["reuse"].items()):
        seen += count
        if 2 * seen >= row["touches"]:
            return max(1, 2 * int(first))
    return None


def used_part(row: Report, line_bytes: int) -> float | None:
    """What part of the bytes that were fetched was touched while it was there."""
    return row["used_bytes"] / (row["misses"] * line_bytes) if row["misses"] else None


def _cells(row: Report, caches: Mapping[str, Report]) -> tuple[Any, ...]:
    half = half_within(row)
    cells = [row["executions"], row["touches"], row["lines"], row["cold"], "-" if half is None else half]
    for name, shape in caches.items():
        part = used_part(row[name], shape["line"])
        cells += [*(row[name][what] for what in CACHE_COUNTS[:-1]), "-" if part is None else f"{100 * part:.1f}%"]
    return tuple(cells)


def _cache_text(name: str, shape: Report, row: Report) -> str:
    asked, part = row["hits"] + row["misses"], used_part(row, shape["line"])
    used = "" if part is None else f", {100 * part:.1f}% of fetched bytes used"
    hits = f"{100 * row['hits'] / asked:.1f}%" if asked else "-"
    return (f"  {name} of {size_text(shape['size'])}, {shape['ways']} ways, lines of {shape['line']}: {row['hits']} "
            f"hits ({hits}), {row['misses']} misses, {row['evictions']} evictions{used}")


def size_text(size: int) -> str:
    """The text of a size in bytes."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return how_many(size, "byte")


def rows_of(report: Report) -> list[dict[str, Any]]:
    """Flat, for CSV."""
    found = []
    for row in report["instructions"]:
        flat = {name: value for name, value in row.items() if not isinstance(value, dict)}
        flat["half_within"] = half_within(row)
        for name, shape in report["caches"].items():
            flat |= {f"{name}_{what}": row[name][what] for what in CACHE_COUNTS}
            flat[f"{name}_used"] = used_part(row[name], shape["line"])
        found.append(flat)
    return found
