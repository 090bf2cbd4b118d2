"""One primitive of the algebra on integers.

In: operands as bits. Out: the result's bits; None for what is not about integers. Invariant: equal to the definition of
`Prim`, for all inputs that it allows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from luthier_py.isa.semantics.algebra import Kind, Prim, Type


def _clamp_to_type(type: Type, value: int) -> int:
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
    """The result's bits: ``values`` are bits of operands of types ``sources``, ``type`` is the result's. None for a
    primitive that is none of integers. Callers leave floats out: it does not look whether types are of integers."""
    compute = specialize_primitive(prim, type, sources)
    return None if compute is None else compute(*values)


@cache
def specialize_primitive(prim: Prim, type: Type, sources: tuple[Type, ...]) -> Callable[..., int] | None:
    """The primitive for operands of such types, as a function of their bits."""
    bits, mask = type.bits, (1 << type.bits) - 1
    if prim in _OF_BITS:
        of_bits = _OF_BITS[prim]
        return lambda value: of_bits(value, bits) & mask
    of_numbers = _OF_NUMBERS.get(prim)
    if prim in (Prim.ADD_SAT, Prim.SUB_SAT):
        exact = _OF_NUMBERS[Prim.ADD if prim is Prim.ADD_SAT else Prim.SUB]
        of_numbers = lambda a, b: _clamp_to_type(type, exact(a, b))  # noqa: E731
    if of_numbers is None:
        return None
    limits = [1 << kind.bits if kind.kind is Kind.SINT else 0 for kind in sources]
    if prim in (Prim.SHL, Prim.SHR):
        limits[1] = 0  # an amount is never negative
    if not any(limits):
        return lambda *values: int(of_numbers(*values)) & mask
    return lambda *values: int(of_numbers(*(value - limit if 2 * value >= limit > 0 else value
                                            for value, limit in zip(values, limits, strict=True)))) & mask
