"""Addresses that code makes of the PC, followed through a function and through its clone at once.

In: a function's code, and the instruction of the clone for each of its own. Out: AddressFlow, with the target of each
jump and call through registers in the one and in the other, and all addresses that are made. Invariant: where the two
hold different addresses, nothing but moves, the sums that make them, and jumps and calls ever looks at them; nor at
what such a sum leaves in SCC, but for the sum of the upper half.

What is added may be in registers. Then the same instructions make the same numbers of nothing else in the original and
in the clone (`_numbers`), on all ways to there; and a sum of the clone may have another number as a literal, since what
counts is the address. So an instruction that reads these registers finds what the original has.

Where ways come together with different addresses, a register has one of several, until it is anything but moved. Both
halves of what is called are then of one address: those of two would meet 4 GiB away from all code.

Where the copy is standalone, the original lies at its own addresses, which are numbers then; the copy lies
anywhere.

It believes of calls what the ABI says (AMDGPUUsage, "Non-Kernel Functions"): what is read in s32 or above after a call
was there before it. Below that may be so, or not, unless the callee, with all that it calls, touches none of it. And
return addresses are there to return to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, reduce
from heapq import heappop, heappush
from operator import or_

from luthier_py.base.errors import CheckFailed
from luthier_py.base.records import dataclass, field
from luthier_py.isa import SCC, Access, Inst, OpFlag, Reg, RegFile
from luthier_py.isa.semantics.readers.evaluate import copies
from luthier_py.proof.code import Body, Code, ones
from luthier_py.proof.meanings import UNKNOWN, Term, read_source, results, spread
from luthier_py.proof.return_addresses import (
    HALVES,
    RETURN_ADDRESS,
    Pair,
    State,
    check_use,
    either,
    is_other,
    is_return,
    move_lanes,
)

KEPT_BY_CALLS = 32   # first SGPR that a caller may rely on after any call
RETURNS: Term = ("return",)
LOST: Term = ("lost",)
_SAME: Pair = (UNKNOWN, UNKNOWN)
_ONE_OF = ("one of",)  # with a set of halves; two registers with the same set need not have the same half
_LOW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class AddressFlow:
    """``targets``: by number of the instruction, its target address and the clone's; RETURNS, UNKNOWN.
    ``made``: addresses that both make, so that the application may keep them. ``explained``: instructions that make
    addresses in both. ``several``: the possible targets, in the original, of an instruction whose target is UNKNOWN."""

    targets: dict[int, Pair] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    explained: set[int] = field(default_factory=set)
    several: dict[int, frozenset[int]] = field(default_factory=dict)

    def find_targets(self, at: int) -> frozenset[int]:
        """The possible targets of an instruction; none where they are not known, or it returns."""
        goal = self.targets[at][0] if at in self.targets else UNKNOWN
        return frozenset({goal[1]}) if goal[0] == "to" else self.several.get(at, frozenset())


def step(
    state: State, wave_size: int, original: tuple[Inst, int], clone: tuple[Inst, int], apart: bool = False,
    touched: int = -1, offsets: int = -1,
) -> tuple[bool, int | None]:
    """Change ``state`` from before a pair of instructions, each with its address, to after it; whether they made
    addresses, and the address that is complete now, if both made the same. CheckFailed if something else is made of
    addresses that differ.
    ``touched``: of a call, scalar registers that who is called may read or write. ``offsets``: scalar registers the
    numbers of which are followed."""
    (old, old_pc), (new, new_pc) = original, clone
    flags = old.op.flags
    if OpFlag.GETS_PC in flags:
        reg = old["sdst"].reg
        assert reg is not None
        end = old_pc + old.size_bytes
        olds: dict[int, Term] = {reg.index: end & _LOW, reg.index + 1: end >> 32} if apart else _at(reg.index, end)
        news = _at(reg.index, new_pc + new.size_bytes) if OpFlag.GETS_PC in new.op.flags else scalar_results(new, {})
        state.update({place: (term, news.get(place, UNKNOWN)) for place, term in olds.items()})
        return True, None
    if state and OpFlag.CALL not in flags and move_lanes(state, old, wave_size):
        return False, None
    named = old.reads.sgpr | old.writes.sgpr
    if OpFlag.CALL not in flags and not any(named >> reg & 1 for reg in state):
        state.update(_numbers(old, new, offsets))
        return False, None
    moved = [reg for reg, (a, b) in state.items() if a != b and old.reads.sgpr >> reg & 1]
    made = _evaluate_results(state, old, new) if OpFlag.SALU in flags and OpFlag.INDIRECT not in flags else {}
    check_use(state, old, made)
    if moved and OpFlag.INDIRECT not in flags and (made.keys() <= {SCC} or any(
            UNKNOWN in made[reg] for reg in made if reg != SCC)):
        raise CheckFailed("an address of code is used in a way that is not understood")
    if OpFlag.CALL in flags:
        for place in [place for place in state if (place < KEPT_BY_CALLS or place == SCC) and touched >> place & 1]:
            a, b = state.pop(place)
            if a != b:
                state[place] = LOST, UNKNOWN
    read = [term for reg, pair in state.items() if old.reads.sgpr >> reg & 1 for term in pair]
    for place in [place for place in state if old.writes.sgpr >> place & 1]:
        del state[place]
    state.update((reg, pair) for reg, pair in made.items() if pair != _SAME)
    if moved and made.get(SCC) == _SAME:
        state[SCC] = LOST, UNKNOWN
    if OpFlag.CALL in flags:  # where it returned to, if that is left there
        state.update({reg: (LOST, UNKNOWN) for reg in ones(old.writes.sgpr) if reg != SCC})
    known = (apart or not all(isinstance(term, int) for term in read)) and bool(made) and all(
        UNKNOWN not in made[reg] for reg in made if reg != SCC)
    whole = [_whole(state.get(first, _SAME)[0], state.get(first + 1, _SAME)[0], apart)
             for down in (1, 0) for first in [reg - down for reg in made if reg != SCC]]
    kept = known and all(a == b for reg, (a, b) in made.items() if reg != SCC)
    return known, next((term[1] for term in whole if kept and term[0] == "to"), None)


def _at(index: int, address: int) -> dict[int, Term]:
    return {index: ("lo", address & _LOW), index + 1: ("hi", address)}


def _numbers(old: Inst, new: Inst, wanted: int) -> State:
    """What both make of nothing else."""
    if not wanted & old.writes.sgpr or OpFlag.SALU not in old.op.flags or new.raw != old.raw:
        return {}
    return {reg: (term, term) for reg, term in _of_nothing(old) if wanted >> reg & 1}


@lru_cache(maxsize=1 << 12)
def _of_nothing(inst: Inst) -> tuple[tuple[int, int], ...]:
    return tuple((reg, term) for reg, term in scalar_results(inst, {}).items() if isinstance(term, int))


def _evaluate_results(state: State, old: Inst, new: Inst) -> dict[int, Pair]:
    sides = [scalar_results(inst, {reg: pair[side] for reg, pair in state.items()
                                   if copies(inst.op) or not _is_one_of(pair[side])})
             for side, inst in enumerate((old, new))]
    return {reg: (term, sides[1].get(reg, UNKNOWN)) for reg, term in sides[0].items()}


def scalar_results(inst: Inst, terms: Mapping[int, Term]) -> dict[int, Term]:
    """What scalar registers hold behind an instruction, of those that it writes."""
    found: dict[int, Term] = {}
    for name, _, term in results(inst, lambda source,
                                 bits: read_source(source, bits, lambda reg: terms.get(reg, UNKNOWN)), 0):
        target = inst.find("sdst")
        if name == "scc":
            found[SCC] = term
        elif name == "dst" and target is not None and target.reg is not None:
            found.update(spread(target.reg.index, target.reg.dwords, term))
    return found


def follow(
    body: Body, clone: Callable[[int], tuple[Inst, int]], apart: bool, touched: Callable[[int], int]
) -> AddressFlow:
    """``clone`` gives the clone's instruction for one
    of the original, and its address; ``touched`` the scalar registers that a function at some address may touch."""
    goes, code, function = AddressFlow(), body.code, not body.kernel
    if not function and not code.find_flagged(OpFlag.GETS_PC | OpFlag.INDIRECT):
        return goes
    start: State = {RETURN_ADDRESS + k: (half, half) for k, half in enumerate(HALVES)} if function else {}
    offsets = _offsets(code)
    heads: dict[int, State] = {entry: dict(start) for entry in body.entries}
    work = sorted(body.entries)  # in the order of addresses, so that most paths have joined before a block
    waiting = set(work)
    while work:
        waiting.discard(block := heappop(work))
        state = dict(heads[block])
        for at in body.blocks[block]:
            inst = code.inst(at)
            if OpFlag.INDIRECT in inst.op.flags:
                goes.targets[at] = goal_of(inst, state, apart)
                goes.several[at] = _several(inst, state, apart)
                if function and goes.targets[at] == _SAME and is_by_return_address(inst):
                    raise CheckFailed("the function returns to an address that it computes",
                                      code.location(body.name, at))
            called = goes.find_targets(at)
            if state or OpFlag.GETS_PC in inst.op.flags or offsets and inst.writes.sgpr & offsets:
                try:
                    known, made = step(state, code.isa.wave_size, (inst, code.pcs[at]), clone(at), apart,
                                       reduce(or_, map(touched, called)) if called else -1, offsets)
                except CheckFailed as error:
                    raise CheckFailed(error.message, code.location(body.name, at)) from None
                (goes.explained.add if known else goes.explained.discard)(at)
                if made is not None:
                    goes.made.add(made)
        for following in body.following[block]:
            old = heads.get(following)
            joined = dict(state) if old is None else _join(old, state, apart)
            if joined != old:
                heads[following] = joined
                if following not in waiting:
                    waiting.add(following)
                    heappush(work, following)
    return goes


def _offsets(code: Code) -> int:
    """Scalar registers that are added to what is made of the PC, and all that these are made of."""
    scalar = [inst for inst in code.insts if OpFlag.SALU in inst.op.flags]
    held = reduce(or_, (inst.writes.sgpr for inst in code.insts if OpFlag.GETS_PC in inst.op.flags), 0)
    held = _compute_closure(held, ((inst.reads.sgpr, inst.writes.sgpr) for inst in scalar))
    two = [inst for inst in scalar if inst.reads.sgpr & held and sum(
        operand.reg is not None and operand.access is Access.READ for operand in inst.operands) > 1]
    added = reduce(or_, (inst.reads.sgpr for inst in two), 0) & ~(1 << SCC)
    return _compute_closure(added, ((inst.writes.sgpr, inst.reads.sgpr) for inst in scalar))


def _compute_closure(found: int, ways: Iterable[tuple[int, int]]) -> int:
    """Registers, and those that are come to from them."""
    rows, before = list(ways), -1
    while found != before:
        before = found
        found = reduce(or_, (to for source, to in rows if source & found), found)
    return found


def _join(a: State, b: State, apart: bool) -> State:
    joined = {}
    for reg in a.keys() | b.keys():
        x, y = a.get(reg, _SAME), b.get(reg, _SAME)
        if x == y:
            joined[reg] = x
        elif (both := either(x, y) or _one_of(x, y, apart)) is not None:
            joined[reg] = both
        elif is_other(x) or is_other(y):
            joined[reg] = (LOST, UNKNOWN)
    return joined


def _is_one_of(term: Term) -> bool:
    return not isinstance(term, int) and term[:1] == _ONE_OF


def _one_of(x: Pair, y: Pair, apart: bool) -> Pair | None:
    """What has a half of some address on both of two ways, the same in the original and in the clone."""
    halves = [_halves(pair[0], apart) if pair[0] == pair[1] else frozenset() for pair in (x, y)]
    term = (*_ONE_OF, halves[0] | halves[1])
    return (term, term) if all(halves) else None


def _halves(term: Term, apart: bool) -> frozenset[Term]:
    """``apart``: numbers are halves of addresses."""
    if isinstance(term, int):
        return frozenset({term} if apart else ())
    return term[1] if _is_one_of(term) else frozenset({term} if term[0] in ("lo", "hi") else ())


def _destination(inst: Inst) -> Reg | None:
    """The register with an indirect jump's target."""
    source = inst.find("src0")
    return None if source is None else source.reg


def _several(inst: Inst, state: State, apart: bool) -> frozenset[int]:
    """The possible targets of a s_swappc, if each lower half that it may find belongs to one."""
    reg = _destination(inst)
    if reg is None or reg.file is not RegFile.SGPR:
        return frozenset()
    lows, highs = (_halves(state.get(reg.index + half, _SAME)[0], apart) for half in (0, 1))
    found = {low: {whole[1] for high in highs if (whole := _whole(low, high, apart))[0] == "to"} for low in lows}
    return frozenset[int]().union(*found.values()) if all(found.values()) else frozenset()


def goal_of(inst: Inst, state: State, apart: bool = False) -> Pair:
    """The target of a s_setpc or s_swappc."""
    reg = _destination(inst)
    if reg is None or reg.file is not RegFile.SGPR:
        return _SAME
    (low, other_low), (high, other_high) = (state.get(reg.index + half, _SAME) for half in (0, 1))
    if is_return(low, high):
        return RETURNS, RETURNS
    return _whole(low, high, apart), _whole(other_low, other_high, apart)


def is_by_return_address(inst: Inst) -> bool:
    """Whether it is a jump, no call, through s[30:31], where the ABI has the return address (AMDGPUUsage)."""
    reg = _destination(inst)
    return reg is not None and reg.index == RETURN_ADDRESS and OpFlag.CALL not in inst.op.flags


def _whole(low: Term, high: Term, apart: bool) -> Term:
    """``apart``: numbers are addresses."""
    if isinstance(low, int) and isinstance(high, int):
        return ("to", low | high << 32) if apart else UNKNOWN
    if isinstance(low, int) or isinstance(high, int):
        return UNKNOWN
    same = low[0] == "lo" and high[0] == "hi" and low[1] == high[1] & _LOW
    return ("to", high[1]) if same else UNKNOWN if LOST not in (low, high) else LOST
