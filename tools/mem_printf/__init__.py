"""Prints, from each lane, the address of each access to global memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from luthier_py import Lane, LaunchResult, Mutator, Tool, address, hook, opcode_id, u32, u64
from luthier_py.errors import HookError


@hook(fold=())
def show(address: Lane[u64], opcode: u32) -> None:
    print(f"0x{address:016x} - opcode_id {opcode}")


@dataclass(frozen=True, slots=True)
class Shown:
    """Of one program: opcodes by their numbers, and instructions by address whose addresses are not known."""

    opcodes: dict[int, str]
    not_shown: dict[int, str]


class MemPrintf(Tool):
    """A line from each lane at each access to global memory."""

    name = "mem_printf"

    def instrument(self, m: Mutator) -> Shown:
        shown = Shown({}, {})
        for function in m.functions():
            for instr in m.instrs(function, where="global"):
                try:
                    m.before(instr, show, address(instr), opcode_id(instr))
                    shown.opcodes[opcode_id(instr)] = instr.inst.op.mnemonic
                except HookError:  # images, and buffers of RDNA
                    shown.not_shown[instr.pc] = m.program.isa.text(instr.inst)
        return shown

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        """What the numbers of opcodes mean, and what is left out."""
        notes: Shown = launch.notes
        return {"opcodes": notes.opcodes,
                "not_shown": [{"pc": pc, "instruction": text} for pc, text in notes.not_shown.items()]}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        names = [f"  opcode_id {number} = {name}" for number, name in report["opcodes"].items()]
        left_out = [f"  {row['instruction']} at 0x{row['pc']:x} is not shown: its address is not known"
                    for row in report["not_shown"]]
        return "\n".join([self.headline(launch), *names, *left_out])
