"""Says what parts of a kernel compute and move: operations on floats by type, bytes, and what that is to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    EXEC,
    LaunchResult,
    Mutator,
    Option,
    Variable,
    hook,
    ptr,
    sgpr,
    u64,
)
from luthier_py.intrinsics import atomic_max, clock
from luthier_py.report.sources import SourceFolder
from luthier_py.rewrite.tool import Clock, Stretch
from luthier_py.rewrite.tool.chosen.filters import parse_filter
from luthier_py.tools.opcode_histogram.blocks import BlockCounts, Parts
from luthier_py.tools.opcode_histogram.hooks import count_lanes

from .page import files_of
from .rows import AMOUNTS, flat, report_of, text_of
from .work import Sites, sites_of


@dataclass(frozen=True, slots=True)
class Counted:
    """What the counters of one program mean."""

    target: str
    sites: Sites
    parts: Parts                            # executions, by address
    stretches: tuple[tuple[int, ...], ...]  # addresses, for each element of ``lanes``
    lanes: Variable
    clock: Clock


@hook(lanes="one")
def begin(times: ptr[u64], all: u64) -> None:
    atomic_max(times, all - clock())


@hook(lanes="one")
def end(times: ptr[u64]) -> None:
    atomic_max(times, clock())


class Roofline(BlockCounts):
    """Flops by type, bytes and arithmetic intensity of a kernel's lines, loops, functions and chosen regions."""

    name = "roofline"
    cacheable = True
    amounts = AMOUNTS
    per_wave = COUNT_WARP_LEVEL.only(True)
    active_only = EXCLUDE_PRED_OFF.only(False)
    regions = Option("", help="filters with ; between them: a row for the work of each")
    cycles = Option(False, help="1: cycles of each launch, by the core's clock; what the tool adds is among them")

    times = Variable(u64, 2)  # the complement of the first, and the last

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.names = tuple(text.strip() for text in self.regions.split(";") if text.strip())
        self.filters = tuple(map(parse_filter, self.names))

    def note(self, stretch: Stretch) -> tuple[int, ...]:
        return tuple(instr.pc for instr in stretch.instrs)

    def instrument(self, m: Mutator) -> Counted:
        chosen = {function: m.instrs(function) for function in m.functions()}
        sites = sites_of(m.program, chosen, [each.of(m.program) for each in self.filters])
        working = {site.place.pc for site in sites.sites if site.in_lane}
        stretches = [stretch for function in chosen for block in m.blocks(function) for stretch in m.stretches(block)
                     if not working.isdisjoint(self.note(stretch))]
        lanes = Variable(u64, max(len(stretches), 1), name="Roofline.lanes")
        for number, stretch in enumerate(stretches):
            m.at_stretch(stretch, count_lanes, lanes[number], sgpr(EXEC, 2), (1 << m.program.isa.wave_size) - 1,
                         anywhere=True)
        clock = Clock(m.program.obj.target.clock_bits)
        for kernel in m.kernels if self.cycles and clock.compares_waves else ():
            m.at_entry(kernel, begin, self.times[0], clock.mask)
            m.at_exit(kernel, end, self.times[1])
        parts = self.counted_parts(m)
        return Counted(m.program.obj.target.name, sites, parts, tuple(map(self.note, stretches)), lanes, clock)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Counted = launch.notes
        lanes: dict[int, int] = {}
        for pcs, count in zip(notes.stretches, launch[notes.lanes] if notes.stretches else (), strict=True):
            lanes |= dict.fromkeys(pcs, int(count))
        begun, ended = launch[self.times]
        cycles = ended - (notes.clock.mask - begun) if self.cycles and notes.clock.compares_waves else None
        return report_of(notes.target, notes.sites, self.names, notes.parts.by_pc(launch), lanes, cycles)

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        found, notes = text_of(self.headline(launch), report), launch.notes
        if self.cycles and report["cycles"] is None:
            found += f"\n  cycles are not known: the clock has {notes.clock.bits} bits, so waves cannot be compared"
        return found

    def rows(self, report: dict[str, Any]) -> Sequence[Mapping[str, Any]]:
        return flat(report)

    def files(self, launch: LaunchResult, report: dict[str, Any]) -> Mapping[str, bytes]:
        folder = SourceFolder(self.selection.sources)
        return {**super().files(launch, report), **files_of(self, launch, report, folder)}
