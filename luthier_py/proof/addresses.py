"""Addresses that code makes of the PC, followed through a function and through its clone at once.

In: a function's code, and the instruction of the clone for each of its own. Out: Goes, which says where each jump and
call through registers goes in the one and in the other, and which addresses are made at all. Invariant: where the two
hold different addresses, nothing but moves, the adds that make them, and jumps and calls ever looks at them.

Where the copy is apart from the original, the original lies at its own addresses, which are numbers then; the copy lies
anywhere.

It believes of calls what the ABI says (AMDGPUUsage, "Non-Kernel Functions"): what is read in s32 or above after a call
was there before it. Below that may be so, or not, unless the callee, with all that it calls, touches none of it. And
return addresses are there to return to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from luthier_py.errors import CheckFailed
from luthier_py.isa import SCC, Inst, OpFlag, RegFile
from luthier_py.proof.code import Code, ones
from luthier_py.proof.meanings import UNKNOWN, Term, held, results, spread
from luthier_py.proof.return_addresses import (
    HALVES,
    RETURN_ADDRESS,
    Pair,
    State,
    check_use,
    either,
    is_return,
    move_lanes,
)

KEPT_BY_CALLS = 32   # first SGPR that a caller may rely on after any call
RETURNS: Term = ("return",)
LOST: Term = ("lost",)
_SAME: Pair = (UNKNOWN, UNKNOWN)
_LOW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Goes:
    """``targets``: by number of the instruction, the address that it goes to and the clone's; RETURNS, UNKNOWN.
    ``made``: addresses that both make, so that the application may keep them. ``explained``: instructions that make
    addresses in both."""

    targets: dict[int, Pair] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    explained: set[int] = field(default_factory=set)


def step(
    state: State, old: Inst, old_pc: int, new: Inst, new_pc: int, apart: bool = False, touched: int = -1
) -> tuple[bool, int | None]:
    """Change ``state`` from before a pair of instructions to after it; whether they made addresses, and the address
    that is complete now, if both made the same. CheckFailed if something else is made of addresses that differ.
    ``touched``: of a call, scalar registers that who is called may read or write."""
    flags = old.op.flags
    if OpFlag.GETS_PC in flags:
        reg = old["sdst"].reg
        assert reg is not None
        end = old_pc + old.size_bytes
        olds: dict[int, Term] = {reg.index: end & _LOW, reg.index + 1: end >> 32} if apart else _at(reg.index, end)
        news = _at(reg.index, new_pc + new.size_bytes) if OpFlag.GETS_PC in new.op.flags else scalar_results(new, {})
        state.update({place: (term, news.get(place, UNKNOWN)) for place, term in olds.items()})
        return True, None
    if state and OpFlag.CALL not in flags and move_lanes(state, old):
        return False, None
    named = old.reads.sgpr | old.writes.sgpr
    if OpFlag.CALL not in flags and not any(named >> reg & 1 for reg in state):
        return False, None
    moved = [reg for reg, (a, b) in state.items() if a != b and old.reads.sgpr >> reg & 1]
    made = _made(state, old, new) if OpFlag.SALU in flags and OpFlag.INDIRECT not in flags else {}
    check_use(state, old, made)
    if moved and OpFlag.INDIRECT not in flags and (made.keys() <= {SCC} or any(
            UNKNOWN in made[reg] for reg in made if reg != SCC)):
        raise CheckFailed("an address of code is used in a way that is not understood")
    if OpFlag.CALL in flags:
        for place in [place for place in state if (place < KEPT_BY_CALLS or place == SCC) and touched >> place & 1]:
            a, b = state.pop(place)
            if a != b:
                state[place] = LOST, UNKNOWN
    for place in [place for place in state if old.writes.sgpr >> place & 1]:
        del state[place]
    state.update((reg, pair) for reg, pair in made.items() if pair != _SAME)
    if OpFlag.CALL in flags:  # where it returned to, if that is left there
        state.update({reg: (LOST, UNKNOWN) for reg in ones(old.writes.sgpr) if reg != SCC})
    known = bool(made) and all(UNKNOWN not in made[reg] for reg in made if reg != SCC)
    whole = [_whole(*(state.get(reg - 1 + half, _SAME)[0] for half in (0, 1))) for reg in made if reg != SCC] + [
        _whole(*(state.get(reg + half, _SAME)[0] for half in (0, 1))) for reg in made if reg != SCC]
    kept = known and all(a == b for reg, (a, b) in made.items() if reg != SCC)
    return known, next((term[1] for term in whole if kept and term[0] == "to"), None)


def _at(index: int, address: int) -> dict[int, Term]:
    return {index: ("lo", address & _LOW), index + 1: ("hi", address)}


def _made(state: State, old: Inst, new: Inst) -> dict[int, Pair]:
    sides = [scalar_results(inst, {reg: pair[side] for reg, pair in state.items()})
             for side, inst in enumerate((old, new))]
    return {reg: (term, sides[1].get(reg, UNKNOWN)) for reg, term in sides[0].items()}


def scalar_results(inst: Inst, terms: Mapping[int, Term]) -> dict[int, Term]:
    """What scalar registers hold behind an instruction, of those that it writes."""
    found: dict[int, Term] = {}
    for name, _, term in results(inst, lambda source, bits: held(source, bits, lambda reg: terms.get(reg, UNKNOWN)), 0):
        target = inst.find("sdst")
        if name == "scc":
            found[SCC] = term
        elif name == "dst" and target is not None and target.reg is not None:
            found.update(spread(target.reg.index, target.reg.dwords, term))
    return found


def follow(
    code: Code, blocks: Sequence[range], successors: Sequence[Sequence[int]], entries: Sequence[int], function: bool,
    clone: Callable[[int], tuple[Inst, int]], name: str, apart: bool, touched: Callable[[int], int],
) -> Goes:
    """``successors`` of each block in the function, calls stepped over; ``clone`` gives the clone's instruction for one
    of the original, and its address; ``touched`` the scalar registers that a function at some address may touch."""
    goes = Goes()
    if not function and not code.flagged(OpFlag.GETS_PC | OpFlag.INDIRECT):
        return goes
    start: State = {RETURN_ADDRESS + k: (half, half) for k, half in enumerate(HALVES)} if function else {}
    heads: dict[int, State] = {entry: dict(start) for entry in entries}
    work = list(entries)
    while work:
        block = work.pop()
        state = dict(heads[block])
        for at in blocks[block]:
            inst = code.inst(at)
            if OpFlag.INDIRECT in inst.op.flags:
                goes.targets[at] = goal_of(inst, state)
                if function and goes.targets[at] == _SAME and is_by_return_address(inst):
                    raise CheckFailed("the function returns to an address that it computes", code.location(name, at))
            goal = goes.targets[at][0] if at in goes.targets else UNKNOWN
            if state or OpFlag.GETS_PC in inst.op.flags:
                try:
                    known, made = step(state, inst, code.pcs[at], *clone(at), apart,
                                       touched(goal[1]) if goal[0] == "to" else -1)
                except CheckFailed as error:
                    raise CheckFailed(error.message, code.location(name, at)) from None
                if known:
                    goes.explained.add(at)
                if made is not None:
                    goes.made.add(made)
        for following in successors[block]:
            if following not in heads:
                heads[following] = dict(state)
                work.append(following)
            elif (joined := _join(heads[following], state)) != heads[following]:
                heads[following] = joined
                work.append(following)
    return goes


def _join(a: State, b: State) -> State:
    joined = {}
    for reg in a.keys() | b.keys():
        x, y = a.get(reg, _SAME), b.get(reg, _SAME)
        if x == y:
            joined[reg] = x
        elif (both := either(x, y)) is not None:
            joined[reg] = both
        elif any(p != q for p, q in (x, y)):
            joined[reg] = (LOST, UNKNOWN)
    return joined


def goal_of(inst: Inst, state: State) -> Pair:
    """Where a s_setpc or s_swappc goes."""
    reg = inst["src0"].reg if inst.find("src0") is not None else None
    if reg is None or reg.file is not RegFile.SGPR:
        return _SAME
    (low, other_low), (high, other_high) = (state.get(reg.index + half, _SAME) for half in (0, 1))
    if is_return(low, high):
        return RETURNS, RETURNS
    return _whole(low, high), _whole(other_low, other_high)


def is_by_return_address(inst: Inst) -> bool:
    reg = inst["src0"].reg if inst.find("src0") is not None else None
    return reg is not None and reg.index == RETURN_ADDRESS and OpFlag.CALL not in inst.op.flags


def _whole(low: Term, high: Term) -> Term:
    if isinstance(low, int) and isinstance(high, int):
        return "to", low | high << 32
    if isinstance(low, int) or isinstance(high, int):
        return UNKNOWN
    same = low[0] == "lo" and high[0] == "hi" and low[1] == high[1] & _LOW
    return ("to", high[1]) if same else UNKNOWN if LOST not in (low, high) else LOST
