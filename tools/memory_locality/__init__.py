"""Working sets, reuse distances and caches of what a kernel accesses in global memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from luthier_py import (
    Channel,
    Lane,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    WaveVariable,
    access_bytes,
    access_kind,
    address,
    channel,
    hook,
    u32,
    u64,
)
from luthier_py.intrinsics import active_mask, push
from luthier_py.isa import AccessKind
from luthier_py.report import plots
from luthier_py.report.columns import comma_separated
from luthier_py.rewrite.tool import InstrPlaces, encoded, wave_in_launch, waves_in_group
from luthier_py.tools.load_balance import unit_registers

from .caches import Hierarchy, cache_shape
from .distances import ReuseDistances, sampled
from .results import AMOUNTS, Counts, Report, Site, Sites, bucket_text, combined_of, report_of, rows_of, text_of
from .touches import Array, Touches, pieces, touches

AT_LEAST = 1 << 16  # touches for which distances are worked out together


class Access:
    """One execution by a wave. ``unit``: bits that distinguish compute units."""

    site: u32
    wave: u32
    unit: u32
    lanes: u64
    address: Lane[u64]


@hook(lanes="one")
def begin(number: u32, place: u32, place_bits: u32, die: u32, die_bits: u32) -> tuple[u32, u32]:
    return number, place & place_bits | (die & die_bits) << 24


@hook(fold=())
def trace(out: channel[Access], site: u32, wave: u32, unit: u32, address: Lane[u64]) -> None:
    push(out, site, wave, unit, active_mask(), address)


@dataclass(slots=True)
class Window:
    """Launches that follow each other: what was used before one is what the ones before have used. Mutable."""

    caches: Hierarchy
    distances: ReuseDistances = field(default_factory=ReuseDistances)
    counts: dict[int, Counts] = field(default_factory=dict)
    """By launch."""
    open: list[tuple[Counts, Array, Array]] = field(default_factory=list)
    """Sites and lines whose distances are still to be worked out."""
    waiting: int = 0
    guard: Lock = field(default_factory=Lock)
    """Records of one launch may come while another one is reported."""

    def add(self, counts: Counts, records: Array, line_bytes: int, one_of: int) -> None:
        bytes_of = np.array([site.bytes for site in counts.sites.known], np.int64)
        loads = np.array([site.kind is AccessKind.LOAD for site in counts.sites.known], bool)
        counts.executions += np.bincount(records["site"], minlength=len(bytes_of))
        with self.guard:
            for piece in pieces(records):
                self.caches.run(piece, bytes_of, loads, counts.caches)
                self.take(counts, touches(piece, bytes_of, line_bytes), one_of)

    def take(self, counts: Counts, found: Touches, one_of: int) -> None:
        chosen = sampled(found.line, one_of)
        site, line = found.site[chosen], found.line[chosen]
        counts.by_site.add(line, site)
        counts.by_wave.add(line, found.wave[chosen])
        self.open.append((counts, site, line))
        self.waiting += len(line)
        if self.waiting >= max(AT_LEAST, len(self.distances)):  # so that what was before costs no more than what is new
            self.settle(one_of)

    def settle(self, one_of: int) -> None:
        """Work out the distances of all that came."""
        distances = self.distances.of(np.concatenate([np.empty(0, np.int64), *(line for _, _, line in self.open)]))
        ends = np.cumsum([len(line) for _, _, line in self.open])
        for (counts, site, _), own in zip(self.open, np.split(distances, ends[:-1]), strict=False):
            counts.add(site, own, one_of)
        self.open, self.waiting = [], 0


class MemoryLocality(Tool):
    """Working set, reuse distances and sharing of the lines of global memory, and hits and misses of caches."""

    name = "memory_locality"
    cacheable = True
    amounts = AMOUNTS
    aliases = ("reuse_distance",)
    line_bytes = Option(128, choices=tuple(16 << shift for shift in range(9)), help="bytes of a cache line")
    l1 = Option("", help="a cache of each compute unit, as size:ways:line: 16K:64:64")
    l2 = Option("", help="a cache that all share: 4M:16:128")
    window = Option(1, bounds=(1, 1 << 31), help="launches that follow each other, before lines count as unused again")
    sample = Option(1, bounds=(1, 1 << 20), help="one of so many lines is looked at, but for caches: numbers are "
                                                 "estimates then")

    uses = Channel(Access)
    wave = WaveVariable(u32)
    unit = WaveVariable(u32)

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.hierarchy()

    def hierarchy(self) -> Hierarchy:
        """With nothing in it."""
        l1, l2 = (cache_shape(name, text) if text else None for name, text in (("l1", self.l1), ("l2", self.l2)))
        return Hierarchy(l1, l2)

    def instrument(self, m: Mutator) -> Sites:
        places, sites = InstrPlaces(m.program), list[Site]()
        for instr in (instr for function in m.functions() for instr in m.instrs(function, where="global")):
            with places.unless_refused(instr):  # images, and what moves no data
                site = Site(places.of(instr), access_kind(instr), access_bytes(instr))
                m.before(instr, trace, self.uses, len(sites), self.wave, self.unit, address(instr))
                sites.append(site)
        for kernel in m.kernels if sites else ():
            m.at_entry(kernel, begin, wave_in_launch(), *unit_registers(kernel), into=(self.wave, self.unit))
        return Sites(tuple(sites), places.left_out, m.program.isa.wave_size)

    def of_launch(self, launch: LaunchResult) -> tuple[Window, Counts]:
        window: Window = self.gathered.setdefault(launch.index // self.window, Window(self.hierarchy()))
        return window, window.counts.setdefault(launch.index, Counts.of(launch.notes, window.caches.shapes))

    def received(self, channel: Channel, launch: LaunchResult, records: Array) -> None:
        window, counts = self.of_launch(launch)
        window.add(counts, records, self.line_bytes, self.sample)

    def report(self, launch: LaunchResult) -> Report:
        window, counts = self.of_launch(launch)
        with window.guard:
            window.settle(self.sample)
        del window.counts[launch.index]
        if (launch.index + 1) % self.window == 0:
            del self.gathered[launch.index // self.window]
        head = {"line": self.line_bytes, "sample": self.sample,
                "window": {"launches": self.window, "lines": len(window.distances) * self.sample}}
        waves = waves_in_group(launch, counts.sites.wave_size)
        return report_of(counts, waves, window.caches.shapes, head, self.sample)

    def text(self, launch: LaunchResult, report: Report) -> str:
        return text_of(self.headline(launch), report)

    def rows(self, report: Report) -> list[dict[str, Any]]:
        return rows_of(report)

    def combined(self, reports: Sequence[Report]) -> Report:
        return combined_of(reports)

    def files(self, launch: LaunchResult, report: Report) -> Mapping[str, bytes]:
        files = {**super().files(launch, report), f"{self.name}.csv": encoded(comma_separated(rows_of(report)))}
        if plots.available():
            total = report["total"]
            labels = ["first use", *map(bucket_text, total["reuse"])]
            numbers = {"touches": [total["cold"], *total["reuse"].values()]}
            title = f"lines of {report['line']} bytes touched since the last use"
            files[f"{self.name}.png"] = plots.plot_grouped_bars(labels, numbers, title, "touches")
        return files
