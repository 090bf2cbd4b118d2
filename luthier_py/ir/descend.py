"""Recursive descent: from the entries of one function to its blocks.

In: code bytes, entries, and where the function must have ended. Out: blocks, or the reason why they cannot be
told. Invariant: only addresses that control can reach are decoded (padding and data are not), no two
instructions overlap, and nothing outside the function's extent is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from luthier_py.errors import Malformed
from luthier_py.ir.builders import find_chains
from luthier_py.ir.model import Block, Ending, Instr
from luthier_py.isa import InstructionSet, OpFlag, sgpr


@dataclass(frozen=True, slots=True)
class Code:
    """The bytes of one function's extent, ``[address, address + len(data))``."""

    isa: InstructionSet
    address: int
    data: memoryview

    @property
    def end(self) -> int:
        return self.address + len(self.data)


class _Refused(Exception):
    """The function cannot be followed; never leaves this module."""


@dataclass(slots=True)
class _Descent:
    """Work in progress (mutable). ``exits``: how control leaves an instruction that ends a block."""

    code: Code
    instrs: dict[int, Instr] = field(default_factory=dict)
    leaders: set[int] = field(default_factory=set)
    exits: dict[int, tuple[Ending, tuple[int, ...]]] = field(default_factory=dict)
    todo: list[int] = field(default_factory=list)


def descend(code: Code, entries: Iterable[int], kernel: bool) -> tuple[Block, ...] | str:
    """The blocks that control can reach from ``entries``, ascending; or why they cannot be told."""
    descent = _Descent(code)
    try:
        for entry in entries:
            _leader(descent, entry, f"entry 0x{entry:x}")
        while descent.todo:
            _run(descent, descent.todo.pop(), kernel)
        return _blocks(descent)
    except _Refused as refusal:
        return str(refusal)


def _leader(descent: _Descent, address: int, what: str) -> None:
    """A block starts at ``address``."""
    if not descent.code.address <= address < descent.code.end or address % 4:
        raise _Refused(f"{what} is outside the function, which ends at 0x{descent.code.end:x}")
    if address not in descent.leaders:
        descent.leaders.add(address)
        descent.todo.append(address)


def _run(descent: _Descent, pc: int, kernel: bool) -> None:
    """Decode straight-line code until it has been seen or control leaves it."""
    run: list[Instr] = []
    while pc not in descent.instrs:
        instr = _decode(descent.code, pc)
        if instr is None:
            _run_off(descent, run, pc)
            return
        descent.instrs[pc] = instr
        run.append(instr)
        if instr.inst.op.flags & OpFlag.TERMINATOR:
            exits = descent.exits[pc] = _leave(descent.code, run, kernel)
            for target in exits[1]:
                _leader(descent, target, f"0x{target:x}, where the branch at 0x{pc:x} goes,")
            return
        pc = instr.end


def _decode(code: Code, pc: int) -> Instr | None:
    """The instruction at ``pc``; None at the end of the function."""
    if pc >= code.end:
        return None
    try:
        return Instr(pc, code.isa.decode(code.data, pc - code.address))
    except Malformed as error:
        raise _Refused(f"no instruction at 0x{pc:x}: {error.message}") from None


def _run_off(descent: _Descent, run: Sequence[Instr], pc: int) -> None:
    """Control runs off the end of the function: after a call or a trap that does not come back, that is all right."""
    last = run[-1].inst.op
    if OpFlag.CALL not in last.flags and OpFlag.MAY_STOP not in last.flags:
        raise _Refused(f"control runs off the function's end at 0x{pc:x}")
    descent.exits[run[-1].pc] = Ending.NO_RETURN, ()


def _leave(code: Code, run: Sequence[Instr], kernel: bool) -> tuple[Ending, tuple[int, ...]]:
    """How control leaves the last instruction of ``run``, and to which blocks."""
    instr = run[-1]
    flags, target = instr.inst.op.flags, instr.inst.branch_target(instr.pc)
    if OpFlag.FORKS in flags:
        raise _Refused(f"{code.isa.text(instr.inst)} at 0x{instr.pc:x} forks control, which is not followed")
    if OpFlag.END in flags:
        return Ending.END, ()
    if OpFlag.BRANCH in flags and target is not None:
        if OpFlag.CONDITIONAL in flags:
            return Ending.CONDITIONAL, (target,) if target == instr.end else (target, instr.end)
        return Ending.BRANCH, (target,)
    if OpFlag.SETS_PC in flags:
        return _jump(code, run, kernel)
    return Ending.INDIRECT, ()


def _jump(code: Code, run: Sequence[Instr], kernel: bool) -> tuple[Ending, tuple[int, ...]]:
    """A s_setpc: a long branch or tail call where its address is built just before, else a return."""
    pair = run[-1].inst["src0"].reg
    built = None
    for chain in find_chains(run):
        if pair == sgpr(chain.pair.index, 2) and all(
            not (i.inst.writes.sgpr >> chain.pair.index & 3) for i in run if i.pc > chain.hi.pc
        ):
            built = chain.value
    if built is None:
        return (Ending.INDIRECT if kernel else Ending.RETURN), ()
    if code.address <= built < code.end:
        return Ending.BRANCH, (built,)
    return Ending.TAIL_CALL, ()


def _blocks(descent: _Descent) -> tuple[Block, ...]:
    ordered = [descent.instrs[pc] for pc in sorted(descent.instrs)]
    blocks: list[Block] = []
    start = 0
    for index, instr in enumerate(ordered):
        follower = ordered[index + 1] if index + 1 < len(ordered) else None
        if follower is not None and follower.pc < instr.end:
            raise _Refused(f"the instructions at 0x{instr.pc:x} and 0x{follower.pc:x} overlap")
        leaves = descent.exits.get(instr.pc)
        if leaves is None and instr.end not in descent.leaders:
            continue
        ending, successors = leaves or (Ending.FALLTHROUGH, (instr.end,))
        blocks.append(Block(ordered[start].pc, tuple(ordered[start : index + 1]), successors, ending))
        start = index + 1
    return tuple(blocks)
