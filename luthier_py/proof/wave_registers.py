"""Inserted code has the wave's registers, and the application does not see that there are more of them.

In: a function's body and its clone. Out: nothing, or CheckFailed. Invariant: behind the message that deallocates a
wave's vector registers, and its private memory with them, the wave runs straight to its end, over the application's
instructions alone.
"""

from __future__ import annotations

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import OpFlag
from luthier_py.isa.properties.wave_registers import gives_back_vectors, sees_inserted_code
from luthier_py.proof.application import Clone
from luthier_py.proof.code import Body

_LEAVES = OpFlag.END | OpFlag.TERMINATOR | OpFlag.CALL


def check_registers(body: Body, clone: Clone) -> None:
    """CheckFailed where an instruction of the function could see inserted code (`isa.wave_registers`), or where
    inserted code may run after the message that deallocates the wave's VGPRs."""
    code, target = body.code, body.code.isa.target
    for at in code.those(sees_inserted_code, target):
        raise CheckFailed(sees_inserted_code(code.inst(at), target), code.location(body.name, at))
    for at in code.those(gives_back_vectors, target):
        if gives_back_vectors(clone.instruction(at)[0], target) and (
                clone.function.private or not _stands_at_the_end(clone, at)):
            raise CheckFailed("inserted code may run where the wave has given back its vector registers",
                              code.location(body.name, at))


def _stands_at_the_end(clone: Clone, at: int) -> bool:
    """Whether no inserted code is before an instruction, or from there to the wave's end."""
    if clone.places[at] != (clone.end(at - 1) if at else clone.base):
        return False
    while not clone.code.inst(at).op.flags & _LEAVES:
        if at + 1 == len(clone.code) or clone.places[at + 1] != clone.end(at):
            return False
        at += 1
    return OpFlag.END in clone.code.inst(at).op.flags
