"""Proof that a fragment gives EXEC back as it found it.

In: the instructions of a fragment. Out: yes or no. EXEC and all masks made from it are computed bit by bit, so one lane
is followed alone, through every way that it may take: a comparison gives its bit either value where the lane is active,
and 0 elsewhere; a branch on EXEC or VCC being zero tells the lane that its bit is 0. A bit is 0, 1 or ANY: what scalar
arithmetic leaves. The lane is one of the low half, so that only the low dwords of masks are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from luthier_py.isa import EXEC, VCC, Access, Inst, Operand, OperandKind, OpFlag, RegFile

ANY = 2
HIGH_ONLY = 2
LIMIT = 100_000  # states; fragments that compilers make have hundreds

Bits = dict[int, int]  # by SGPR; registers that are not there are ANY


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


def restores_exec(instrs: Sequence[Inst]) -> bool:
    """Whether EXEC is at the end what it was at the beginning, for every lane and every way through the code."""
    written = {inst.writes.sgpr >> EXEC & 3 for inst in instrs}
    if written <= {0} or HIGH_ONLY in written:
        return written <= {0}
    starts = {at: i for i, at in enumerate(accumulate((inst.size_bytes for inst in instrs), initial=0))}
    places = list(starts)
    for before in (0, 1):
        todo: list[tuple[int, Bits]] = [(0, {EXEC: before})]
        seen = set()
        while todo:
            at, bits = todo.pop()
            state = (at, frozenset(bits.items()))
            if state in seen:
                continue
            seen.add(state)
            if len(seen) > LIMIT or at == len(instrs) and bits.get(EXEC, ANY) != before:
                return False
            if at < len(instrs):
                target = instrs[at].branch_target(places[at])
                todo += _step(instrs[at], at, None if target is None else starts[target], bits)
    return True


def _step(inst: Inst, at: int, target: int | None, bits: Bits) -> Iterator[tuple[int, Bits]]:
    """What may be next."""
    if target is None:
        for after in _effects(inst, bits):
            yield at + 1, after
        return
    register, taken_when_zero = ZERO_TESTS.get(inst.op.base, (-1, True))
    for place, taken in ((target, True), (at + 1, False)):
        if not taken and not inst.op.flags & OpFlag.CONDITIONAL:
            continue
        is_zero = register >= 0 and taken == taken_when_zero
        if not is_zero:
            yield place, bits
        elif bits.get(register, ANY) != 1:
            yield place, {**bits, register: 0}


def _effects(inst: Inst, bits: Bits) -> Iterator[Bits]:
    base = inst.op.base
    written = [o.reg.index for o in inst.operands if o.reg and o.reg.file is RegFile.SGPR and o.access & Access.WRITE]
    sources = [_bit(o, bits) for o in inst.operands if o.access & Access.READ]
    after = {index: bit for index, bit in bits.items() if not inst.writes.sgpr >> index & 1}
    name = base.removeprefix("S_").rpartition("_")[0]  # AND of S_AND_B64, AND_SAVEEXEC of S_AND_SAVEEXEC_B64
    active = bits.get(EXEC, ANY)
    if base.startswith("V_CMP"):
        masks = [index for index in (*written, VCC, EXEC) if inst.writes.sgpr >> index & 1]
        for bit in (0, 1) if active else (0,):
            yield {**after, **dict.fromkeys(masks, bit)}
        return
    if base.startswith("S_") and name in ("MOV", "NOT") and written:
        after[written[0]] = _not(sources[0]) if name == "NOT" else sources[0]
    elif base.startswith("S_") and name in LOGIC and written:
        after[written[0]] = LOGIC[name](sources[0], sources[1])
    elif name.endswith("_SAVEEXEC") and written:
        after[written[0]], after[EXEC] = active, LOGIC[name.removesuffix("_SAVEEXEC")](sources[0], active)
    elif name.endswith("_WREXEC") and written:
        after[written[0]] = after[EXEC] = LOGIC[name.removesuffix("_WREXEC")](sources[0], active)
    yield {index: bit for index, bit in after.items() if bit != ANY}


def _bit(operand: Operand, bits: Bits) -> int:
    if operand.reg is not None:
        return bits.get(operand.reg.index, ANY) if operand.reg.file is RegFile.SGPR else ANY
    if operand.kind is OperandKind.CONSTANT and operand.value in (0, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF):
        return int(operand.value != 0)
    return ANY
