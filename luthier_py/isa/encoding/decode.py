"""Bytes to instructions.

In: bytes of code and an offset. Out: Inst. How: the top nine bits of the first dword choose a few
(mask, value -> row) dictionaries, in the order of LLVM's decoder tables; the first hit is the row.
Invariant: strict. Whatever is not an instruction of the target raises Malformed, and what decodes
encodes back to the same bytes, because the Inst stores them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from operator import or_

from luthier_py.base.errors import Malformed
from luthier_py.base.records import replace
from luthier_py.isa.encoding.constants import LITERAL, LITERAL64, literal_bits
from luthier_py.isa.encoding.errata import READ_BY_NOTHING, READS_ANY, TAKES_LITERALS, WRITES_ANY
from luthier_py.isa.encoding.images import size_image
from luthier_py.isa.encoding.instruction import (
    FAIL_ENABLES,
    Access,
    Counter,
    Inst,
    Operand,
    OperandInfo,
    OperandKind,
    OpFlag,
    OpInfo,
    Space,
)
from luthier_py.isa.encoding.matrices import has_formats, size_sources
from luthier_py.isa.encoding.operands import OperandReader
from luthier_py.isa.encoding.table import ImageInfo, Row, ShapeOperand, Table
from luthier_py.isa.model.registers import EXEC, FLAT_SCRATCH, M0, MODE, NO_REGS, SCC, VCC, RegSet, sgpr
from luthier_py.isa.model.target import Target

PREFIX_SHIFT = 23
KEPT = 1 << 16  # instructions that a decoder remembers
LITERAL_KINDS = frozenset({"src", "srcA", "srcAV", "src16", "src16lo"})
ALL_SGPRS = RegSet.by_file(sgpr=(1 << 106) - 1)
ALL_VGPRS = RegSet.by_file(vgpr=(1 << 256) - 1)


class OperandMemo(dict[int, Operand]):
    """Field value -> Operand, for one operand of one row; filled as values are met."""

    __slots__ = ("info", "reader", "takes_literal")

    def __init__(self, reader: OperandReader, info: OperandInfo, takes_literal: bool) -> None:
        super().__init__()
        self.reader = reader
        self.info = info
        self.takes_literal = takes_literal

    def __missing__(self, value: int) -> Operand:
        operand = self.reader.read(self.info, value)
        if value < 0x10000:
            self[value] = operand
        return operand


class Format:
    """How to decode one row's instructions; made when the row is first met."""

    __slots__ = ("branches", "depends", "formats", "image", "literals", "op", "plain", "shared_literal", "signed",
                 "size", "slots", "split", "vdst_y", "wide_literal")

    def __init__(self, op: OpInfo, reader: OperandReader, image: ImageInfo | None) -> None:
        self.op = op
        self.size = op.size_bytes
        self.plain = tuple((info.segments[0][0], (1 << info.segments[0][1]) - 1) for info in op.operands)
        self.split = tuple((k, tuple((first, (1 << width) - 1, at) for first, width, at in info.segments))
                           for k, info in enumerate(op.operands) if len(info.segments) > 1 or info.segments[0][2])
        self.literals = op.literals
        self.signed = op.base.endswith("_I64")
        kinds = [info.kind for info in op.operands]
        self.shared_literal = kinds.index("kimm") if "kimm" in kinds else None
        self.slots = tuple(OperandMemo(reader, info, k in op.literals or self.shared_literal is not None
                                and info.kind in LITERAL_KINDS) for k, info in enumerate(op.operands))
        self.wide_literal = any(info.kind == "kimm" and info.type.endswith("64") for info in op.operands)
        self.image = image
        self.formats = has_formats(op)
        self.vdst_y = kinds.index("dstY") if "dstY" in kinds else None
        self.branches = "branch" in kinds
        self.depends = self.formats or image is not None or self.vdst_y is not None  # operands on each other


class Decoder:
    """Decodes one target's instructions with one wave size."""

    def __init__(self, target: Target, wave_size: int, table: Table) -> None:
        self.target = target
        self.table = table
        self.reader = OperandReader(target, wave_size)
        self.registers = _implicit_registers(target, wave_size)
        self.formats: dict[int, Format] = {}
        self.by_prefix = match_order(table)
        self.telling = [reduce(or_, (mask for mask, _ in groups), 0x1FF << PREFIX_SHIFT) for groups in self.by_prefix]
        self.met: dict[int, Format] = {}  # by the bits that distinguish rows of the prefix, and those of the prefix
        self.short: dict[int, Inst] = {}  # by their first dword
        self.long: dict[int, Inst] = {}   # by their first two
        self.longer: dict[tuple[int, int], list[tuple[int, set[int]]]] = {}
        self.literals64 = target.literals64
        self.longest = max((row.mask.bit_length() + 7) // 8 for row in table.rows)  # bytes that distinguish rows

    def decode(self, data: bytes | memoryview, offset: int = 0) -> Inst:
        """The instruction at ``offset``; what has been met before is not decoded again."""
        start = data[offset:offset + 8]
        word = int.from_bytes(start, "little")
        found = self.short.get(word & 0xFFFFFFFF) or self.long.get(word)
        if found is not None and len(found.raw) <= len(start):
            return Inst(found.op, found.fields, found.literal, found.raw, found.operands)
        inst = self._decode(data, offset)
        size = len(inst.raw)
        if size == 4 and self._is_said_by(word, 32):
            self.short[word & 0xFFFFFFFF] = inst
        elif size <= 8 and (self.longest <= 8 or self._is_said_by(word, 64)):
            self.long[word] = inst
        if len(self.long) + len(self.short) > KEPT:
            self.long.clear()
            self.short.clear()
        return inst

    def _is_said_by(self, word: int, bits: int) -> bool:
        """Whether no row that agrees with the first ``bits`` of ``word`` looks at later ones."""
        prefix = word >> PREFIX_SHIFT & 0x1FF
        longer = self.longer.get((prefix, bits))
        if longer is None:
            longer = self.longer[prefix, bits] = self._longer_rows(prefix, bits)
        for mask, values in longer:
            if word & mask in values:
                return False
        return True

    def _longer_rows(self, prefix: int, bits: int) -> list[tuple[int, set[int]]]:
        """Of rows that look beyond so many bits: what these must be, as (mask, values)."""
        low = (1 << bits) - 1
        found: dict[int, set[int]] = {}
        for mask, rows in self.by_prefix[prefix]:
            if mask >> bits:
                found.setdefault(mask & low, set()).update(value & low for value in rows)
        return list(found.items())

    def _decode(self, data: bytes | memoryview, offset: int) -> Inst:
        form, fields, literal, raw = self.take_apart(data, offset)
        return Inst(form.op, fields, literal, raw, self.operands(form, fields, literal))

    def take_apart(
        self, data: bytes | memoryview, offset: int
    ) -> tuple[Format, tuple[int, ...], int | None, bytes]:
        """Format, fields, literal and bytes of the instruction at ``offset``; its operands may be Malformed yet."""
        word = int.from_bytes(data[offset:offset + self.longest], "little")
        key = word & self.telling[word >> PREFIX_SHIFT & 0x1FF]
        form = self.met.get(key) or self._meet(word, key)
        size, literal = form.size, None
        if size > self.longest:
            word = int.from_bytes(data[offset:offset + size], "little")
        fields = [word >> first & mask for first, mask in form.plain]
        for k, segments in form.split:
            field = 0
            for first, mask, at in segments:
                field |= (word >> first & mask) << at
            fields[k] = field
        for k in form.literals:
            if fields[k] == LITERAL or fields[k] == LITERAL64 and self.literals64:
                if literal is not None and size != form.size + (4 if fields[k] == LITERAL else 8):
                    raise Malformed(f"{form.op.mnemonic}: literals of two sizes")
                size = form.size + (4 if fields[k] == LITERAL else 8)
                literal = int.from_bytes(data[offset + form.size:offset + size], "little")
        raw = bytes(data[offset:offset + size])
        if len(raw) < size:
            raise Malformed(f"{form.op.mnemonic} is cut off: {len(raw)} of {size} bytes are there")
        return form, tuple(fields), literal, raw

    def _meet(self, word: int, key: int) -> Format:
        """The format of the first row that ``word`` agrees with, cached by the bits that distinguish rows."""
        for mask, rows in self.by_prefix[word >> PREFIX_SHIFT & 0x1FF]:
            row = rows.get(word & mask)
            if row is not None:
                break
        else:
            raise Malformed(f"0x{word & 0xFFFFFFFF:08x} is not an instruction of {self.target.name}")
        if len(self.met) > KEPT:
            self.met.clear()
        form = self.met[key] = self.format(row)
        return form

    def operands(self, form: Format, fields: Sequence[int], literal: int | None) -> tuple[Operand, ...]:
        """Structured operands; Malformed for reserved values."""
        if form.shared_literal is not None:
            literal = fields[form.shared_literal]
        try:
            if literal is None:
                found = [slot[value] for slot, value in zip(form.slots, fields)]  # noqa: B905 (hot)
            else:
                found = [self._with_literal(form, slot, value, literal)
                         for slot, value in zip(form.slots, fields, strict=True)]
            if form.depends:
                self._resolve_dependent_operands(form, found)
        except Malformed as error:
            raise Malformed(f"{form.op.mnemonic}: {error.message}") from None
        return tuple(found)

    def _resolve_dependent_operands(self, form: Format, found: list[Operand]) -> None:
        """Operands of which others say how many registers they are, or which."""
        if form.image is not None:
            size_image(found, form.image, self.target)
        if form.formats:
            size_sources(found)
        if form.vdst_y is not None:
            found[form.vdst_y] = _second_destination(found, form.vdst_y)

    def _with_literal(self, form: Format, slot: OperandMemo, value: int, literal: int) -> Operand:
        if not slot.takes_literal or value != LITERAL and (value != LITERAL64 or not self.target.literals64):
            return slot[value]
        info = slot.info
        if form.shared_literal is not None and (value == LITERAL64) != form.wide_literal:
            raise Malformed(f"{info.name}: a second literal")
        bits = literal if value == LITERAL64 else literal_bits(literal, info.type, form.signed)
        return Operand(info.name, OperandKind.CONSTANT, info.access, None, bits, info.type)

    def format(self, row_number: int) -> Format:
        """The row's format, made on first use."""
        if row_number not in self.formats:
            number = self.table.rows[row_number].image
            image = self.table.records.images[number] if number >= 0 else None
            self.formats[row_number] = Format(self._op(row_number), self.reader, image)
        return self.formats[row_number]

    def _op(self, row_number: int) -> OpInfo:
        row: Row = self.table.rows[row_number]
        records = self.table.records
        operands = tuple(self._operand_info(operand) for operand in records.shape(row.shape))
        reads, writes = (self._implicit(records.registers[number]) for number in (row.reads, row.writes))
        anything = ALL_SGPRS if row.base.startswith("S_") else ALL_VGPRS
        if row.base in READS_ANY | WRITES_ANY:
            reads |= anything
        if row.base in WRITES_ANY:
            writes |= anything
        return OpInfo(
            record=row.record, mnemonic=mnemonic_of(row.template), base=row.base, format=row.format,
            size_bytes=row.size_bytes, operands=operands, implicit_reads=reads, implicit_writes=writes,
            flags=OpFlag(row.flags), counters=Counter(row.counters), spaces=Space(row.spaces), row=row_number,
            template=row.template, mask=row.mask, value=row.value, fill=row.fill, partial=bool(row.partial),
            may_mask_lanes=bool(OpFlag(row.flags) & (OpFlag.SDWA | OpFlag.DPP)) or any(
                info.name in FAIL_ENABLES for info in operands),
            literals=self._literal_operands(row, operands),
        )

    def _operand_info(self, operand: ShapeOperand) -> OperandInfo:
        kind, dwords, type_name, printer, signed, files, aligned = self.table.records.classes[operand.class_number]
        if kind in ("bool", "sdwavcc"):
            dwords = self.reader.lane_mask_dwords
        places = tuple((first, width, at) for first, width, at in operand.segments)
        return OperandInfo(operand.name, Access(operand.access), dwords, kind, type_name, printer, signed, files,
                           bool(aligned), places)

    def _implicit(self, names: list[str]) -> RegSet:
        found = NO_REGS
        for name in names:
            found |= self.registers.get(name, NO_REGS)
        return found

    def _literal_operands(self, row: Row, operands: tuple[OperandInfo, ...]) -> tuple[int, ...]:
        """Sources that may say 255: a literal follows. SDWA and DPP never, 8-byte encodings from gfx10 on."""
        flags = OpFlag(row.flags)
        mandatory = any(info.kind == "kimm" for info in operands)
        long = row.size_bytes > 4 and not self.target.vop3_literals
        if mandatory or long or flags & (OpFlag.SDWA | OpFlag.DPP):
            return ()
        any_source = row.base in TAKES_LITERALS
        return tuple(k for k, info in enumerate(operands)
                     if info.kind in LITERAL_KINDS and (any_source or info.type.startswith("OPERAND_REG_IMM")))


def mnemonic_of(template: str) -> str:
    """The mnemonic that a template of LLVM begins with, its encoding suffix included."""
    end = next((k for k, letter in enumerate(template) if letter in " $"), len(template))
    return template[:end]


def _second_destination(found: list[Operand], place: int) -> Operand:
    """Bit 0 of the second VOPD destination is the complement of the first's (RDNA3 ISA, VOPD)."""
    first = next(operand.reg for operand in found if operand.name == "vdstX")
    second = found[place].reg
    if first is None or second is None:
        raise Malformed("VOPD destinations must be vector registers")
    return replace(found[place], reg=replace(second, index=second.index | ~first.index & 1))


def _implicit_registers(target: Target, wave_size: int) -> dict[str, RegSet]:
    """LLVM's names of implicit operands; a lane mask has one dword in wave32."""
    dwords = wave_size // 32
    names = {
        "VCC": RegSet.of(sgpr(VCC, dwords)), "VCC_LO": RegSet.of(sgpr(VCC)), "VCC_HI": RegSet.of(sgpr(VCC + 1)),
        "EXEC": RegSet.of(sgpr(EXEC, dwords)), "EXEC_LO": RegSet.of(sgpr(EXEC)), "SCC": RegSet.of(sgpr(SCC)),
        "EXEC_HI": RegSet.of(sgpr(EXEC + 1)), "M0": RegSet.of(sgpr(M0)), "MODE": RegSet.of(sgpr(MODE)),
    }
    if target.flat_scratch_operands and not target.architected_flat_scratch:
        names["FLAT_SCR"] = RegSet.of(sgpr(FLAT_SCRATCH, 2))
    return names


def match_order(table: Table) -> list[list[tuple[int, dict[int, int]]]]:
    """For each value of the top nine bits: (mask, fixed bits -> row) in the order in which to try them."""
    groups: defaultdict[tuple[int, int], dict[int, int]] = defaultdict(dict)  # by rank and mask
    for number, row in enumerate(table.rows):
        mask = row.mask & ~READ_BY_NOTHING.get(row.base, 0)
        groups[table.ranks[row.namespace], mask][row.value & mask] = number
    order: list[list[tuple[int, dict[int, int]]]] = [[] for _ in range(512)]
    for key in sorted(groups, key=lambda key: (key[0], -key[1].bit_count(), key[1])):
        mask, rows = key[1], groups[key]
        prefixes = {value >> PREFIX_SHIFT & 0x1FF for value in rows}
        for prefix in {
            match for value in prefixes for match in _enumerate_matching(mask >> PREFIX_SHIFT & 0x1FF, value)
        }:
            order[prefix].append((mask, rows))
    return order


def _enumerate_matching(mask: int, value: int) -> list[int]:
    """All nine-bit numbers that agree with ``value`` where ``mask`` is set."""
    free = ~mask & 0x1FF
    found, part = [value], free
    while part:
        found.append(value | part)
        part = part - 1 & free
    return found
