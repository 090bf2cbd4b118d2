"""The algebra of isa.semantics on Python integers: a value's ``ref`` is its bits.

In: primitives. Out: values, and notes on what the manuals leave open: NEW_NAN says that arithmetic gave a NaN
(whose sign and payload are free), NEAR that a transcendental was taken (1 unit in the last place is free).
"""

from __future__ import annotations

import struct

from luthier_py.isa.semantics.algebra import BOOL, F32, Kind, Prim, Type, Value
from reference import floats

NEW_NAN, NEAR = "new NaN", "near"
_STRUCT = {16: "<e", 32: "<f", 64: "<d"}
_TRANSCENDENTAL = (Prim.EXP2, Prim.LOG2, Prim.SIN, Prim.COS, Prim.TANH)
_ROUNDINGS = {Prim.FLOOR: "floor", Prim.CEIL: "ceil", Prim.TRUNC: "trunc", Prim.RINT: "rint"}


class PythonOps:
    """Mutable: the lane that is being computed, and the notes made in it."""

    def __init__(self) -> None:
        self.lane = 0
        self.notes: set[str] = set()

    def value(self, type: Type, bits: int) -> Value:
        return Value(self, type, bits & ((1 << type.bits) - 1))

    def constant(self, type: Type, value: int | float) -> Value:
        if type.kind is Kind.FLOAT:
            return self.value(type, int.from_bytes(struct.pack(_STRUCT[type.bits], value), "little"))
        return self.value(type, int(bool(value)) if type is BOOL else int(value))

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        refs = [operand.ref for operand in operands]
        if prim is Prim.LANE:
            return self.value(type, self.lane)
        if prim is Prim.SELECT:
            return self.value(type, refs[1] if refs[0] else refs[2])
        if prim is Prim.BITS:
            return self.value(type, refs[0])
        source = operands[0].type
        if prim is Prim.CONVERT:
            return self.value(type, _converted(refs[0], source, type))
        if source.kind is Kind.FLOAT:
            return self.value(type, self._float(prim, source.bits, refs))
        return self.value(type, _integer(prim, source, type, refs))

    def _float(self, prim: Prim, width: int, x: list[int]) -> int:
        if prim in (Prim.EQ, Prim.NE, Prim.LT, Prim.LE, Prim.UNORDERED):
            return int(_compared(prim, width, *x))
        if prim in _TRANSCENDENTAL:
            self.notes.add(NEAR)
            result = floats.approximately(x[0], width, prim.name.lower())
        elif prim is Prim.SUB:
            result = x[1] if floats.is_nan(x[1], width) else x[1] ^ floats.sign_bit(width)
            result = floats.add(x[0], result, width)
        elif prim is Prim.SQRT:
            result = floats.square_root(x[0], width)
        elif prim in _ROUNDINGS:
            result = floats.to_integral(x[0], width, _ROUNDINGS[prim])
        else:
            rule = {Prim.ADD: floats.add, Prim.MUL: floats.multiply, Prim.DIV: floats.divide, Prim.FMA: floats.fused}
            result = rule[prim](*x, width)
        if floats.is_nan(result, width):
            self.notes.add(NEW_NAN)
        return result


def _compared(prim: Prim, width: int, a: int, b: int) -> bool:
    if prim is Prim.UNORDERED:
        return floats.unordered(a, b, width)
    if prim is Prim.NE:
        return not floats.equal(a, b, width)
    less, equal = floats.less(a, b, width), floats.equal(a, b, width)
    return {Prim.EQ: equal, Prim.LT: less, Prim.LE: less or equal}[prim]


def _converted(bits: int, source: Type, type: Type) -> int:
    if source.kind is Kind.FLOAT and type.kind is Kind.FLOAT:
        return floats.resized(bits, source.bits, type.bits)
    if source.kind is Kind.FLOAT:
        return floats.to_integer(bits, source.bits, *limits(type))
    return floats.rounded(floats.Fraction(signed(bits, source)), type.bits)


def limits(type: Type) -> tuple[int, int]:
    if type.kind is Kind.SINT:
        return -(1 << type.bits - 1), (1 << type.bits - 1) - 1
    return 0, (1 << type.bits) - 1


def signed(bits: int, type: Type) -> int:
    """The number that the bits are."""
    return bits - (1 << type.bits) if type.kind is Kind.SINT and bits >> type.bits - 1 else bits


def _integer(prim: Prim, source: Type, type: Type, refs: list[int]) -> int:
    width = source.bits
    x = [signed(ref, source) for ref in refs]
    low, high = limits(source)
    if prim is Prim.RESIZE:
        return x[0]
    if prim is Prim.SHL or prim is Prim.SHR:
        assert 0 <= refs[1] < width, "shift amounts are below the width"
        return x[0] << refs[1] if prim is Prim.SHL else x[0] >> refs[1]
    if len(x) == 1:
        return _counted(prim, refs[0], width)
    a, b = x
    return {
        Prim.ADD: lambda: a + b, Prim.SUB: lambda: a - b, Prim.MUL: lambda: a * b,
        Prim.AND: lambda: a & b, Prim.OR: lambda: a | b, Prim.XOR: lambda: a ^ b,
        Prim.EQ: lambda: a == b, Prim.NE: lambda: a != b, Prim.LT: lambda: a < b, Prim.LE: lambda: a <= b,
        Prim.MIN: lambda: min(a, b), Prim.MAX: lambda: max(a, b),
        Prim.ADD_SAT: lambda: min(max(a + b, low), high), Prim.SUB_SAT: lambda: min(max(a - b, low), high),
    }[prim]()  # fmt: skip


def _counted(prim: Prim, bits: int, width: int) -> int:
    if prim is Prim.POPCOUNT:
        return bits.bit_count()
    if prim is Prim.CLZ:
        return width - bits.bit_length()
    if prim is Prim.CTZ:
        return (bits & -bits).bit_length() - 1 if bits else width
    assert prim is Prim.REVERSE
    return int(f"{bits:0{width}b}"[::-1], 2)


def flushed(bits: int, width: int) -> int:
    return bits & floats.sign_bit(width) if floats.is_denormal(bits, width) else bits


def modified_float(ops: PythonOps, bits: int, width: int, omod: int, clamp: bool) -> int:
    """After output modifiers: first times 2, 4 or 1/2, with all zeros +0, then clamped to 0..1, NaN to 0."""
    if omod:
        factor = ops.constant(Type(Kind.FLOAT, width), (2.0, 4.0, 0.5)[omod - 1])
        bits = flushed((ops.value(Type(Kind.FLOAT, width), bits) * factor).ref, width)
        bits = 0 if floats.is_zero(bits, width) else bits
    if clamp:
        one = floats.resized(0x3F800000, F32.bits, width)
        if floats.is_nan(bits, width) or floats.less(bits, 0, width):
            return 0
        return one if floats.less(one, bits, width) else bits
    return bits
