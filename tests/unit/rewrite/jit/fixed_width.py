"""Device code run by Python itself: numbers that know their width, as an oracle for the frontend.

In: a Hook or Device whose function uses types, operators, range, min, max and abs. Out: what it returns when every
operation is Python's own, followed by wrapping. Nothing of luthier_py.rewrite.jit is used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from luthier_py.intrinsics import as_bits
from luthier_py.rewrite.tool import U16, U32, U64, Device, Kind, Scalar, array

_BITS = {16: U16, 32: U32, 64: U64}

WIDER = {("u8", wide) for wide in "u16 i16 u32 i32 u64 i64".split()} | {("i8", wide) for wide in "i16 i32 i64".split()}
WIDER |= {("u16", wide) for wide in "u32 i32 u64 i64".split()} | {("i16", "i32"), ("i16", "i64")}
WIDER |= {("u32", "u64"), ("u32", "i64"), ("i32", "i64"), ("f32", "f64")}
WIDER |= {(narrow, wide) for narrow in ("f16", "bf16") for wide in ("f32", "f64")}


@dataclass(frozen=True, eq=False)
class Fixed:
    """A number of a type; operations give numbers of the wider type."""

    type: Scalar
    number: int | float

    def meet(self, other: Any) -> tuple[Scalar, Any]:
        if not isinstance(other, Fixed):
            return self.type, other
        if self.type == other.type or (other.type.name, self.type.name) in WIDER:
            return self.type, other.number
        assert (self.type.name, other.type.name) in WIDER, (self.type, other.type)
        return other.type, other.number

    def operate(self, function: Callable[[Any, Any], Any], other: Any, swap: bool = False) -> Fixed:
        shift = function in (operator.lshift, operator.rshift)
        type, number = (self.type, plain(other)) if shift else self.meet(other)
        a, b = (number, self.number) if swap else (self.number, number)
        if function in (operator.floordiv, operator.mod) and b == 0:
            b = 1
        if shift:
            b %= type.bits
        return Fixed(type, type(function(a, b)))

    def __bool__(self) -> bool:
        return bool(self.number)

    def __neg__(self) -> Fixed:
        return Fixed(self.type, self.type(-self.number))

    def __pos__(self) -> Fixed:
        return self

    def __invert__(self) -> Fixed:
        return Fixed(self.type, self.type(~int(self.number)))


def _install() -> None:
    for name in "add sub mul floordiv mod truediv and or xor lshift rshift".split():
        function = getattr(operator, f"__{name}__")
        setattr(Fixed, f"__{name}__", lambda a, b, f=function: a.operate(f, b))
        setattr(Fixed, f"__r{name}__", lambda a, b, f=function: a.operate(f, b, swap=True))
    for name in "lt le gt ge eq ne".split():
        function = getattr(operator, name)
        setattr(Fixed, f"__{name}__", lambda a, b, f=function: f(a.number, a.meet(b)[1]))


_install()


def plain(value: Any) -> Any:
    return value.number if isinstance(value, Fixed) else value


def fixed_range(*bounds: Any) -> Iterator[Any]:
    types = [b.type for b in bounds[:2] if isinstance(b, Fixed)]
    items = range(*map(plain, bounds))
    return (Fixed(types[-1], types[-1](i)) for i in items) if types else iter(items)


def extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*values: Any) -> Any:
        found = values[0]
        for value in values[1:]:
            type = found.meet(value)[0] if isinstance(found, Fixed) else value.type
            found = Fixed(type, type(choose(plain(found), plain(value))))
        return found

    return chosen


def fixed_abs(value: Any) -> Any:
    return Fixed(value.type, value.type(abs(value.number)))


class FixedArray(list[Any]):
    """An array: an index past its end is that of the last element."""

    def __init__(self, type: Callable[[int], Fixed], length: int) -> None:
        super().__init__(type(0) for _ in range(length))

    def at(self, index: Any) -> int:
        number = int(plain(index))
        return number if not isinstance(index, Fixed) or 0 <= number < len(self) else len(self) - 1

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(self.at(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        type = super().__getitem__(0).type
        super().__setitem__(self.at(index), Fixed(type, type(plain(value))))


def wrapped(value: Any) -> Any:
    """What a name of the function's module becomes."""
    if isinstance(value, Scalar) and value.kind is Kind.BOOL:
        return lambda x: bool(plain(x))
    if isinstance(value, Scalar):
        return lambda x: Fixed(value, value(plain(x)))
    if value is array:
        return FixedArray
    if value is as_bits:
        return lambda x: Fixed(_BITS[x.type.bits], int.from_bytes(x.type.pack(x.number), "little"))
    if isinstance(value, Device):
        return lambda *args: run(value, *args)
    return value


def run(function: Any, *args: Any) -> Any:
    """Call a Hook or Device; arguments and results are Python numbers, or Fixed inside."""
    signature = function.signature
    names = {name: wrapped(value) for name, value in function.function.__globals__.items()}
    names |= {"range": fixed_range, "min": extreme(min), "max": extreme(max), "abs": fixed_abs}
    code = FunctionType(function.function.__code__, names)
    given = [Fixed(p.type, p.type(plain(a))) for p, a in zip(signature.parameters, args, strict=True)]
    found = code(*given)
    several = found if isinstance(found, tuple) else (found,)
    typed = tuple(
        plain(v) if r.type.kind is Kind.BOOL else Fixed(r.type, r.type(plain(v)))
        for r, v in zip(signature.results, several, strict=True)
    )
    return typed if isinstance(found, tuple) else typed[0]
