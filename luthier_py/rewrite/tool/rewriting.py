"""One instruction with other operands: what an author wants to stand for it, encoded.

In: an instruction and its new text, or operands by name. Out: an Inst; ValueError texts say what is wrong, the Recorder
adds the tool's file and line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from luthier_py.base.errors import LuthierError
from luthier_py.isa import Inst, Operand, OperandKind, OpFlag, Reg, RegSet
from luthier_py.isa.encoding.instruction import Access
from luthier_py.isa.text.assemble import ENCODING_SUFFIX, Syntax

if TYPE_CHECKING:
    from luthier_py.isa import InstructionSet
    from luthier_py.program.ir import Instr

WHOLE_DWORD = 6  # of src0_sel, src1_sel, dst_sel (MI200 ISA, 6.2.3)


def rewrite_inst(isa: InstructionSet, inst: Inst, text: str | None, operands: Mapping[str, Reg | int | float]) -> Inst:
    """``operands``: by their names in AMD's manuals (vdst, src0, offset, ...); numbers stand for themselves."""
    if (text is None) == (not operands):
        raise ValueError("give the instruction's new text, or the operands that are to be others")
    try:
        if text is not None:
            return isa.parse(text)
        for name, value in operands.items():
            inst = _with_operand(isa, inst, name, value)
    except LuthierError as error:
        raise ValueError(error.message) from None
    return inst


def _with_operand(isa: InstructionSet, inst: Inst, name: str, value: Reg | int | float) -> Inst:
    places = [token.removeprefix("$").removesuffix("_modifiers") for token in Syntax.of(inst.op.template).operands]
    if name not in places:
        if not isinstance(value, int) or name not in {info.name for info in inst.op.operands}:
            known = ", ".join(dict.fromkeys([*places, *(info.name for info in inst.op.operands)]))
            raise ValueError(f"{inst.op.mnemonic} has no operand {name} that could be {value}; it has {known}")
        return isa.with_field(inst, name, value)
    mnemonic, _, rest = isa.text(inst).partition(" ")
    pieces = re.split(r",\s*", rest, maxsplit=len(places) - 1)
    last = re.fullmatch(r"(\S+)(.*)", pieces[-1])
    modifiers = last[2] if last is not None else ""
    pieces[-1] = last[1] if last is not None else pieces[-1]
    pieces[places.index(name)] = str(value)
    return isa.parse(f"{ENCODING_SUFFIX.sub('', mnemonic)} {', '.join(pieces)}{modifiers}")


def plain_sources(isa: InstructionSet, inst: Inst) -> tuple[Operand, ...]:
    """Registers and constants that it computes with, in the manuals' order; a destination that is a source, too
    (v_fmac), comes last. ValueError where modifiers make something else of them or of the result."""
    from luthier_py.isa import part_of  # meanings take long to import

    if made := _find_nondefault_modifiers(isa, inst):
        raise ValueError(f"`{isa.text(inst)}` does not compute with whole sources alone ({', '.join(made)}); "
                         "give the hook's arguments, and let it do the rest")
    sources = [operand for operand in inst.operands
               if Access.READ in operand.access and operand.kind in (OperandKind.REGISTER, OperandKind.CONSTANT)]
    if halves := [operand.name for operand in sources if (part := part_of(inst, operand)) is not None and part[0]]:
        raise ValueError(f"`{isa.text(inst)}` takes upper halves of registers ({', '.join(halves)}); give the hook's "
                         f"arguments, as source(instr, \"{halves[0]}\")")
    return tuple(sorted(sources, key=lambda operand: Access.WRITE in operand.access))


def _find_nondefault_modifiers(isa: InstructionSet, inst: Inst) -> list[str]:
    """Names of modifiers that are not as where nothing is said of them."""
    if OpFlag.VALU not in inst.op.flags:
        return []
    if OpFlag.DPP in inst.op.flags:
        return ["DPP"]
    given = [operand.reg if operand.reg is not None else 0 for operand in inst.operands
             if operand.kind in (OperandKind.REGISTER, OperandKind.CONSTANT)]
    try:
        plain: Inst | None = isa.make(ENCODING_SUFFIX.sub("", inst.op.mnemonic), *given)
    except LuthierError:  # no encoding without them
        plain = None
    return [operand.name for operand in inst.operands if operand.kind is OperandKind.IMMEDIATE
            and operand.value != _unsaid(plain, operand.name)]


def _unsaid(plain: Inst | None, name: str) -> int:
    operand = plain.find(name) if plain is not None else None
    return operand.value if operand is not None else WHOLE_DWORD if name.endswith("_sel") else 0


def destinations(instr: Instr) -> tuple[Reg, ...]:
    """Registers that it names as results. ValueError where it keeps bits of them: a hook would write all."""
    found = tuple(operand.reg for operand in instr.inst.operands
                  if operand.reg is not None and Access.WRITE in operand.access)
    if kept := instr.inst.partial_writes & RegSet.of(*found):
        raise ValueError(f"`{instr.code.distinct.isa.text(instr.inst)}` writes a part of {kept} alone; say into= which "
                         "register the hook's result goes to, all of it")
    return found
