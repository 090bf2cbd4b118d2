"""``print`` and ``assert`` in device code: a record for each active lane, with a number for the text and the values.

In: what is said, values, the channel that the hook has for it. Out: LLVM IR that pushes. Invariant: a format that
Python refuses for a type is refused here, not when a kernel runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from luthier_py.rewrite.jit.bitcode.recursion import DEEPEST
from luthier_py.rewrite.jit.python import arithmetic
from luthier_py.rewrite.jit.python.builder import Builder
from luthier_py.rewrite.jit.python.lowering import Lowering
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.lane_masks import lane_id
from luthier_py.rewrite.tool.hooks.printing import BITS_OF_KIND, MESSAGES, MOST_VALUES, TOO_DEEP, SaidText, ValueKind
from luthier_py.rewrite.tool.hooks.types import BOOL, F32, F64, I64, U32, U64, Kind, NearPointer, Scalar

_TRIED = {
    ValueKind.UNSIGNED: 1, ValueKind.SIGNED: 1, ValueKind.SINGLE: 1.5, ValueKind.DOUBLE: 1.5, ValueKind.BOOL: True,
}  # fmt: skip


def push_line(lowering: Lowering, ir: Builder, channel: Value, message: SaidText, values: Sequence[Operand]) -> None:
    """Say it, in the lanes that are active here; ValueError where a value cannot be said so."""
    MESSAGES[message.number] = message
    given, kinds = [], list[ValueKind]()
    for value in values:
        bits, kind = _bits(ir, arithmetic.materialise(value))
        given.append(bits)
        kinds.append(kind)
    _try_format(message, kinds)
    word = sum(kind << BITS_OF_KIND * at for at, kind in enumerate(kinds))
    lane = lane_id.lower(lowering)
    rest: list[Operand] = [0] * (MOST_VALUES - len(given))
    push = import_module("luthier_py.intrinsics").push  # imported by name: intrinsics depend on this package
    push.lower(lowering, channel, message.number, word, lane, *given, *rest)


def push_deepest(lowering: Lowering, ir: Builder, channel: Value) -> None:
    """Say what called itself deeper than is declared, in lanes in which something did."""
    holds, fails = ir.new_block("holds"), ir.new_block("fails")
    ir.declarations.add(f"declare i64 @{DEEPEST}()")
    found = ir.emit(U64, f"call i64 @{DEEPEST}()", lane=True)
    ir.branch(ir.emit(BOOL, f"icmp eq i64 {found.text}, 0", lane=True), holds, fails)
    ir.start(fails)
    line = ir.emit(U64, f"lshr i64 {found.text}, 32", lane=True)
    levels = ir.emit(U64, f"and i64 {found.text}, {0xFFFFFFFF}", lane=True)
    push_line(lowering, ir, channel, TOO_DEEP, [line, levels])
    ir.jump(holds)
    ir.start(holds)


def _bits(ir: Builder, value: Value) -> tuple[Value, ValueKind]:
    """The value as a u64."""
    type = value.type
    if not isinstance(type, Scalar):
        near = isinstance(type, NearPointer)
        return arithmetic.explicit(ir, arithmetic.explicit(ir, value, U32) if near else value, U64), ValueKind.UNSIGNED
    if type.kind is Kind.FLOAT and type != F64:
        single = arithmetic.explicit(ir, value, F32)
        bits = ir.emit(U32, f"bitcast float {single.text} to i32", value.lane)
        return arithmetic.explicit(ir, bits, U64), ValueKind.SINGLE
    if type.kind is Kind.FLOAT:
        return ir.emit(U64, f"bitcast double {value.text} to i64", value.lane), ValueKind.DOUBLE
    if type.kind is Kind.SIGNED:
        wide = arithmetic.explicit(ir, value, I64)
        return Value(U64, wide.text, wide.lane), ValueKind.SIGNED
    kind = ValueKind.BOOL if type.kind is Kind.BOOL else ValueKind.UNSIGNED
    return arithmetic.explicit(ir, value, U64), kind


def _try_format(message: SaidText, kinds: Sequence[ValueKind]) -> None:
    try:
        message.template.format(*(_TRIED[kind] for kind in kinds))
    except ValueError as error:
        raise ValueError(f"this cannot be printed so: {error}") from None
