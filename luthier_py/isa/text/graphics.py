"""Text of what only graphics code has: image dimensions and addresses, exports, interpolation.

In: a line and the place of an operand. Out: LLVM's text, as in luthier_py.isa.text.modifiers.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.encoding.images import DIMENSIONS
from luthier_py.isa.encoding.instruction import OperandKind
from luthier_py.isa.model.names import EXPORT_TARGETS, names_of
from luthier_py.isa.text.modifiers import Handler, Line
from luthier_py.isa.text.register_names import register_text


def _dimension(line: Line, place: int, _: str) -> str:
    return f" dim:SQ_RSRC_IMG_{DIMENSIONS[line.inst.fields[place]].name}"


def addresses(line: Line) -> str:
    """Image addresses that need not follow each other: in brackets if there are several."""
    shown = [register_text(line.target, operand.reg) for operand in line.inst.operands
             if operand.name.startswith("vaddr") and operand.reg is not None]
    return f"[{', '.join(shown)}]" if len(shown) > 1 else shown[0]


def _export_target(line: Line, place: int, _: str) -> str:
    number = line.inst.fields[place] & 63
    return f" {names_of(EXPORT_TARGETS, line.target).get(number, f'invalid_target_{number}')}"


def _export_source(number: int) -> Handler:
    def text(line: Line, place: int, _: str) -> str:
        if not line.value("en") >> number & 1:
            return "off"
        shown = line.inst.operands[place - number + number // 2 if line.value("compr") else place]
        assert shown.kind is OperandKind.REGISTER and shown.reg is not None
        return register_text(line.target, shown.reg)
    return text


def _attribute(line: Line, place: int, _: str) -> str:
    return f"attr{line.inst.fields[place]}"


def _attribute_channel(line: Line, place: int, _: str) -> str:
    return f".{'xyzw'[line.inst.fields[place] & 3]}"


def _interpolation_slot(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    return ("p10", "p20", "p0")[value] if value < 3 else f"invalid_param_{value}"


GRAPHICS: dict[str, Handler] = {
    "printDim": _dimension, "printExpTgt": _export_target, "printInterpAttr": _attribute,
    "printInterpAttrChan": _attribute_channel, "printInterpSlot": _interpolation_slot,
    **{f"printExpSrc{number}": _export_source(number) for number in range(4)},
}
GRAPHICS_NAMED: dict[str, Callable[[Line], str]] = {"vaddr": addresses}
