"""Proof that code gives EXEC back as it found it, and of where it runs in more lanes than it was entered with.

In: instructions that are entered at the first one and left behind the last one. Out: ExecProof. EXEC and all masks made
from it are computed bit by bit, so one lane is followed alone, through every way that it may take: a comparison gives
its bit either value where the lane is active, and 0 elsewhere; any other instruction gives it either value; a branch
on EXEC or VCC being zero tells the lane that its bit is 0. A bit is 0, 1 or ANY: what was there at the beginning. Only
bits from which EXEC may be made are kept. Lanes of the low and of the high half are followed, active at the beginning
and not: all lanes are like one of these four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, product

from luthier_py.isa import EXEC, VCC, Access, Inst, Operand, OperandKind, OpFlag, Reg, RegFile

ANY = 2
LIMIT = 100_000  # states; fragments that compilers make have hundreds

Bits = dict[int, int]  # the lane's bit by SGPR; registers that are not there are ANY


@dataclass(frozen=True, slots=True)
class ExecProof:
    restored: bool
    widened: frozenset[int]  # positions of instructions that may run in lanes that were not active at the beginning


def _not(a: int) -> int:
    return ANY if a == ANY else 1 - a


def _and(a: int, b: int) -> int:
    return 0 if 0 in (a, b) else ANY if ANY in (a, b) else 1


def _or(a: int, b: int) -> int:
    return _not(_and(_not(a), _not(b)))


def _xor(a: int, b: int) -> int:
    return ANY if ANY in (a, b) else a ^ b


LOGIC: dict[str, Callable[[int, int], int]] = {
    "AND": _and, "OR": _or, "XOR": _xor,
    "ANDN2": lambda a, b: _and(a, _not(b)), "ORN2": lambda a, b: _or(a, _not(b)),
    "NAND": lambda a, b: _not(_and(a, b)), "NOR": lambda a, b: _not(_or(a, b)), "XNOR": lambda a, b: _not(_xor(a, b)),
    "ANDN1": lambda a, b: _and(_not(a), b), "ORN1": lambda a, b: _or(_not(a), b),
}
ZERO_TESTS = {  # base: register, whether the branch is taken when it is zero
    "S_CBRANCH_EXECZ": (EXEC, True), "S_CBRANCH_EXECNZ": (EXEC, False),
    "S_CBRANCH_VCCZ": (VCC, True), "S_CBRANCH_VCCNZ": (VCC, False),
}


def follow_exec(instrs: Sequence[Inst], wave_size: int) -> ExecProof:
    """Follow each kind of lane through the code; branches must not leave it. Not restored if it takes too long."""
    if not any(inst.writes.sgpr >> EXEC & 3 for inst in instrs):
        return ExecProof(True, frozenset())
    restored, widened = True, set()
    for half in (0, 1) if wave_size == 64 else (0,):
        for before in (0, 1):
            states = _states(instrs, half, before)
            if states is None:
                return ExecProof(False, frozenset(range(len(instrs))))
            for at, active in states:
                if at == len(instrs):
                    restored = restored and active == before
                elif before == 0 and active != 0:
                    widened.add(at)
    return ExecProof(restored, frozenset(widened))


def _states(instrs: Sequence[Inst], half: int, before: int) -> set[tuple[int, int]] | None:
    """Positions that a lane reaches, with its bit of EXEC there; None when there are too many ways."""
    starts = {at: i for i, at in enumerate(accumulate((inst.size_bytes for inst in instrs), initial=0))}
    places, needed = list(starts), _needed(instrs, starts, half)
    todo: list[tuple[int, Bits]] = [(0, {EXEC + half: before})]
    seen: set[tuple[int, frozenset[tuple[int, int]]]] = set()
    found: set[tuple[int, int]] = set()
    while todo:
        at, bits = todo.pop()
        bits = {index: bit for index, bit in bits.items() if needed[at] >> index & 1}
        state = (at, frozenset(bits.items()))
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > LIMIT:
            return None
        found.add((at, bits.get(EXEC + half, ANY)))
        if at < len(instrs):
            target = instrs[at].branch_target(places[at])
            todo += _step(instrs[at], at, None if target is None else starts[target], bits, half)
    return found


def _needed(instrs: Sequence[Inst], starts: dict[int, int], half: int) -> list[int]:
    """For each position, the dwords of the SGPR file that EXEC at a later place may depend on."""
    own, places = 1 << EXEC + half, list(starts)
    needed, grew = [own] * (len(instrs) + 1), True
    while grew:
        grew = False
        for at in reversed(range(len(instrs))):
            inst, target = instrs[at], instrs[at].branch_target(places[at])
            before = needed[at + 1]
            if target is not None:
                before = needed[starts[target]] | (before if inst.op.flags & OpFlag.CONDITIONAL else 0)
                before |= 1 << ZERO_TESTS[inst.op.base][0] + half if inst.op.base in ZERO_TESTS else 0
            elif inst.writes.sgpr & before:
                before = before & ~inst.writes.sgpr | inst.reads.sgpr
            grew = grew or before | own != needed[at]
            needed[at] = before | own
    return needed


def _step(inst: Inst, at: int, target: int | None, bits: Bits, half: int) -> Iterator[tuple[int, Bits]]:
    """What may be next."""
    if target is None:
        for after in _effects(inst, bits, half):
            yield at + 1, after
        return
    mask, taken_when_zero = ZERO_TESTS.get(inst.op.base, (-1, True))
    for place, taken in ((target, True), (at + 1, False)):
        if not taken and not inst.op.flags & OpFlag.CONDITIONAL:
            continue
        if mask < 0 or taken != taken_when_zero:
            yield place, bits
        elif bits.get(mask + half, ANY) != 1:
            yield place, {**bits, mask + half: 0}


def _effects(inst: Inst, bits: Bits, half: int) -> Iterator[Bits]:
    """The lane's bits after an instruction that is no branch."""
    base = inst.op.base
    targets = [_place(o.reg, half) for o in inst.operands if o.reg and o.access & Access.WRITE]
    sources = [_bit(o, bits, half) for o in inst.operands if o.access & Access.READ]
    after = {index: bit for index, bit in bits.items() if not inst.writes.sgpr >> index & 1}
    name = base.removeprefix("S_").rpartition("_")[0]  # AND of S_AND_B64, AND_SAVEEXEC of S_AND_SAVEEXEC_B64
    active = bits.get(EXEC + half, ANY)
    masks = [i for i in {*targets, VCC + half, EXEC + half} if i >= 0 and inst.writes.sgpr >> i & 1]
    if base.startswith("V_CMP"):
        for bit in (0, 1) if active else (0,):
            yield {**after, **dict.fromkeys(masks, bit)}
        return
    if base.startswith("S_") and name in ("MOV", "NOT"):
        after[targets[0]] = _not(sources[0]) if name == "NOT" else sources[0]
    elif base.startswith("S_") and name in LOGIC:
        after[targets[0]] = LOGIC[name](sources[0], sources[1])
    elif name.endswith("_SAVEEXEC"):
        after[targets[0]], after[EXEC + half] = active, LOGIC[name.removesuffix("_SAVEEXEC")](sources[0], active)
    elif name.endswith("_WREXEC"):
        after[targets[0]] = after[EXEC + half] = LOGIC[name.removesuffix("_WREXEC")](sources[0], active)
    unknown = [index for index in masks if after.get(index, ANY) == ANY]
    for chosen in product((0, 1), repeat=len(unknown)):
        yield {**after, **dict(zip(unknown, chosen, strict=True))}


def _place(reg: Reg, half: int) -> int:
    """The dword that holds the lane's bit of a mask; -1 for vector registers."""
    if reg.file is not RegFile.SGPR:
        return -1
    return reg.index + (half if reg.dwords == 2 else 0)


def _bit(operand: Operand, bits: Bits, half: int) -> int:
    if operand.reg is not None:
        return bits.get(_place(operand.reg, half), ANY)
    if operand.kind is OperandKind.CONSTANT and operand.value in (0, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF):
        return int(operand.value != 0)
    return ANY
