"""Loops that count themselves: a scalar register moves by the same number in each turn, and the loop ends by it.

In: a block that branches to itself. Out: :class:`Steps`. Invariant: from ``before`` to ``behind`` the register moves by
``step`` for each time that the block runs, modulo 2**32; and by less than that, since the way out depends on nothing
else that the loop changes: a wave for which the register came round would never leave.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py.ir import Block, Function, Instr
from luthier_py.isa import SCC, Inst, OpFlag, Reg, RegFile, sgpr
from luthier_py.isa.semantics.readers.evaluate import evaluate
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, Varying

_SCC = 1 << SCC
_ITSELF = Number(((Varying.LANE, 1),), 0)  # stands for what is in the register


@dataclass(frozen=True, slots=True)
class Steps:
    """``before``: the ends of all other blocks from which control comes to the loop, or to ``behind``, where it goes on
    from the loop. Whoever comes there another way comes from such an end, since which the register has not moved."""

    register: Reg
    step: int
    before: tuple[Instr, ...]
    behind: Instr


def steps_of(function: Function, block: Block) -> Steps | None:
    """Of a loop of one block."""
    ways = [to for to in block.successors if to != block.address]
    moved = _moved(block) if block.address in block.successors and len(ways) == 1 else None
    if moved is None:
        return None
    index, step = moved
    places = {block.address, ways[0]}
    around = [each for each in function.blocks if each is not block and places & set(each.successors)]
    ends = tuple(each.instrs[-1] for each in around)
    if places & set(function.entries) or any(each.address in each.successors for each in around) or any(
            end.inst.writes.sgpr >> index & 1 or end.inst.op.flags & OpFlag.CALL for end in ends):
        return None
    return Steps(sgpr(index), step, ends, function.block(ways[0]).instrs[0])


def _moved(block: Block) -> tuple[int, int] | None:
    """The register that the way out of a loop depends on, and what each turn adds to it."""
    if any(instr.inst.op.flags & OpFlag.CALL for instr in block.instrs):
        return None  # who is called may write anything
    writers = [instr.inst for instr in block.instrs if instr.inst.writes.sgpr]
    test = next((inst for inst in reversed(writers) if inst.writes.sgpr & _SCC), None)
    if test is None or test.writes.sgpr != _SCC or not block.instrs[-1].inst.reads.sgpr & _SCC:
        return None
    changed = [inst for inst in writers if inst.writes.sgpr & test.reads.sgpr]
    index = (test.reads.sgpr & changed[0].writes.sgpr).bit_length() - 1 if len(changed) == 1 else -1
    step = _step(changed[0], index) if index >= 0 and changed[0].writes.sgpr & ~_SCC == 1 << index else 0
    return (index, step) if step else None


def _step(inst: Inst, index: int) -> int:
    """What an instruction adds to a register, if that is a power of two, up or down; else 0."""

    def read(file: RegFile, at: int) -> Known:
        return _ITSELF if (file, at) == (RegFile.SGPR, index) else UNIFORM if file is RegFile.SGPR else None

    after = evaluate(inst, read).get((RegFile.SGPR, index))
    if not isinstance(after, Number) or after.terms != _ITSELF.terms or after.constant is None:
        return 0
    step = after.constant - (after.constant >> 31 << 32)
    return step if abs(step) & (abs(step) - 1) == 0 else 0
