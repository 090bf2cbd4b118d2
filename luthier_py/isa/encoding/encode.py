"""Instructions to bytes: encoding rows, and changing one field of an instruction.

In: a row with field values and a literal, or an Inst and what to change. Out: bytes.
Invariant: encoding what was decoded gives the same bytes; changing a field leaves all other bits alone,
don't-care bits too, because it starts from the instruction's own bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from luthier_py.base.errors import Invalid
from luthier_py.isa.encoding.constants import LITERAL, LITERAL64
from luthier_py.isa.encoding.instruction import Inst, Operand, OperandInfo, OpInfo
from luthier_py.isa.encoding.operands import ACCUMULATOR, HIGH_HALF, LOW_HALVES, NAMED_BY_HALVES, VECTOR, is_excluded
from luthier_py.isa.model.registers import M0, NAMED, Reg, RegFile
from luthier_py.isa.model.target import Target


def encode(target: Target, op: OpInfo, fields: Sequence[int], literal: int | None = None) -> bytes:
    """The bytes of ``op`` with one value per operand; Invalid when a value or the literal does not fit."""
    if len(fields) != len(op.operands):
        raise Invalid(f"{op.mnemonic} has {len(op.operands)} fields, not {len(fields)}")
    word = op.value | op.fill
    for info, value in zip(op.operands, fields, strict=True):
        word |= place_field(op, info, value)
    _check_shared_bits(op, word, dict(enumerate(fields)))
    return word.to_bytes(op.size_bytes, "little") + _literal_bytes(target, op, fields, literal)


def number_field(op: OpInfo, info: OperandInfo, value: int | float) -> int:
    """The field that says ``value``: signed fields as two's complement. Invalid when it does not fit."""
    if not isinstance(value, int):
        raise Invalid(f"{op.mnemonic}: {info.name} must be an integer, not {value}")
    width = max(at + bits for _, bits, at in info.segments)
    low, high = 0, (1 << (-info.signed if info.signed < 0 else width)) - 1
    if info.signed > 0:
        low, high = -(1 << info.signed - 1), (1 << info.signed - 1) - 1
    if not low <= value <= high:
        raise Invalid(f"{op.mnemonic}: {info.name} must be between {low} and {high}, not {value}")
    return value % (1 << width)


def place_field(op: OpInfo, info: OperandInfo, value: int) -> int:
    """``value``, as the field has it, at its bits of the encoding."""
    placed = covered = 0
    for first, width, at in info.segments:
        mask = (1 << width) - 1
        placed |= (value >> at & mask) << first
        covered |= mask << at
    if value & ~covered or value < 0:
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be {value}, its field has the bits 0x{covered:x}")
    return placed


def read_field(info: OperandInfo, word: int) -> int:
    """The operand's field in the encoding ``word``, put together from its segments; signed fields are not extended."""
    return sum((word >> first & (1 << width) - 1) << at for first, width, at in info.segments)


def _check_shared_bits(op: OpInfo, word: int, values: dict[int, int]) -> None:
    """Data operands of loads and stores share one bit that says AGPR: they cannot differ."""
    for place, value in values.items():
        info = op.operands[place]
        if read_field(info, word) != value:
            raise Invalid(f"{op.mnemonic}: {info.name} must be of the same register file as the other data operands")


def _literal_bytes(target: Target, op: OpInfo, fields: Sequence[int], literal: int | None) -> bytes:
    codes = {fields[k] for k in op.literals} & ({LITERAL, LITERAL64} if target.literals64 else {LITERAL})
    if literal is None:
        if codes:
            raise Invalid(f"{op.mnemonic}: a source says that a literal follows, but none is given")
        return b""
    if not codes:
        raise Invalid(f"{op.mnemonic}: literal 0x{literal:x} is given, but no source takes it")
    size = 8 if LITERAL64 in codes else 4
    if not 0 <= literal < 1 << 8 * size:
        raise Invalid(f"{op.mnemonic}: literal 0x{literal:x} does not fit in {size} bytes")
    return literal.to_bytes(size, "little")


def replace_fields(target: Target, inst: Inst, changes: dict[int, int], literal: int | None = None) -> bytes:
    """``inst``'s bytes with some fields (by place) and, if given, the literal replaced."""
    op = inst.op
    word = int.from_bytes(inst.raw[:op.size_bytes], "little")
    for place in changes:
        for first, width, _ in op.operands[place].segments:
            word &= ~(((1 << width) - 1) << first)
    for place, value in changes.items():
        word |= place_field(op, op.operands[place], value)
    _check_shared_bits(op, word, changes)
    fields = list(inst.fields)
    for place, value in changes.items():
        fields[place] = value
    return word.to_bytes(op.size_bytes, "little") + \
        _literal_bytes(target, op, fields, inst.literal if literal is None else literal)


def rename(target: Target, inst: Inst, renamed: Callable[[Operand], int]) -> dict[int, int]:
    """Field values (by place) after every register operand's index was replaced by ``renamed(operand)``."""
    changes: dict[int, int] = {}
    for place, operand in enumerate(inst.operands):
        if operand.reg is None:
            continue
        index = renamed(operand)
        if index != operand.reg.index:
            info = inst.op.operands[place]
            reg = Reg(operand.reg.file, index, info.dwords)
            changes[place] = register_field(target, inst.op, info, reg, half=operand.value)
    return changes


def register_field(target: Target, op: OpInfo, info: OperandInfo, reg: Reg, half: int = 0) -> int:
    """The field value that names ``reg``; Invalid if this operand cannot name it."""
    kind = info.kind
    letter = "SVA"[reg.file]
    if letter not in info.files and kind not in ("bool", "sdwavcc"):
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be {reg}, it takes registers of kind {info.files or '-'}")
    if info.dwords and reg.dwords != info.dwords:
        raise Invalid(f"{op.mnemonic}: {info.name} takes {info.dwords} dwords, {reg} has {reg.dwords}")
    if reg.file is RegFile.SGPR:
        field = _scalar_field(target, op, info, reg)
        return field | (VECTOR if kind == "sdwa" else 0x80 if kind == "sdwavcc" else 0)
    return _vector_field(target, op, info, reg, half)


def _scalar_field(target: Target, op: OpInfo, info: OperandInfo, reg: Reg) -> int:
    alignment = 1 if reg.dwords == 1 else 2 if reg.dwords == 2 else 4
    if reg.index % alignment:
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be {reg}, it must start at a multiple of {alignment}")
    if is_excluded(info, reg.index) or not _is_scalar_operand(target, reg):
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be {reg}, no operand names it here")
    return target.m0_encoding if reg.index == M0 else reg.index


def _is_scalar_operand(target: Target, reg: Reg) -> bool:
    """Whether ``reg`` lies in one piece of the operand numbers: SGPRs, trap registers, or a special pair."""
    end = reg.index + reg.dwords
    if reg.index < target.sgpr_limit:
        return end <= target.sgpr_limit
    if target.first_ttmp <= reg.index < M0:
        return end <= M0
    return reg.dwords == 1 if reg.index == M0 else reg.dwords <= 2 and reg.index & ~1 in target.scalar_pairs


def _vector_field(target: Target, op: OpInfo, info: OperandInfo, reg: Reg, half: int) -> int:
    index = reg.index
    if info.aligned and target.aligned_vgprs and reg.dwords > 1 and index % 2:
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be {reg}, tuples start at even registers on {target.name}")
    low = info.kind in LOW_HALVES
    limit = NAMED_BY_HALVES if low else NAMED
    if index >= limit or index + reg.dwords > max(target.vgpr_limit, limit):
        raise Invalid(f"{op.mnemonic}: {info.name} cannot be {reg}, only {limit} registers can be named")
    if info.kind == "dstY":
        return index & ~1  # the lowest bit is the complement of the other destination's
    field = index | (half << 7 if low else half * HIGH_HALF)
    flagged = info.kind == "v16" and any(at <= 8 < at + width for _, width, at in info.segments)
    if flagged or info.kind in ("src", "srcA", "srcAV", "src16", "src16lo"):
        field |= VECTOR
    if reg.file is RegFile.AGPR and info.kind in ("srcAV", "av"):
        field |= ACCUMULATOR
    return field
