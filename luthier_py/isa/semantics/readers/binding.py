"""Which operand or register each word of a signature means.

In: a row of the tables and the meaning of its operation. Out: names, in the order of the signature. Registers are
"vcc", "exec", "scc", "m0"; whatever else it says is the name of an operand.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from luthier_py.isa.encoding.instruction import OpInfo
from luthier_py.isa.model.registers import EXEC, M0, SCC, VCC
from luthier_py.isa.semantics.algebra import Type
from luthier_py.isa.semantics.meaning import Lanes, Scalar

REGISTERS = {"vcc": VCC, "exec": EXEC, "scc": SCC, "m0": M0}
DESTINATIONS = ("vdst", "sdst")
_VALUES = ("src0", "src1", "src2", "imm", "simm16")


def select_operand_names(op: OpInfo, wanted: tuple[str, ...]) -> Iterator[str]:
    """The operands among those requested, in the order of the instruction."""
    return (operand.name for operand in op.operands if operand.name in wanted)


@cache
def sources(op: OpInfo, row: Lanes | Scalar) -> tuple[str, ...]:
    """The operand or register of each source of the signature."""
    values = list(select_operand_names(op, _VALUES))
    plain = sum(not slot.special for slot in row.signature.sources)
    if isinstance(row, Scalar) and len(values) < plain:  # S_CMPK reads its sdst field
        values.insert(0, "sdst")
    operands = iter(values)
    found = []
    for slot in row.signature.sources:
        name = None if slot.special else next(operands, None)
        if slot.special and slot.name != "old":
            name = slot.name
        elif name is None:
            name = "vcc" if slot.name == "b" else next(select_operand_names(op, DESTINATIONS))
        found.append(name)
    return tuple(found)


@cache
def results(op: OpInfo, row: Lanes | Scalar) -> tuple[str, ...]:
    """The operand or register of each result of the signature."""
    targets = iter([*select_operand_names(op, DESTINATIONS), *(["src0"] if len(row.signature.results) > 1 else [])])
    found = []
    for slot in row.signature.results:
        if slot.name in ("exec", "scc"):
            found.append(slot.name)
            continue
        name = next(targets, "vcc")
        found.append("vcc" if slot.name == "b" and name not in DESTINATIONS else name)
    return tuple(found)


@cache
def width(row: Lanes | Scalar) -> Type:
    """The type of words that take that of the other operands: ``exec`` and ``old``."""
    return next(slot.type for slot in (*row.signature.results, *row.signature.sources) if slot.type.bits > 1)
