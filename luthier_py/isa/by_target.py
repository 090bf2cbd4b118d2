"""One target's instructions: decode, encode, print, assemble.

In: a Target and a wave size. Out: InstructionSet, the door to everything in this house.
Invariant: one InstructionSet per (target, wave size), tables loaded on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid
from luthier_py.isa.encoding.decode import Decoder, OperandMemo
from luthier_py.isa.encoding.encode import encode, number_field, rename, replace_fields
from luthier_py.isa.encoding.instruction import Counter, Inst, Operand, OpInfo
from luthier_py.isa.encoding.table import load_table
from luthier_py.isa.encoding.waitcnt import waits_written
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.assemble import Assembler, OperandValue
from luthier_py.isa.text.assembly import Parser
from luthier_py.isa.text.fields import FieldPrinter
from luthier_py.isa.text.listing import assemble_listing
from luthier_py.isa.text.printer import Printer

if TYPE_CHECKING:
    from luthier_py.isa.encoding.scan import Scan, Scanner


class InstructionSet:
    """Get one from :func:`instruction_set`."""

    def __init__(self, target: Target, wave_size: int) -> None:
        self.target = target
        self.wave_size = wave_size
        self._decoder = Decoder(target, wave_size, load_table(target.name, wave_size))
        self._printer = Printer(target, wave_size)

    @cached_property
    def ops(self) -> tuple[OpInfo, ...]:
        """Every row of the table."""
        return tuple(self._decoder.format(row).op for row in range(len(self._decoder.table.rows)))

    @property
    def row_count(self) -> int:
        """Number of rows of the table."""
        return len(self._decoder.table.rows)

    def decode(self, data: bytes | memoryview, offset: int = 0) -> Inst:
        """The instruction at ``offset``; Malformed if there is none."""
        return self._decoder.decode(data, offset)

    def decode_all(self, code: bytes) -> tuple[Inst, ...]:
        """Instructions that fill ``code``, one behind the other."""
        found, offset = [], 0
        while offset < len(code):
            found.append(self.decode(code, offset))
            offset += found[-1].size_bytes
        return tuple(found)

    def op(self, row: int) -> OpInfo:
        """A row of the table."""
        return self._decoder.format(row).op

    def slots(self, op: OpInfo) -> tuple[OperandMemo, ...]:
        """What a field value means, for each operand of ``op``."""
        return self._decoder.format(op.row).slots

    def operands_depend(self, op: OpInfo) -> bool:
        """Whether some operand of ``op`` is what it is by the fields of others, too."""
        return self._decoder.format(op.row).depends

    def scan(self, code: bytes | memoryview, starts: Sequence[int] = ()) -> Scan:
        """All instructions of ``code`` at once, as arrays; what is none has the row UNKNOWN and one dword. At each
        offset of ``starts`` an instruction starts, even if that cuts another off, which then is none."""
        return self._scanner.scan(code, starts)

    def text(self, inst: Inst, pc: int | None = None) -> str:
        """LLVM's text; with ``pc``, a branch shows its target address instead of its displacement."""
        text = self._printer.text(inst)
        destination = None if pc is None else inst.branch_target(pc)
        if destination is None:
            return text
        return f"{text.rsplit(' ', 1)[0]} 0x{destination:x}"

    def texts(self, op: OpInfo, values: Sequence[tuple[int | None, ...]], make: Callable[[int], Inst]) -> list[str]:
        """LLVM's texts of instructions of one row: the fast way for many. ``values`` are the fields of each, and its
        literal; ``make`` gives the one of a number, where it is needed."""
        form = self._decoder.format(op.row)
        if form.depends or form.branches or form.shared_literal is not None:
            return [self._printer.text(make(number)) for number in range(len(values))]
        return self._field_printer.texts(op, values, make)

    def encode(self, op: OpInfo, fields: Sequence[int], literal: int | None = None) -> bytes:
        """The bytes of ``op`` with one value per operand; encoding what was decoded gives the same bytes."""
        return encode(self.target, op, fields, literal)

    def make(self, name: str, *operands: OperandValue, **modifiers: int) -> Inst:
        """Assemble one instruction: a mnemonic or base name, operands in assembly order, modifiers by name.

        Operands are Reg, int (the operand's bits), float, "off", or the name of a special source ("src_scc");
        branches take a displacement in dwords from their end. Of several encodings the smallest legal one is
        taken. Modifiers are field names (offset=16, clamp=1), or words (offen=True, glc=True, lds=True).
        """
        op, fields, literal = self._assembler.assemble(name, operands, modifiers)
        return self.decode(encode(self.target, op, fields, literal))

    def waits(self, counts: Mapping[Counter, int]) -> list[Inst]:
        """The fewest instructions that wait until each counter is at most its count."""
        return [self.make(name, *operands) for name, operands in waits_written(self.target, counts)]

    def parse(self, text: str) -> Inst:
        """One instruction in LLVM's syntax; Invalid with the column of what is wrong."""
        return self._parser.parse(text)

    def assemble(self, listing: str) -> bytes:
        """A listing in LLVM's syntax: a line each, ``name:`` labels that branches may name, ``;`` comments."""
        return assemble_listing(self._parser, listing)

    def with_registers(self, inst: Inst, rename_to: Callable[[Operand], int]) -> Inst:
        """``inst`` with the index of every register operand replaced by ``rename_to(operand)``.

        Invalid if an operand cannot name its new register; implicit operands stay as they are.
        """
        changes = rename(self.target, inst, rename_to)
        if not changes:
            return inst
        made = self.decode(replace_fields(self.target, inst, changes))
        for old, new in zip(inst.operands, made.operands, strict=True):
            if old.reg is not None and (new.reg is None or new.reg.index != rename_to(old)):  # VOPD's destinations
                raise Invalid(f"{inst.op.mnemonic}: {old.name} cannot be register {rename_to(old)} beside the others")
        return made

    def with_field(self, inst: Inst, name: str, value: int) -> Inst:
        """``inst`` with one field replaced: a modifier, a branch displacement, or "literal"."""
        if name == "literal" and inst.literal is not None:
            return self.decode(replace_fields(self.target, inst, {}, value))
        for place, info in enumerate(inst.op.operands):
            if info.name == name or (name == "literal" and info.kind == "kimm"):
                return self.decode(replace_fields(self.target, inst, {place: number_field(inst.op, info, value)}))
        raise Invalid(f"{inst.op.mnemonic} has no field {name}")

    @cached_property
    def _scanner(self) -> Scanner:
        from luthier_py.isa.encoding.scan import (
            Scanner,  # needs NumPy, which takes as long to import as a table to load
        )
        return Scanner(self._decoder)

    @cached_property
    def _field_printer(self) -> FieldPrinter:
        return FieldPrinter(self._printer)

    @cached_property
    def _parser(self) -> Parser:
        rows = self._decoder.table.rows
        return Parser(self.target, self.wave_size, rows, lambda row: self._decoder.format(row).op, self.decode)

    @cached_property
    def _assembler(self) -> Assembler:
        rows = self._decoder.table.rows
        return Assembler(self.target, self.wave_size, rows, lambda row: self._decoder.format(row).op, self.decode)


@cache
def _instruction_set(target: Target, wave_size: int) -> InstructionSet:
    return InstructionSet(target, wave_size)


def instruction_set(target: Target, wave_size: int | None = None) -> InstructionSet:
    """The instructions of ``target``; without ``wave_size``, of waves as LLVM has them by default."""
    size = wave_size or target.wave_sizes[0]
    if size not in target.wave_sizes:
        raise Invalid(f"{target.name} has no waves of {size} lanes, only {target.wave_sizes}")
    return _instruction_set(target, size)
