"""Which vector instructions do the same to other registers.

In: an instruction. Out: what it does but for its registers, and these. Invariant: what code an instruction becomes is
said by its form, the mode it runs under, and by which of its registers, constants and scalars are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from luthier_py.base.records import dataclass
from luthier_py.emulator.records.layout import AGPR_ROW
from luthier_py.isa.encoding.instruction import Inst, OperandKind, OpInfo
from luthier_py.isa.model.registers import RegFile


@dataclass(frozen=True, slots=True)
class ItemForm:
    """``rows``: in the order in which the instruction names them, each once. ``scalars`` gives the texts of all scalars
    and constants that it reads, from those of the masks that instructions before it have computed."""

    form: Hashable
    rows: tuple[int, ...]
    scalars: Callable[[Mapping[int, str]], list[str]]


MOST_FORMS = 1 << 14
_forms: dict[tuple[OpInfo, bytes], tuple[Hashable, tuple[int, ...]]] = {}


def form_of(inst: Inst) -> tuple[Hashable, tuple[int, ...]]:
    """What it does but for its registers and constants, and the rows that it names; its operands are as decoded."""
    found = _forms.get((inst.op, inst.raw))
    if found is None:
        if len(_forms) >= MOST_FORMS:
            _forms.clear()
        found = _forms[inst.op, inst.raw] = _new_form(inst)
    return found


def _new_form(inst: Inst) -> tuple[Hashable, tuple[int, ...]]:
    rows: dict[int, int] = {}
    parts: list[Hashable] = [inst.op]
    for operand in inst.operands:
        reg = operand.reg
        if operand.kind is OperandKind.CONSTANT:
            parts.append((operand.name, operand.kind))
        elif reg is None or reg.file is RegFile.SGPR:
            parts.append((operand.name, operand.kind, operand.value if reg is None else reg.dwords))
        else:
            first = reg.index + (AGPR_ROW if reg.file is RegFile.AGPR else 0)
            places = tuple(rows.setdefault(row, len(rows)) for row in range(first, first + reg.dwords))
            parts.append((operand.name, operand.kind, operand.value, places))
    return tuple(parts), tuple(rows)
