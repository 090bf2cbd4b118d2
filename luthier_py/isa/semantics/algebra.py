"""The small algebra in which instruction semantics are written.

In: operand values of one instruction. Out: result values. A :class:`Value` carries a type and
Python's operators; every operator ends in one call of :meth:`Ops.apply`, so a reader of the
semantics (the LLVM translator, a symbolic executor, a taint analysis) implements two methods.
A value means one number for scalar instructions and one number in every lane for vector ones:
the semantics do not know which.

Invariant: no primitive is undefined for any input; shift amounts must be below the width.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Protocol

from luthier_py.base.records import dataclass


class Kind(Enum):
    """How the bits of a value are read; a BOOL has one."""

    __hash__ = object.__hash__  # a member is one object, and these are looked up often

    UINT = auto()
    SINT = auto()
    FLOAT = auto()
    BOOL = auto()


@dataclass(frozen=True, slots=True)
class Type:
    """A kind and a width in bits. In signatures the width is 0 where it is that of a lane mask or of the
    destination."""

    kind: Kind
    bits: int

    @property
    def mantissa_bits(self) -> int:
        """The width of a float's mantissa, as it is stored."""
        return {16: 10, 32: 23, 64: 52}[self.bits]

    def __str__(self) -> str:
        return {Kind.UINT: "u", Kind.SINT: "i", Kind.FLOAT: "f", Kind.BOOL: "b"}[self.kind] + str(self.bits)

    @property
    def unsigned(self) -> Type:
        """The unsigned integers of this width; `as_` of it gives the bits of a float."""
        return Type(Kind.UINT, self.bits)

    @property
    def signed(self) -> Type:
        """The signed integers of this width."""
        return Type(Kind.SINT, self.bits)


U4, U8, U16, U24, U32, U64, U128 = (Type(Kind.UINT, bits) for bits in (4, 8, 16, 24, 32, 64, 128))
I4, I8, I16, I24, I32, I64, I128 = (Type(Kind.SINT, bits) for bits in (4, 8, 16, 24, 32, 64, 128))
F16, F32, F64 = (Type(Kind.FLOAT, bits) for bits in (16, 32, 64))
BOOL = Type(Kind.BOOL, 1)


class Prim(Enum):
    """The primitives. Operands and result have one type unless said otherwise."""

    __hash__ = object.__hash__

    ADD = auto()         # integers wrap; floats round to nearest even
    SUB = auto()
    MUL = auto()
    DIV = auto()         # floats only
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()
    SHR = auto()         # arithmetic when signed
    EQ = auto()          # comparisons give BOOL; of floats all but NE are false on NaN
    NE = auto()          # of floats: unordered or different
    LT = auto()
    LE = auto()
    UNORDERED = auto()   # either operand is NaN
    MIN = auto()         # integers only
    MAX = auto()
    ADD_SAT = auto()     # integers: clamped to the type
    SUB_SAT = auto()
    SELECT = auto()      # (BOOL, a, b)
    BITS = auto()        # same bits, another type of the same width
    RESIZE = auto()      # integers: truncate, or extend by the kind of the operand; BOOL extends with zeros
    CONVERT = auto()     # number to number: to float rounds to nearest even, to integer truncates and clamps, NaN is 0
    FMA = auto()         # one rounding
    SQRT = auto()
    FLOOR = auto()
    CEIL = auto()
    TRUNC = auto()
    RINT = auto()        # to nearest even
    POPCOUNT = auto()
    CLZ = auto()         # the width for zero
    CTZ = auto()         # the width for zero
    REVERSE = auto()     # bits
    EXP2 = auto()        # transcendentals: within one unit in the last place
    LOG2 = auto()
    SIN = auto()         # of 2 pi x
    COS = auto()
    TANH = auto()
    LANE = auto()        # no operands: the lane's number


class Ops(Protocol):
    """What a reader of the semantics implements."""

    def constant(self, type: Type, value: int | float) -> Value: ...

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        """``prim`` of the operands, with a result of ``type``."""
        ...


class Value:
    """A typed value of some Ops; ``ref`` is that Ops' own value."""

    __slots__ = ("ops", "ref", "type")

    def __init__(self, ops: Ops, type: Type, ref: object) -> None:
        self.ops = ops
        self.type = type
        self.ref = ref

    def lift(self, other: Value | int | float) -> Value:
        """``other`` as a value of this one's type."""
        return other if isinstance(other, Value) else self.ops.constant(self.type, other)

    def _binary(self, prim: Prim, other: Value | int | float, type: Type | None = None) -> Value:
        return self.ops.apply(prim, type or self.type, self, self.lift(other))

    def __add__(self, other: Value | int | float) -> Value:
        return self._binary(Prim.ADD, other)

    def __sub__(self, other: Value | int | float) -> Value:
        return self._binary(Prim.SUB, other)

    def __rsub__(self, other: int | float) -> Value:
        return self.lift(other) - self

    def __mul__(self, other: Value | int | float) -> Value:
        return self._binary(Prim.MUL, other)

    def __truediv__(self, other: Value | int | float) -> Value:
        return self._binary(Prim.DIV, other)

    def __rtruediv__(self, other: int | float) -> Value:
        return self.lift(other) / self

    def __and__(self, other: Value | int) -> Value:
        return self._binary(Prim.AND, other)

    def __or__(self, other: Value | int) -> Value:
        return self._binary(Prim.OR, other)

    def __xor__(self, other: Value | int) -> Value:
        return self._binary(Prim.XOR, other)

    def __invert__(self) -> Value:
        return self ^ (1 if self.type is BOOL else -1)

    def __neg__(self) -> Value:
        """Integers: two's complement. Floats: the sign bit flipped, NaN too."""
        if self.type.kind is not Kind.FLOAT:
            return self.lift(0) - self
        return (self.as_(self.type.unsigned) ^ (1 << self.type.bits - 1)).as_(self.type)

    def __abs__(self) -> Value:
        if self.type.kind is not Kind.FLOAT:
            return select(self < 0, -self, self)
        return (self.as_(self.type.unsigned) & ((1 << self.type.bits - 1) - 1)).as_(self.type)

    def __lshift__(self, other: Value | int) -> Value:
        return self._binary(Prim.SHL, other)

    def __rlshift__(self, other: int) -> Value:
        return self.lift(other) << self

    def __rshift__(self, other: Value | int) -> Value:
        return self._binary(Prim.SHR, other)

    def __lt__(self, other: Value | int | float) -> Value:
        return self._binary(Prim.LT, other, BOOL)

    def __le__(self, other: Value | int | float) -> Value:
        return self._binary(Prim.LE, other, BOOL)

    def __gt__(self, other: Value | int | float) -> Value:
        return self.lift(other) < self

    def __ge__(self, other: Value | int | float) -> Value:
        return self.lift(other) <= self

    def eq(self, other: Value | int | float) -> Value:
        """BOOL: whether they are equal. Of floats -0 equals +0, and NaN equals nothing."""
        return self._binary(Prim.EQ, other, BOOL)

    def ne(self, other: Value | int | float) -> Value:
        """BOOL: whether they are different; of floats also where one is NaN."""
        return self._binary(Prim.NE, other, BOOL)

    def as_(self, type: Type) -> Value:
        """The same bits as another type of the same width."""
        return self if type == self.type else self.ops.apply(Prim.BITS, type, self)

    def to(self, type: Type) -> Value:
        """Integers: truncated, or extended by this value's kind. Floats and mixed: converted."""
        if type == self.type:
            return self
        if Kind.FLOAT in (type.kind, self.type.kind):
            return self.ops.apply(Prim.CONVERT, type, self)
        if type.bits == self.type.bits:
            return self.as_(type)
        return self.ops.apply(Prim.RESIZE, type, self)


def select(condition: Value, a: Value | int | float, b: Value | int | float) -> Value:
    """``a`` where the condition holds, else ``b``; one of them must be a Value."""
    if isinstance(a, Value):
        b = a.lift(b)
    elif isinstance(b, Value):
        a = b.lift(a)
    else:
        raise TypeError("select needs a Value to take its type from")
    return condition.ops.apply(Prim.SELECT, a.type, condition, a, b)


def unary(prim: Prim, a: Value) -> Value:
    """A primitive with one operand, whose type the result has."""
    return a.ops.apply(prim, a.type, a)


def minimum(a: Value, b: Value | int) -> Value:
    """The minimum of integers."""
    return a.ops.apply(Prim.MIN, a.type, a, a.lift(b))


def maximum(a: Value, b: Value | int) -> Value:
    """The maximum of integers."""
    return a.ops.apply(Prim.MAX, a.type, a, a.lift(b))


def add_sat(a: Value, b: Value) -> Value:
    """The sum of two integers, clamped to the range of their type."""
    return a.ops.apply(Prim.ADD_SAT, a.type, a, b)


def sub_sat(a: Value, b: Value) -> Value:
    """The difference of two integers, clamped to the range of their type."""
    return a.ops.apply(Prim.SUB_SAT, a.type, a, b)


def fma(a: Value, b: Value, c: Value) -> Value:
    """``a * b + c`` of floats, rounded once."""
    return a.ops.apply(Prim.FMA, a.type, a, b, c)


def is_unordered(a: Value, b: Value) -> Value:
    """BOOL: whether at least one of two floats is NaN."""
    return a.ops.apply(Prim.UNORDERED, BOOL, a, b)


def is_nan(a: Value) -> Value:
    """BOOL: whether a float is NaN, quiet or signalling."""
    return is_unordered(a, a)


def sqrt(a: Value) -> Value:
    """The square root of a float, rounded correctly; hardware may be off by one unit in the last place
    (`ImplementationDefined.NEAR`)."""
    return unary(Prim.SQRT, a)


def floor(a: Value) -> Value:
    """A float, rounded towards minus infinity; it stays a float."""
    return unary(Prim.FLOOR, a)


def ceil(a: Value) -> Value:
    """A float, rounded towards plus infinity; it stays a float."""
    return unary(Prim.CEIL, a)


def trunc(a: Value) -> Value:
    """A float, rounded towards zero; it stays a float."""
    return unary(Prim.TRUNC, a)


def rint(a: Value) -> Value:
    """A float, rounded to the nearest integer, ties to even; it stays a float."""
    return unary(Prim.RINT, a)


def popcount(a: Value) -> Value:
    """How many bits are 1, as a number of the operand's type."""
    return unary(Prim.POPCOUNT, a)


def clz(a: Value) -> Value:
    """How many zeros are above the highest 1; the width for zero, where S_FLBIT_I32 and its like give -1."""
    return unary(Prim.CLZ, a)


def ctz(a: Value) -> Value:
    """How many zeros are below the lowest 1; the width for zero, where S_FF1_I32 and its like give -1."""
    return unary(Prim.CTZ, a)


def reverse_bits(a: Value) -> Value:
    """The bits of an integer in reverse order."""
    return unary(Prim.REVERSE, a)


def lane_of(a: Value) -> Value:
    """The number of the lane, beside any value of that lane."""
    return a.ops.apply(Prim.LANE, U32)


def concat(high: Value, low: Value) -> Value:
    """Unsigned, twice as wide."""
    wide = Type(Kind.UINT, low.type.bits * 2)
    return (high.as_(high.type.unsigned).to(wide) << low.type.bits) | low.as_(low.type.unsigned).to(wide)


def high_half(a: Value) -> Value:
    """Unsigned, half as wide."""
    half = a.type.bits // 2
    return (a.as_(a.type.unsigned) >> half).to(Type(Kind.UINT, half))


def low_half(a: Value) -> Value:
    """The lower half of the bits, unsigned; of a float, too."""
    return a.as_(a.type.unsigned).to(Type(Kind.UINT, a.type.bits // 2))
