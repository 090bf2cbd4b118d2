"""Return addresses, which are others in a clone: that a function moves them, keeps them in lanes, and returns by them.

In: a pair of registers or lanes for each half, and an instruction. Out: where the halves are behind it. Invariant: a
function that does anything else with its return address is refused by name. What was put aside in private memory, with
the vector register in whose lanes it was, is taken for one where it comes from a lane into s[30:31].
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import Inst, OperandKind, OpFlag, Space
from luthier_py.isa.model.registers import SCALARS
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import CrossLane
from luthier_py.proof.code import LANES, lane_number, number, ones, vector_of
from luthier_py.proof.meanings import Term, results

RETURN_ADDRESS = 30  # s[30:31] at the entry of a function
HALVES: tuple[Term, Term] = ("return", 0), ("return", 1)
SPILLED: Term = ("spilled",)
"""What a lane has that is not followed."""
Pair = tuple[Term, Term]  # in the original, in the clone
State = dict[int, Pair]   # by scalar register, or lane; what is missing is the same in both, whatever it is


def is_return(low: Term, high: Term) -> bool:
    """Whether a pair of registers has a return address."""
    return (low, high) == HALVES or (low, high) == (SPILLED, SPILLED)


def either(x: Pair, y: Pair) -> Pair | None:
    """What may be a return address on both of two ways."""
    known = {x, y} - {(SPILLED, SPILLED)}
    return (SPILLED, SPILLED) if len(known) == 1 and known <= {(half, half) for half in HALVES} else None


def move_lanes(state: State, inst: Inst, wave_size: int) -> bool:
    """Change ``state``, if the instruction moves a scalar to a lane or back."""
    row = find_meaning(inst.op)
    kept = [lane for lane in state if lane >= LANES]
    if kept and row not in (CrossLane.READ, CrossLane.WRITE):
        _check_vectors(state, inst, kept)
    if row not in (CrossLane.READ, CrossLane.WRITE):
        return False
    which = _lane(inst, "vdst" if row is CrossLane.WRITE else "src0", wave_size)
    if len(which) > 1 and any(lane in which and is_other(state[lane]) for lane in kept):
        raise CheckFailed("the function computes with lanes that have its return address")
    (_put if row is CrossLane.WRITE else _take)(state, inst, which)
    return True


def check_use(state: State, inst: Inst, made: State) -> None:
    """Check that a half of a return address that is read is moved, or jumped to."""
    reads = inst.reads.sgpr
    if any(reads >> reg & 1 and pair[0] in HALVES for reg, pair in state.items() if reg < LANES) and (
            OpFlag.INDIRECT not in inst.op.flags and not any(pair[0] in HALVES for pair in made.values())):
        raise CheckFailed("the function computes with its return address, which is another one in a copy")


def is_other(pair: Pair) -> bool:
    """Whether it is another one in a copy."""
    return pair[0] in HALVES or pair[0] != pair[1]


def _check_vectors(state: State, inst: Inst, kept: list[int]) -> None:
    """Vector registers that have a return address in lanes are put aside whole, copied, or overwritten."""
    reads, writes = inst.reads.bits & ~SCALARS, inst.writes.bits & ~SCALARS
    if not (reads | writes):
        return
    copies = dict(zip(ones(reads), ones(writes), strict=False)) if _copies(inst) else {}
    found = {lane_number(copies[vector], number): state[lane] for lane in kept
             for vector, number in [vector_of(lane)] if vector in copies}
    aside = _put_aside(inst)
    for lane in kept:
        vector = vector_of(lane)[0]
        if (reads & ~aside) >> vector & 1 and vector not in copies:
            raise CheckFailed("the function computes with lanes that have its return address")
        if writes >> vector & 1:
            del state[lane]
    state.update(found)


def _copies(inst: Inst) -> bool:
    """Whether each lane of what it writes gets what that lane of its source has."""
    others = inst.op.flags & (OpFlag.DPP | OpFlag.SDWA | OpFlag.READS_OTHER_LANES)
    return not others and [term for _, _, term in results(inst, lambda source, bits: SPILLED, 0)] == [SPILLED]


def _put_aside(inst: Inst) -> int:
    """Vector registers, as bits, that it stores where private memory may be."""
    data = inst.find("vdata") or inst.find("data")
    flat = OpFlag.FLAT in inst.op.flags and Space.GLOBAL in inst.op.spaces
    stores = Space.SCRATCH in inst.op.spaces and not flat and OpFlag.MAY_STORE in inst.op.flags
    if not stores or data is None or data.reg is None:
        return 0
    others = (each.reg for each in inst.operands if each is not data and each.reg is not None)
    return data.reg.bits & ~reduce(or_, (reg.bits for reg in others), 0)


def _put(state: State, inst: Inst, lanes: range) -> None:
    source = inst["src0"].reg
    for each in [each for each in state if each in lanes]:
        del state[each]
    pair = state.get(source.index) if source is not None else None
    if pair is None or isinstance(pair[0], int) and not is_other(pair):
        return
    if len(lanes) == 1:
        state[lanes[0]] = pair
    elif is_other(pair):
        raise CheckFailed("an address of code goes to a lane that is not known")


def _take(state: State, inst: Inst, lanes: range) -> None:
    target = inst["sdst" if inst.find("sdst") is not None else "vdst"].reg
    assert target is not None
    state.pop(target.index, None)
    pair = state.get(lanes[0]) if len(lanes) == 1 else None
    if pair is not None:
        state[target.index] = pair
    elif target.index in (RETURN_ADDRESS, RETURN_ADDRESS + 1):
        state[target.index] = SPILLED, SPILLED


def _lane(inst: Inst, name: str, wave_size: int) -> range:
    """Numbers of the lanes of a vector operand that may be meant; a wave of 32 lanes takes it modulo 32."""
    which, reg = inst["src1"], inst[name].reg
    assert reg is not None
    first = lane_number(number(reg), 0)
    if which.kind is not OperandKind.CONSTANT:
        return range(first, first + wave_size)
    lane = first + which.value % wave_size
    return range(lane, lane + 1)
