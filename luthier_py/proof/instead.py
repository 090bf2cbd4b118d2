"""The application as the tool wants it: other instructions in the place of some.

In: a function's code, and bytes that replace some instructions. Out: Code that has these, at the same
addresses; all else of the proof is about it. CheckFailed for what no tool may request. Invariant: control takes the
same paths, MODE is what it was, and what counts operations on memory finds them counted: where one is gone, all of
its kind are waited for. LDS is changed by the application's instructions alone: where one is gone a call may run it,
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

from luthier_py.base.errors import CheckFailed, Location, Malformed
from luthier_py.base.records import replace
from luthier_py.isa import EXEC, MODE, Counter, Inst, InstructionSet, OpFlag, sgpr
from luthier_py.isa.encoding.waitcnt import waits_for
from luthier_py.proof.claim import Call, ClonedFunction, Payload, Side
from luthier_py.proof.code import Code, bits_of
from luthier_py.proof.payloads import Summary

_EXEC = bits_of(sgpr(EXEC, 2))
_CONTROL = (OpFlag.TERMINATOR | OpFlag.BRANCH | OpFlag.CALL | OpFlag.INDIRECT | OpFlag.SETS_PC | OpFlag.GETS_PC
            | OpFlag.FORKS | OpFlag.MAY_STOP | OpFlag.CLAUSE)


def with_instead(code: Code, instead: Mapping[int, bytes], name: str) -> Code:
    """``instead``: by address."""
    if not instead:
        return code
    kinds, insts = code.kind.copy(), list(code.insts)
    for pc, raw in instead.items():
        at = code.find(pc)
        if at is None:
            raise CheckFailed("something is to stand where no instruction is", Location(name, pc))
        new = _decode_replacement(code.isa, raw, name, pc)
        if (why := _wrong(code.isa, code.inst(at), new)) is not None:
            raise CheckFailed(f"`{code.isa.text(new)}` is to stand here, but {why}", code.location(name, at))
        kinds[at] = len(insts)
        insts.append(new)
    return replace(code, kind=kinds, insts=insts)


def check_changes_of_lds(
    function: ClonedFunction, payloads: Sequence[Payload], known: Mapping[int, Summary],
    read: Callable[[int, int], bytes],
) -> None:
    """``known``: of payloads by number; ``read``: gives bytes of the original."""
    ran = set[int]()
    for call in function.calls:
        changes = known[call.payload].changes_lds
        gone = call.side is Side.BEFORE and call.point in function.instead and call.point not in ran
        if changes and not (gone and len(changes) == 1 and read(call.point, changes[0].size_bytes) == changes[0].raw
                            and _runs_as_there(call, payloads[call.payload], known[call.payload], changes[0])):
            raise CheckFailed(f"hook {payloads[call.payload].name} changes LDS, not as the application would here",
                              Location(function.name, call.point))
        if changes:
            ran.add(call.point)


def _runs_as_there(call: Call, payload: Payload, known: Summary, inst: Inst) -> bool:
    """Whether an instruction of a payload has the application's own registers for those that it reads, and its lanes,
    and runs once at most."""
    ends = zip(known.insts, known.offsets, strict=False)
    if any(target <= at for each, at in ends if (target := each.branch_target(at)) is not None):
        return False
    given = (bits_of(reg) for reg, own in zip(payload.params, call.arguments, strict=False) if reg == own)
    others = (each.writes.bits for each in known.insts if each is not inst)
    return payload.exec is None and not inst.reads.bits & (~reduce(or_, given, _EXEC) | reduce(or_, others, 0))


def _decode_replacement(isa: InstructionSet, raw: bytes, name: str, pc: int) -> Inst:
    try:
        found = isa.decode(raw)
    except Malformed as error:
        raise CheckFailed(error.message, Location(name, pc)) from None
    if found.size_bytes != len(raw):
        raise CheckFailed("what is to stand here is no single instruction", Location(name, pc))
    return found


def _wrong(isa: InstructionSet, old: Inst, new: Inst) -> str | None:
    if (old.op.flags | new.op.flags) & _CONTROL:
        return "control would go elsewhere"
    if (old.writes.sgpr | new.writes.sgpr) >> MODE & 1:
        return "MODE would be another"
    if OpFlag.WAIT in old.op.flags:
        return "a wait would be lost"
    gone = [counter for counter in Counter if counter in old.op.counters & ~(new.op.counters | Counter.X)]
    waited = waits_for(isa.target, new) if OpFlag.WAIT in new.op.flags else {}
    if new.op.counters & ~old.op.counters or any(waited.get(counter) != 0 for counter in gone):
        return "operations on memory would be counted otherwise"
    return None
