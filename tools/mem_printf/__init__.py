"""Prints, from each lane, the address of each access to global memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import Lane, LaunchResult, Mutator, Tool, address, hook, opcode_id, u32, u64
from luthier_py.tool import InstrPlaces, Omission, left_out_lines, left_out_rows


@hook(fold=())
def show(address: Lane[u64], opcode: u32) -> None:
    print(f"0x{address:016x} - opcode_id {opcode}")


@dataclass(frozen=True, slots=True)
class Shown:
    """Of one program: opcodes by their numbers, and instructions whose addresses are not known."""

    opcodes: dict[int, str]
    left_out: tuple[Omission, ...]


class MemPrintf(Tool):
    """A line from each lane at each access to global memory."""

    name = "mem_printf"

    def instrument(self, m: Mutator) -> Shown:
        opcodes, places = dict[int, str](), InstrPlaces(m.program)
        for function in m.functions():
            for instr in m.instrs(function, where="global"):
                with places.unless_refused(instr):  # images, and buffers of RDNA
                    m.before(instr, show, address(instr), opcode_id(instr))
                    opcodes[opcode_id(instr)] = instr.inst.op.mnemonic
        return Shown(opcodes, places.left_out)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        """What the numbers of opcodes mean, and what is left out."""
        notes: Shown = launch.notes
        return {"opcodes": notes.opcodes, "left_out": left_out_rows(notes.left_out)}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        names = [f"  opcode_id {number} = {name}" for number, name in report["opcodes"].items()]
        return "\n".join([self.headline(launch), *names, *left_out_lines(report["left_out"])])
