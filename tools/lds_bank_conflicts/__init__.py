"""Counts the cycles that bank conflicts of LDS cost, for each instruction, from the addresses that lanes really use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    EXEC,
    Lane,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    Variable,
    hook,
    ptr,
    sgpr,
    u32,
    u64,
    vgpr,
)
from luthier_py.analysis.lines import source_lines
from luthier_py.intrinsics import atomic_add, atomic_max, lane_id
from luthier_py.isa import Space
from luthier_py.isa.lds_banks import lds_access
from luthier_py.report.sources import SourceFolder
from luthier_py.tool import Element, Hook, InstrPlaces, Region, combined

from .advice import advice_of, advice_text, combined_advice
from .device import cycles_in, groups_in, one_more, packed, some_in, worst_in
from .page import files_of
from .plan import Conflicts, Part, Pattern, Turnout, plan_of
from .results import AMOUNTS, Site, Sites, ordered, report_of, text_of
from .samples import SITE_WORDS, keep
from .shapes import Shape, shape_of

Report = dict[str, Any]
LANES = sgpr(EXEC, 2)


class LdsBankConflicts(Tool):
    """Cycles that bank conflicts cost at each LDS instruction, from the addresses that its lanes use."""

    name = "lds_bank_conflicts"
    amounts = AMOUNTS
    per_wave = COUNT_WARP_LEVEL.only(True)  # banks serve waves, and only lanes that are on
    active_only = EXCLUDE_PRED_OFF.only(True)
    order = Option("cost", choices=("cost", "pc"), help="worst instruction first, or by address")
    worst = Option(10, bounds=(0, 1000), help="instructions in the plot")
    remedies = Option(False, help="1: why instructions conflict, and which padding or swizzle of LDS would help")

    @hook(lanes="all", fold=True)
    def known(
        exec: u64, x: Lane[u32], y: Lane[u32], z: Lane[u32], packed_ids: u32, of_lane: u32, of_x: u32, of_y: u32,
        of_z: u32, start: u32, dwords: u32, bank_bits: u32, address_bits: u32, shared: u32, parity0: u32, parity1: u32,
        parity2: u32, seats: u32, span: u32, heads: u64, mask0: u32, mask1: u32, mask2: u32, mask3: u32,
    ) -> u32:
        """The conflicts of an access with these multiples, in the lanes that the wave starts with."""
        if packed_ids != 0:
            address = (x & 1023) * of_x + (x >> 10 & 1023) * of_y + (x >> 20 & 1023) * of_z
        else:
            address = x * of_x + y * of_y + z * of_z
        address += lane_id() * of_lane + start
        cycles, worst = one_more(
            u64(0), u32(0), exec, address, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2, seats,
            span, heads, mask0, mask1, mask2, mask3,
        )  # fmt: skip
        return packed(cycles, worst)

    @hook
    def again(times: u64) -> u64:
        return times + 1

    @hook
    def turnout(accesses: u64, exec: u64) -> u64:
        return accesses + some_in(exec)

    @hook(lanes="one")
    def turnout_in_memory(counters: ptr[u64], exec: u64) -> None:
        if exec != 0:
            atomic_add(counters, u64(1))

    @hook(lanes="all", fold=True)
    def access(
        cycles: u64, worst: u32, exec: u64, address: Lane[u32], low: u32, dwords: u32, bank_bits: u32,
        address_bits: u32, shared: u32, parity0: u32, parity1: u32, parity2: u32, seats: u32, span: u32, heads: u64,
        mask0: u32, mask1: u32, mask2: u32, mask3: u32,
    ) -> tuple[u64, u32]:
        """``low``: the offset's bits below a word. Whole words turn the banks round for all lanes: nothing changes."""
        cycles, worst = one_more(
            cycles, worst, exec, address + low, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2,
            seats, span, heads, mask0, mask1, mask2, mask3,
        )  # fmt: skip
        return cycles, worst

    @hook(lanes="all", fold=True)
    def access_in_memory(
        counters: ptr[u64], exec: u64, address: Lane[u32], low: u32, dwords: u32, bank_bits: u32, address_bits: u32,
        shared: u32, parity0: u32, parity1: u32, parity2: u32, seats: u32, span: u32, heads: u64, mask0: u32,
        mask1: u32, mask2: u32, mask3: u32,
    ) -> None:
        cycles, worst = one_more(
            u64(0), u32(0), exec, address + low, dwords, bank_bits, address_bits, shared, parity0, parity1, parity2,
            seats, span, heads, mask0, mask1, mask2, mask3,
        )  # fmt: skip
        if worst != 0 and lane_id() == 0:
            atomic_add(counters, cycles)
            atomic_max(counters + 1, u64(worst))

    @hook(lanes="all", fold=True)
    def sample(
        samples: ptr[u32], exec: u64, address: Lane[u32], low: u32, dwords: u32, bank_bits: u32, address_bits: u32,
        shared: u32, parity0: u32, parity1: u32, parity2: u32, seats: u32, span: u32, heads: u64, mask0: u32,
        mask1: u32, mask2: u32, mask3: u32,
    ) -> None:
        if some_in(exec) != 0:
            _, worst = one_more(
                u64(0), u32(0), exec, address + low, dwords, bank_bits, address_bits, shared, parity0, parity1,
                parity2, seats, span, heads, mask0, mask1, mask2, mask3,
            )  # fmt: skip
            keep(samples, exec, address, worst, groups_in(exec, span, heads, mask0, mask1, mask2, mask3))

    @hook(lanes="one")
    def flush_accesses(counters: ptr[u64], accesses: u64) -> None:
        if accesses != 0:
            atomic_add(counters, accesses)

    @hook(lanes="one")
    def flush_known(counters: ptr[u64], times: u64, known: u32) -> None:
        if known != 0 and times != 0:
            atomic_add(counters, times * cycles_in(known))
            atomic_max(counters + 1, u64(worst_in(known)))

    @hook(lanes="one")
    def flush(counters: ptr[u64], cycles: u64, worst: u32) -> None:
        if worst != 0:
            atomic_add(counters, cycles)
            atomic_max(counters + 1, u64(worst))

    def instrument(self, m: Mutator) -> Sites:
        target, lines = m.program.obj.target, source_lines(m.program.obj)
        places = InstrPlaces(m.program)
        sites = tuple(Site(f, instr, access, places.of(instr)) for f in m.functions() for instr in m.instrs(f)
                      if (access := lds_access(instr.inst)) is not None)
        for instr in (instr for function in m.functions() for instr in function.instrs):
            if instr.inst.op.spaces & Space.LDS and lds_access(instr.inst) is None:
                places.leave_out(instr, "it may touch LDS in a way that is not counted")
        shapes = {site.instr.pc: shape_of(target, site.access, m.program.isa.wave_size) for site in sites}
        plan = plan_of(m, sites, shapes)
        rows = plan.rows
        counters = Variable(u64, 2 * max(len(rows), 1), name="LdsBankConflicts.counters")
        elements = {thing: counters[2 * row] for thing, row in rows.items()}
        for part in plan.parts:
            self.start(m, part)
            self.count_turnouts(m, part, elements)
            self.count_conflicts(m, part, elements, shapes)
        turnouts = tuple(rows[plan.turnouts[site.instr.pc]] for site in sites)
        conflicts = tuple(rows[plan.conflicts[site.instr.pc]] for site in sites)
        samples = self.take_samples(m, sites, shapes)
        return Sites(m.program, lines, sites, counters, turnouts, conflicts, places.left_out, samples)

    def take_samples(self, m: Mutator, sites: Sequence[Site], shapes: Mapping[int, Shape]) -> Variable | None:
        if not self.remedies or not sites:
            return None
        samples = Variable(u32, SITE_WORDS * len(sites), name="LdsBankConflicts.samples")
        for number, site in enumerate(sites):
            m.before(site.instr, self.sample, samples[SITE_WORDS * number], LANES, site.instr.inst["addr"], site.low,
                     *shapes[site.instr.pc].numbers)
        return samples

    def start(self, m: Mutator, part: Part) -> None:
        """Where a wave starts, its lanes and work-item IDs are at hand."""
        target = m.program.obj.target
        for kernel, (kept, variable) in product(part.kernels, part.narrow.items()):
            if isinstance(kept, Pattern):
                ids = [vgpr(0 if target.packed_work_item_ids or not multiple else at)
                       for at, multiple in enumerate((kept.x, kept.y, kept.z))]
                m.at_entry(
                    kernel, self.known, LANES, *ids, int(target.packed_work_item_ids), *kept[:-1], *kept.shape.numbers,
                    into=variable,
                )  # fmt: skip

    def count_turnouts(self, m: Mutator, part: Part, elements: Mapping[Turnout | Conflicts, Element]) -> None:
        for turnout, where in part.turnouts.items():
            if isinstance(where, Region):
                m.at_region(where, self.again, part.wide[turnout], into=part.wide[turnout])
            elif turnout in part.wide:
                m.at_stretch(where, self.turnout, part.wide[turnout], LANES, into=part.wide[turnout], anywhere=True)
            else:
                m.at_stretch(where, self.turnout_in_memory, elements[turnout], LANES, anywhere=True)
            if turnout in part.wide:
                self.at_end(m, part, self.flush_accesses, elements[turnout], part.wide[turnout])

    def count_conflicts(
        self, m: Mutator, part: Part, elements: Mapping[Turnout | Conflicts, Element], shapes: Mapping[int, Shape]
    ) -> None:
        for conflicts, site in part.conflicts.items():
            address = LANES, site.instr.inst["addr"], site.low, *shapes[site.instr.pc].numbers
            if isinstance(conflicts.what, Pattern):
                kept = part.wide[conflicts.turnout], part.narrow[conflicts.what]
                self.at_end(m, part, self.flush_known, elements[conflicts], *kept)
            elif conflicts in part.wide:
                kept = part.wide[conflicts], part.narrow[conflicts]
                m.before(site.instr, self.access, *kept, *address, into=kept)  # before: it may overwrite its address
                self.at_end(m, part, self.flush, elements[conflicts], *kept)
            else:
                m.before(site.instr, self.access_in_memory, elements[conflicts], *address)

    def at_end(self, m: Mutator, part: Part, hook: Hook, *args: object) -> None:
        for kernel in part.kernels:
            m.at_exit(kernel, hook, *args)

    def report(self, launch: LaunchResult) -> Report:
        return {**report_of(launch, self.order == "cost"), **advice_of(launch)}

    def combined(self, reports: Sequence[Report]) -> Report:
        found = {**combined(AMOUNTS, reports), **combined_advice(reports)}
        return {**found, "instructions": ordered(found["instructions"], self.order == "cost")}

    def text(self, launch: LaunchResult, report: Report) -> str:
        return "\n".join([text_of(self.headline(launch), report), *advice_text(report)])

    def files(self, launch: LaunchResult, report: Report) -> Mapping[str, bytes]:
        folder = SourceFolder(self.selection.sources)
        return {**super().files(launch, report), **files_of(self, launch, report, self.worst, folder)}
