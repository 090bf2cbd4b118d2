"""A kernel without a free register beside one with many, and a tool that wants registers in both.

In: nothing. Out: bytes of a code object, and a Tool. The first kernel is refused, the second is served.
"""

from __future__ import annotations

from emulated import code_object

from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import M0, sgpr, vgpr

FULL, EASY = "full", "_Z4easyv"


class EveryWave(Tool):
    """Wants vector registers at every marker."""

    rows = Variable(u64, 64)

    @hook(lanes="all")
    def note(rows: ptr[u64]) -> None:
        atomic_add(rows + lane_id(), u64(1))

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                if instr.inst.op.base == "S_NOP":
                    m.before(instr, self.note, self.rows)


def full_and_easy() -> bytes:
    """The full one uses all VGPRs, all SGPRs and M0 at its marker: not one is left to address private memory with."""
    scalars, vectors = (*range(102), M0), range(256)
    writes = [*(("s_mov_b32", sgpr(i), 1) for i in scalars), *(("v_mov_b32", vgpr(i), 1) for i in vectors)]
    reads = [*(("v_add_u32", vgpr(0), vgpr(0), vgpr(i)) for i in vectors),
             *(("s_add_u32", sgpr(0), sgpr(0), sgpr(i)) for i in scalars)]
    marker, end = ("s_nop", 7), ("s_endpgm",)
    return code_object({FULL: [*writes, marker, *reads, end], EASY: [marker, end]}, (FULL, EASY), sgprs=102, vgprs=256)
