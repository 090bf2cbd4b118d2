"""Prints, from each lane, the address of each access to global memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import Lane, LaunchResult, Mutator, Tool, address, hook, u64
from luthier_py.rewrite.tool import InstrPlace, InstrPlaces, Omission, left_out_lines, left_out_rows
from luthier_py.rewrite.tool.records.places import place_text


@hook(fold=())
def show(address: Lane[u64], pc: u64) -> None:
    print(f"0x{address:016x} - at 0x{pc:x}")


@dataclass(frozen=True, slots=True)
class Shown:
    """Of one program: instructions that print, and those whose addresses are not known."""

    sites: tuple[InstrPlace, ...]
    left_out: tuple[Omission, ...]


class MemPrintf(Tool):
    """A line from each lane at each access to global memory."""

    name = "mem_printf"
    cacheable = True

    def instrument(self, m: Mutator) -> Shown:
        sites, places = list[InstrPlace](), InstrPlaces(m.program)
        for function in m.functions():
            for instr in m.instrs(function, where="global"):
                with places.unless_refused(instr):  # images
                    m.before(instr, show, address(instr), instr.pc)
                    sites.append(places.of(instr))
        return Shown(tuple(sites), places.left_out)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        """Which instructions print, and what is left out."""
        notes: Shown = launch.notes
        return {"sites": [site.facts() for site in notes.sites], "left_out": left_out_rows(notes.left_out)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        sites = [f"  {place_text(row)}" for row in report["sites"]]
        return "\n".join([self.headline(launch), *sites, *left_out_lines(report["left_out"])])
