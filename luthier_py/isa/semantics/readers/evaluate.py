"""The results of one instruction in known numbers.

In: an instruction, and what is known of registers before it. Out: what is known of the dwords that it writes.
Invariant: it holds in the lanes in which it runs; a register that it writes, and that is not in the answer, is not
known. Scalar registers are the same for all lanes, known or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import TypeAlias

from luthier_py.isa.encoding.instruction import Inst, Operand, OperandKind, OpFlag, OpInfo
from luthier_py.isa.model.registers import EXEC, SCC, RegFile
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import BOOL, Kind, Type, Value
from luthier_py.isa.semantics.meaning import Lanes, Scalar, SignaturePart
from luthier_py.isa.semantics.readers.binding import REGISTERS, results, sources, width
from luthier_py.isa.semantics.readers.numbers import (
    UNIFORM,
    Known,
    LowerHalf,
    Number,
    Numbers,
    PartKnown,
    constant,
    most,
)

Dword: TypeAlias = tuple[RegFile, int]
Read: TypeAlias = Callable[[RegFile, int], Known]

_OPS = Numbers()
_MODIFIED = OpFlag.DPP | OpFlag.SDWA | OpFlag.PACKED
_MODIFIERS = frozenset({"src0_modifiers", "src1_modifiers", "src2_modifiers", "clamp", "omod", "op_sel"})


def evaluate(inst: Inst, read: Read) -> dict[Dword, Known]:
    """``read`` gives what is known of a dword; of a scalar register that is not known, UNIFORM."""
    op, row = inst.op, find_meaning(inst.op)
    if not isinstance(row, (Lanes, Scalar)) or is_modified(inst, row):
        return {}
    given = [_read_source(inst, name, _type(slot, row), read)
             for name, slot in zip(sources(op, row), row.signature.sources, strict=True)]
    found: dict[Dword, Known] = {}
    for name, value in zip(results(op, row), _compute_outputs(row, tuple(given)), strict=True):
        found.update(_write_result(inst, name, value))
    return found


@lru_cache(maxsize=1 << 14)  # of most sources nothing is known
def _compute_outputs(row: Lanes | Scalar, given: tuple[PartKnown, ...]) -> tuple[Value, ...]:
    types = [_type(slot, row) for slot in row.signature.sources]
    outputs = row.compute(*map(_value, types, given))
    return outputs if isinstance(outputs, tuple) else (outputs,)


@cache
def copies(op: OpInfo) -> bool:
    """Whether its one result is its one source, bit for bit, and that is all."""
    row = find_meaning(op)
    if not isinstance(row, Scalar) or len(row.signature.sources) != 1:
        return False
    source = Value(_OPS, width(row), None)
    return row.compute(source) is source


def is_modified(inst: Inst, row: Lanes | Scalar) -> bool:
    """Whether operands are packed, upper halves, or changed on their way, or the result is."""
    return inst.op.partial or bool(inst.op.flags & _MODIFIED) or any(slot.count > 1 for slot in row.signature.sources) \
        or any(operand.value and (operand.name in _MODIFIERS or operand.reg is not None) for operand in inst.operands)


def _type(slot: SignaturePart, row: Lanes | Scalar) -> Type:
    return slot.type if slot.type.bits else width(row)


def _bits(type: Type) -> int:
    """Of the registers that a source takes."""
    return 64 if type.bits > 32 else 32


def _read_source(inst: Inst, name: str, type: Type, read: Read) -> PartKnown:
    if type is BOOL:  # of a mask each lane sees another bit
        return read(RegFile.SGPR, SCC) if name == "scc" else None
    if name in REGISTERS:
        return _dwords(RegFile.SGPR, REGISTERS[name], _bits(type), read)
    return _operand(inst[name], _bits(type), read)


def _value(type: Type, known: PartKnown) -> Value:
    if type is BOOL:
        return Value(_OPS, BOOL, known)
    return Value(_OPS, Type(Kind.UINT, _bits(type)), known).to(type.unsigned).as_(type)


def _operand(operand: Operand, bits: int, read: Read) -> PartKnown:
    if operand.reg is not None:
        return _dwords(operand.reg.file, operand.reg.index, bits, read)
    return constant(operand.value, bits) if operand.kind in (OperandKind.CONSTANT, OperandKind.IMMEDIATE) else UNIFORM


def _dwords(file: RegFile, index: int, bits: int, read: Read) -> PartKnown:
    low = read(file, index)
    if bits == 32:
        return low
    high = read(file, index + 1)
    if isinstance(low, Number) and isinstance(high, Number) and low.uniform and high.uniform:
        if low.constant is not None and high.constant is not None:
            return constant(high.constant << 32 | low.constant, 64)
        return UNIFORM
    return LowerHalf(low) if isinstance(low, Number) else None


def _write_result(inst: Inst, name: str, value: Value) -> Iterator[tuple[Dword, Known]]:
    known: PartKnown = value.ref  # type: ignore[assignment]
    if name == "scc":
        yield (RegFile.SGPR, SCC), None if isinstance(known, LowerHalf) else known
        return
    reg = None if name in REGISTERS else inst[name].reg
    file, index = (reg.file, reg.index) if reg is not None else (RegFile.SGPR, EXEC)
    if value.type is BOOL or value.type.bits < 32 or reg is None and name != "exec":
        return
    if isinstance(known, LowerHalf):
        yield (file, index), known.half
        return
    if value.type.bits == 32 or known is None:
        yield (file, index), known
        return
    if isinstance(known, Number):
        top = most(known)
        low = None if known.constant is None else known.constant & 0xFFFFFFFF
        high = UNIFORM if known.uniform else constant(0) if top is not None and top < 1 << 32 else None
        yield (file, index), Number(known.terms, low)
        yield (file, index + 1), high if known.constant is None or not known.uniform else constant(known.constant >> 32)
