"""Assembly of device code in compiled hooks: LLVM chooses registers and says where each text is placed; the project's
own assembler makes code of it.

In: LLVM's IR with texts in comments, the code that LLVM makes without them, and its listing of the same. Out: Code with
them. Invariant: listing and code have the same instructions in the same order, else nothing is made; the result has no
hazards, which LLVM does not look for where it sees nothing; branches and constants are where they were.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from luthier_py.base.errors import LuthierError, Unsupported
from luthier_py.base.records import dataclass, replace
from luthier_py.isa import Inst, InstructionSet, OperandKind
from luthier_py.isa.hazards.pending import (
    NOTHING,
    Missing,
    PendingHazards,
    Possible,
    find_missing_mitigations,
    possible,
)
from luthier_py.isa.text.parse import COMMENT
from luthier_py.rewrite.jit.object import Code, ConstantField
from luthier_py.rewrite.jit.python.inline_assembly import MARK
from luthier_py.rewrite.llvm_text.functions import assembly_in, without_assembly

_LABEL = re.compile(r"([\w.$]+):")


@dataclass(frozen=True, slots=True)
class Piece:
    """An instruction; ``jump``: its target label; ``field``: the constant that its literal is."""

    inst: Inst
    jump: str | None = None
    field: ConstantField | None = None


def has_text(ir: str) -> bool:
    """Whether LLVM's IR has assembly that device code wrote with ``asm``."""
    return any(text.startswith(MARK) for text in assembly_in(ir))


def without_text(ir: str) -> str:
    """The same for LLVM's emitter of objects, which has no assembler."""
    return without_assembly(ir, MARK)


def has_foreign_text(ir: str) -> bool:
    """Whether there is assembly that did not come from here."""
    return any(text and not text.startswith(MARK) for text in assembly_in(ir))


def with_text(code: Code, listing: str, name: str, isa: InstructionSet) -> Code:
    """``code`` of the function ``name``, with all texts of LLVM's ``listing``."""
    lines = _insert_missing_waits(isa, list(_lines(code, _body(listing, name), isa)))
    return _lay_out_code(code, lines, isa)


def _body(listing: str, name: str) -> list[str]:
    lines = listing.splitlines()
    begin = lines.index(f"{name}:") + 1
    end = next(at for at in range(begin, len(lines)) if lines[at].startswith(".Lfunc_end"))
    return [line.strip() for line in lines[begin:end]]


def _lines(code: Code, body: Sequence[str], isa: InstructionSet) -> list[str | Piece]:
    """Labels and instructions, in order."""
    found: list[str | Piece] = []
    fields, at = {field.offset: field for field in code.fields}, 0
    for line in body:
        if line.startswith(MARK):
            found += [Piece(inst) for inst in _assemble_line(line.removeprefix(MARK), isa)]
            continue
        text = COMMENT.sub("", line).strip()
        label = _LABEL.match(text)
        if label is not None:
            found.append(label[1])
        elif text and not text.startswith("."):
            inst = isa.decode(code.code, at)
            at += inst.size_bytes
            if text.split()[0] != isa.text(inst).split()[0]:
                raise Unsupported(f"LLVM lists `{text}` where its code has `{isa.text(inst)}`")
            jumps = any(operand.kind is OperandKind.TARGET for operand in inst.operands)
            found.append(Piece(inst, text.split()[-1] if jumps else None, fields.get(at - 4)))
    if at != len(code.code):
        raise Unsupported(f"LLVM's listing has {at} bytes of code, and its code {len(code.code)}")
    return found


def _assemble_line(text: str, isa: InstructionSet) -> list[Inst]:
    try:
        return [isa.parse(text)]
    except LuthierError as error:
        raise Unsupported(f"`{text}` with the registers that LLVM chose: {error.message}") from None


# -- hazards ---------------------------------------------------------------------------------------


def _insert_missing_waits(isa: InstructionSet, lines: list[str | Piece]) -> list[str | Piece]:
    """With what is missing before instructions."""
    rows = possible(isa, {line.inst.op for line in lines if isinstance(line, Piece)})
    labels = {line: at for at, line in enumerate(lines) if isinstance(line, str)}
    pending = {0: NOTHING}
    lacks: dict[int, Missing] = {}
    todo = [0]
    while todo:
        at = todo.pop()
        if at == len(lines):
            continue
        line, before = lines[at], pending[at]
        following = [at + 1]
        if isinstance(line, Piece):
            lacks[at] = find_missing_mitigations(isa, [before], line.inst)
            before = _behind(isa, rows, line.inst, before, lacks[at])
            following += [] if line.jump is None else [labels[line.jump]]
        for to in following:
            joined = pending[to].join(before) if to in pending else before
            if to not in pending or joined is not pending[to]:
                pending[to] = joined
                todo.append(to)
    return [each for at, line in enumerate(lines) for each in (*_waits(isa, line, lacks.get(at)), line)]


def _behind(isa: InstructionSet, rows: Possible, inst: Inst, pending: PendingHazards, lacks: Missing) -> PendingHazards:
    for wait in lacks.instructions(isa, inst):
        pending = pending.behind(isa, wait)
    return pending.behind(isa, inst).join(rows.own(isa, inst)).join(pending.extend_patterns(isa, inst))


def _waits(isa: InstructionSet, line: str | Piece, lacks: Missing | None) -> list[Piece]:
    return [Piece(wait) for wait in lacks.instructions(isa, line.inst)] if lacks and isinstance(line, Piece) else []


# -- bytes -----------------------------------------------------------------------------------------


def _lay_out_code(code: Code, lines: Sequence[str | Piece], isa: InstructionSet) -> Code:
    labels, at = {}, 0
    for line in lines:
        if isinstance(line, str):
            labels[line] = at
        else:
            at += line.inst.size_bytes
    made, fields = bytearray(), []
    for line in lines:
        if isinstance(line, Piece):
            end = len(made) + line.inst.size_bytes
            inst = line.inst
            if line.jump is not None:
                inst = isa.with_field(inst, "simm16", (labels[line.jump] - end) // 4)
            if line.field is not None:
                fields.append(replace(line.field, offset=end - 4))
            made += inst.raw
    return replace(code, code=bytes(made), fields=tuple(fields))
