"""Edits as a key: two programs of equal bytes with equal keys get equal copies.

In: Edits and an InstructionSet. Out: a digest of everything that jit, inject and link make of them: each place, the
compiled identity of each hook with its constants, each argument and result, and the tool's variables.
"""

from __future__ import annotations

from luthier_py.base.storage import cache_key
from luthier_py.isa import InstructionSet
from luthier_py.rewrite.jit.compile import payload_name
from luthier_py.rewrite.jit.payload import PayloadKey, payload_key
from luthier_py.rewrite.tool import Edits, Insertion


def fingerprint(edits: Edits, isa: InstructionSet) -> str:
    """Raises HookError where a hook cannot be compiled."""
    names: dict[PayloadKey, str] = {}
    for key in map(payload_key, edits.insertions):
        names[key] = names.get(key) or payload_name(key, isa)
    lines = [f"{variable.name} {variable.described} {variable.length}" for variable in edits.variables]
    lines += [f"{variable.name} {variable.type}" for variable in edits.wave_variables]
    lines += [_line(insertion, names[payload_key(insertion)]) for insertion in edits.insertions]
    lines += [f"{each.instr.pc} {each.inst.raw.hex()}" for each in edits.instead]
    lines += [f"refused {refusal.kernel}" for refusal in edits.refused]
    return cache_key(isa.target.name, str(isa.wave_size), *lines)


def _line(insertion: Insertion, payload: str) -> str:
    places = [(instr.pc, place.value) for instr, place in insertion.places]
    hook = insertion.hook
    call = f"{insertion.args} {insertion.into} {insertion.rank}"
    return f"{places} {payload} {hook.lanes} {hook.mode} {hook.signature} {call}"
