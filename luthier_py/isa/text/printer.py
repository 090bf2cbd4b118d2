"""Instructions to assembly text, exactly as LLVM 22's disassembler writes it.

In: Inst. Out: text. How: the row's template has ``$operand`` places; each is filled by the handler of the
operand's PrintMethod (luthier_py.isa.text.modifiers has those that are not register or constant).
Invariant: no handler depends on an opcode; what is special to one is in the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from luthier_py.isa.encoding.constants import (
    FLOATS,
    INVERSE_TWO_PI,
    LITERAL,
    LITERAL64,
    constant_bits,
    inline_codes,
    width_of,
)
from luthier_py.isa.encoding.instruction import Inst, Operand, OperandInfo, OperandKind, OpInfo
from luthier_py.isa.model.registers import VCC, RegFile, sgpr
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.graphics import GRAPHICS, GRAPHICS_NAMED
from luthier_py.isa.text.messages import MESSAGE_HANDLERS
from luthier_py.isa.text.modifiers import MODIFIERS, NAMED, Handler, Line
from luthier_py.isa.text.register_names import register_text

TextPart = str | Callable[[Line], str]
SOURCES = {
    230: "src_flat_scratch_base_lo", 231: "src_flat_scratch_base_hi", 235: "src_shared_base",
    236: "src_shared_limit", 237: "src_private_base", 238: "src_private_limit", 239: "src_pops_exiting_wave_id",
    251: "src_vccz", 252: "src_execz", 253: "src_scc", 254: "src_lds_direct",
}
HALF_KINDS = frozenset({"v16", "v16lo", "src16", "src16lo"})


class Printer:
    """Prints one target's instructions; templates are compiled when first met."""

    def __init__(self, target: Target, wave_size: int) -> None:
        self.target = target
        self.vcc = register_text(target, sgpr(VCC, wave_size // 32))
        self.compiled: dict[int, tuple[TextPart, ...]] = {}

    def text(self, inst: Inst) -> str:
        """The text of an instruction, whose place is not known: a branch has the number in its field, no address."""
        line = Line(inst, self.target)
        return "".join([part if isinstance(part, str) else part(line) for part in self.parts(inst.op)])

    def parts(self, op: OpInfo) -> tuple[TextPart, ...]:
        """The template of ``op``: its constant text, and what fills the places between."""
        parts = self.compiled.get(op.row)
        if parts is None:
            parts = self.compiled[op.row] = self._compile(op)
        return parts

    def _compile(self, op: OpInfo) -> tuple[TextPart, ...]:
        places = {info.name: k for k, info in enumerate(op.operands)}
        named = {**NAMED, **GRAPHICS_NAMED}
        parts: list[TextPart] = []
        for text, name in re.findall(r"([^$]+)|\$(\w+)", op.template):
            if text:
                parts.append(text)
            elif name == "vcc":
                parts.append(self.vcc)
            elif name in places:
                parts.append(_handler(op.operands[places[name]], places[name], self.target))
            elif name in named:
                parts.append(named[name])
        return tuple(parts)


HANDLERS: dict[str, Handler] = {**MODIFIERS, **MESSAGE_HANDLERS, **GRAPHICS}


def _handler(info: OperandInfo, place: int, target: Target) -> Callable[[Line], str]:
    kind, _, arguments = info.printer.partition(":")
    handler = HANDLERS.get(kind)
    if handler is not None:
        return lambda line: handler(line, place, arguments)
    if kind in INPUT_MODIFIERS:
        modify = INPUT_MODIFIERS[kind]
        return lambda line: modify(line, place)
    return lambda line: operand_text(line, place)


def operand_text(line: Line, place: int) -> str:
    """A register, constant, special source, branch displacement or plain number."""
    operand, info, field = line.inst.operands[place], line.inst.op.operands[place], line.inst.fields[place]
    if operand.reg is not None:
        if info.kind in HALF_KINDS and operand.reg.file is RegFile.VGPR:
            return f"v{operand.reg.index}.{'h' if _high_half(line, operand) else 'l'}"
        return register_text(line.target, operand.reg)
    if operand.kind is OperandKind.CONSTANT:
        return _constant_text(line, info, operand, field)
    if operand.kind in (OperandKind.SPECIAL, OperandKind.ABSENT):
        return "null" if operand.value == line.target.null_encoding else SOURCES[operand.value]
    if operand.kind is OperandKind.TARGET:
        return str(field)
    return _integer_text(field, 32) if info.type == "OPERAND_IMMEDIATE" else str(operand.value)


def _high_half(line: Line, operand: Operand) -> bool:
    """The high half is said by the register field, or by op_sel bits that live in the source modifiers."""
    name, bit = ("src0", 8) if operand.name == "vdst" else (operand.name, 4)
    return bool(operand.value or line.value(f"{name}_modifiers") & bit)


def _constant_text(line: Line, info: OperandInfo, operand: Operand, field: int) -> str:
    if info.kind == "kimm" and info.type.endswith("64"):
        return _literal64_text(info.type, operand.value)
    if info.kind == "kimm":
        return MODIFIERS[info.printer](line, line.inst.op.operands.index(info), "")
    code = field & 0xFF
    if code == LITERAL64 and line.target.literals64:
        return _literal64_text(info.type, line.inst.literal or 0)
    if code == LITERAL and info.kind.startswith("src"):
        literal = line.inst.literal if line.inst.literal is not None else line.mandatory_literal()
        return _literal_text(info.type, literal)
    return _inline_text(info.type, code)


def _inline_text(type_name: str, code: int) -> str:
    if code in FLOATS or code == INVERSE_TWO_PI:
        return _float_text(type_name, code)
    return str(code - 128 if code <= 192 else 192 - code)


def _float_text(type_name: str, code: int) -> str:
    if type_name.endswith("INT16") and "V2" not in type_name:
        return hex(constant_bits(code, type_name))  # LLVM prints them as the integers that they are
    if code in FLOATS:
        return str(FLOATS[code])
    return "0.15915494309189532" if type_name.endswith("64") else "0.15915494"


def _literal_text(type_name: str, literal: int) -> str:
    """A literal that an inline constant could have said is marked with lit()."""
    if type_name.endswith("FP64"):
        code = inline_codes(type_name).get(literal << 32)
        return hex(literal) if code is None else _inline_text(type_name, code)
    if type_name.endswith("INT64"):
        return f"lit({hex(literal)})" if literal <= 64 else hex(literal)
    packed = "V2" in type_name and "32" not in type_name
    if type_name.endswith(("FP16", "BF16")) and not packed:
        half = literal & 0xFFFF
        if half in inline_codes(type_name):
            return f"lit({hex(literal)})"
        return hex(literal if type_name.endswith("BF16") else half)
    if literal in inline_codes(type_name if packed else "OPERAND_REG_IMM_FP32"):
        return f"lit({hex(literal)})"
    return hex(literal & 0xFFFF if type_name.endswith("INT16") and not packed else literal)


def _literal64_text(type_name: str, literal: int) -> str:
    """A literal of 64 bits; narrower operands take its low part."""
    if literal >> 32 == 0:
        return f"lit64({hex(literal)})"
    width = width_of(type_name)
    code = inline_codes(type_name).get(literal & (1 << width) - 1)
    if code is not None:
        return _inline_text(type_name, code)
    if type_name.endswith("FP64") and not literal & 0xFFFFFFFF:
        return hex(literal >> 32)
    return hex(literal & (1 << width) - 1)


def _is_small(value: int, bits: int) -> bool:
    return value <= 64 or value >= (1 << bits) - 16


def _integer_text(value: int, bits: int) -> str:
    """Small integers in decimal, floats that are inline constants by name, the rest in hexadecimal."""
    if _is_small(value, bits):
        return str(value if value <= 64 else value - (1 << bits))
    code = inline_codes("OPERAND_REG_IMM_FP32").get(value)
    return hex(value) if code is None else _float_text("OPERAND_REG_IMM_FP32", code)


def _float_modifiers(line: Line, place: int) -> str:
    """|x| and -x; the modified source is the next operand."""
    modifiers = line.inst.fields[place]
    text = operand_text(line, place + 1)
    if modifiers & 2:
        text = f"|{text}|"
    if modifiers & 1:
        constant = line.inst.operands[place + 1].kind is OperandKind.CONSTANT and text[0] not in "|l"
        text = f"neg({text})" if constant else f"-{text}"
    return text


def _integer_modifiers(line: Line, place: int) -> str:
    text = operand_text(line, place + 1)
    return f"sext({text})" if line.inst.fields[place] & 16 else text


INPUT_MODIFIERS: dict[str, Callable[[Line, int], str]] = {
    "printOperandAndFPInputMods": _float_modifiers,
    "printOperandAndIntInputMods": _integer_modifiers,
}
