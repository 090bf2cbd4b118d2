"""Which vector registers can still be read: so that loops need not store their temporaries.

In: the blocks of a function. Out: for each instruction the registers live after it, in the lanes
that were active at it. Own to the emulator, and simpler than analysis, since an oracle should not
lean on what it judges: a write of EXEC makes everything live before it and after it (the lanes that
it switches off are off for what kills later), so a write kills only where the same lanes are active.

Invariant: a register that is not live is not read, in any lane, before it is written in that lane.
"""

from __future__ import annotations

from heapq import heappop, heappush

from luthier_py.emulator.reading.discover import CodeBlock, followers, inside_out
from luthier_py.emulator.records.layout import AGPR_ROW, EVERYTHING
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.model.registers import EXEC


def live_rows(blocks: list[CodeBlock]) -> dict[int, int]:
    """Bit mask of the rows live after the instruction at each address."""
    if any(OpFlag.INDEXES_REGISTERS in inst.op.flags for block in blocks for _, inst in block.insts):
        return {pc: EVERYTHING for block in blocks for pc, _ in block.insts}
    kinds = {inst: _change(inst) for inst in {inst for block in blocks for _, inst in block.insts}}
    changes = [[kinds[inst] for _, inst in block.insts] for block in blocks]
    wholes = [_whole(each) for each in changes]
    before = _before(blocks, wholes)
    after: dict[int, int] = {}
    for block, each in zip(blocks, changes, strict=True):
        live = _at_end(block, before)
        for (pc, _), (kept, read) in zip(reversed(block.insts), reversed(each), strict=True):
            after[pc] = EVERYTHING if read == EVERYTHING else live
            live = live & kept | read
    return after


def _before(blocks: list[CodeBlock], wholes: list[tuple[int, int]]) -> dict[int, int]:
    """Rows live at the start of each block. What follows a block is looked at before it, but for loops."""
    before = dict.fromkeys((block.start for block in blocks), 0)
    order = inside_out(blocks)
    ranks: dict[int, list[int]] = {start: [] for start in before}
    for rank, place in enumerate(order):
        for target in followers(blocks[place]):
            ranks.get(target, []).append(rank)
    work, waiting = list(range(len(blocks))), set(range(len(blocks)))
    while work:
        rank = heappop(work)
        waiting.discard(rank)
        (kept, read), block = wholes[order[rank]], blocks[order[rank]]
        live = _at_end(block, before) & kept | read
        if live != before[block.start]:
            before[block.start] = live
            for other in ranks[block.start]:
                if other not in waiting:
                    waiting.add(other)
                    heappush(work, other)
    return before


def _whole(changes: list[tuple[int, int]]) -> tuple[int, int]:
    """Of instructions that follow each other, as one."""
    all_kept, all_read = EVERYTHING, 0
    for kept, read in reversed(changes):
        all_kept, all_read = all_kept & kept, all_read & kept | read
    return all_kept, all_read


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


def _change(inst: Inst) -> tuple[int, int]:
    """(rows that stay live before it if they are after it, rows that are live before it); a write of EXEC is said
    to read EVERYTHING."""
    if inst.writes.sgpr >> EXEC & 3:
        return 0, EVERYTHING
    reads, writes, partial = inst.effects()
    killed = writes.vgpr & ~partial.vgpr | (writes.agpr & ~partial.agpr) << AGPR_ROW
    if OpFlag.IGNORES_EXEC in inst.op.flags:
        killed = 0  # v_writelane writes one lane
    return ~killed, reads.vgpr | reads.agpr << AGPR_ROW
