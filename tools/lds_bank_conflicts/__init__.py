"""Counts the cycles that bank conflicts of LDS cost, for each instruction, from the addresses that lanes really use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    Lane,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    Variable,
    hook,
    ptr,
    u32,
    u64,
    vgpr,
)
from luthier_py.analysis.lines import source_lines
from luthier_py.intrinsics import active_mask, atomic_add, atomic_max, lane_id
from luthier_py.isa.lds_banks import lds_access
from luthier_py.report.sources import SourceFolder

from .device import busy_groups, count_one, cycles_at, cycles_in, free_in, packed, worst_in
from .linear import CYCLES, STARTED, TIMES, Linear, linear_of
from .page import files_of
from .results import COUNTERS, Site, Sites, combined_of, report_of, text_of
from .shapes import shape_of

Report = dict[str, Any]


class LdsBankConflicts(Tool):
    """Cycles that bank conflicts cost at each LDS instruction, from the addresses that its lanes use."""

    name = "lds_bank_conflicts"
    per_wave = COUNT_WARP_LEVEL.only(True)  # banks serve waves, and only lanes that are on
    active_only = EXCLUDE_PRED_OFF.only(True)
    order = Option("cost", choices=("cost", "pc"), help="worst instruction first, or by address")
    worst = Option(10, help="instructions in the plot")
    sources = Option(".", help="folder of the sources that the page shows; nothing outside of it is read")

    @hook
    def started() -> u64:
        return active_mask()

    @hook(fold=True)
    def cycles(
        x: Lane[u32], y: Lane[u32], z: Lane[u32], packed_ids: u32, of_lane: u32, of_x: u32, of_y: u32, of_z: u32,
        start: u32, dwords: u32, bank_bits: u32, address_bits: u32, shared: u32, parity0: u32, parity1: u32,
        parity2: u32, regular: u32,
    ) -> u32:
        """Of all accesses with these multiples, in the lanes that the wave starts with."""
        if packed_ids != 0:
            address = (x & 1023) * of_x + (x >> 10 & 1023) * of_y + (x >> 20 & 1023) * of_z
        else:
            address = x * of_x + y * of_y + z * of_z
        address += lane_id() * of_lane + start
        cycles, free, worst = cycles_at(
            address, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2, regular
        )  # fmt: skip
        return packed(cycles, free, worst)

    @hook
    def add(times: u64, started: u64) -> u64:
        return times + u64(active_mask() == started)

    @hook(fold=True)
    def access(
        counters: ptr[u64], address: Lane[u32], low: u32, passes: u32, dwords: u32, bank_bits: u32, address_bits: u32,
        shared: u32, parity0: u32, parity1: u32, parity2: u32, regular: u32,
    ) -> None:
        """``low``: the offset's bits below a word. Whole words turn the banks round for all lanes: nothing changes."""
        cycles, free, worst = cycles_at(
            address + low, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2, regular
        )  # fmt: skip
        count_one(counters, cycles * passes, free * passes, worst)

    @hook(fold=True)
    def other_lanes(
        started: u64, known: u32, counters: ptr[u64], address: Lane[u32], low: u32, passes: u32, dwords: u32,
        bank_bits: u32, address_bits: u32, shared: u32, parity0: u32, parity1: u32, parity2: u32, regular: u32,
    ) -> None:
        """What is ``known`` is for the lanes that started. Without a conflict in them there is none in a part of them.
        """
        active = active_mask()
        if active != started:
            if worst_in(known) == 1 and active & ~started == 0:
                groups = busy_groups(parity0, parity1, parity2)
                count_one(counters, groups * passes, groups * passes, 1)
            else:
                cycles, free, worst = cycles_at(
                    address + low, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2, regular
                )  # fmt: skip
                count_one(counters, cycles * passes, free * passes, worst)

    @hook(lanes="all")
    def flush(counters: ptr[u64], times: u64, known: u32) -> None:
        lane = lane_id()
        if lane < 3 and times != 0:
            each = u32(1) if lane == 0 else (cycles_in(known) if lane == 1 else free_in(known))
            atomic_add(counters + lane, times * each)
            atomic_max(counters + 3, u64(worst_in(known)))

    def instrument(self, m: Mutator) -> Sites:
        target, lines = m.program.obj.target, source_lines(m.program.obj)
        found = [(f, i, a) for f in m.functions() for i in m.instrs(f) if (a := lds_access(i.inst)) is not None]
        sites = tuple(Site(f, instr, access, lines.at(instr.pc)) for f, instr, access in found)
        shapes = {site.instr.pc: shape_of(target, site.access, m.program.isa.wave_size) for site in sites}
        linear = linear_of(m, sites, shapes)
        rows = {pair: row for row, pair in enumerate(dict.fromkeys(linear.places.values()), len(sites))}
        counters = Variable(u64, len(COUNTERS) * max(len(sites) + len(rows), 1), name="LdsBankConflicts.counters")
        self.start(m, linear)
        for row, site in enumerate(sites):
            pc, place = site.instr.pc, linear.places.get(site.instr.pc)
            offsets = site.access.offsets_bytes  # those of a pair are whole words
            args = counters[row * len(COUNTERS)], site.instr.inst["addr"], offsets[0] & 3, len(offsets), *shapes[pc]
            if place is None:
                m.before(site.instr, self.access, *args)  # before: it may overwrite its address
                continue
            if pc in linear.firsts:
                m.before(site.instr, self.add, TIMES[place.times], STARTED, into=TIMES[place.times])
            m.before(site.instr, self.other_lanes, STARTED, CYCLES[place.cycles], *args)
        for place, row in rows.items():
            m.at_exit(place.kernel, self.flush, counters[row * len(COUNTERS)], TIMES[place.times], CYCLES[place.cycles])
        known = {pc: rows[place] for pc, place in linear.places.items()}
        return Sites(m.program, lines, sites, counters, known)

    def start(self, m: Mutator, linear: Linear) -> None:
        """Where a wave starts, its lanes and work-item IDs are at hand."""
        target = m.program.obj.target
        for kernel, patterns in linear.patterns.items():
            m.at_entry(kernel, self.started, into=STARTED)
            for number, pattern in enumerate(patterns):
                ids = [vgpr(0 if target.packed_work_item_ids or not multiple else at)
                       for at, multiple in enumerate((pattern.x, pattern.y, pattern.z))]
                m.at_entry(
                    kernel, self.cycles, *ids, int(target.packed_work_item_ids), *pattern[:-1], *pattern.shape,
                    into=CYCLES[number],
                )  # fmt: skip

    def report(self, launch: LaunchResult) -> Report:
        return report_of(launch, self.order == "cost")

    def rows(self, report: Report) -> Sequence[Report]:
        rows: Sequence[Report] = report["instructions"]
        return rows

    def combined(self, reports: Sequence[Report]) -> Report:
        return combined_of(reports, self.order == "cost")

    def text(self, launch: LaunchResult, report: Report) -> str:
        return text_of(self.headline(launch), report)

    def files(self, launch: LaunchResult, report: Report) -> Mapping[str, bytes]:
        folder = SourceFolder(Path(self.sources))
        return {**super().files(launch, report), **files_of(self, launch, report, self.worst, folder)}
