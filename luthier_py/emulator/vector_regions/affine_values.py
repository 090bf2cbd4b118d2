"""The algebra on strips of lanes where much is the same in every lane, or grows by the same from lane to lane.

In: primitives applied to vectors. Out: for such operands a few scalar instructions before the region's loop, and
vectors only where code needs them. A :class:`AffineValue` is ``first + step * lane``, of 32 bits, which wrap; a
:class:`SameMask` has one flag for all lanes. Invariant: both are exact where the conditions hold that they made the
strip require, and where the rows that they come from (``roots``, a bit mask) are affine values, which it checks, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from luthier_py.base.records import dataclass
from luthier_py.emulator.vector_regions.emitter import Emitter
from luthier_py.emulator.vector_regions.vectors import Folded, Mask, VectorOps
from luthier_py.isa.semantics.algebra import BOOL, U32, Kind, Prim, Type, Value

ScalarWord = int | str
"""A scalar of 32 bits: known, or the name of an i32."""
_ALL = (1 << 32) - 1
_STEPWISE = {Prim.ADD: "add", Prim.SUB: "sub"}
_SAME = {Prim.AND: "and", Prim.OR: "or", Prim.XOR: "xor"}
_ORDER = {Prim.LT: "lt", Prim.LE: "le", Prim.EQ: "eq", Prim.NE: "ne"}
_ADDRESS_BITS = 16
"""Of an affine value only what is above so many bits may be the same in all lanes: in its neighbours' it hardly is."""


@dataclass(slots=True, eq=False)
class AffineValue:
    """``plain`` writes it as a vector, at its first use; of ``operands``."""

    first: ScalarWord
    step: ScalarWord
    roots: int
    plain: Callable[[], str]
    operands: tuple[Value, ...] = ()
    text: str = ""

    def __str__(self) -> str:
        """Operands are written first, from a list: code may be longer than Python's stack is deep."""
        unwritten = [] if self.text else [self]
        while unwritten:
            one = unwritten[-1]
            before = [each.ref for each in reversed(one.operands)
                      if isinstance(each.ref, AffineValue) and not each.ref.text]
            unwritten += before
            if not before:
                unwritten.pop()
                one.text = one.text or one.plain()
        return self.text


class Conditions(Protocol):
    """Of a region, tested before its loop."""

    def before(self, expression: str) -> str:
        """A value worked out before the loop, once."""
        ...

    def require(self, condition: str, roots: int = 0) -> None:
        """The loop may only be entered where the i1 holds, and ``roots`` are affine values."""
        ...

    def last_lane(self) -> int:
        """The number of the wave's last lane."""


class SameMask(Mask):
    """``flag``: an i1, in every lane."""

    __slots__ = ("_conditions", "_lanes", "flag", "roots")

    def __init__(self, conditions: Conditions, lanes: int, flag: str, roots: int) -> None:
        self._conditions, self._lanes, self.flag, self.roots = conditions, lanes, flag, roots

    @property
    def flags(self) -> str:  # type: ignore[override]
        return self._everywhere("i1", self.flag)

    @property
    def wide(self) -> str:  # type: ignore[override]
        return self._everywhere("i32", self._conditions.before(f"sext i1 {self.flag} to i32"))

    def _everywhere(self, kind: str, value: str) -> str:
        vector = f"<{self._lanes} x {kind}>"
        one = self._conditions.before(f"insertelement {vector} poison, {kind} {value}, i64 0")
        return self._conditions.before(f"shufflevector {vector} {one}, {vector} poison, <{self._lanes} x i32> "
                                       "zeroinitializer")


class AffineOps(VectorOps):
    """See the module."""

    def __init__(self, emitter: Emitter, lanes: int, conditions: Conditions) -> None:
        super().__init__(emitter, lanes)
        self._conditions = conditions

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        even = self._evenly(prim, type, operands)
        return super().apply(prim, type, *operands) if even is None else even

    def wide(self, mask: Value) -> Value:
        if isinstance(mask.ref, SameMask):
            same = mask.ref
            first = self._conditions.before(f"sext i1 {same.flag} to i32")
            return self.affine_value(U32, AffineValue(first, 0, same.roots, lambda: same.wide))
        return super().wide(mask)

    def affine_value(self, type: Type, affine_value: AffineValue) -> Value:
        """A value that is the affine value; the vector is written where an operation first needs it."""
        return Value(self, type, affine_value)

    def term(self, value: Value) -> AffineValue | None:
        """The value as an affine value, if it is one."""
        ref = value.ref
        if isinstance(ref, AffineValue):
            return ref
        if isinstance(ref, Folded) and value.type.bits == 32:
            return AffineValue(ref.value, 0, 0, lambda: str(ref))
        return None

    def word(self, name: str, a: ScalarWord, b: ScalarWord) -> ScalarWord:
        """Of two scalars."""
        if isinstance(a, int) and isinstance(b, int):
            return _KNOWN[name](a, b) & _ALL
        if b == 0 and name in ("add", "sub", "or", "xor", "shl", "lshr", "ashr"):
            return a
        if a == 0 and name in ("add", "or", "xor"):
            return b
        if 0 in (a, b) and name in ("mul", "and"):
            return 0
        return self._conditions.before(f"{name} i32 {a}, {b}")

    def last(self, one: AffineValue) -> ScalarWord:
        """In the last lane of the wave."""
        return self.word("add", one.first, self.word("mul", one.step, self._conditions.last_lane()))

    def require_no_wrap(self, one: AffineValue, signed: bool = False) -> None:
        """From the first lane to the last it is what integers would be that do not wrap."""
        if one.step == 0:
            return
        before, extend = self._conditions.before, "sext" if signed else "zext"
        first, step = before(f"{extend} i32 {one.first} to i64"), before(f"sext i32 {one.step} to i64")
        way = before(f"mul i64 {step}, {self._conditions.last_lane()}")
        last = before(f"add i64 {first}, {way}")
        short = before(f"trunc i64 {last} to i32")
        back = before(f"{extend} i32 {short} to i64")
        self._conditions.require(before(f"icmp eq i64 {last}, {back}"), one.roots)

    def _evenly(self, prim: Prim, type: Type, operands: tuple[Value, ...]) -> Value | None:
        """The result as an affine value or one flag; None if it is none, or not known to be."""
        if type is BOOL:
            return self._flag(prim, operands)
        if type.bits != 32 or type.kind is Kind.FLOAT:
            return None
        plain = self._later(prim, type, operands)
        if prim is Prim.LANE:
            return self.affine_value(type, AffineValue(0, 1, 0, plain))
        if prim is Prim.RESIZE and isinstance(operands[0].ref, SameMask):
            same = operands[0].ref
            return self.affine_value(type, AffineValue(
                self._conditions.before(f"zext i1 {same.flag} to i32"), 0, same.roots, plain))
        if prim is Prim.SELECT:
            return self._select_affine_value(type, operands, plain)
        terms = [self.term(operand) for operand in operands]
        known = [term for term in terms if term is not None]
        found = self._compute_affine_value(prim, type, known) if len(known) == len(terms) else None
        if found is None:
            return None
        if isinstance(found[0], int) and found[1] == 0:
            return self.constant(type, found[0])
        roots = 0
        for one in known:
            roots |= one.roots
        return self.affine_value(type, AffineValue(*found, roots, plain, operands))

    def _later(self, prim: Prim, type: Type, operands: tuple[Value, ...]) -> Callable[[], str]:
        """What writes the operation on vectors."""
        arithmetic = self.arithmetic

        def write() -> str:
            with self.use_arithmetic(arithmetic):
                return self.text(VectorOps.apply(self, prim, type, *operands))

        return write

    def _compute_affine_value(self, prim: Prim, type: Type,
                              terms: list[AffineValue]) -> tuple[ScalarWord, ScalarWord] | None:
        """First and step of an operation on affine values."""
        a, b = terms[0], terms[-1]
        if prim is Prim.BITS:
            return a.first, a.step
        if prim in _STEPWISE:
            name = _STEPWISE[prim]
            return self.word(name, a.first, b.first), self.word(name, a.step, b.step)
        if prim is Prim.MUL and b.step == 0 or prim is Prim.SHL and b.step == 0:
            name = "mul" if prim is Prim.MUL else "shl"
            return self.word(name, a.first, b.first), self.word(name, a.step, b.first)
        if prim is Prim.MUL and a.step == 0:
            return self.word("mul", a.first, b.first), self.word("mul", a.first, b.step)
        if prim is Prim.SHR and b.step == 0:
            return self._shift_right(type, a, b)
        if prim in _SAME and all(term.step == 0 for term in terms):
            return self.word(_SAME[prim], a.first, b.first), 0
        return None

    def _shift_right(self, type: Type, a: AffineValue, amount: AffineValue) -> tuple[ScalarWord, ScalarWord] | None:
        """To the right: what is above, if that is the same in all lanes."""
        name = "ashr" if type.kind is Kind.SINT else "lshr"
        if a.step == 0:
            return self.word(name, a.first, amount.first), 0
        if type.kind is Kind.SINT or not isinstance(amount.first, int) or amount.first < _ADDRESS_BITS:
            return None
        first, last = (self.word(name, value, amount.first) for value in (a.first, self.last(a)))
        self.require_no_wrap(a)
        self._conditions.require(self._conditions.before(f"icmp eq i32 {first}, {last}"), a.roots)
        return first, 0

    def _select_affine_value(self, type: Type, operands: tuple[Value, ...], plain: Callable[[], str]) -> Value | None:
        condition, a, b = operands[0].ref, self.term(operands[1]), self.term(operands[2])
        if not isinstance(condition, SameMask) or a is None or b is None:
            return None
        first, step = (self._conditions.before(f"select i1 {condition.flag}, i32 {x}, i32 {y}") if x != y else x
                       for x, y in ((a.first, b.first), (a.step, b.step)))
        return self.affine_value(type, AffineValue(first, step, condition.roots | a.roots | b.roots, plain, operands))

    def _flag(self, prim: Prim, operands: tuple[Value, ...]) -> Value | None:
        """Of logic on flags that are the same everywhere, and of comparisons that come out so."""
        if prim in _SAME:
            masks = [operand.ref for operand in operands]
            a, b = masks[0], masks[-1]
            if not isinstance(a, SameMask) or not isinstance(b, SameMask):
                return None
            return self._same(self._conditions.before(f"{_SAME[prim]} i1 {a.flag}, {b.flag}"), a.roots | b.roots)
        if prim not in _ORDER or operands[0].type.bits != 32 or operands[0].type.kind not in (Kind.UINT, Kind.SINT):
            return None
        a, b = map(self.term, operands)
        return None if a is None or b is None else self._compare_affine_values(prim, operands[0].type, a, b)

    def _compare_affine_values(self, prim: Prim, type: Type, a: AffineValue, b: AffineValue) -> Value | None:
        """Neither wraps, so their difference has the sign everywhere that it has at both ends."""
        signed, before = type.kind is Kind.SINT, self._conditions.before
        name = ("s" if signed else "u") * (prim in (Prim.LT, Prim.LE)) + _ORDER[prim]
        first, roots = before(f"icmp {name} i32 {a.first}, {b.first}"), a.roots | b.roots
        if a.step == 0 and b.step == 0:
            return self._same(first, roots)
        if prim not in (Prim.LT, Prim.LE):
            return None
        for one in (a, b):
            self.require_no_wrap(one, signed)
        last = before(f"icmp {name} i32 {self.last(a)}, {self.last(b)}")
        self._conditions.require(before(f"icmp eq i1 {first}, {last}"), roots)
        return self._same(first, roots)

    def _same(self, flag: str, roots: int) -> Value:
        return Value(self, BOOL, SameMask(self._conditions, self.lanes, flag, roots))


_KNOWN: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "and": int.__and__, "or": int.__or__,
    "xor": int.__xor__, "shl": int.__lshift__, "lshr": int.__rshift__,
    "ashr": lambda a, b: (a - ((a >> 31) << 32)) >> b,
}  # fmt: skip
