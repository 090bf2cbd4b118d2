"""Counts the cycles that bank conflicts of LDS cost, for each instruction, from the addresses that lanes really use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from luthier_py import (
    COUNT_WARP_LEVEL,
    EXCLUDE_PRED_OFF,
    EXEC,
    LaunchResult,
    Mutator,
    Option,
    Tool,
    Variable,
    sgpr,
    u32,
    u64,
    vgpr,
)
from luthier_py.isa import Space
from luthier_py.isa.timing.lds_banks import lds_access
from luthier_py.program.analysis.lines import source_lines
from luthier_py.report.sources import SourceFolder
from luthier_py.rewrite.tool import Element, Hook, InstrPlaces, Region, combined

from .advice import advice_of, advice_text, combined_advice
from .device import (
    access,
    access_in_memory,
    again,
    count_turnout,
    count_turnout_in_memory,
    flush,
    flush_accesses,
    flush_known,
    known,
    sample,
)
from .page import files_of
from .plan import Conflicts, Part, Pattern, Turnout, plan_of
from .results import AMOUNTS, Site, Sites, ordered, report_of, text_of
from .samples import SITE_WORDS
from .shapes import Shape, shape_of

Report = dict[str, Any]
LANES = sgpr(EXEC, 2)


class LdsBankConflicts(Tool):
    """Cycles that bank conflicts cost at each LDS instruction, from the addresses that its lanes use."""

    name = "lds_bank_conflicts"
    cacheable = True
    amounts = AMOUNTS
    per_wave = COUNT_WARP_LEVEL.only(True)  # banks serve waves, and only lanes that are on
    active_only = EXCLUDE_PRED_OFF.only(True)
    order = Option("cost", choices=("cost", "pc"), help="worst instruction first, or by address")
    worst = Option(10, bounds=(0, 1000), help="instructions in the plot")
    remedies = Option(False, help="1: why instructions conflict, and which padding or swizzle of LDS would help")

    def instrument(self, m: Mutator) -> Sites:
        target, lines = m.program.obj.target, source_lines(m.program.obj)
        places = InstrPlaces(m.program)
        sites = tuple(Site(f, instr, found, places.of(instr)) for f in m.functions() for instr in m.instrs(f)
                      if (found := lds_access(instr.inst)) is not None)
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
            m.before(site.instr, sample, samples[SITE_WORDS * number], LANES, site.instr.inst["addr"], site.low,
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
                    kernel, known, LANES, *ids, int(target.packed_work_item_ids), *kept[:-1], *kept.shape.numbers,
                    into=variable,
                )  # fmt: skip

    def count_turnouts(self, m: Mutator, part: Part, elements: Mapping[Turnout | Conflicts, Element]) -> None:
        for turnout, where in part.turnouts.items():
            if isinstance(where, Region):
                m.at_region(where, again, part.wide[turnout], into=part.wide[turnout])
            elif turnout in part.wide:
                m.at_stretch(where, count_turnout, part.wide[turnout], LANES, into=part.wide[turnout], anywhere=True)
            else:
                m.at_stretch(where, count_turnout_in_memory, elements[turnout], LANES, anywhere=True)
            if turnout in part.wide:
                self.at_end(m, part, flush_accesses, elements[turnout], part.wide[turnout])

    def count_conflicts(
        self, m: Mutator, part: Part, elements: Mapping[Turnout | Conflicts, Element], shapes: Mapping[int, Shape]
    ) -> None:
        for conflicts, site in part.conflicts.items():
            address = LANES, site.instr.inst["addr"], site.low, *shapes[site.instr.pc].numbers
            if isinstance(conflicts.what, Pattern):
                kept = part.wide[conflicts.turnout], part.narrow[conflicts.what]
                self.at_end(m, part, flush_known, elements[conflicts], *kept)
            elif conflicts in part.wide:
                kept = part.wide[conflicts], part.narrow[conflicts]
                m.before(site.instr, access, *kept, *address, into=kept)  # before: it may overwrite its address
                self.at_end(m, part, flush, elements[conflicts], *kept)
            else:
                m.before(site.instr, access_in_memory, elements[conflicts], *address)

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
