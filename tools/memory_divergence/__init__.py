"""Counts how many cache lines each memory instruction touches when a wave runs it. Its hook is HIP C++ (lines.hip)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from luthier_py import Hooks, LaunchResult, Mutator, Option, Tool, Variable, access_bytes, address, u64
from luthier_py.errors import HookError
from luthier_py.ir import Function, Instr
from luthier_py.tool import Computed

MOST = 128  # lines of one instruction: two of each lane
ROW = MOST + 1
HOOKS = Hooks.from_hip("lines.hip")


@dataclass(frozen=True, slots=True)
class Accesses:
    """Memory instructions of one program, with their histograms one behind the other."""

    sites: tuple[tuple[int, str, str], ...]
    """Address, text and function of each."""
    not_counted: tuple[str, ...]
    """Texts of those whose addresses are not known."""
    counts: Variable


class MemoryDivergence(Tool):
    """Cache lines that each global memory instruction touches, by wave: a histogram."""

    name = "memory_divergence"
    line = Option(128, choices=tuple(16 << shift for shift in range(9)), help="bytes of a cache line")

    def instrument(self, m: Mutator) -> Accesses:
        found = [(function, instr) for function in m.functions() for instr in m.instrs(function, where="global")]
        known = list(_known(found))
        counts = Variable(u64, max(len(known), 1) * ROW, name="MemoryDivergence.counts")
        for number, (_, instr, where, size) in enumerate(known):
            m.before(instr, HOOKS.lines, where, size, self.line.bit_length() - 1, counts[number * ROW])
        known_instrs = {instr for _, instr, _, _ in known}
        texts = [m.program.isa.text(instr.inst) for _, instr in found if instr not in known_instrs]
        sites = tuple((instr.pc, m.program.isa.text(instr.inst), function.name) for function, instr, _, _ in known)
        return Accesses(sites, tuple(texts), counts)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        notes: Accesses = launch.notes
        values, rows = launch[notes.counts], []
        for number, (pc, text, function) in enumerate(notes.sites):
            counts = values[number * ROW : (number + 1) * ROW]
            rows.append({
                "pc": pc, "instruction": text, "function": function, "executions": sum(counts),
                "lines": sum(lines * count for lines, count in enumerate(counts)),
                "histogram": {lines: count for lines, count in enumerate(counts) if count},
            })  # fmt: skip
        return {"instructions": rows, "not_counted": list(notes.not_counted)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        lines = [self.headline(launch), f"  {'pc':>10} {'executions':>12} {'lines':>12} {'per execution':>14}"]
        for row in report["instructions"]:
            mean = row["lines"] / row["executions"] if row["executions"] else 0.0
            numbers = f"{row['executions']:12} {row['lines']:12} {mean:14.2f}"
            lines.append(f"  {row['pc']:#10x} {numbers}  {row['instruction']}")
            if len(row["histogram"]) > 1:
                times = (f"{count} of {number}" for number, count in row["histogram"].items())
                lines.append(f"  {'':>10} executions by lines: {', '.join(times)}")
        if report["not_counted"]:
            lines.append(f"  not counted: {', '.join(sorted(set(report['not_counted'])))}")
        return "\n".join(lines)

    def rows(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if name != "histogram"} for row in report["instructions"]]


def _known(found: list[tuple[Function, Instr]]) -> Iterator[tuple[Function, Instr, Computed, int]]:
    for function, instr in found:
        try:
            yield function, instr, address(instr), access_bytes(instr)
        except HookError:  # images, and what moves no data
            continue
