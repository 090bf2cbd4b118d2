"""A tiny assembler: a mnemonic and operands in assembly order, to one instruction.

In: a mnemonic ("v_add_f32_e64"), one without its encoding suffix ("v_add_f32") or a base ("V_ADD_F32");
registers, ints, floats or the names of special sources; modifiers by name. Out: opcode, fields and literal of
the smallest encoding that can say it. Invariant: what is not legal is refused with a reason: wrong register
kinds, misaligned tuples, two literals, more scalar sources than the constant bus carries.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence

from luthier_py.base.errors import Invalid, Malformed
from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.constants import LITERAL, LITERAL64, float_format, inline_codes, literal_bits, width_of
from luthier_py.isa.encoding.decode import mnemonic_of
from luthier_py.isa.encoding.encode import encode, number_field, register_field
from luthier_py.isa.encoding.instruction import Inst, OperandInfo, OpFlag, OpInfo
from luthier_py.isa.encoding.legal import why_illegal
from luthier_py.isa.encoding.operands import VECTOR
from luthier_py.isa.encoding.table import Row
from luthier_py.isa.model.registers import VCC, Reg, RegFile
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.printer import SOURCES

OperandValue = Reg | int | float | str | None
ENCODING_SUFFIX = re.compile(r"_(e32|e64|sdwa|dpp|e64_dpp)$")
SOURCE_CODES = {name: code for code, name in SOURCES.items()}
CACHE_BITS = {"glc": 1, "sc0": 1, "slc": 2, "nt": 2, "dlc": 4, "scc": 16, "sc1": 16}
HIGH_FOR_HIGH = 8  # bit of source modifiers: op_sel_hi
# What a field is when it is not given: what assembly text without it means.
DEFAULTS = {"row_mask": 0xF, "bank_mask": 0xF, "dst_sel": 6, "src0_sel": 6, "src1_sel": 6, "dst_unused": 2}


@dataclass(frozen=True, slots=True)
class Syntax:
    """What a template asks for: operands in order (a name, or a word such as "off"), and words that must be given."""

    operands: tuple[str, ...]    # "$name" or a plain word
    words: frozenset[str]        # modifiers without a field: offen, idxen, lds, gds
    optional_last: bool          # s_endpgm's operand

    @staticmethod
    def of(template: str) -> Syntax:
        """Read from a row's ``template``, which is LLVM's assembly string of the instruction."""
        rest = re.sub(r"^\w+", "", template)
        operands: list[str] = []
        words: list[str] = []
        for piece in rest.split(","):
            for position, token in enumerate(re.findall(r"\$\w+|\w+", piece)):
                if position == 0:
                    operands.append(token)
                elif not token.startswith("$"):
                    words.append(token)
        return Syntax(tuple(operands), frozenset(words), rest.startswith("$"))


@dataclass(slots=True)
class Assembling:
    """What the caller wants; ``literal`` is filled in while fields are made."""

    target: Target
    operands: tuple[OperandValue, ...]
    modifiers: dict[str, int]
    literal: int | None = None


class Assembler:
    """Finds rows by name and fills in their fields."""

    def __init__(self, target: Target, wave_size: int, rows: Sequence[Row], op_of: Callable[[int], OpInfo],
                 decode: Callable[[bytes], Inst]) -> None:
        self.target = target
        self.op_of = op_of
        self.decode = decode
        self.vcc = Reg(RegFile.SGPR, VCC, wave_size // 32)
        self.by_name: dict[str, list[int]] = {}
        for number in sorted(range(len(rows)), key=lambda number: (rows[number].size_bytes, number)):
            row = rows[number]
            mnemonic = mnemonic_of(row.template)
            names = {mnemonic}
            if row.format not in ("SDWA", "DPP"):
                names |= {ENCODING_SUFFIX.sub("", mnemonic), row.base.lower()}
            for name in names:
                self.by_name.setdefault(name, []).append(number)

    def assemble(self, name: str, operands: tuple[OperandValue, ...],
                 modifiers: dict[str, int]) -> tuple[OpInfo, list[int], int | None]:
        """The opcode, a field for each of its operands, and the literal (None without one) of the smallest encoding.
        Invalid if the target has no such instruction, or no encoding of it takes these operands and modifiers."""
        candidates = self.by_name.get(name.lower())
        if not candidates:
            raise Invalid(f"{self.target.name} has no instruction {name}")
        best: tuple[int, OpInfo, list[int], int | None] | None = None
        reasons: list[str] = []
        for number in candidates:
            op = self.op_of(number)
            if best and op.size_bytes >= best[0]:
                break
            try:
                fields, literal = self._fields(op, operands, dict(modifiers))
            except (Invalid, Malformed) as error:
                reasons.append(error.message)
                continue
            size = op.size_bytes + (4 if literal is not None else 0)
            if best is None or size < best[0]:
                best = size, op, fields, literal
        if best is None:
            raise Invalid(f"{name}: {_clearest(reasons)}")
        return best[1:]

    def _fields(self, op: OpInfo, operands: tuple[OperandValue, ...],
                modifiers: dict[str, int]) -> tuple[list[int], int | None]:
        syntax = Syntax.of(op.template)
        missing = len(syntax.operands) - len(operands)
        if missing < 0 or missing > syntax.optional_last:
            raise Invalid(f"{op.mnemonic} takes {len(syntax.operands)} operands, not {len(operands)}")
        for word in syntax.words:
            if not modifiers.pop(word, False):
                raise Invalid(f"{op.mnemonic} of this form wants {word}=True")
        request = Assembling(self.target, operands, _cache_policy(op, modifiers))
        given = {}
        for token, value in zip(syntax.operands, operands):  # noqa: B905 (the last may be missing)
            if token.startswith("$") and token != "$vcc":
                given[token[1:].removesuffix("_modifiers")] = value
            elif value != (self.vcc if token == "$vcc" else token) and not (token == "off" and value is None):
                raise Invalid(f"{op.mnemonic}: an operand must be {token.lstrip('$')}, not {value}")
        fields = [_field(request, op, place, given) for place in range(len(op.operands))]
        unknown = request.modifiers.keys() - {info.name for info in op.operands}
        if unknown:
            raise Invalid(f"{op.mnemonic} has no {', '.join(sorted(unknown))}")
        literal = None if any(info.kind == "kimm" for info in op.operands) else request.literal
        reason = why_illegal(self.target, self.decode(encode(self.target, op, fields, literal)))
        if reason is not None:
            raise Invalid(f"{op.mnemonic} {reason}")
        return fields, literal


def _clearest(reasons: list[str]) -> str:
    """The reason of the candidate that came furthest: not a wrong number of operands, if there is another."""
    close = [reason for reason in reasons if " takes " not in reason and " wants " not in reason]
    return (close or reasons)[-1]


def _cache_policy(op: OpInfo, modifiers: dict[str, int]) -> dict[str, int]:
    """glc=True and its like become the cpol field; an atomic that returns has glc in its opcode."""
    bits = sum({CACHE_BITS[name] for name in CACHE_BITS if modifiers.pop(name, False)})
    names = {info.name for info in op.operands}
    if OpFlag.ATOMIC_RETURN in op.flags:
        if not bits & 1 and not names & {"vdst"}:
            raise Invalid(f"{op.mnemonic} that returns the old value wants glc=True")
        bits &= ~1
    elif OpFlag.ATOMIC in op.flags and bits & 1:
        raise Invalid(f"{op.mnemonic} with glc=True returns the old value: another form")
    if bits:
        modifiers["cpol"] = modifiers.get("cpol", 0) | bits
    return modifiers


def _field(request: Assembling, op: OpInfo, place: int, given: dict[str, OperandValue]) -> int:
    info = op.operands[place]
    if info.name in given and not info.name.endswith("_modifiers"):
        return _operand_field(request, op, place, given[info.name])
    if info.name in request.modifiers:
        return number_field(op, info, request.modifiers[info.name])
    if info.name in DEFAULTS:
        return DEFAULTS[info.name]
    if info.name.endswith("_modifiers"):
        return default_modifiers(op, info)
    if info.access.value:
        raise Invalid(f"{op.mnemonic}: {info.name} is not given")
    return 0


def default_modifiers(op: OpInfo, info: OperandInfo) -> int:
    """Source modifiers where nothing is said: packed operations take the high half for the high result."""
    covered = sum(((1 << width) - 1) << at for _, width, at in info.segments)
    return HIGH_FOR_HIGH & covered if OpFlag.PACKED in op.flags and op.format == "VOP3P" else 0


def _operand_field(request: Assembling, op: OpInfo, place: int, value: OperandValue) -> int:
    info = op.operands[place]
    if isinstance(value, Reg):
        if not info.access.value:
            raise Invalid(f"{op.mnemonic}: {info.name} is a number, not {value}")
        return register_field(request.target, op, info, value)
    if isinstance(value, str):
        if value in SOURCE_CODES and info.kind in ("src", "sdwa"):
            return SOURCE_CODES[value] | (VECTOR if info.kind == "sdwa" else 0)
        if value == "null" and request.target.null_encoding is not None and info.kind in ("src", "sgpr", "bool"):
            return request.target.null_encoding
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be {value!r}")
    if value is None:
        raise Invalid(f"{op.mnemonic}: {info.name} must be given")
    if not info.access.value:
        return number_field(op, info, value)
    if info.kind == "kimm":
        request.literal = _bits(op, info, value)
        return request.literal
    return _constant_field(request, op, place, _bits(op, info, value))


def _bits(op: OpInfo, info: OperandInfo, value: int | float) -> int:
    """Bits at the operand's width; an int is taken as it is, a float in the operand's format."""
    width = width_of(info.type)
    if isinstance(value, float):
        try:
            return int.from_bytes(struct.pack("<" + float_format(info.type), value), "little")
        except (OverflowError, struct.error):
            raise Invalid(f"{op.mnemonic}: {info.name} cannot hold {value}") from None
    if not -(1 << width - 1) <= value < 1 << width:
        raise Invalid(f"{op.mnemonic}: {info.name} has {width} bits, {value} does not fit")
    return value % (1 << width)


def _constant_field(request: Assembling, op: OpInfo, place: int, bits: int) -> int:
    info = op.operands[place]
    if info.kind not in ("src", "srcA", "srcAV", "src16", "src16lo", "sdwa") or info.type == "OPERAND_REGISTER":
        raise Invalid(f"{op.mnemonic}: {info.name} must be a register")
    code = inline_codes(info.type).get(bits)
    if code is not None:
        return code | (VECTOR if info.kind == "sdwa" else 0)
    signed = op.base.endswith("_I64")
    literal = bits >> 32 if info.type.endswith("FP64") else bits & 0xFFFFFFFF
    wide = literal_bits(literal, info.type, signed) != bits
    if wide and not (request.target.literals64 and op.size_bytes == 4):  # VOP3 takes 32 bits
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be 0x{bits:x}, a literal has 32 bits")
    literal = bits if wide else literal
    if place not in op.literals:
        raise Invalid(f"{op.mnemonic}: {info.name} takes no literal, and 0x{bits:x} is not an inline constant")
    if request.literal not in (None, literal):
        raise Invalid(f"{op.mnemonic}: two different literals, 0x{request.literal:x} and 0x{literal:x}")
    request.literal = literal
    return LITERAL64 if wide else LITERAL
