"""The algebra on strips of lanes, in forms that the host handles well.

In: primitives applied to vectors. Out: LLVM IR. Two kinds of values have more than one form, made
on demand: a mask is a vector of i1, or of i32 that are 0 or -1 (host masks have the width of
what they mask); a 64-bit integer is one vector, or its halves (as registers hold it, so that address
arithmetic needs no shuffles). Constants are folded, so that shifts by constants are seen.
"""

from __future__ import annotations

from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.emulator.vector_regions.rounding import RoundedOps
from luthier_py.isa.semantics.algebra import BOOL, I32, I64, U32, U64, Kind, Prim, Type, Value

_COMPARISONS = (Prim.EQ, Prim.NE, Prim.LT, Prim.LE)
_LOGIC = (Prim.AND, Prim.OR, Prim.XOR)


class Folded(str):
    """Text of a constant, with its value."""

    value: int

    @staticmethod
    def of(text: str, value: int) -> Folded:
        literal = Folded(text)
        literal.value = value
        return literal


class Mask:
    """A lane mask: ``flags`` is a vector of i1, ``wide`` one of i32; at least one of them is there."""

    __slots__ = ("flags", "wide")

    def __init__(self, flags: str = "", wide: str = "") -> None:
        self.flags = flags
        self.wide = wide


class Halves:
    """A 64-bit integer: ``low`` and ``high`` are vectors of i32, ``whole`` one of i64."""

    __slots__ = ("high", "low", "whole")

    def __init__(self, low: Value | None = None, high: Value | None = None, whole: str = "") -> None:
        self.low = low
        self.high = high
        self.whole = whole


class VectorOps(RoundedOps):
    """See the module."""

    def __init__(self, emitter: Emitter, lanes: int) -> None:
        super().__init__(emitter, lanes)
        self._words = f"<{lanes} x i32>"
        self._double = f"<{2 * lanes} x i32>"
        self._flags = f"<{lanes} x i1>"

    def constant(self, type: Type, value: int | float) -> Value:
        if type.kind is Kind.FLOAT or type is BOOL:
            return super().constant(type, value)
        known = int(value) & ((1 << type.bits) - 1)
        text = str(super().constant(type, known).ref)
        return Value(self, type, Folded.of(text, known))

    def text(self, value: Value) -> str:
        """LLVM's plain form: <n x i1> for masks, <n x i64> for 64-bit integers."""
        ref = value.ref
        if isinstance(ref, Mask):
            if not ref.flags:
                ref.flags = self.emitter.let(f"icmp slt {self._words} {ref.wide}, zeroinitializer")
            return ref.flags
        if isinstance(ref, Halves):
            if not ref.whole:
                ref.whole = self._join(ref)
            return ref.whole
        return str(ref)

    def _plain(self, value: Value) -> Value:
        return Value(self, value.type, self.text(value))

    def _join(self, halves: Halves) -> str:
        low, high = halves.low, halves.high
        assert low is not None and high is not None
        if isinstance(high.ref, Folded) and high.ref.value == 0:
            return self.emitter.let(f"zext {self._words} {low.ref} to {self.name(U64)}")
        order = "<" + ", ".join(f"i32 {i}, i32 {i + self.lanes}" for i in range(self.lanes)) + ">"
        pair = f"{self._words} {low.ref}, {self._words} {high.ref}"
        both = self.emitter.let(f"shufflevector {pair}, {self._double} {order}")
        return self.emitter.let(f"bitcast {self._double} {both} to {self.name(U64)}")

    def halves(self, value: Value) -> tuple[Value, Value]:
        """Low and high dwords of a 64-bit integer."""
        ref = value.ref
        if isinstance(ref, Folded):
            return self.constant(U32, ref.value), self.constant(U32, ref.value >> 32)
        if not isinstance(ref, Halves):
            ref = value.ref = Halves(whole=str(ref))
        if ref.low is None or ref.high is None:
            both = self.emitter.let(f"bitcast {self.name(U64)} {ref.whole} to {self._double}")
            ref.low, ref.high = (self._every_second(both, first) for first in (0, 1))
        return ref.low, ref.high

    def _every_second(self, both: str, first: int) -> Value:
        picked = ", ".join(f"i32 {2 * i + first}" for i in range(self.lanes))
        return self.let(U32, f"shufflevector {self._double} {both}, {self._double} poison, {self._words} <{picked}>")

    def wide(self, mask: Value) -> Value:
        """A mask as i32 that are 0 or -1."""
        ref = mask.ref
        if not isinstance(ref, Mask):
            ref = mask.ref = Mask(flags=str(ref))
        if not ref.wide:
            ref.wide = self.emitter.let(f"sext {self._flags} {ref.flags} to {self._words}")
        return Value(self, U32, ref.wide)

    def join_halves(self, low: Value, high: Value, type: Type = U64) -> Value:
        return Value(self, type, Halves(low, high))

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        folded = self._fold(prim, type, operands)
        if folded is not None:
            return folded
        first = operands[0].type if operands else type
        if prim in _LOGIC and type is BOOL:
            return Value(self, BOOL, Mask(wide=str(super().apply(prim, U32, *map(self.wide, operands)).ref)))
        if prim is Prim.RESIZE:
            return self._resize(type, operands[0])
        if prim is Prim.SELECT and _is_wide(type):
            return self._select(type, *operands)
        if prim is Prim.BITS and _is_wide(type) and _is_wide(first):
            return Value(self, type, operands[0].ref)
        if _is_wide(first) and prim in (*_COMPARISONS, *_LOGIC, Prim.ADD, Prim.SUB, Prim.SHL, Prim.SHR):
            split = self._on_halves(prim, type, *operands)
            if split is not None:
                return split
        return super().apply(prim, type, *map(self._plain, operands))

    def _fold(self, prim: Prim, type: Type, operands: tuple[Value, ...]) -> Value | None:
        """Constants, and operations that change nothing."""
        values = [operand.ref.value if isinstance(operand.ref, Folded) else None for operand in operands]
        if prim is Prim.RESIZE and values[0] is not None and operands[0].type.kind is Kind.UINT:
            return self.constant(type, values[0])
        if len(values) != 2 or type.kind not in (Kind.UINT, Kind.SINT):
            return None
        a, b = values
        if b == 0 and prim in (Prim.OR, Prim.XOR, Prim.ADD, Prim.SUB, Prim.SHL, Prim.SHR):
            return operands[0]
        if a == 0 and prim in (Prim.OR, Prim.XOR, Prim.ADD):
            return operands[1]
        if 0 in (a, b) and prim is Prim.AND:
            return self.constant(type, 0)
        if a is not None and b is not None and prim is Prim.AND:
            return self.constant(type, a & b)
        return None

    def _resize(self, type: Type, value: Value) -> Value:
        source = value.type
        if source is BOOL:
            bit = super().apply(Prim.AND, U32, self.wide(value), self.constant(U32, 1))
            return bit if type.bits == 32 else bit.to(type)
        if _is_wide(type):
            narrow = value if source.bits == 32 else value.to(I32 if source.kind is Kind.SINT else U32)
            high = (narrow.as_(I32) >> 31).as_(U32) if source.kind is Kind.SINT else self.constant(U32, 0)
            return self.join_halves(narrow.as_(U32), high, type)
        if _is_wide(source) and type.bits <= 32:
            low, _ = self.halves(value)
            return low.as_(type) if type.bits == 32 else low.to(type)
        return super().apply(Prim.RESIZE, type, self._plain(value))

    def _select(self, type: Type, condition: Value, a: Value, b: Value) -> Value:
        parts = [super(VectorOps, self).apply(Prim.SELECT, U32, self._plain(condition), x, y)
                 for x, y in zip(self.halves(a), self.halves(b), strict=True)]
        return self.join_halves(parts[0], parts[1], type)

    def _on_halves(self, prim: Prim, type: Type, a: Value, b: Value) -> Value | None:
        """Operations on 64-bit integers that are cheaper on halves; None for the others."""
        if prim in (Prim.SHL, Prim.SHR):
            return self._shift(prim, a, b.ref.value) if isinstance(b.ref, Folded) else None
        (a_low, a_high), (b_low, b_high) = self.halves(a), self.halves(b)
        if prim in _LOGIC:
            return self.join_halves(self.apply(prim, U32, a_low, b_low), self.apply(prim, U32, a_high, b_high), type)
        if prim is Prim.ADD:
            low = a_low + b_low
            return self.join_halves(low, a_high + b_high - self.wide(low < a_low), type)
        if prim is Prim.SUB:
            return self.join_halves(a_low - b_low, a_high - b_high + self.wide(a_low < b_low), type)
        if prim in (Prim.EQ, Prim.NE):
            different = (a_low ^ b_low) | (a_high ^ b_high)
            return different.eq(0) if prim is Prim.EQ else different.ne(0)
        if a.type == I64:
            a_high, b_high = a_high.as_(I32), b_high.as_(I32)
        below = a_low <= b_low if prim is Prim.LE else a_low < b_low
        return (a_high < b_high) | (a_high.eq(b_high) & below)

    def _shift(self, prim: Prim, a: Value, amount: int) -> Value:
        low, high = self.halves(a)
        if a.type == I64 and prim is Prim.SHR:
            high = high.as_(I32)
        if prim is Prim.SHL:
            if amount >= 32:
                return self.join_halves(self.constant(U32, 0), low << (amount - 32), a.type)
            return self.join_halves(low << amount, (high << amount) | (low >> (32 - amount)), a.type)
        if amount >= 32:
            filled = high >> 31 if high.type == I32 else self.constant(U32, 0)
            return self.join_halves((high >> (amount - 32)).as_(U32), filled.as_(U32), a.type)
        moved = (low >> amount) | (high.as_(U32) << (32 - amount))
        return self.join_halves(moved, (high >> amount).as_(U32), a.type)


def _is_wide(type: Type) -> bool:
    return type.bits == 64 and type.kind is not Kind.FLOAT
