"""Compiled hooks: what they may do, worked out once for each, and found again in a clone in other registers.

In: payloads of a claim, and bytes of a clone. Out: Summary, and the registers that a payload's have become. Invariant:
code that was found is the payload's, instruction by instruction, but for registers (each became one other, no two the
same), numbers that the claim says, and waits between its instructions.

A payload may compute and wait. It may have loops. It may touch private memory through offsets made
from its stack pointer: that it stays on its stack is for its author to see to. It may touch global memory through
addresses made from pointers: what it was given as one, constants in its code where the claim says so, and pointers that
it found there. It may read what the application has in LDS and in private memory through pointers into these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from itertools import accumulate
from operator import or_

from luthier_py.base.errors import CheckFailed, Location, Malformed
from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, MODE, VCC, Counter, Inst, InstructionSet, OperandKind, OpFlag, RegFile, Space
from luthier_py.isa.model.registers import VGPR_SHIFT
from luthier_py.isa.properties.side_effects import outside
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action
from luthier_py.isa.semantics.memory import Load, Store
from luthier_py.proof.claim import Payload
from luthier_py.proof.code import number
from luthier_py.proof.payload_lanes import Jumps, follow_exec, ways_of_lanes
from luthier_py.proof.payload_memory import changes_lds, check_memory, in_lds, in_private, is_flat
from luthier_py.proof.pending import NOTHING, Pending, collect_pending_registers, retire_registers, step_pending

MOST_STATES = 1 << 16
_MEMORY = OpFlag.VMEM | OpFlag.SMEM | OpFlag.LDS | OpFlag.GDS


@dataclass(frozen=True, slots=True)
class Summary:
    """Of one payload: registers in its own numbering that it reads and writes; those that it writes in lanes that were
    not active at its start; whether EXEC is as it was at its end; what its loads may still write then. ``idles``:
    where the application has no lane active it touches no memory, and its scalar results, if any, are of no lane.
    ``private``: it touches private memory. ``floats``: MODE decides what it computes. ``needs_lane``: where no lane is
    active, some of its scalar results or branches are made of what no lane has written. ``changes_lds``: those of its
    instructions that do."""

    insts: tuple[Inst, ...]
    offsets: tuple[int, ...]
    reads: int
    writes: int
    far_writes: int
    gives_exec_back: bool
    pending: int
    idles: bool
    private: bool
    floats: bool
    needs_lane: bool
    changes_lds: tuple[Inst, ...]


def summary(isa: InstructionSet, payload: Payload) -> Summary:
    """CheckFailed if the payload does what none may."""
    insts: list[Inst] = []
    at = 0
    while at < len(payload.code):
        try:
            insts.append(isa.decode(payload.code, at))
        except Malformed as error:
            raise CheckFailed(f"hook {payload.name} is no code: {error.message}") from None
        at += insts[-1].size_bytes
    offsets = tuple(accumulate((inst.size_bytes for inst in insts), initial=0))
    for inst in insts:
        local = inst.op.spaces & (Space.LDS | Space.GDS) and not (is_flat(inst) or in_lds(inst) and (
            payload.as_written or not changes_lds(inst)))
        if (why := outside(inst.op)) is not None or local:
            raise _make_failure(isa, payload, inst, why or "touches local memory")
    jumps = _find_successors(isa, payload, insts, offsets)
    _check_loops(isa, payload, insts, jumps)
    _check_frame(isa, payload, insts)
    lanes = ways_of_lanes(isa, insts, jumps)
    check_memory(isa, payload, insts, jumps, lanes)
    reads = writes = 0
    for inst in insts:
        reads, writes = reads | inst.reads.bits, writes | inst.writes.bits
    if payload.resource is not None and writes & payload.resource.bits:
        raise CheckFailed(f"hook {payload.name} changes by what it reaches private memory")
    far, back, wide = follow_exec(insts, lanes, partial(in_private, payload))
    stores = any(OpFlag.MAY_STORE in flags and not flags & (OpFlag.VMEM | OpFlag.WAIT)
                 for flags in (inst.op.flags for inst in insts))
    scalars = any(reg.file is RegFile.SGPR for reg in payload.results)
    idles = payload.exec is None and not (wide or stores) and (not scalars or any(map(_needs_lane, insts)))
    return Summary(tuple(insts), offsets, reads, writes, far, back, _find_pending_at_end(isa, insts, jumps), idles,
                   payload.resource is not None or any(inst.op.spaces is Space.SCRATCH for inst in insts),
                   bool(reads >> MODE & 1), _makes_scalars_of_lanes(payload, insts),
                   tuple(filter(changes_lds, insts)))


def _makes_scalars_of_lanes(payload: Payload, insts: Sequence[Inst]) -> bool:
    """Whether scalar results, or branches, are made of what vector instructions leave alone where no lane is active."""
    if payload.exec is not None or payload.as_written:
        return False
    lanes, before = reduce(or_, (inst.writes.bits for inst in insts if _needs_lane(inst)), 0), -1
    while lanes != before:
        before = lanes
        lanes |= reduce(or_, (inst.writes.bits for inst in insts if inst.reads.bits & lanes), 0)
    results = reduce(or_, (reg.bits for reg in payload.results if reg.file is RegFile.SGPR), 0)
    return bool(results & lanes) or any(OpFlag.BRANCH in inst.op.flags and inst.reads.bits & lanes for inst in insts)


def _needs_lane(inst: Inst) -> bool:
    """Whether what it makes is nothing, or anything, where no lane is active."""
    flags = inst.op.flags
    return bool(flags & (OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS)) and OpFlag.IGNORES_EXEC not in flags


def _make_failure(isa: InstructionSet, payload: Payload, inst: Inst, why: str) -> CheckFailed:
    return CheckFailed(f"hook {payload.name} {why}", Location(None, None, isa.text(inst)))


def _check_frame(isa: InstructionSet, payload: Payload, insts: Sequence[Inst]) -> None:
    """What is at a place of the stack that the code itself says lies in what the hook is said to have of it."""
    if payload.stack is None or any(inst.writes.bits & payload.stack.bits for inst in insts):
        return
    for inst in insts:
        base, row = inst.find("saddr") or inst.find("soffset"), find_meaning(inst.op)
        if not isinstance(row, (Load, Store)) or not in_private(payload, inst) or inst.find("vaddr") is not None:
            continue
        if base is not None and base.reg == payload.stack and inst["offset"].value + row.bytes > payload.frame_bytes:
            raise _make_failure(isa, payload, inst, "has more of a stack than the claim says")


def _find_successors(isa: InstructionSet, payload: Payload, insts: Sequence[Inst], offsets: Sequence[int]) -> Jumps:
    """Behind each instruction: the numbers of those that may come next; their count for the end."""
    number_at = {offset: k for k, offset in enumerate(offsets)}
    found: Jumps = []
    for k, inst in enumerate(insts):
        target = inst.branch_target(offsets[k])
        if target is None:
            found.append((k + 1,))
            continue
        if target not in number_at:
            raise _make_failure(isa, payload, inst, "leaves its own code")
        falls = (k + 1,) if OpFlag.CONDITIONAL in inst.op.flags else ()
        found.append((*falls, number_at[target]))
    return found


def _check_loops(
    isa: InstructionSet, payload: Payload, insts: Sequence[Inst], jumps: Jumps
) -> None:
    """What a loop waits for is changed in it. A way back is one where control may come again only."""
    for k, ways in enumerate(jumps):
        for start in (to for to in ways if to <= k and _leads(jumps, to, k)):
            inside = range(start, k + 1)
            written = reduce(or_, (insts[at].writes.bits for at in inside))
            leaving = [at for at in inside if any(to not in inside for to in jumps[at])]
            if not any(insts[at].reads.bits & written for at in leaving):
                raise _make_failure(isa, payload, insts[k], "goes round for ever")


def _leads(jumps: Jumps, start: int, to: int) -> bool:
    """Whether control gets from one instruction to another."""
    seen, work = {start}, [start]
    while work and to not in seen:
        found = [after for after in jumps[work.pop()] if after < len(jumps) and after not in seen]
        seen.update(found)
        work += found
    return to in seen


def _find_pending_at_end(isa: InstructionSet, insts: Sequence[Inst], jumps: Jumps) -> int:
    """Registers that loads may still write at the end."""
    if not any(inst.op.counters for inst in insts):
        return 0
    seen: set[tuple[int, Pending]] = {(0, NOTHING)}
    work, left = list(seen), 0
    while work and len(seen) <= MOST_STATES:
        k, pending = work.pop()
        if k == len(insts):
            left |= collect_pending_registers(pending)
            continue
        after = step_pending(isa, insts[k], pending)
        if is_flat(insts[k]):
            after = retire_registers(after, Counter.LGKM, insts[k].writes.bits)  # its address is of global memory
        new = {(to, after) for to in jumps[k]} - seen
        seen |= new
        work += new
    if work:
        left = -1
    return left


# -- matching ------------------------------------------------------------------------------------

Renaming = dict[int, int]  # from the payload's registers to the clone's, all general
Decode = Callable[[int], Inst]


@lru_cache(maxsize=1 << 16)
def _alike(old: Inst, new: Inst, literals_differ: bool) -> tuple[tuple[int, int], ...] | None:
    """The registers that have become others if that is all that differs; None if more does."""
    if old.op is not new.op or (old.literal != new.literal and not literals_differ):
        return None
    pairs = []
    for a, b in zip(old.operands, new.operands, strict=True):
        if a.reg is not None and b.reg is not None:
            if (a.kind, a.reg.file, a.reg.dwords, a.value) != (b.kind, b.reg.file, b.reg.dwords, b.value):
                return None
            pairs += [(number(a.reg) + k, number(b.reg) + k) for k in range(a.reg.dwords)]
        elif a.kind is OperandKind.TARGET and b.kind is OperandKind.TARGET:
            continue
        elif (a.kind, a.reg, a.value) != (b.kind, b.reg, b.value) and not (
                literals_differ and a.kind is b.kind is OperandKind.CONSTANT):
            return None
    return tuple(pairs)


def match_payload(
    isa: InstructionSet, payload: Payload, known: Summary, start: int, decode: Decode, constants: Sequence[int]
) -> tuple[list[int], Renaming]:
    """Where the instructions of a payload that starts at ``start`` stand and end, and what its registers have become;
    CheckFailed if it is not there. ``decode`` gives the instruction at an address of the clone."""
    renaming: Renaming = {}
    places: list[int] = []
    pc = start
    fields = dict(zip(payload.fields, constants, strict=True))
    for k, inst in enumerate(known.insts):
        here = [field for field in fields if known.offsets[k] <= field < known.offsets[k + 1]] if fields else ()
        new = decode(pc)
        while ((pairs := _alike(inst, new, bool(here))) is None or _passes_islands(pc, new, decode)) and _between(new):
            gone = k > 0 and _jumps(known.insts[k - 1])  # nothing falls into what comes here: islands lie by
            pc = pc + new.size_bytes if gone else _onward(pc, new)
            new = decode(pc)
        if pairs is None or any(renaming.setdefault(a, b) != b for a, b in pairs):
            raise CheckFailed(f"hook {payload.name} is not as it was compiled: here should be `{isa.text(inst)}`",
                              Location(None, pc, isa.text(new)))
        if any(new.literal != fields[field] for field in here):
            raise CheckFailed(f"hook {payload.name} has another constant than the claim says",
                              Location(None, pc, isa.text(new)))
        places.append(pc)
        pc += new.size_bytes
    if len(set(renaming.values())) != len(renaming) or not all(
            a == b or _exchangeable(known, a, b) for a, b in renaming.items()):
        raise CheckFailed(f"registers of hook {payload.name} have become others that they cannot be",
                          Location(None, start))
    _check_jumps(payload, known, [*places, pc], decode, isa)
    _check_groups(isa, payload, known, [*places, pc])
    return [*places, pc], renaming


def _check_groups(isa: InstructionSet, payload: Payload, known: Summary, places: Sequence[int]) -> None:
    """Check that nothing is inserted in a group of memory instructions."""
    for k, inst in enumerate(known.insts):
        if OpFlag.CLAUSE in inst.op.flags:
            last = min(k + 1 + (inst["simm16"].value & 0x3F), len(known.insts) - 1)
            if places[last] - places[k] != known.offsets[last] - known.offsets[k]:
                raise CheckFailed(f"something stands in a group of memory instructions of hook {payload.name}",
                                  Location(None, places[k], isa.text(inst)))


def _exchangeable(known: Summary, a: int, b: int) -> bool:
    """Whether register ``a`` of a payload can be ``b`` of a clone: neither is a special register, or ``b`` is EXEC and
    the payload writes neither."""
    if VCC <= a < VGPR_SHIFT:
        return False
    if b in (EXEC, EXEC + 1):
        return not known.writes & (1 << a | 3 << EXEC)
    return not VCC + 2 <= b < VGPR_SHIFT and (b not in (VCC, VCC + 1) or not (known.reads | known.writes) >> VCC & 3)


def _between(inst: Inst) -> bool:
    """What may stand between a payload's instructions: waits, v_nop for hazards, and jumps over islands."""
    return is_wait(inst) or _jumps(inst) or OpFlag.VALU in inst.op.flags and find_meaning(inst.op) is Action.NOTHING


def _passes_islands(pc: int, inst: Inst, decode: Decode) -> bool:
    """Whether a jump leads over lone jumps to one more: then that is the payload's, and these are not."""
    target = inst.branch_target(pc)
    if target is None or not _jumps(inst):
        return False
    at = pc + inst.size_bytes
    while at < target and _jumps(decode(at)):
        at += decode(at).size_bytes
    return at == target > pc + inst.size_bytes and _jumps(decode(target))


def _jumps(inst: Inst) -> bool:
    return OpFlag.BRANCH in inst.op.flags and OpFlag.CONDITIONAL not in inst.op.flags


def is_wait(inst: Inst) -> bool:
    """Whether an instruction changes nothing at all."""
    return outside(inst.op) is None and not (inst.writes or inst.op.flags & (
        OpFlag.BRANCH | OpFlag.VALU | OpFlag.VMEM | OpFlag.SMEM | OpFlag.LDS | OpFlag.CLAUSE))


def _onward(pc: int, inst: Inst) -> int:
    target = inst.branch_target(pc)
    if target is not None and target <= pc:
        raise CheckFailed("inserted code goes in a circle", Location(None, pc))
    return pc + inst.size_bytes if target is None else target


def _check_jumps(
    payload: Payload, known: Summary, places: Sequence[int], decode: Decode, isa: InstructionSet
) -> None:
    """Branches go to where the payload's go, over waits and islands."""
    for k, inst in enumerate(known.insts):
        offset = inst.branch_target(known.offsets[k])
        if offset is None:
            continue
        goal, wanted = decode(places[k]).branch_target(places[k]), places[known.offsets.index(offset)]
        ways = {wanted} if offset < len(payload.code) else _ways(wanted, decode, set())
        if goal is None or not ways & _ways(goal, decode, set(places[:-1])):
            raise CheckFailed(f"hook {payload.name} goes elsewhere than it was compiled to",
                              Location(None, places[k], isa.text(decode(places[k]))))


def _ways(pc: int, decode: Decode, stops: set[int]) -> set[int]:
    """``pc``, and the places that control reaches from there over waits and jumps."""
    found = {pc}
    while pc not in stops:
        inst = decode(pc)
        if not _between(inst):
            break
        target = inst.branch_target(pc)
        pc = pc + inst.size_bytes if target is None else target
        if pc in found:
            break
        found.add(pc)
    return found
