"""Which instructions belong to a function: recursive descent from its entry.

In: a decoder, bytes of code, an entry. Out: basic blocks. Calls are not followed: their targets are
functions of their own, found when the call happens. Invariant: a block ends at every branch, call,
barrier and sleep, so that a wave can stop and continue only at the start of a block; and where a register
is written to MODE, which decides what code comes next.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.base.errors import Malformed
from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.instruction import Inst, OpFlag
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.wave_registers import gives_back_vectors
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import DEBUG_TRAP, INTERRUPT_MESSAGE, Action

_ENDS = (
    Action.SLEEP, Action.BARRIER, Action.BARRIER_SIGNAL, Action.BARRIER_SIGNAL_ISFIRST, Action.BARRIER_WAIT,
    Action.GWS_BARRIER, Action.GWS_SEMA_P, Action.SETREG,
)
_STOPS = OpFlag.TERMINATOR | OpFlag.CALL | OpFlag.BARRIER | OpFlag.END


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Consecutive instructions that all run, or none; addresses are the object's own."""

    start: int
    end: int
    insts: tuple[tuple[int, Inst], ...]


def discover(decode: Callable[[int], Inst], entry: int) -> list[CodeBlock]:
    """Blocks reachable from ``entry`` without calls, in address order; ``decode`` raises Malformed."""
    insts: dict[int, Inst] = {}
    leaders = {entry}
    work = [entry]
    while work:
        pc = work.pop()
        while pc not in insts:
            try:
                inst = insts[pc] = decode(pc)
            except Malformed:
                if pc == entry:
                    raise
                break  # past a call that never returns, into padding: a wave that comes here fails then
            after = pc + inst.size_bytes
            targets, falls = _ways(inst, pc)
            leaders.update(targets)
            work += targets
            if _stops(inst):
                leaders.add(after)
            if not falls:
                break
            pc = after
    return _blocks(insts, leaders)


def followers(block: CodeBlock) -> list[int]:
    """Where a wave may continue behind it, as far as the code says; past a call, too."""
    pc, last = block.insts[-1]
    flags = last.op.flags
    if OpFlag.END in flags:
        return []
    target = last.branch_target(pc) if OpFlag.BRANCH in flags else None
    falls = OpFlag.BRANCH not in flags or OpFlag.CONDITIONAL in flags
    return ([] if target is None else [target]) + ([block.end] if falls else [])


def inside_out(blocks: list[CodeBlock]) -> list[int]:
    """Places in ``blocks``: each behind those of all that follows it, but for loops."""
    places = {block.start: place for place, block in enumerate(blocks)}
    seen, order = set[int](), list[int]()
    for root in range(len(blocks)):
        path = [] if root in seen else [(root, iter(followers(blocks[root])))]
        seen.add(root)
        while path:
            place, rest = path[-1]
            following = next((places[start] for start in rest if places.get(start, root) not in seen), None)
            if following is None:
                order.append(place)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(followers(blocks[following]))))
    return order


def without_vectors(blocks: list[CodeBlock], target: Target) -> set[int]:
    """Addresses to which a wave may come that has given back its vector registers."""
    starts = {block.start: block for block in blocks}
    found, work = set[int](), list[CodeBlock]()

    def add(block: CodeBlock, place: int) -> None:
        found.update(pc for pc, _ in block.insts[place:])
        work.extend(starts[start] for start in followers(block) if start in starts and start not in found)

    for block in blocks:
        for place, (_, inst) in enumerate(block.insts):
            if gives_back_vectors(inst, target):
                add(block, place + 1)
    while work:
        add(work.pop(), 0)
    return found


def traps(inst: Inst) -> bool:
    """Whether a wave that comes here stops for good."""
    return find_meaning(inst.op) is Action.TRAP and inst["simm16"].value != DEBUG_TRAP


def interrupts(inst: Inst) -> bool:
    """Whether the host is notified that a wave came here."""
    return find_meaning(inst.op) is Action.SENDMSG and inst["simm16"].value & 15 == INTERRUPT_MESSAGE


def _ways(inst: Inst, pc: int) -> tuple[list[int], bool]:
    """Branch targets inside the function, and whether the next instruction can follow."""
    flags = inst.op.flags
    if OpFlag.END in flags or traps(inst):
        return [], False
    if OpFlag.CALL in flags:
        return [], True
    if OpFlag.BRANCH in flags:
        target = inst.branch_target(pc)
        return [] if target is None else [target], OpFlag.CONDITIONAL in flags
    return [], OpFlag.INDIRECT not in flags


def _stops(inst: Inst) -> bool:
    return bool(inst.op.flags & _STOPS) or find_meaning(inst.op) in _ENDS or interrupts(inst)


def _blocks(insts: dict[int, Inst], leaders: set[int]) -> list[CodeBlock]:
    blocks = []
    current: list[tuple[int, Inst]] = []
    end = -1
    for pc in sorted(insts):
        if current and (pc in leaders or pc != end):
            blocks.append(CodeBlock(current[0][0], end, tuple(current)))
            current = []
        if pc < end:
            raise Malformed(f"instructions overlap at 0x{pc:x}: code jumps into the middle of one")
        current.append((pc, insts[pc]))
        end = pc + insts[pc].size_bytes
    if current:
        blocks.append(CodeBlock(current[0][0], end, tuple(current)))
    return blocks
