"""One primitive of the algebra on integers.

In: operands as bits. Out: the result's bits; None for what is not about integers. Invariant: equal to the definition of
`Prim`, for all inputs that it allows.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.isa.semantics.algebra import Kind, Prim, Type


def _clamped(type: Type, value: int) -> int:
    signed = type.kind is Kind.SINT
    top = (1 << type.bits - signed) - 1
    return max(-(top + 1) * signed, min(value, top))


_OF_NUMBERS: dict[Prim, Callable[..., int]] = {  # of numbers, as their types have them
    Prim.ADD: lambda a, b: a + b, Prim.SUB: lambda a, b: a - b, Prim.MUL: lambda a, b: a * b,
    Prim.AND: lambda a, b: a & b, Prim.OR: lambda a, b: a | b, Prim.XOR: lambda a, b: a ^ b,
    Prim.SHL: lambda a, b: a << b, Prim.SHR: lambda a, b: a >> b,
    Prim.EQ: lambda a, b: a == b, Prim.NE: lambda a, b: a != b, Prim.LT: lambda a, b: a < b,
    Prim.LE: lambda a, b: a <= b, Prim.MIN: min, Prim.MAX: max,
    Prim.SELECT: lambda c, a, b: a if c else b, Prim.RESIZE: lambda a: a,
}
_OF_BITS: dict[Prim, Callable[[int, int], int]] = {  # of bits and the type's width
    Prim.POPCOUNT: lambda a, bits: bin(a).count("1"), Prim.CLZ: lambda a, bits: bits - a.bit_length(),
    Prim.CTZ: lambda a, bits: (a & -a).bit_length() - 1 if a else bits,
    Prim.REVERSE: lambda a, bits: int(f"{a:0{bits}b}"[::-1], 2), Prim.BITS: lambda a, bits: a,
}


def concrete(prim: Prim, type: Type, sources: tuple[Type, ...], values: tuple[int, ...]) -> int | None:
    mask = (1 << type.bits) - 1
    if prim in _OF_BITS:
        return _OF_BITS[prim](values[0], type.bits) & mask
    numbers = [value - (value >> kind.bits - 1 << kind.bits) if kind.kind is Kind.SINT else value
               for kind, value in zip(sources, values, strict=True)]
    if prim is Prim.SHL or prim is Prim.SHR:
        numbers[1] = values[1]  # an amount is never negative
    if prim in (Prim.ADD_SAT, Prim.SUB_SAT):
        return _clamped(type, numbers[0] + numbers[1] if prim is Prim.ADD_SAT else numbers[0] - numbers[1]) & mask
    return int(_OF_NUMBERS[prim](*numbers)) & mask if prim in _OF_NUMBERS else None
