"""Prints, from each lane, the address of each access to global memory."""

from __future__ import annotations

from luthier_py import Lane, LaunchResult, Mutator, Tool, address, hook, opcode_id, u32, u64
from luthier_py.isa import Space
from luthier_py.isa.quiet import tends_caches


@hook(fold=())
def show(address: Lane[u64], opcode: u32) -> None:
    print(f"0x{address:016x} - opcode_id {opcode}")


class MemPrintf(Tool):
    """A line from each lane at each access to global memory."""

    name = "mem_printf"

    def instrument(self, m: Mutator) -> dict[int, str]:
        names = {}
        for function in dict.fromkeys(f for kernel in m.kernels for f in m.functions(kernel)):
            for instr in m.instrs(function):
                if instr.inst.op.spaces & Space.GLOBAL and not tends_caches(instr.inst.op):
                    m.before(instr, show, address(instr), opcode_id(instr))
                    names[opcode_id(instr)] = instr.inst.op.mnemonic
        return names

    def report(self, launch: LaunchResult) -> dict[str, dict[int, str]]:
        """What the numbers of opcodes mean."""
        return {"opcodes": launch.notes}

    def text(self, launch: LaunchResult, report: dict[str, dict[int, str]]) -> str:
        names = [f"  opcode_id {number} = {name}" for number, name in report["opcodes"].items()]
        return "\n".join([self.headline(launch), *names])
