"""Numbers in device code: literals, conversions, operators. Python's meaning, modulo the width of the type.

* Types mix only where nothing is lost: u32 with u64 or i64, i32 with i64, f16 with f32; else convert by calling
  the type. Literals take the type of what they meet; two literals are computed by Python.
* Integers wrap. ``//`` and ``%`` round towards minus infinity, as Python's do; ``x // 0`` is the same as ``x // 1``.
* The amount of a shift counts modulo the width, as on the GPU; literal amounts must be below the width.
* ``/`` is for floats. A float becomes an integer by cutting towards zero, at most at the ends of the type's range.

Errors are ValueError texts; the caller adds file and line.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from luthier_py.rewrite.jit.python.builder import Builder, constant, llvm, mangle_type
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.type_names import describe_type, difference
from luthier_py.rewrite.tool.hooks.types import (
    BF16,
    BOOL,
    F16,
    F32,
    I32,
    I64,
    NUMBERS,
    U32,
    U64,
    Kind,
    Pointer,
    Scalar,
    Struct,
    Type,
)
from luthier_py.rewrite.tool.records.channel import ChannelType

WIDENS = {
    (narrow, wide) for narrow in NUMBERS for wide in NUMBERS if narrow.bits < wide.bits and (
        narrow.kind is wide.kind or narrow.kind is Kind.UNSIGNED and wide.kind is Kind.SIGNED)
}
UNSIGNED = {type.bits: type for type in NUMBERS if type.kind is Kind.UNSIGNED}
ALLOWED_BOOL = "compare first, or convert as in u32(condition)"

FOLDED: dict[type[ast.AST], Callable[..., int | float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Div: operator.truediv, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}
SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Pow: "**", ast.MatMult: "@",
}
SIMPLE: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
}
FLOATING: dict[type[ast.AST], str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
COMPARISONS: dict[type[ast.AST], tuple[str, str, str]] = {  # unsigned, signed, floating
    ast.Eq: ("eq", "eq", "oeq"), ast.NotEq: ("ne", "ne", "une"), ast.Lt: ("ult", "slt", "olt"),
    ast.LtE: ("ule", "sle", "ole"), ast.Gt: ("ugt", "sgt", "ogt"), ast.GtE: ("uge", "sge", "oge"),
}
LONGEST_LITERAL_SHIFT = 1024


# -- literals and conversions ----------------------------------------------------------------------


def materialise(operand: Operand) -> Value:
    """A literal that meets nothing takes i32, f32 or bool_."""
    if isinstance(operand, Value):
        return operand
    return literal(operand, BOOL if isinstance(operand, bool) else I32 if isinstance(operand, int) else F32)


def literal(number: int | float | bool, type: Type) -> Value:
    """A Python number as a constant of ``type``."""
    integer = isinstance(number, int) and not isinstance(number, bool)
    if not isinstance(type, Scalar):
        given = "address" if isinstance(type, Pointer) else ", ".join(member.name for member in type.members)
        raise ValueError(f"{number} is not a {type}; make one as in {type}({given})")
    if isinstance(number, bool) != (type.kind is Kind.BOOL) or type.is_integer and not integer:
        raise ValueError(f"{number} is not a {type}; write {type}({number})")
    if type.is_integer and not type.holds(int(number)):
        raise ValueError(f"{number} does not fit into {type}")
    return _convert_number(number, type)


def _convert_number(number: int | float | bool, type: Scalar) -> Value:
    """A number as the nearest of a type; what is larger than all floats of the type is no constant of it."""
    try:
        return constant(type, type(number))
    except OverflowError:
        shown = f"{number}" if isinstance(number, float) else f"an integer of {number.bit_length()} bits"
        raise ValueError(f"{shown} does not fit into {type}") from None


def implicit(ir: Builder, operand: Operand, type: Type) -> Value:
    """``operand`` as ``type`` where nothing is lost."""
    if not isinstance(operand, Value):
        return literal(operand, type)
    if operand.type == type or _is_channel(operand.type, type):
        return operand
    if (operand.type, type) in WIDENS:
        return explicit(ir, operand, type)
    if other := difference(operand.type, type):
        raise ValueError(f"this is {operand.type} of another kind: {other}")
    if isinstance(type, Struct) or isinstance(operand.type, Struct):
        raise ValueError(f"this is {describe_type(operand.type)}, not {describe_type(type)}")
    raise ValueError(f"this is {operand.type}, not {type}; convert it, as in {type}(...)")


def _is_channel(given: Type, type: Type) -> bool:
    """What is known of a channel stays known where one of its records is requested."""
    return isinstance(given, ChannelType) and isinstance(type, ChannelType) and given.record == type.record


def explicit(ir: Builder, operand: Operand, type: Type) -> Value:
    """``operand`` turned into ``type``, by calling the type."""
    if not isinstance(operand, Value):
        if isinstance(type, Pointer):
            return constant(type, int(literal(operand, U64 if type.dwords == 2 else U32).text))
        return _convert_number(operand, type) if isinstance(type, Scalar) else literal(operand, type)
    source, target = operand.type, type
    if source == target:
        return operand
    if isinstance(source, Struct) or isinstance(target, Struct):
        raise ValueError(f"{source} does not become {target}; take members, or make one of members")
    if isinstance(source, Pointer) or isinstance(target, Pointer):
        return _pointer(ir, operand, target)
    if target.kind is Kind.BOOL:
        return truth(ir, operand)
    if {source, target} == {F16, BF16}:
        return explicit(ir, explicit(ir, operand, F32), target)
    into = llvm(target)
    if Kind.FLOAT in (source.kind, target.kind) and source.kind is not target.kind and target.kind is not Kind.FLOAT:
        letter = "s" if target.kind is Kind.SIGNED else "u"
        return ir.call(f"llvm.fpto{letter}i.sat.{into}.{mangle_type(source)}", target, (operand,), operand.lane)
    if source.bits == target.bits and source.is_integer and target.is_integer:
        return Value(target, operand.text, operand.lane)
    return ir.emit(target, f"{_cast(source, target)} {llvm(source)} {operand.text} to {into}", operand.lane)


def _cast(source: Scalar, target: Scalar) -> str:
    """LLVM's conversion between numbers of different width or kind (not from float to integer)."""
    if target.kind is Kind.FLOAT and source.kind is Kind.FLOAT:
        return "fpext" if target.bits > source.bits else "fptrunc"
    if target.kind is Kind.FLOAT:
        return "sitofp" if source.kind is Kind.SIGNED else "uitofp"
    if target.bits < source.bits:
        return "trunc"
    return "sext" if source.kind is Kind.SIGNED else "zext"


def _pointer(ir: Builder, operand: Value, target: Type) -> Value:
    if isinstance(operand.type, Pointer) and isinstance(target, Pointer):
        if operand.type.space is not target.space:
            raise ValueError(f"{operand.type} is an address in other memory than {target}")
        return Value(target, operand.text, operand.lane)
    if isinstance(target, Pointer):
        address = _address(ir, operand, target)
        return ir.emit(target, f"inttoptr {llvm(address.type)} {address.text} to {llvm(target)}", operand.lane)
    assert isinstance(operand.type, Pointer)
    wide = operand.type.dwords == 2
    if target not in ((U64, I64) if wide else (U32, I32)):
        raise ValueError(f"a {operand.type} becomes an integer as {'u64' if wide else 'u32'}(pointer), not {target}")
    return ir.emit(target, f"ptrtoint {llvm(operand.type)} {operand.text} to {llvm(target)}", operand.lane)


def _address(ir: Builder, operand: Value, target: Pointer) -> Value:
    """The integer that a pointer is made of: what is wider than that is cut."""
    if target.dwords == 2:
        return operand if operand.type == I64 else implicit(ir, operand, U64)
    return explicit(ir, operand, U32) if operand.type in (I32, U64, I64) else implicit(ir, operand, U32)


def truth(ir: Builder, operand: Operand) -> Value:
    """``operand`` as a condition: numbers are true when they are not zero."""
    if not isinstance(operand, Value):
        return constant(BOOL, bool(operand))
    if operand.type == BOOL:
        return operand
    if isinstance(operand.type, Pointer):
        raise ValueError(f"a pointer is no condition; compare u{32 * operand.type.dwords}(pointer) with 0")
    if isinstance(operand.type, Struct):
        raise ValueError(f"{operand.type} is no condition; compare its members")
    return compare(ir, ast.NotEq(), operand, 0.0 if operand.type.kind is Kind.FLOAT else 0)


def unify(ir: Builder, left: Operand, right: Operand) -> tuple[Value, Value]:
    """Both operands in the one type that can hold either."""
    if not isinstance(left, Value):
        left = literal(left, right.type) if isinstance(right, Value) else materialise(left)
    if not isinstance(right, Value):
        right = literal(right, left.type)
    if left.type == right.type:
        return left, right
    if (left.type, right.type) in WIDENS:
        return explicit(ir, left, right.type), right
    if (right.type, left.type) in WIDENS:
        return left, explicit(ir, right, left.type)
    raise ValueError(f"{left.type} and {right.type} do not mix; convert one, as in {left.type}(...)")


# -- operators -------------------------------------------------------------------------------------


def binary(ir: Builder, op: ast.operator, left: Operand, right: Operand) -> Operand:
    """``left op right``."""
    symbol = SYMBOLS[type(op)]
    if type(op) not in FOLDED:
        raise ValueError(f"{symbol} is not allowed in device code; allowed are + - * // % / << >> & | ^")
    if not isinstance(left, Value) and not isinstance(right, Value):
        return fold(op, left, right)
    if isinstance(left, Value) and isinstance(left.type, Pointer) and isinstance(op, (ast.Add, ast.Sub)):
        return element(ir, left, right, backwards=isinstance(op, ast.Sub))
    if isinstance(op, (ast.LShift, ast.RShift)):
        return _shift(ir, op, left, right)
    a, b = unify(ir, left, right)
    if not isinstance(a.type, Scalar):
        raise ValueError(f"{symbol} is not allowed on pointers; allowed are pointer + integer and pointer - integer"
                         if isinstance(a.type, Pointer) else f"{symbol} is not allowed on {a.type}; take its members")
    if a.type.kind is Kind.BOOL and not isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        raise ValueError(f"{symbol} is not allowed on bool_; {ALLOWED_BOOL}")
    if a.type.kind is Kind.FLOAT:
        if type(op) not in FLOATING:
            raise ValueError(f"{symbol} is not allowed on floats; allowed are + - * /")
        return _emit(ir, FLOATING[type(op)], a, b)
    if isinstance(op, ast.Div):
        raise ValueError("/ is for floats; use // for integers, or convert as in f32(...)")
    if type(op) in SIMPLE:
        return _emit(ir, SIMPLE[type(op)], a, b)
    if not isinstance(right, Value) and right == 0:
        raise ValueError(f"{symbol} by zero")
    quotient, remainder = _divide(ir, a, b)
    return quotient if isinstance(op, ast.FloorDiv) else remainder


def fold(op: ast.operator, left: int | float | bool, right: int | float | bool) -> int | float:
    """Two literals: Python computes."""
    if isinstance(op, ast.LShift) and right > LONGEST_LITERAL_SHIFT:
        raise ValueError(f"{left} << {right} does not fit into any type")
    try:
        return FOLDED[type(op)](left, right)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise ValueError(f"{left} {SYMBOLS[type(op)]} {right}: {error}") from error


def element(ir: Builder, pointer: Value, index: Operand, backwards: bool = False) -> Value:
    """Address of an element: ``pointer + index``."""
    assert isinstance(pointer.type, Pointer)
    index = materialise(index)
    if not (isinstance(index.type, Scalar) and index.type.is_integer):
        raise ValueError(f"an index must be an integer, not {index.type}")
    near = pointer.type.dwords == 1
    unsigned, signed = (U32, I32) if near else (U64, I64)
    wide = explicit(ir, index, unsigned if index.type.kind is Kind.UNSIGNED else signed)
    if backwards:
        wide = ir.emit(wide.type, f"sub {llvm(wide.type)} 0, {wide.text}", wide.lane)
    operands = f"{llvm(pointer.type)} {pointer.text}, {llvm(wide.type)} {wide.text}"
    return ir.emit(pointer.type, f"getelementptr {llvm(pointer.type.element)}, {operands}", pointer.lane or wide.lane)


def _shift(ir: Builder, op: ast.operator, left: Operand, right: Operand) -> Value:
    if not isinstance(left, Value) and isinstance(right, Value):
        left = literal(left, right.type)
    value = materialise(left)
    if not (isinstance(value.type, Scalar) and value.type.is_integer):
        raise ValueError(f"{SYMBOLS[type(op)]} is not allowed on {value.type}; only on integers")
    if isinstance(right, Value):
        amount = explicit(ir, right, value.type) if isinstance(right.type, Scalar) and right.type.is_integer else None
        if amount is None:
            raise ValueError(f"the amount of a shift must be an integer, not {right.type}")
        amount = ir.emit(value.type, f"and {llvm(value.type)} {amount.text}, {value.type.bits - 1}", right.lane)
    elif isinstance(right, int) and not isinstance(right, bool) and 0 <= right < value.type.bits:
        amount = constant(value.type, right)
    else:
        raise ValueError(f"{value.type} can be shifted by 0 to {value.type.bits - 1}, not by {right}")
    signed = value.type.kind is Kind.SIGNED
    return _emit(ir, "shl" if isinstance(op, ast.LShift) else "ashr" if signed else "lshr", value, amount)


def _divide(ir: Builder, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient and remainder, rounded towards minus infinity; never undefined."""
    assert isinstance(a.type, Scalar)
    if not ir.own_mode and not b.text.isdigit():
        raise ValueError("integers are divided with floats, which are rounded as the application has it in a hook with "
                         "mode='application'; divide by a constant, or in a hook of its own")
    b = _not_zero(ir, b)
    if a.type.kind is Kind.UNSIGNED:
        return _emit(ir, "udiv", a, b), _emit(ir, "urem", a, b)
    zero, minus = constant(a.type, 0), constant(a.type, -1)
    power = int(b.text) if b.text.isdigit() else 0
    if power and power & (power - 1) == 0:
        shifted = _emit(ir, "ashr", a, constant(a.type, power.bit_length() - 1))
        return shifted, _emit(ir, "and", a, constant(a.type, power - 1))
    size_a, size_b = (_select(ir, compare(ir, ast.Lt(), x, zero), _emit(ir, "sub", zero, x), x) for x in (a, b))
    quotient, rest = _emit(ir, "udiv", size_a, size_b), _emit(ir, "urem", size_a, size_b)
    opposite = compare(ir, ast.Lt(), _emit(ir, "xor", a, b), zero)
    inexact = _select(ir, compare(ir, ast.NotEq(), rest, zero), minus, zero)
    below = _emit(ir, "add", _emit(ir, "sub", zero, quotient), inexact)
    floor = _select(ir, opposite, below, quotient)
    return floor, _emit(ir, "sub", a, _emit(ir, "mul", floor, b))


def _not_zero(ir: Builder, divisor: Value) -> Value:
    """``divisor``, or one where it is zero."""
    if divisor.text.isdigit() and int(divisor.text):
        return divisor
    zero, one = constant(divisor.type, 0), constant(divisor.type, 1)
    return _select(ir, compare(ir, ast.Eq(), divisor, zero), one, divisor)


def _emit(ir: Builder, instruction: str, a: Value, b: Value) -> Value:
    return ir.emit(a.type, f"{instruction} {llvm(a.type)} {a.text}, {b.text}", a.lane or b.lane)


def _select(ir: Builder, condition: Value, yes: Value, no: Value) -> Value:
    kind = llvm(yes.type)
    lane = condition.lane or yes.lane or no.lane
    return ir.emit(yes.type, f"select i1 {condition.text}, {kind} {yes.text}, {kind} {no.text}", lane)


def trips(ir: Builder, start: Value, stop: Value, step: int) -> Value:
    """Number of items of ``range(start, stop, step)``, unsigned; no step of this overflows."""
    if not (isinstance(start.type, Scalar) and start.type.is_integer):
        raise ValueError(f"range runs over integers, not {start.type}")
    low, high = (start, stop) if step > 0 else (stop, start)
    unsigned = UNSIGNED[start.type.bits]
    some = compare(ir, ast.Lt(), low, high)
    span = explicit(ir, _emit(ir, "sub", high, low), unsigned)
    if abs(step) == 1:
        return _select(ir, some, span, constant(unsigned, 0))
    if not unsigned.holds(abs(step)):
        raise ValueError(f"the step {step} does not fit into {start.type}")
    one = constant(unsigned, 1)
    whole = _emit(ir, "udiv", _emit(ir, "sub", span, one), constant(unsigned, abs(step)))
    return _select(ir, some, _emit(ir, "add", whole, one), constant(unsigned, 0))


def unary(ir: Builder, op: ast.unaryop, operand: Operand) -> Operand:
    """``+x``, ``-x``, ``~x`` (``not x`` is a condition)."""
    if not isinstance(operand, Value):
        if isinstance(op, ast.Invert):
            return fold(ast.BitXor(), operand, -1)
        return -operand if isinstance(op, ast.USub) else +operand
    if not isinstance(operand.type, Scalar) or operand.type.kind is Kind.BOOL:
        raise ValueError(f"this operator is not allowed on {operand.type}; use not, or convert as in u32(...)")
    if isinstance(op, ast.UAdd):
        return operand
    if operand.type.kind is Kind.FLOAT:
        if isinstance(op, ast.Invert):
            raise ValueError("~ is not allowed on floats; only on integers")
        return ir.emit(operand.type, f"fneg {llvm(operand.type)} {operand.text}", operand.lane)
    if isinstance(op, ast.Invert):
        return _emit(ir, "xor", operand, Value(operand.type, "-1", lane=False))
    return _emit(ir, "sub", constant(operand.type, 0), operand)


def compare(ir: Builder, op: ast.cmpop, left: Operand, right: Operand) -> Value:
    """``left op right``."""
    if type(op) not in COMPARISONS:
        raise ValueError("this comparison is not allowed in device code; allowed are == != < <= > >=")
    a, b = unify(ir, left, right)
    if not isinstance(a.type, Scalar) or a.type.kind is Kind.BOOL and not isinstance(op, (ast.Eq, ast.NotEq)):
        raise ValueError(f"{a.type} cannot be compared so; " + (
            "compare its members" if isinstance(a.type, Struct)
            else f"convert first, as in u{32 * a.type.dwords}(...)"))
    unsigned, signed, floating = COMPARISONS[type(op)]
    if a.type.kind is Kind.FLOAT:
        text = f"fcmp {floating} {llvm(a.type)} {a.text}, {b.text}"
    else:
        text = f"icmp {signed if a.type.kind is Kind.SIGNED else unsigned} {llvm(a.type)} {a.text}, {b.text}"
    return ir.emit(BOOL, text, a.lane or b.lane)


def least(ir: Builder, a: Operand, b: Operand, op: ast.cmpop) -> Operand:
    """min and max, as Python computes them: the second one only when ``b op a``."""
    if not isinstance(a, Value) and not isinstance(b, Value):
        return (min if isinstance(op, ast.Lt) else max)(a, b)
    x, y = unify(ir, a, b)
    return _select(ir, compare(ir, op, y, x), y, x)


def absolute(ir: Builder, operand: Operand) -> Operand:
    """abs: the smallest signed integer stays what it is."""
    if not isinstance(operand, Value):
        return abs(operand)
    if not isinstance(operand.type, Scalar) or operand.type.kind is Kind.BOOL:
        raise ValueError(f"abs is not allowed on {operand.type}; only on numbers")
    if operand.type.kind is Kind.FLOAT:
        return ir.call(f"llvm.fabs.{mangle_type(operand.type)}", operand.type, (operand,), operand.lane)
    if operand.type.kind is Kind.UNSIGNED:
        return operand
    negative = compare(ir, ast.Lt(), operand, 0)
    return _select(ir, negative, _emit(ir, "sub", constant(operand.type, 0), operand), operand)
