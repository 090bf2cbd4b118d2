"""Bytes to bytes: a code object and a tool in, an instrumented copy out.

Invariants: a tool that inserts nothing reproduces its input byte for byte, and the original kernels are in the
copy unchanged, at their addresses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from luthier_py.analysis import Facts, analyse
from luthier_py.errors import Unsupported
from luthier_py.inject.apply import inject
from luthier_py.inject.check import Linked, check
from luthier_py.inject.model import Patched
from luthier_py.ir import Program, lift
from luthier_py.jit import compile_hooks
from luthier_py.link import Patch, link
from luthier_py.loader import CodeObject, load
from luthier_py.tool import Edits, Place, Refusal, Tool, visit


@dataclass(frozen=True, slots=True)
class Instrumented:
    """The instrumented copy, and how it came about."""

    data: bytes
    obj: CodeObject
    program: Program
    facts: Facts
    edits: Edits
    patched: Patched

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """Kernels that the tool asked for and that were left alone."""
        return self.edits.refused + self.patched.refused


def instrument(
    code: bytes, tool: Tool, name: str = "<memory>", kernels: Iterable[str] | None = None, keep_going: bool = False
) -> Instrumented:
    """Instrument the chosen kernels (all of them by default); raises LuthierError, and then nothing was made.

    With ``keep_going`` kernels that cannot be served are left alone and listed in ``refused``.
    """
    obj = load(code, name)
    program = lift(obj, kernels)
    facts = analyse(program)
    edits = visit(tool, program, facts)
    if edits.refused and not keep_going:
        first = edits.refused[0]
        raise Unsupported(f"kernel {first.kernel} cannot be instrumented: {first.reason}", first.where)
    facts = facts.with_reads(edits.reads(Place.BEFORE), edits.reads(Place.AFTER))
    payloads = compile_hooks(edits, program.isa)
    patched = inject(program, facts, edits, payloads, keep_going)
    data = link(obj, Patch(patched.chunks, patched.kernels, patched.variables))
    prove(program, facts, patched, data)
    return Instrumented(data, obj, program, facts, edits, patched)


def prove(program: Program, facts: Facts, patched: Patched, data: bytes) -> None:
    """Check the linked bytes; raises CheckFailed."""
    if not patched.maps:
        return
    linked = load(data, program.obj.name)
    code = {m.chunk: _chunk(linked, m.chunk) for m in patched.maps}
    clones = {m.function.address: code[m.chunk][0] for m in patched.maps}
    check(program, facts, patched.declared, patched.maps, Linked(clones, code))


def _chunk(obj: CodeObject, name: str) -> tuple[int, bytes]:
    symbol = obj.symbol(name)
    assert symbol is not None, f"link lost {name}"
    return symbol.address, obj.read(symbol.address, symbol.size)
