"""Which loads the addresses of an access are made of: where there are some, it is a gather or a scatter.

In: definitions and uses of a function as a lane sees them. Out: loads by lane, from global memory or LDS. Invariant:
instructions of the function make the address of a reported load from loaded values, however many there are between.
What control flow depends on does not count, nor what goes through private memory or other functions.
"""

from __future__ import annotations

from luthier_py.isa import EXEC, AccessKind, AddressForm, RegSet, sgpr
from luthier_py.program.analysis import Definitions
from luthier_py.program.ir import Instr

_BY_LANE = (AddressForm.FAR, AddressForm.NEAR, AddressForm.LDS, AddressForm.BUFFER)
_EXEC = RegSet.of(sgpr(EXEC, 2))


def loads_behind(instr: Instr, definitions: Definitions) -> tuple[Instr, ...]:
    """The nearest ones, in the order of the code."""
    access = instr.memory
    if access is None or access.vector is None or access.vector.reg is None:
        return ()
    wanted, graph = RegSet.of(access.vector.reg), definitions.graph
    work = [source for source, _, registers in graph.in_edges(instr, data="registers") if registers & wanted]
    met, found = set(work), list[Instr]()
    while work:
        source = work.pop()
        if _loads(source):
            found.append(source)
            continue
        before = {each for each, _, registers in graph.in_edges(source, data="registers") if registers - _EXEC}
        work += before - met
        met |= before
    return tuple(sorted(found, key=lambda each: each.pc))


def _loads(instr: Instr) -> bool:
    return (instr.memory is not None and instr.memory.kind is not AccessKind.STORE and instr.memory.form in _BY_LANE)
