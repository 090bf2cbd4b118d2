"""What a tool keeps of a program for its reports, as bytes without that program.

In: notes, and what they may name: the program with its parts, the tool with its variables. Out: bytes, and the same
notes again. Invariant: what is named comes back as the very part of a program, lifted anew when a report first asks,
and the very variable; where a part cannot be stored, it is Unkept, and nothing is.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from luthier_py.binary import loader
from luthier_py.program import analysis, ir
from luthier_py.rewrite.tool import Tool, Variable, WaveVariable

_PROTOCOL = 5
_REFUSALS = (TypeError, ValueError, AttributeError, LookupError, RuntimeError, pickle.PickleError)  # to be pickled


class Unkept(Exception):
    """These notes cannot be stored."""


def pack_notes(notes: Any, program: ir.Program, tool: Tool, variables: Mapping[str, Variable]) -> bytes:
    """A byte that says whether the program is named, and the rest."""
    out = io.BytesIO()
    packer = _Packer(out, protocol=_PROTOCOL)
    packer.program, packer.tool, packer.variables, packer.names_program = program, tool, variables, False
    try:
        packer.dump(notes)
        plain = bytes([packer.names_program]) + out.getvalue()
        unpack_notes(plain, lambda: program, tool, variables)()  # what cannot be had again is of no use
    except _REFUSALS as error:
        raise Unkept(str(error)) from error
    return plain


def unpack_notes(
    data: bytes, program: Callable[[], ir.Program], tool: Tool, variables: Mapping[str, Variable]
) -> Callable[[], Any]:
    """The notes, made at the first call; made at once where that needs no program. Raises Unkept."""

    @cache
    def notes() -> Any:
        unpacker = _Unpacker(io.BytesIO(data[1:]))
        unpacker.program, unpacker.tool, unpacker.variables = cache(program), tool, variables
        return unpacker.load()

    if not data[0]:
        try:
            notes()
        except _REFUSALS as error:
            raise Unkept(str(error)) from error
    return notes


class _Packer(pickle.Pickler):
    """Mutable: ``names_program`` when something of it was met."""

    program: ir.Program
    tool: Tool
    variables: Mapping[str, Variable]
    names_program: bool

    def persistent_id(self, value: Any) -> Any:
        if value is self.tool:
            return "tool", ""
        if isinstance(value, Variable) and self.variables.get(value.name) is value:
            return "variable", value.name
        if isinstance(value, WaveVariable):
            return "wave", value.name
        if isinstance(value, analysis.Facts):
            raise Unkept("facts of a program are not kept")
        part = self._part(value)
        self.names_program |= part is not None
        return part

    def _part(self, value: Any) -> tuple[str, Any] | None:
        program = self.program
        if value is program or value is program.obj:
            return ("program" if value is program else "object"), 0
        if isinstance(value, ir.Function):
            return "function", value.address
        if isinstance(value, ir.Block):
            function = program.function_of(value.instrs[0])
            if function.block(value.address) != value:
                raise Unkept("a part of a block is not kept")
            return "block", (function.address, value.address)
        if isinstance(value, ir.Instr):
            return "instr", (program.function_of(value).address, value.pc)
        if isinstance(value, (ir.Program, loader.CodeObject)):
            raise Unkept("another program is not kept")
        return None


class _Unpacker(pickle.Unpickler):
    program: Callable[[], ir.Program]
    tool: Tool
    variables: Mapping[str, Variable]

    def persistent_load(self, id: Any) -> Any:
        kind, which = id
        if kind == "tool":
            return self.tool
        if kind == "variable":
            return self.variables[which]
        if kind == "wave":
            return next(variable for variable in self.tool.wave_variables if variable.name == which)
        return _part_of(self.program(), kind, which)


def _part_of(program: ir.Program, kind: str, which: Any) -> Any:
    if kind in ("program", "object"):
        return program if kind == "program" else program.obj
    functions = {function.address: function for function in program.functions}
    if kind == "function":
        return functions[which]
    block = functions[which[0]].block(which[1])
    return block if kind == "block" else next(instr for instr in block.instrs if instr.pc == which[1])
