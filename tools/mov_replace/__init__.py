"""Replaces each move between vector registers by a hook that does the same: an example of `Mutator.replace`."""

from __future__ import annotations

from typing import Any

from luthier_py import Lane, LaunchResult, Mutator, OpFlag, RegFile, Tool, hook, u32
from luthier_py.isa import OperandKind
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool import SAME

MOVE = "v_mov_b32_e32"


@hook
def move(x: Lane[u32]) -> Lane[u32]:
    return x


class MovReplace(Tool):
    """Moves of 32 bits between vector registers, made by a hook."""

    name = "mov_replace"
    cacheable = True
    amounts = {"replaced": SAME.of("moves")}

    def instrument(self, m: Mutator) -> int:
        moves = [instr for function in m.functions() for instr in m.instrs(function) if is_move(instr)]
        for instr in moves:
            m.replace(instr, move)
        return len(moves)

    def report(self, launch: LaunchResult) -> dict[str, Any]:
        return {"replaced": launch.notes}

    def text(self, launch: LaunchResult, report: dict[str, Any]) -> str:
        moves = "1 move" if report["replaced"] == 1 else f"{report['replaced']} moves"
        return f"{self.headline(launch)}, {moves} replaced"


def is_move(instr: Instr) -> bool:
    """Whether it is one in its plain encoding, from a register of the same kind."""
    if instr.op.mnemonic != MOVE or instr.op.flags & (OpFlag.SDWA | OpFlag.DPP):
        return False
    source = instr.inst["src0"]
    return source.kind is OperandKind.REGISTER and source.reg is not None and source.reg.file is RegFile.VGPR
