"""Loops that count themselves: a scalar register moves by the same number in each turn, and the loop ends by it.

In: a function. Out: :class:`Steps` of blocks that branch to themselves. Invariant: from ``before`` to ``out`` the
register moves by ``step`` for each time that the block runs, modulo 2**32; at least once, and by 2**32 at most, since
the way out depends on nothing else that the loop changes: a wave for which the register came round to what it was
behind an earlier turn would never leave. It may come round to what it was before the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.isa import SCC, Inst, OpFlag, Reg, RegFile, sgpr
from luthier_py.isa.semantics.readers.evaluate import evaluate
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, Varying
from luthier_py.program.analysis.edges import Edge, edges_of

if TYPE_CHECKING:
    from luthier_py.program.ir import Block, Function, Instr

_SCC = 1 << SCC
_ITSELF = Number(((Varying.LANE, 1),), 0)  # stands for what is in the register


@dataclass(frozen=True, slots=True)
class Steps:
    """``before``: the ends of all other blocks from which control comes to the loop; ``out``: how it leaves that."""

    register: Reg
    step: int
    before: tuple[Instr, ...]
    out: Edge


def steps_of(function: Function) -> dict[int, Steps]:
    """Steps of loops of one block, by block."""
    moved = {
        block.address: found
        for block in function.blocks
        if block.address in block.successors
        and len(block.successors) == 2
        and (found := _find_induction_register(block))
    }
    coming: dict[int, list[Block]] = defaultdict(list)
    for block in function.blocks if moved else ():
        for to in block.successors:
            coming[to].append(block)
    ways = [edge for edge in edges_of(function) if edge.source.address in moved] if moved else []
    out = {edge.source.address: edge for edge in ways if edge.target is not edge.source}
    return {loop: steps for loop, (index, step) in moved.items()
            if (steps := _between(function, out[loop], coming[loop], index, step))}


def _between(function: Function, out: Edge, coming: Sequence[Block], index: int, step: int) -> Steps | None:
    """Of a loop whose register moves, unless control comes to it in a way that is not understood."""
    around = {each.address: each for each in coming if each is not out.source}
    ends = [around[address].instrs[-1] for address in sorted(around)]
    begun = out.source.address in function.entries or any(each.address in each.successors for each in around.values())
    if begun or any(end.inst.writes.sgpr >> index & 1 or end.inst.op.flags & OpFlag.CALL for end in ends):
        return None
    return Steps(sgpr(index), step, tuple(ends), out)


def _find_induction_register(block: Block) -> tuple[int, int] | None:
    """The register that the way out of a loop depends on, and what each turn adds to it."""
    insts = [instr.inst for instr in block.instrs] if block.instrs[-1].inst.reads.sgpr & _SCC else []
    writers = [inst for inst in insts if inst.writes.sgpr]
    test = next((inst for inst in reversed(writers) if inst.writes.sgpr & _SCC), None)
    if test is None or test.writes.sgpr != _SCC or any(inst.op.flags & OpFlag.CALL for inst in insts):
        return None  # who is called may write anything
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
