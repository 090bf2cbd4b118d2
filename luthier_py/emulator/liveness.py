"""Which vector registers can still be read: so that loops need not store their temporaries.

In: the blocks of a function. Out: for each instruction the registers live after it, in the lanes
that were active at it. Own to the emulator, and simpler than analysis, since an oracle should not
lean on what it judges: a write of EXEC makes everything live before it and after it (the lanes that
it switches off are off for what kills later), so a write kills only where the same lanes are active.

Invariant: a register that is not live is not read, in any lane, before it is written in that lane.
"""

from __future__ import annotations

from luthier_py.emulator.discover import CodeBlock
from luthier_py.emulator.layout import AGPR_ROW
from luthier_py.isa.instruction import Inst, OpFlag
from luthier_py.isa.registers import EXEC

EVERYTHING = -1
"""As a set of rows: AGPRs are the rows from AGPR_ROW on."""


def live_rows(blocks: list[CodeBlock]) -> dict[int, int]:
    """Bit mask of the rows live after the instruction at each address."""
    if any(OpFlag.INDEXES_REGISTERS in inst.op.flags for block in blocks for _, inst in block.insts):
        return {pc: EVERYTHING for block in blocks for pc, _ in block.insts}
    starts = {block.start for block in blocks}
    before = dict.fromkeys(starts, 0)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            live = _at_end(block, before)
            for _, inst in reversed(block.insts):
                live = _before(inst, live)
            if live != before[block.start]:
                before[block.start] = live
                changed = True
    after: dict[int, int] = {}
    for block in blocks:
        live = _at_end(block, before)
        for pc, inst in reversed(block.insts):
            after[pc] = EVERYTHING if _changes_exec(inst) else live
            live = _before(inst, live)
    return after


def _at_end(block: CodeBlock, before: dict[int, int]) -> int:
    pc, last = block.insts[-1]
    flags = last.op.flags
    if OpFlag.END in flags:
        return 0
    if flags & (OpFlag.CALL | OpFlag.INDIRECT):
        return EVERYTHING
    live = 0
    if OpFlag.BRANCH in flags:
        live |= before.get(last.branch_target(pc) or 0, EVERYTHING)
    if OpFlag.BRANCH not in flags or OpFlag.CONDITIONAL in flags:
        live |= before.get(block.end, EVERYTHING)
    return live


def _before(inst: Inst, after: int) -> int:
    if _changes_exec(inst):
        return EVERYTHING
    reads, writes, partial = inst.effects()
    killed = writes.vgpr & ~partial.vgpr | (writes.agpr & ~partial.agpr) << AGPR_ROW
    if OpFlag.IGNORES_EXEC in inst.op.flags:
        killed = 0  # v_writelane writes one lane
    return after & ~killed | reads.vgpr | reads.agpr << AGPR_ROW


def _changes_exec(inst: Inst) -> bool:
    return bool(inst.writes.sgpr >> EXEC & 3)
