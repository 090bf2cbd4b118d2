"""Which vector registers a kernel may read before it has written them: the others need not be cleared for a wave. And
which scalar registers it names at all.

In: the blocks of a function in which waves start. Out: a set of rows. A write counts for the lanes that are active: for
all reads if EXEC is still what the wave started with, else up to the next change of EXEC.

Invariant: of a row that is not in the set no lane's value is used before it is written in that lane.
"""

from __future__ import annotations

from heapq import heappop, heappush

from luthier_py.base.records import dataclass
from luthier_py.emulator.reading.discover import CodeBlock, followers, inside_out
from luthier_py.emulator.records.layout import AGPR_ROW, EVERYTHING, NAMED_SCALARS
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.model.registers import EXEC

# Their lanes may see what others have that are not active, or that do not exist.
_OTHER_LANES = (OpFlag.IGNORES_EXEC | OpFlag.READS_OTHER_LANES | OpFlag.READS_FIRST_LANE | OpFlag.DPP | OpFlag.MATRIX)

_UNKNOWN = OpFlag.INDEXES_REGISTERS | OpFlag.CALL | OpFlag.INDIRECT


@dataclass(frozen=True, slots=True)
class _Written:
    """Rows written in all lanes that the wave has, and in all that are active now; whether these are the same lanes."""

    ever: int
    now: int
    full: bool

    def meet(self, other: _Written) -> _Written:
        return _Written(self.ever & other.ever, self.now & other.now, self.full and other.full)

    def after(self, inst: Inst) -> _Written:
        _, writes, partial = inst.effects()
        rows = writes.vgpr & ~partial.vgpr | (writes.agpr & ~partial.agpr) << AGPR_ROW
        if inst.op.flags & _OTHER_LANES:
            rows = 0
        ever = self.ever | rows if self.full else self.ever
        if writes.sgpr >> EXEC & 3:
            return _Written(ever, ever, False)
        return _Written(ever, self.now | rows, self.full)


def scalars_named(blocks: list[CodeBlock]) -> int:
    """How many of the first SGPRs a wave needs: up to the last one that an instruction reads or writes; all
    NAMED_SCALARS where code is not known, or registers are relative."""
    starts, found = {block.start for block in blocks}, 0
    for block in blocks:
        if not starts.issuperset(followers(block)):
            return NAMED_SCALARS
        for _, inst in block.insts:
            if inst.op.flags & _UNKNOWN:
                return NAMED_SCALARS
            reads, writes, _ = inst.effects()
            found |= reads.sgpr | writes.sgpr
    return (found & ((1 << NAMED_SCALARS) - 1)).bit_length()


def rows_read_first(blocks: list[CodeBlock], entry: int) -> int:
    """Bit mask of rows; all of them where code is not known, or registers are relative."""
    if any(inst.op.flags & _UNKNOWN for block in blocks for _, inst in block.insts):
        return EVERYTHING
    order = [blocks[place] for place in reversed(inside_out(blocks))]
    ranks = {block.start: rank for rank, block in enumerate(order)}
    states, work, waiting, found = {entry: _Written(0, 0, True)}, [ranks[entry]], {entry}, 0
    while work:
        block = order[heappop(work)]  # what comes before it has been met, but for loops
        waiting.discard(block.start)
        state = states[block.start]
        for _, inst in block.insts:
            found |= _unwritten(inst, state)
            state = state.after(inst)
        for target in followers(block):
            if target not in ranks:
                return EVERYTHING
            known = states.get(target)
            met = state if known is None else known.meet(state)
            if met != known:
                states[target] = met
                if target not in waiting:
                    waiting.add(target)
                    heappush(work, ranks[target])
    return found


def _unwritten(inst: Inst, state: _Written) -> int:
    reads = inst.effects()[0]
    rows = reads.vgpr | reads.agpr << AGPR_ROW
    return rows if inst.op.flags & _OTHER_LANES else rows & ~state.now
