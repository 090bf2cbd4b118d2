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
)
from luthier_py.analysis.lines import source_lines
from luthier_py.intrinsics import all_, atomic_add, atomic_max, is_first_lane
from luthier_py.isa import Target
from luthier_py.isa.lds_banks import Way, bank_model, lds_access
from luthier_py.report.sources import SourceFolder
from luthier_py.tool import Element

from .device import cycles_of, group_of, load_of_word, load_of_words
from .page import files_of
from .results import COUNTERS, Site, Sites, combined_of, report_of, text_of

Report = dict[str, Any]


class LdsBankConflicts(Tool):
    """Cycles that bank conflicts cost at each LDS instruction, from the addresses that its lanes use."""

    name = "lds_bank_conflicts"
    per_wave = COUNT_WARP_LEVEL.only(True)  # banks serve waves, and only lanes that are on
    active_only = EXCLUDE_PRED_OFF.only(True)
    order = Option("cost", choices=("cost", "pc"), help="worst instruction first, or by address")
    worst = Option(10, help="instructions in the plot")
    sources = Option(".", help="folder of the sources that the page shows; nothing outside of it is read")

    @hook(fold=True)  # it has other code for each shape of access
    def access(
        counters: ptr[u64], address: Lane[u32], low: u32, passes: u32, dwords: u32, bank_bits: u32, address_bits: u32,
        shared: u32, parity0: u32, parity1: u32, parity2: u32,
    ) -> None:
        """``low``: the offset's bits below a word. Whole words turn the banks round for all lanes: nothing changes."""
        group, word, load = group_of(parity0, parity1, parity2), (address + low) >> 2, u32(0)
        if dwords == 1:
            load = load_of_word(word, bank_bits, address_bits, shared, group)
        elif dwords == 2 and all_(word & 1 == 0):  # lanes then share all of their words or none: one stands for all
            load = load_of_word(word >> 1, bank_bits - 1, address_bits - 1, shared, group)
        elif dwords == 4 and all_(word & 3 == 0):
            load = load_of_word(word >> 2, bank_bits - 2, address_bits - 2, shared, group)
        else:
            load = load_of_words(word, dwords, bank_bits, address_bits, shared, group)
        cycles, free, worst = cycles_of(load, group)
        if is_first_lane():
            atomic_add(counters, u64(1))
            atomic_add(counters + 1, u64(cycles * passes))
            atomic_add(counters + 2, u64(free * passes))
            atomic_max(counters + 3, u64(worst))

    def instrument(self, m: Mutator) -> Sites:
        found = [(f, i, a) for f in m.functions() for i in m.instrs(f) if (a := lds_access(i.inst)) is not None]
        lines = source_lines(m.program.obj)
        sites = tuple(Site(function, instr, access, lines.at(instr.pc)) for function, instr, access in found)
        counters = Variable(u64, len(COUNTERS) * max(len(sites), 1), name="LdsBankConflicts.counters")
        for number, site in enumerate(sites):
            self.count(m, site, counters[number * len(COUNTERS)])
        return Sites(m.program, lines, sites, counters)

    def count(self, m: Mutator, site: Site, counters: Element) -> None:
        """Before the instruction, since it may overwrite its address. The offsets of a pair are whole words."""
        target, instr, access = m.program.obj.target, site.instr, site.access
        offsets = access.offsets_bytes
        service = bank_model(target).service(access.way, access.dwords)
        parity0, parity1, parity2 = (*service.parities, 0, 0)[:3]
        m.before(
            instr, self.access, counters, instr.inst["addr"], offsets[0] & 3, len(offsets), access.dwords,
            service.banks.bit_length() - 1, address_bits(target), int(access.way is not Way.ATOMIC),
            parity0, parity1, parity2,
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


def address_bits(target: Target) -> int:
    """Bits that tell all dwords of LDS apart, and one more for the words behind an address."""
    return (target.lds_bytes // 4 - 1).bit_length() + 1
