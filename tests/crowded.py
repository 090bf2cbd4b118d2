"""A kernel without a free register beside one with many, and a tool that wants registers in both.

In: nothing. Out: bytes of a code object, and a Tool. The first kernel is refused, the second is served.
"""

from __future__ import annotations

from emulated import code_object

from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import vgpr

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
    """The full one uses all VGPRs at its marker."""
    writes = [("v_mov_b32", vgpr(i), 1) for i in range(256)]
    reads = [("v_add_u32", vgpr(0), vgpr(0), vgpr(i)) for i in range(256)]
    marker, end = ("s_nop", 7), ("s_endpgm",)
    return code_object({FULL: [*writes, marker, *reads, end], EASY: [marker, end]}, (FULL, EASY), vgprs=256)
