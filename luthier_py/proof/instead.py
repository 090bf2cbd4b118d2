"""The application as the tool wants it: other instructions in the place of some.

In: a function's code, and bytes that are to stand instead of some instructions. Out: Code that has these, at the same
addresses; all else of the proof is about it. CheckFailed for what no tool may want. Invariant: control goes the same
ways, MODE is what it was, and what counts operations on memory finds them counted: where one is gone, all of its kind
are waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from luthier_py.errors import CheckFailed, Location, Malformed
from luthier_py.isa import MODE, Counter, Inst, InstructionSet, OpFlag
from luthier_py.isa.waitcnt import waits_for
from luthier_py.proof.code import Code

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
        new = _decoded(code.isa, raw, name, pc)
        if (why := _wrong(code.isa, code.inst(at), new)) is not None:
            raise CheckFailed(f"`{code.isa.text(new)}` is to stand here, but {why}", code.location(name, at))
        kinds[at] = len(insts)
        insts.append(new)
    return replace(code, kind=kinds, insts=insts)


def _decoded(isa: InstructionSet, raw: bytes, name: str, pc: int) -> Inst:
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
