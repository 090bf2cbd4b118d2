"""Functions of Python's module math in device code.

In: a function of math, operands. Out: a value of the operands' type. Invariant: what LLVM has itself is rounded
correctly, as Python's is; the others are those of AMD's device library (ocml), with its errors, and call it by name.
``floor``, ``ceil`` and ``trunc`` yield a float with the value that Python's int has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

from luthier_py.rewrite.jit.python import arithmetic
from luthier_py.rewrite.jit.python.builder import Builder, llvm, mangle_type
from luthier_py.rewrite.tool.hooks.intrinsic import Operand, Value
from luthier_py.rewrite.tool.hooks.types import BF16, BOOL, Kind, Scalar

LIBRARY = "__ocml_"
_OWN = {name: 1 for name in "sqrt fabs floor ceil trunc".split()} | {"copysign": 2, "fma": 3}
_TESTS = "isnan", "isinf", "isfinite"
_OF_LIBRARY = {
    **dict.fromkeys("exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
                    "cbrt erf erfc".split(), 1),
    **dict.fromkeys("pow atan2 hypot fmod".split(), 2),
}  # fmt: skip
_ARITY = {**_OWN, **dict.fromkeys(_TESTS, 1), **_OF_LIBRARY}


def fma(x: float, y: float, z: float) -> float:
    """Replaces math.fma, which Python has from 3.13 on: device code has it whatever Python this is."""
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return float(exact) if exact else x * y + z  # a zero's sign


_STANDING = {} if hasattr(math, "fma") else {"fma": fma}
_FUNCTIONS = {name: getattr(math, name, None) or _STANDING.get(name) for name in _ARITY}
_NAMES = {function: name for name, function in _FUNCTIONS.items() if function is not None}
NAMES = tuple(sorted(_NAMES.values()))


def is_mathematical(callee: object) -> bool:
    """Whether it is one of math's functions that device code has."""
    return callable(callee) and getattr(callee, "__module__", None) in ("math", __name__) and callee in _NAMES


def member(module: ModuleType, name: str, missing: object) -> object:
    """Of a module that device code names: what math lacks in an older Python is there."""
    return getattr(module, name, _STANDING.get(name, missing) if module is math else missing)


def call(ir: Builder, callee: Callable[..., Any], operands: Sequence[Operand]) -> Operand:
    """Raises ValueError for what has no meaning."""
    name = _NAMES[callee]
    if len(operands) != _ARITY[name]:
        raise ValueError(f"math.{name} takes {_ARITY[name]} numbers, {len(operands)} given")
    if not any(isinstance(operand, Value) for operand in operands):
        return _fold_constants(callee, operands)
    values = _unify_types(ir, name, operands)
    lane, type = any(value.lane for value in values), values[0].type
    if name in _TESTS:
        return _emit_class_test(ir, name, values[0], lane)
    function = f"llvm.{name}.{mangle_type(type)}" if name in _OWN else f"{LIBRARY}{name}_{type}"
    return ir.call(function, type, tuple(values), lane)


def _fold_constants(callee: Callable[..., Any], operands: Sequence[Operand]) -> int | float | bool:
    """Literals: Python computes."""
    try:
        found: int | float | bool = callee(*operands)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"math.{_NAMES[callee]}: {error}") from error
    return found if isinstance(found, bool) else float(found)


def _unify_types(ir: Builder, name: str, operands: Sequence[Operand]) -> list[Value]:
    """In the one type that can hold each."""
    type = next(operand.type for operand in operands if isinstance(operand, Value))
    for operand in operands:
        if isinstance(operand, Value) and (operand.type, type) not in arithmetic.WIDENS:
            type = operand.type
    if not isinstance(type, Scalar) or type.kind is not Kind.FLOAT or type == BF16:
        raise ValueError(f"math.{name} needs f16, f32 or f64, not {type}; convert it, as in f32(...)")
    literals = (float(operand) if isinstance(operand, int) and not isinstance(operand, bool) else operand
                for operand in operands)
    return [arithmetic.implicit(ir, operand, type) for operand in literals]


def _emit_class_test(ir: Builder, name: str, value: Value, lane: bool) -> Value:
    kind = llvm(value.type)
    if name == "isnan":
        return ir.emit(BOOL, f"fcmp uno {kind} {value.text}, {value.text}", lane)
    size = ir.call(f"llvm.fabs.{mangle_type(value.type)}", value.type, (value,), lane)
    infinite = arithmetic.literal(math.inf, value.type).text
    return ir.emit(BOOL, f"fcmp {'oeq' if name == 'isinf' else 'olt'} {kind} {size.text}, {infinite}", lane)
