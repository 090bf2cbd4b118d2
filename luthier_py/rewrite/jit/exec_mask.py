"""Proof that code gives EXEC back as it found it, and of where it runs in more lanes than it was entered with.

In: instructions that are entered at the first one and left behind the last one. Out: ExecProof. EXEC and all masks made
from it are computed bit by bit, so one lane is followed alone, through every way that it may take: a comparison gives
its bit either value where the lane is active, and 0 elsewhere; any other instruction gives it either value; a branch on
EXEC or VCC being zero shows that the lane's bit is 0. What was there at the beginning is not known. Only bits from
which EXEC may be made are followed. Lanes of the low and of the high half are followed, active at the beginning and
not: all lanes are like one of these four.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, product

from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, VCC, Access, Inst, OpFlag, RegFile
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Branch
from luthier_py.isa.semantics.readers.binding import REGISTERS
from luthier_py.isa.semantics.readers.lane_bits import Bit, assignments_in_half, outcome

LIMIT = 100_000  # states; fragments that compilers make have hundreds

Bits = dict[int, int]  # the lane's bit by SGPR; registers that are not there are unknown


@dataclass(frozen=True, slots=True)
class ExecProof:
    """``restored``: behind the last instruction EXEC is what it was before the first, in every lane."""

    restored: bool
    widened: frozenset[int]  # positions of instructions that may run in lanes that were not active at the beginning


def follow_exec(instrs: Sequence[Inst], wave_size: int) -> ExecProof:
    """Follow each kind of lane through the code; branches must not leave it. Not restored if it takes too long."""
    if not any(inst.writes.sgpr >> EXEC & 3 for inst in instrs):
        return ExecProof(True, frozenset())
    restored, widened = True, set()
    for half in (0, 1) if wave_size == 64 else (0,):
        for before in (0, 1):
            states = _states(instrs, wave_size, half, before)
            if states is None:
                return ExecProof(False, frozenset(range(len(instrs))))
            for at, active in states:
                if at == len(instrs):
                    restored = restored and active == before
                elif before == 0 and active != 0:
                    widened.add(at)
    return ExecProof(restored, frozenset(widened))


def _states(instrs: Sequence[Inst], wave_size: int, half: int, before: int) -> set[tuple[int, Bit]] | None:
    """Positions that a lane reaches, with its bit of EXEC there; None when there are too many ways."""
    starts = {at: i for i, at in enumerate(accumulate((inst.size_bytes for inst in instrs), initial=0))}
    places, needed = list(starts), _compute_exec_dependences(instrs, starts, half)
    branches = (inst.branch_target(place) for inst, place in zip(instrs, places, strict=False))
    targets = [None if place is None else starts[place] for place in branches]
    ahead = _ahead(instrs, targets, needed)
    todo: list[tuple[int, Bits]] = [(0, {EXEC + half: before})]
    seen: set[tuple[int, frozenset[tuple[int, int]]]] = set()
    found: set[tuple[int, int, Bit]] = set()  # from where to where
    while todo:
        at, bits = todo.pop()
        bits = {index: bit for index, bit in bits.items() if needed[at] >> index & 1}
        state = (at, frozenset(bits.items()))
        if state in seen:
            continue
        seen.add(state)
        if len(seen) > LIMIT:
            return None
        end = ahead[at]
        found.add((at, end, bits.get(EXEC + half)))
        if end < len(instrs):
            todo += _step(instrs[end], end, targets[end], bits, needed[end + 1], wave_size, half)
    return {(place, bit) for at, end, bit in found for place in range(at, end + 1)}


def _ahead(instrs: Sequence[Inst], targets: Sequence[int | None], needed: Sequence[int]) -> list[int]:
    """For each position the first from there on whose instruction branches, or writes what is needed behind it; before
    that a lane's bits stay as they are."""
    found = [len(instrs)] * (len(instrs) + 1)
    for at in reversed(range(len(instrs))):
        matters = targets[at] is not None or instrs[at].writes.sgpr & needed[at + 1]
        found[at] = at if matters else found[at + 1]
    return found


def _compute_exec_dependences(instrs: Sequence[Inst], starts: dict[int, int], half: int) -> list[int]:
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
                before |= 1 << tested[0] + half if (tested := _zero_test(inst)) else 0
            elif inst.writes.sgpr & before:
                before = before & ~inst.writes.sgpr | inst.reads.sgpr
            grew = grew or before | own != needed[at]
            needed[at] = before | own
    return needed


def _zero_test(inst: Inst) -> tuple[int, bool] | None:
    """The mask that a branch looks at, and whether it is taken when that is zero."""
    row = find_meaning(inst.op)
    if isinstance(row, Branch) and row.register in ("exec", "vcc"):
        return REGISTERS[row.register], row.if_zero
    return None


def _step(inst: Inst, at: int, target: int | None, bits: Bits, needed: int, wave_size: int,
          half: int) -> Iterator[tuple[int, Bits]]:
    """What may be next; ``needed``: behind the instruction, where it is no branch."""
    if target is None:
        for after in _effects(inst, bits, needed, wave_size, half):
            yield at + 1, after
        return
    mask, taken_when_zero = _zero_test(inst) or (-1, True)
    for place, taken in ((target, True), (at + 1, False)):
        if not taken and not inst.op.flags & OpFlag.CONDITIONAL:
            continue
        if mask < 0 or taken != taken_when_zero:
            yield place, bits
        elif bits.get(mask + half) != 1:
            yield place, {**bits, mask + half: 0}


def _effects(inst: Inst, bits: Bits, needed: int, wave_size: int, half: int) -> Iterator[Bits]:
    """The lane's bits after an instruction that is no branch; either value for what is ``needed`` and not known."""
    after = {index: bit for index, bit in bits.items() if not inst.writes.sgpr >> index & 1}
    unknown: dict[int, list[int]] = {}  # by the number of the value: the same in all these registers
    rest = dict.fromkeys(mask for mask in _targets(inst, half) if needed >> mask & 1)
    for assign in assignments_in_half(inst, wave_size, half):
        bit = outcome(assign.table, tuple([bits.get(source) for source in assign.sources]))
        rest.pop(assign.mask, None)
        if not needed >> assign.mask & 1:
            continue
        if bit is None:
            unknown.setdefault(assign.value, []).append(assign.mask)
        else:
            after[assign.mask] = bit
    groups = [*unknown.values(), *([mask] for mask in rest)]
    for chosen in product((0, 1), repeat=len(groups)):
        yield {**after, **{mask: bit for masks, bit in zip(groups, chosen, strict=True) for mask in masks}}


def _targets(inst: Inst, half: int) -> Iterator[int]:
    """The SGPRs with the lane's bits of the masks that it writes."""
    for operand in inst.operands:
        reg = operand.reg
        if reg is not None and operand.access & Access.WRITE and reg.file is RegFile.SGPR:
            yield reg.index + (half if reg.dwords == 2 else 0)
    yield from (mask for mask in (VCC + half, EXEC + half) if inst.writes.sgpr >> mask & 1)
