"""exp2, log2, sin, cos and tanh of f32 and of vectors of f32, as support functions.

In: a name such as ``luthier_exp2_v16f32`` or ``luthier_exp2_f32``. Out: LLVM IR. All is computed in
double precision, with polynomials good to about 1e-11, and rounded once, so results are almost always
correctly rounded.
Invariant: special values as in IEEE 754; sin and cos take turns, not radians.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from luthier_py.emulator.vector_regions.emitter import Emitter, LlvmOps
from luthier_py.isa.semantics.algebra import F32, F64, I64, U64, Prim, Value, fma, is_nan, rint, select

_NAME = re.compile(r"luthier_([a-z]+2?)_(?:v(\d+))?f32")


def transcendental(name: str) -> str:
    """The definition of a support function."""
    match = _NAME.fullmatch(name)
    assert match is not None, name
    emitter = Emitter()
    ops = LlvmOps(emitter, int(match[2] or 0))
    vector = ops.name(F32)
    result = _FUNCTIONS[Prim[match[1].upper()]](ops.value(F32, "%x").to(F64)).to(F32)
    emitter.emit(f"ret {vector} {result.ref}")
    emitter.define(f"{vector} @{name}({vector} %x)")
    return emitter.module()


def _polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule, highest power first."""
    total = x.lift(coefficients[0])
    for coefficient in coefficients[1:]:
        total = fma(total, x, x.lift(coefficient))
    return total


_EXP2 = [math.log(2) ** k / math.factorial(k) for k in range(10, -1, -1)]
_LOG2 = [2 / (math.log(2) * k) for k in range(15, -1, -2)]
_SINE = [(-1) ** k * (2 * math.pi) ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(9, -1, -1)]


def _exp2(x: Value) -> Value:
    near = select(x < -200.0, -200.0, select(x > 200.0, 200.0, x))
    whole = rint(near)
    scale = ((whole.to(I64) + 1023) << 52).as_(F64)
    return _polynomial(near - whole, _EXP2) * scale


def _log2(x: Value) -> Value:
    """Doubles made of floats are never denormal."""
    bits = x.as_(U64)
    mantissa = ((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).as_(F64)
    exponent = ((bits >> 52) & 0x7FF).as_(I64) - 1023
    large = mantissa > math.sqrt(2)
    mantissa = select(large, mantissa * 0.5, mantissa)
    exponent = exponent + select(large, exponent.lift(1), 0)
    s = (mantissa - 1.0) / (mantissa + 1.0)
    result = fma(_polynomial(s * s, _LOG2), s, exponent.to(F64))
    infinity = float("inf")
    result = select(x.eq(infinity), infinity, result)
    result = select(x.eq(0.0), -infinity, result)
    return select((x < 0.0) | is_nan(x), float("nan"), result)


def _sine_of_quarter(turns: Value) -> Value:
    """Of -1/4 to 1/4 turns."""
    return _polynomial(turns * turns, _SINE) * turns


def _sin(x: Value) -> Value:
    turns = x - rint(x)
    folded = select(abs(turns) > 0.25, select(turns < 0.0, -0.5 - turns, 0.5 - turns), turns)
    return select(x.eq(0.0), x, _sine_of_quarter(folded))  # -0 gives -0 (CDNA 3 ISA, 12.8: V_SIN_F32)


def _cos(x: Value) -> Value:
    return _sine_of_quarter(0.25 - abs(x - rint(x)))


# Of x * x, the highest power first: the series of tanh(x) / x.
_TANH = [929569 / 638512875, -21844 / 6081075, 1382 / 155925, -62 / 2835, 17 / 315, -2 / 15, 1 / 3, -1.0]
_SMALL, _ONE = 0.25, 20.0


def _tanh(x: Value) -> Value:
    """Where x is small the series, since 1 from near 1 leaves too little."""
    near = select(x < -_ONE, -_ONE, select(x > _ONE, _ONE, x))
    power = _exp2(near * (2 / math.log(2)))
    series = _polynomial(x * x, _TANH) * -x
    result = select(abs(x) < _SMALL, series, (power - 1.0) / (power + 1.0))
    return select(is_nan(x), x, result)


_FUNCTIONS: dict[Prim, Callable[[Value], Value]] = {
    Prim.EXP2: _exp2, Prim.LOG2: _log2, Prim.SIN: _sin, Prim.COS: _cos, Prim.TANH: _tanh,
}  # fmt: skip
