"""Inserted instructions are legal for the hardware: some can be encoded, but must not be written.

In: clones as they are linked. Out: nothing, or CheckFailed. Invariant: no inserted instruction reads more scalars than
the constant bus carries, or has halves that share a bank, or shifts by a register that the hardware gets wrong; no
branch has a displacement at which it hangs. Injection changes registers and places after an author's or a compiler's
own checks, so this check repeats them.
"""

from __future__ import annotations

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.isa import Inst, InstructionSet
from luthier_py.isa.encoding.legal import why_illegal
from luthier_py.isa.hazards.wait_states import unsafe_displacement, unsafe_shift_amount
from luthier_py.proof.linked import Linked


def check_legal(isa: InstructionSet, code: Linked) -> None:
    """CheckFailed at the first inserted instruction or branch that the hardware does not run as it is meant."""
    added = set(code.added)  # among the inserted kinds are the application's beside which others stand for its own
    wrong = {kind: why for kind in code.used if code.insts[kind] in added and (why := _why(isa, code.insts[kind]))}
    at = next((at for at in code.new if code.kinds[at] in wrong), None) if wrong else None
    if at is not None:
        raise _illegal(isa, code, at, f"an inserted instruction {wrong[code.kinds[at]]}")
    for source, goal in code.targets.items():
        distance = (int(code.pcs[goal] - code.pcs[source]) - code.inst(source).size_bytes) // 4
        if unsafe_displacement(isa.target, distance):
            raise _illegal(isa, code, source, "a branch goes a distance over which it hangs")


def _why(isa: InstructionSet, inst: Inst) -> str | None:
    """What is wrong with an instruction."""
    why = why_illegal(isa.target, inst)
    wrong = why is None and unsafe_shift_amount(isa.target, inst)
    return "shifts by a register that the hardware gets wrong" if wrong else why


def _illegal(isa: InstructionSet, code: Linked, at: int, what: str) -> CheckFailed:
    return CheckFailed(f"the hardware does not run the copy: {what}",
                       Location(code.name, int(code.pcs[at]), isa.text(code.inst(at))))
