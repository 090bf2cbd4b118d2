"""The code before an indirect call, run on numbers: pointers to originals become their clones, others stay.

In: a call through a pointer and the inserted code before it. Out: nothing, or CheckFailed.

That this code only computes, and gives back what the application may still read, `runs` proves. Here it is run for each
address that has a clone and that the application may have in the object, by code or in data: these are finitely many,
and all are tried. It may be given others from elsewhere; of these it is run for the instructions next to the start of
each function (to what lies before the first one, the way is a negative one: it borrows and carries), and for what
differs from a function's address in upper bits alone (FAR_OFF), which finds a comparison that leaves out a half or the
last bits of an address. Where things are loaded is tried twice, so that lower halves of addresses carry
into upper ones once. What is not proved is that a pointer from elsewhere, equal to none of those, stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import SCC, Inst, OpFlag
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Action, Branch
from luthier_py.proof.application import Clone
from luthier_py.proof.code import Body, number
from luthier_py.proof.meanings import read_source, results, spread
from luthier_py.proof.now import Now
from luthier_py.proof.pending import NOTHING
from luthier_py.proof.runs import Runner

_LOW = (1 << 32) - 1
LONGEST = 1 << 16
FAR_OFF = (4, -4, 1 << 32, 1 << 40)
_CARRIES = 0xFFFF0000  # a load address whose low half overflows with what lies behind it
_APART = 1 << 44       # from an original to a standalone copy


def check_dispatch(
    body: Body, clone: Clone, at: int, start: int, bases: Mapping[int, int], runner: Runner, apart: bool
) -> None:
    """``bases``: functions that pointers may hold, and where their clones start."""
    pointer, called = body.code.inst(at)["src0"].reg, clone.instruction(at)[0]["src0"].reg
    if pointer is None or called is None:
        raise runner.fail("a call of this form cannot be proved", clone.places[at])
    shifts = ((0, _APART), (0, _APART + _CARRIES)) if apart else ((0, 0), (_CARRIES, _CARRIES))
    for old, new in shifts:
        for known in bases:
            for address in (known, *(known + more for more in FAR_OFF)):
                expected = bases[address] + new if address in bases else address + old
                now = Now(NOTHING, {pointer.index: address + old & _LOW, pointer.index + 1: address + old >> 32})
                _run(clone, start, clone.places[at], now, runner, new)
                if [now.get(called.index + half) for half in (0, 1)] != [expected & _LOW, expected >> 32]:
                    raise CheckFailed(
                        f"the patch could change the application: a call of 0x{address:x} goes astray",
                        runner.fail("", clone.places[at]).where)


def _run(clone: Clone, start: int, end: int, now: Now, runner: Runner, far: int) -> None:
    pc = start
    for _ in range(LONGEST):
        if pc == end:
            return
        known = runner.tool.calls.get(pc)
        if known is not None:
            pc = runner.locate_payload(pc, known[1])[0]
            continue
        inst = clone.decode(pc)
        target = inst.branch_target(pc)
        if target is not None and _is_taken(inst, now, runner, pc):
            pc = target
            continue
        if target is None:
            _step(inst, pc + far, now)
        pc += inst.size_bytes
    raise runner.fail("the code before a call does not end", start)


def _is_taken(inst: Inst, now: Now, runner: Runner, pc: int) -> bool:
    if OpFlag.CONDITIONAL not in inst.op.flags:
        return True
    row = find_meaning(inst.op)
    flag = now.get(SCC)
    if isinstance(row, Branch) and row.register == "exec":
        return False
    if not isinstance(row, Branch) or row.register != "scc" or not isinstance(flag, int):
        raise runner.fail("the code before a call depends on something else than its pointer", pc)
    return bool(flag) is not row.if_zero


def _step(inst: Inst, pc: int, now: Now) -> None:
    target = inst.find("sdst")
    reg = target.reg if target is not None else None
    if find_meaning(inst.op) is Action.GETPC and reg is not None:
        end = pc + inst.size_bytes
        now.terms.update({reg.index: end & _LOW, reg.index + 1: end >> 32})
        return
    for name, _, term in results(inst, lambda source, bits: read_source(source, bits, now.get), 64):
        if name == "scc":
            now.terms[SCC] = term
        elif name == "dst" and reg is not None:
            now.terms.update(spread(number(reg), reg.dwords, term))
