"""Rounding other than to the nearest even, and f16 results that do not overflow: what MODE asks of arithmetic.

In: a primitive under a Rounding. Out: IR. Conversions are rounded to nearest and then moved by one step where the
exact value, which the source is, lies on the other side. Arithmetic of f32 and f64 is a call of a support function
that sets the host's rounding: LLVM keeps its parts in order (constrained intrinsics in a strictfp function), and code
around it never runs under another rounding than to nearest. f16 is computed in a wider format and rounded again,
which is right where both roundings go the same way. Invariant: the host rounds to nearest outside support functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple

from luthier_py.emulator.vector_regions.emitter import LlvmOps
from luthier_py.isa.semantics.algebra import F16, F64, U16, Kind, Prim, Type, Value, select


class Rounding(Enum):
    """Numbered as in MODE (MI200 ISA, 3.4: FP_ROUND)."""

    NEAREST = 0
    UP = 1
    DOWN = 2
    ZERO = 3


class Arithmetic(NamedTuple):
    """How one instruction computes."""

    rounding: Rounding = Rounding.NEAREST
    keeps_f16_finite: bool = False
    """MODE.FP16_OVFL: finite values too large for f16 become the largest f16, not infinity."""


_HOST = {Rounding.ZERO: 0, Rounding.NEAREST: 1, Rounding.UP: 2, Rounding.DOWN: 3}  # llvm.set.rounding, C's FLT_ROUNDS
_HOST_NAMES = {Prim.ADD: "fadd", Prim.SUB: "fsub", Prim.MUL: "fmul", Prim.DIV: "fdiv", Prim.FMA: "fma"}
_NAME = re.compile(r"luthier_rounded_(\w+?)_(up|down|zero)_v(\d+)f(32|64)")
_FORMATS = {"32": "float", "64": "double"}


class RoundedOps(LlvmOps):
    """The algebra under a MODE."""

    arithmetic = Arithmetic()
    """For the instruction being written."""

    @contextmanager
    def use_arithmetic(self, arithmetic: Arithmetic) -> Iterator[None]:
        """Primitives inside compute so."""
        before, self.arithmetic = self.arithmetic, arithmetic
        try:
            yield
        finally:
            self.arithmetic = before

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        result = self._by_mode(prim, type, operands) if type.kind is Kind.FLOAT else None
        return super().apply(prim, type, *operands) if result is None else result

    def widen_operands(self, prim: Prim, operands: tuple[Value, ...]) -> list[Value]:
        """Where the result must stay finite it must not overflow in f32 either."""
        wide = super().widen_operands(prim, operands)
        if prim is Prim.EXP2 and self.arithmetic.keeps_f16_finite:
            most = 127.0
            wide = [select((x > most) & (x < float("inf")), most, x) for x in wide]
        return wide

    def _by_mode(self, prim: Prim, type: Type, operands: tuple[Value, ...]) -> Value | None:
        """The result where MODE matters; None where it does not."""
        rounding, keeps_f16_finite = self.arithmetic
        if prim is Prim.CONVERT:
            if type == F16 and keeps_f16_finite:
                with self.use_arithmetic(Arithmetic(rounding)):
                    return _without_overflow(operands[0].to(F16), operands[0])
            return _convert_rounded(self, rounding, type, operands[0]) if rounding is not Rounding.NEAREST else None
        if prim not in _HOST_NAMES or rounding is Rounding.NEAREST or type == F16 and prim is not Prim.FMA:
            return None
        if type == F16:  # of f32 no sum is exact that is not rounded to nearest
            return self.apply(prim, F64, *(x.to(F64) for x in operands)).to(F16)
        vector = self.name(type)
        function = f"rounded_{prim.name.lower()}_{rounding.name.lower()}_{self.suffix(type)}"
        return self.value(type, self.emitter.support(vector, function, [(vector, str(x.ref)) for x in operands]))


def _convert_rounded(ops: RoundedOps, rounding: Rounding, type: Type, exact: Value) -> Value | None:
    if exact.type.kind is not Kind.FLOAT:
        if exact.type.bits > 32 or type == F64:
            return None  # only meanings convert wider ones, and values that are exact
        return exact.to(F64).to(type)
    if type.bits >= exact.type.bits:
        return None
    with ops.use_arithmetic(Arithmetic()):
        near = exact.to(type)
    return _correct_rounding(near, near.to(exact.type), exact, rounding)


def _correct_rounding(near: Value, back: Value, exact: Value, rounding: Rounding) -> Value:
    """``near``, which is worth ``back``, or its neighbour on the other side of ``exact``."""
    bits = near.as_(near.type.unsigned)
    negative = (bits >> near.type.bits - 1).ne(0)
    if rounding is Rounding.ZERO:
        moved = select(abs(back) > abs(exact), bits - 1, bits)
    elif rounding is Rounding.UP:
        moved = select(exact > back, select(negative, bits - 1, bits + 1), bits)
    else:
        moved = select(exact < back, select(negative, bits + 1, bits - 1), bits)
    return moved.as_(near.type)


def _without_overflow(result: Value, exact: Value) -> Value:
    bits = result.as_(U16)
    overflown = (bits & 0x7FFF).eq(0x7C00)
    if exact.type.kind is Kind.FLOAT:
        overflown = overflown & (abs(exact) < float("inf"))
    return select(overflown, bits - 1, bits).as_(F16)


def support_function(name: str) -> str:
    """The definition of ``luthier_rounded_<primitive>_<rounding>_<type>``."""
    match = _NAME.fullmatch(name)
    assert match is not None, name
    prim, rounding, lanes, bits = Prim[match[1].upper()], Rounding[match[2].upper()], match[3], match[4]
    vector = f"<{lanes} x {_FORMATS[bits]}>"
    count = 3 if prim is Prim.FMA else 2
    intrinsic = f"llvm.experimental.constrained.{_HOST_NAMES[prim]}.v{lanes}f{bits}"
    operands = ", ".join(f"{vector} %x{i}" for i in range(count))
    return f"""
declare void @llvm.set.rounding(i32)
declare {vector} @{intrinsic}({", ".join([vector] * count)}, metadata, metadata)

define {vector} @{name}({operands}) #0 {{
  call void @llvm.set.rounding(i32 {_HOST[rounding]}) #0
  %r = call {vector} @{intrinsic}({operands}, metadata !"round.dynamic", metadata !"fpexcept.strict") #0
  call void @llvm.set.rounding(i32 {_HOST[Rounding.NEAREST]}) #0
  ret {vector} %r
}}

attributes #0 = {{ strictfp }}
"""
