"""One operand's text to the value of its field.

In: a row, the operand's name and its token. Out: the field, and the literal that it needs, if any. Invariant: an
inline constant is taken where there is one, unless lit() asks for a literal of 32 bits, or lit64() for one of 64; one
literal for all.
"""

from __future__ import annotations

import struct

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, replace
from luthier_py.isa.encoding.constants import (
    INVERSE_TWO_PI,
    LITERAL,
    LITERAL64,
    constant_bits,
    float_format,
    inline_codes,
    width_of,
)
from luthier_py.isa.encoding.encode import number_field, register_field
from luthier_py.isa.encoding.instruction import OperandInfo, OpInfo
from luthier_py.isa.encoding.operands import HIGH_HALF, LOW_HALVES, VECTOR, shows_sources
from luthier_py.isa.model.registers import VCC, RegFile
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.parse import BadText, Spelled, Token, spell

CONSTANTS = frozenset({"src", "srcA", "srcAV", "src16", "src16lo", "sdwa"})
HALVES = frozenset({"v16", "v16lo", "src16", "src16lo"})
SIZED_OTHERWISE = frozenset({"MIMG", "VIMAGE", "VSAMPLE"})  # other fields say how many registers there are


@dataclass(slots=True)
class Literal:
    """The one literal of an instruction."""

    value: int | None = None

    def only(self, value: int, token: Token) -> int:
        """Take ``value`` as the literal, and give it back; BadText if the instruction needs another one already."""
        if self.value not in (None, value):
            raise BadText(f"two different literals, 0x{self.value:x} and 0x{value:x}", token.column)
        self.value = value
        return value


def operand_field(target: Target, op: OpInfo, literal: Literal, name: str, token: Token) -> int:
    """The field of operand ``name`` that says what ``token`` says; BadText when it cannot."""
    info = next((info for info in op.operands if info.name == name), None)
    if info is None:
        raise BadText(f"{op.mnemonic} has no operand {name}", token.column)
    said = spell(target, token)
    try:
        if said.reg is not None:
            return _register(target, op, info, said)
        if said.source is not None:
            return _source(target, op, info, said.source, token)
        assert said.number is not None
        if info.kind == "kimm":
            return literal.only(_bits(info, said), token)
        if info.kind in CONSTANTS and info.access.value:
            return _constant(target, op, info, said, literal)
        return _number(op, info, said)
    except BadText:
        raise
    except Invalid as error:
        raise BadText(error.message, token.column) from None


def _register(target: Target, op: OpInfo, info: OperandInfo, said: Spelled) -> int:
    reg = said.reg
    assert reg is not None
    if not info.access.value and info.kind in ("imm", "branch"):
        raise BadText(f"{op.mnemonic}: {info.name} is a number, not {said.token.text}", said.token.column)
    if said.half and info.kind not in HALVES:
        raise BadText(f"{op.mnemonic}: {info.name} has no halves", said.token.column)
    if (op.format in SIZED_OTHERWISE and info.name[:5] in ("vdata", "vaddr", "vdst")) or op.base.endswith("_F8F6F4"):
        reg = replace(reg, dwords=info.dwords)
    if info.kind == "sdwavcc" and reg.file is RegFile.SGPR and reg.index == VCC:
        return 0
    return register_field(target, op, info, reg, half=int(said.high and half_in_field(info)))


def half_in_field(info: OperandInfo) -> bool:
    """Whether the field itself has a bit for the high half; else op_sel says it."""
    covered = sum(((1 << width) - 1) << at for _, width, at in info.segments)
    return info.kind in LOW_HALVES or bool(covered & HIGH_HALF)


def _source(target: Target, op: OpInfo, info: OperandInfo, code: int, token: Token) -> int:
    if info.kind in CONSTANTS or shows_sources(info):
        return code | (VECTOR if info.kind == "sdwa" else 0)
    if code == target.null_encoding and info.kind in ("sgpr", "bool", "sdwavcc"):
        return code | (0x80 if info.kind == "sdwavcc" else 0)
    raise BadText(f"{op.mnemonic}: {info.name} cannot be {token.text}", token.column)


def _number(op: OpInfo, info: OperandInfo, said: Spelled) -> int:
    value = said.number
    if info.kind == "branch" or info.printer == "printU16ImmOperand":
        if not isinstance(value, int) or not -0x8000 <= value <= 0xFFFF:
            raise BadText(f"{op.mnemonic}: {info.name} must be a number of 16 bits", said.token.column)
        return value & 0xFFFF
    if info.kind not in ("imm", "dpp", "dpp64", "select", "unused"):
        raise BadText(f"{op.mnemonic}: {info.name} must be a register", said.token.column)
    assert value is not None
    if isinstance(value, int) and value < 0 and not info.signed:
        value &= (1 << max(at + width for _, width, at in info.segments)) - 1
    return number_field(op, info, value)


def _bits(info: OperandInfo, said: Spelled) -> int:
    """A mandatory literal's bits."""
    value, width = said.number, 64 if info.type.endswith("64") else 32
    if isinstance(value, float):
        return _float_bits(info, value, said.token)
    assert value is not None
    if width == 64 and not said.literal and value < 1 << 32:
        value <<= 32  # without lit64() the high half
    return value & (1 << width) - 1


def _constant(target: Target, op: OpInfo, info: OperandInfo, said: Spelled, literal: Literal) -> int:
    flag = VECTOR if info.kind == "sdwa" else 0
    value = said.number
    assert value is not None
    width = width_of(info.type)
    bits = _float_bits(info, value, said.token) if isinstance(value, float) else value & (1 << width) - 1
    if not said.literal:
        wide = bits << 32 if info.type.endswith("FP64") and not isinstance(value, float) and not -16 <= value <= 64 \
            else bits
        code = inline_codes(info.type).get(wide & (1 << width) - 1)
        plain16 = info.type.endswith("INT16") and "V2" not in info.type  # only integers are inline there
        if code is not None and not (plain16 and code > 208):
            return code | flag
    place = op.operands.index(info)
    if place not in op.literals and all(other.kind != "kimm" for other in op.operands):
        raise BadText(f"{op.mnemonic}: {info.name} takes no literal, and {said.token.text} is no inline constant",
                      said.token.column)
    wide = target.literals64 and op.size_bytes == 4  # VOP3 takes 32 bits
    if isinstance(value, float):
        return _float_literal(info, bits, said, literal, wide, flag)
    extends = wide and info.type.endswith("INT64") and not said.literal  # of 32 bits the upper half is not said
    fits = (0 if extends else -(1 << 31)) <= value < 1 << (31 if extends else 32)
    if said.literal == 64 or not fits:
        if not wide or said.literal == 32:
            raise BadText(f"{said.token.text} has more than 32 bits", said.token.column)
        literal.only(value & (1 << 64) - 1, said.token)
        return LITERAL64
    literal.only(value & 0xFFFFFFFF, said.token)
    return LITERAL | flag


def _float_literal(info: OperandInfo, bits: int, said: Spelled, literal: Literal, wide: bool, flag: int) -> int:
    """A literal of 32 bits is the upper half of a float of 64 (LLVM, pull request 197788); lit64() of a narrower float
    is as long as that."""
    if info.type.endswith("INT64"):
        raise BadText(f"{info.name} is an integer of 64 bits, and no literal of it is {said.token.text}",
                      said.token.column)
    double = info.type.endswith("64")
    if double and said.literal == 64 and not wide:
        raise BadText(f"{said.token.text} has more than 32 bits", said.token.column)
    if double and wide and (said.literal == 64 or not said.literal and bits & 0xFFFFFFFF):
        literal.only(bits, said.token)
        return LITERAL64
    literal.only(bits >> 32 if double else bits, said.token)
    return LITERAL | flag


def _float_bits(info: OperandInfo, value: float, token: Token) -> int:
    try:
        if "BF16" in info.type:
            whole = int.from_bytes(struct.pack("<f", value), "little")
            inline = whole == constant_bits(INVERSE_TWO_PI, "FP32")  # which is cut, as hardware has it
            return whole >> 16 if inline else whole + 0x7FFF + (whole >> 16 & 1) >> 16
        return int.from_bytes(struct.pack("<" + float_format(info.type), value), "little")
    except (OverflowError, struct.error):
        raise BadText(f"{info.name} cannot hold {value}", token.column) from None
