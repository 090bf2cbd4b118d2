"""How often a loop's body runs for each time that control comes in, where the code alone says it.

In: a loop, and where its registers' values come from. Out: a number, or None. Invariant: the number is exact: the
loop's only way out is at its end, and depends on scalar registers that begin as constants and are changed in the last
block alone, by what is computed here as the hardware does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from luthier_py.isa import SCC, OpFlag, Reg, RegFile, RegSet, sgpr
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Branch
from luthier_py.isa.semantics.readers.evaluate import evaluate
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number

if TYPE_CHECKING:
    from luthier_py.program.analysis.definitions import Definitions
    from luthier_py.program.analysis.loops import Loop
    from luthier_py.program.ir import Instr

MOST = 1 << 16  # turns that are followed


def trip_count(loop: Loop, definitions: Definitions) -> int | None:
    """The times that the header runs for each entry of ``loop``; None where the code alone does not say it."""
    if len(loop.backs) != 1 or len(loop.exits) != 1 or loop.begins or loop.exits[0].source is not loop.backs[0].source:
        return None
    block, back = loop.backs[0].source, loop.backs[0]
    row = find_meaning(back.instr.op)
    if not isinstance(row, Branch) or row.register != "scc":
        return None
    goes_on = back.taken != row.if_zero  # the value of SCC with which control comes back
    deciding = _slice_branch_condition(list(block.instrs))
    registers = RegSet(_reads(deciding)).scalars
    outside = [instr for each in loop.blocks if each is not block for instr in each.instrs]
    changing = [instr for instr in (*outside, *block.instrs) if instr.inst.writes.overlaps(registers - _FLAG)]
    if any(instr not in deciding for instr in changing) or any(
            OpFlag.CALL in instr.op.flags for each in loop.blocks for instr in each.instrs):
        return None
    state = {reg.index: _constant_at(loop, definitions, reg) for reg in registers if reg.index != SCC}
    if None in state.values():
        return None
    return _simulate_trips(deciding, {index: value for index, value in state.items() if value is not None}, goes_on)


_FLAG = RegSet.of(sgpr(SCC))


def _slice_branch_condition(instrs: list[Instr]) -> list[Instr]:
    """Of a block those instructions that make what its branch depends on."""
    wanted, found = _FLAG.bits, []
    for instr in reversed(instrs[:-1]):
        written = instr.inst.writes.bits & wanted
        if written:
            found.append(instr)
            wanted = wanted & ~instr.inst.writes.bits | instr.inst.reads.bits
    return found[::-1]


def _reads(instrs: list[Instr]) -> int:
    bits = 0
    for instr in instrs:
        bits |= instr.inst.reads.bits
    return bits


def _constant_at(loop: Loop, definitions: Definitions, reg: Reg) -> int | None:
    """What a register holds whenever control comes into a loop."""
    first = loop.header.instrs[0]
    reaching = definitions.reaching(first, reg)
    inside = {instr for block in loop.blocks for instr in block.instrs}
    values = {_constant(instr, reg) for instr in reaching.instrs if instr not in inside}
    return values.pop() if len(values) == 1 and not reaching.outside else None


def _constant(instr: Instr, reg: Reg) -> int | None:
    """What an instruction writes, if it is the same whatever it reads."""
    return _number(evaluate(instr.inst, _unknown).get((RegFile.SGPR, reg.index)))


def _unknown(file: RegFile, index: int) -> Known:
    return UNIFORM if file is RegFile.SGPR else None


def _number(known: Known) -> int | None:
    return known.constant if isinstance(known, Number) and known.uniform else None


def _simulate_trips(deciding: list[Instr], state: dict[int, int], goes_on: bool) -> int | None:
    """Turn by turn."""
    for turn in range(1, MOST + 1):
        for instr in deciding:
            written = evaluate(instr.inst, lambda file, index: _read(state, file, index))
            for reg in instr.inst.writes.scalars:
                value = _number(written.get((RegFile.SGPR, reg.index)))
                if value is None:
                    return None
                state[reg.index] = value
        if bool(state[SCC]) != goes_on:
            return turn
    return None


def _read(state: Mapping[int, int], file: RegFile, index: int) -> Known:
    value = state.get(index) if file is RegFile.SGPR else None
    return Number((), value) if value is not None else _unknown(file, index)
