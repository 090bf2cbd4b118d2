"""Counts the cycles that bank conflicts of LDS cost, for each instruction, from the addresses that lanes really use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luthier_py import Lane, LaunchResult, Mutator, Option, Tool, Variable, hook, ptr, u32, u64
from luthier_py.analysis.lines import source_lines
from luthier_py.intrinsics import all_, atomic_add, atomic_max, is_first_lane
from luthier_py.ir import Instr
from luthier_py.isa import Target
from luthier_py.isa.lds_banks import LdsAccess, Way, bank_model, lds_access

from .device import cycles_of, group_of, load_of_word, load_of_words
from .page import files_of
from .results import COUNTERS, Site, report_of, text_of

Report = dict[str, Any]


class LdsBankConflicts(Tool):
    """Cycles that bank conflicts cost at each LDS instruction, from the addresses that its lanes use."""

    name = "lds_bank_conflicts"
    order = Option("cost", choices=("cost", "pc"), help="worst instruction first, or by address")
    worst = Option(10, help="instructions in the plot")
    sources = Option(".", help="folder below which source files are looked for")

    @hook
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

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.sites: list[Site] = []

    def instrument(self, m: Mutator) -> None:
        self.program = m.program
        self.lines = source_lines(m.program.obj)
        found = [(f, i, access) for f in m.functions() for i in f.instrs if (access := lds_access(i.inst)) is not None]
        self.sites = [Site(f, i, access, self.lines.at(i.pc)) for f, i, access in found]
        if not self.sites:
            return
        self.counters = Variable(u64, len(COUNTERS) * len(self.sites), name="LdsBankConflicts.counters")
        for number, site in enumerate(self.sites):
            self.count(m, site.instr, site.access, number * len(COUNTERS))

    def count(self, m: Mutator, instr: Instr, access: LdsAccess, slot: int) -> None:
        """Before the instruction, since it may overwrite its address. The offsets of a pair are whole words."""
        target, offsets = m.program.obj.target, access.offsets_bytes
        service = bank_model(target).service(access.way, access.dwords)
        parity0, parity1, parity2 = (*service.parities, 0, 0)[:3]
        m.before(
            instr, self.access, self.counters[slot], instr.inst["addr"], offsets[0] & 3, len(offsets), access.dwords,
            service.banks.bit_length() - 1, address_bits(target), int(access.way is not Way.ATOMIC),
            parity0, parity1, parity2,
        )  # fmt: skip

    def report(self, launch: LaunchResult) -> Report:
        reached = self.program.reachable(self.program.kernel(launch.kernel).function)
        counted = launch[self.counters]
        size = len(COUNTERS)
        counts = {
            site: counted[size * number : size * (number + 1)]
            for number, site in enumerate(self.sites)
            if site.function in reached
        }
        return report_of(self.program, reached, counts, self.order == "cost")

    def text(self, launch: LaunchResult, report: Report) -> str:
        return text_of(launch, report)

    def files(self, launch: LaunchResult, report: Report) -> Mapping[str, bytes]:
        return {**super().files(launch, report), **files_of(self, launch, report)}


def address_bits(target: Target) -> int:
    """Bits that tell all dwords of LDS apart, and one more for the words behind an address."""
    return (target.lds_bytes // 4 - 1).bit_length() + 1
