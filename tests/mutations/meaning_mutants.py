"""Wrong meanings, made from right ones: a row of isa.semantics with one thing changed.

In: a row of a target's table and its meaning. Out: mutants, each of which says what to do in place of the instruction:
another row, another instruction, or another EXEC. None is written by hand: they follow from the primitives that a
meaning is made of, from the fields of rows that are data, and from the fields of the encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any

from luthier_py.isa import Access, Inst, OpFlag, OpInfo
from luthier_py.isa.semantics import Lanes, Scalar
from luthier_py.isa.semantics.algebra import BOOL, F32, U32, Kind, Prim, Type, Value, select
from luthier_py.isa.semantics.control import Action
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.lds import LoadToLds
from luthier_py.isa.semantics.matrix import Matrix
from luthier_py.isa.semantics.meaning import Variants
from luthier_py.isa.semantics.memory import Load, Modify, ScalarAtomic, ScalarLoad, ScalarStore, Store
from luthier_py.isa.semantics.readers.effects import collect_effects

MOST = 16  # mutants of one function by its steps, spread over all of them
CLAMP = "no saturation under clamp"


@dataclass(frozen=True, slots=True)
class Mutant:
    """``change`` makes another instruction of one; ``everywhere``: EXEC counts for nothing."""

    what: str
    row: Any
    change: Callable[[Inst], Inst] | None = None
    everywhere: bool = False


def mutants(op: OpInfo, row: Any) -> Iterator[Mutant]:
    """Of one row; those that its encoding allows."""
    if row is Action.NOTHING:
        return
    clamps = any(info.name == "clamp" for info in op.operands)
    yield from (each for each in meanings(row) if clamps or not each.what.startswith(("under clamp", CLAMP)))
    yield from encodings(op, row)


def meanings(row: Any) -> Iterator[Mutant]:
    """What is wrong whatever the encoding."""
    if isinstance(row, Lanes | Scalar):
        yield from _functions(row)
    elif isinstance(row, Variants):
        for number, each in enumerate(_functions(row.typical)):
            yield Mutant(each.what, Variants(_nth(row, number, each.what), row.looks_at_all))
    else:
        for what, other in _data(row):
            yield Mutant(what, other)


def _nth(row: Variants, number: int, what: str) -> Callable[[Any], Lanes]:
    """The same mutant in each situation; where the meaning is made otherwise there, none."""
    def of(situation: Any) -> Lanes:
        own = row.of(situation)
        found = next((each for k, each in enumerate(_functions(own)) if (k, each.what) == (number, what)), None)
        return own if found is None else found.row

    return of


# Functions of values: one primitive is another.
_ALIKE = {
    Prim.ADD: (Prim.SUB,), Prim.SUB: (Prim.ADD,), Prim.MUL: (Prim.ADD,), Prim.DIV: (Prim.MUL,), Prim.AND: (Prim.OR,),
    Prim.OR: (Prim.AND,), Prim.XOR: (Prim.OR,), Prim.SHL: (Prim.SHR,), Prim.SHR: (Prim.SHL,), Prim.EQ: (Prim.NE,),
    Prim.NE: (Prim.EQ,), Prim.LT: (Prim.LE,), Prim.LE: (Prim.LT,), Prim.UNORDERED: (Prim.NE, Prim.EQ),
    Prim.MIN: (Prim.MAX,), Prim.MAX: (Prim.MIN,), Prim.ADD_SAT: (Prim.ADD, Prim.SUB_SAT), Prim.SUB_SAT: (Prim.SUB,),
    Prim.FLOOR: (Prim.CEIL, Prim.TRUNC), Prim.CEIL: (Prim.FLOOR,), Prim.TRUNC: (Prim.RINT,), Prim.RINT: (Prim.TRUNC,),
    Prim.POPCOUNT: (Prim.CLZ,), Prim.CLZ: (Prim.CTZ,), Prim.CTZ: (Prim.CLZ,), Prim.EXP2: (Prim.LOG2,),
    Prim.LOG2: (Prim.EXP2,), Prim.SIN: (Prim.COS,), Prim.COS: (Prim.SIN,), Prim.TANH: (Prim.SIN,),
}  # fmt: skip
_ORDERED = frozenset({Prim.SUB, Prim.DIV, Prim.LT, Prim.LE, Prim.SHR, Prim.SHL, Prim.SELECT, Prim.SUB_SAT, Prim.FMA})
_SIGNED = frozenset({Prim.SHR, Prim.LT, Prim.LE, Prim.MIN, Prim.MAX, Prim.RESIZE, Prim.CONVERT, Prim.ADD_SAT,
                     Prim.SUB_SAT})
_GIVES_BACK = frozenset({Prim.SQRT, Prim.REVERSE, Prim.FLOOR})  # and the operand itself is of the result's type


class _Wrong:
    """Ops that pass all on to others, but one step. Mutable: how many steps there were."""

    def __init__(self, inner: Any, step: int, how: str) -> None:
        self.inner, self.step, self.how = inner, step, how
        self.steps = 0
        self.seen: list[tuple[str, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def wrap(self, value: Value) -> Value:
        return Value(self, value.type, value.ref)

    def unwrap(self, value: Value) -> Value:
        return Value(self.inner, value.type, value.ref)

    def constant(self, type: Type, value: int | float) -> Value:
        if self._next(("another constant",)):
            value = (not value) if type is BOOL else value + 1 if type.kind is not Kind.FLOAT else value * 2 or 1.0
        return self.wrap(self.inner.constant(type, value))

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        plain = [self.unwrap(operand) for operand in operands]
        if not self._next(_ways(prim, type, plain)):
            return self.wrap(self.inner.apply(prim, type, *plain))
        return self.wrap(self._wrongly(prim, type, plain))

    def _next(self, ways: tuple[str, ...]) -> bool:
        self.seen.append(ways)
        self.steps += 1
        return self.step == self.steps - 1

    def _wrongly(self, prim: Prim, type: Type, x: list[Value]) -> Value:
        apply, how = self.inner.apply, self.how
        if how == "operands swapped":
            first = 1 if prim is Prim.SELECT else 0 if prim is not Prim.FMA else 1
            x[first], x[first + 1] = x[first + 1], x[first]
        elif how == "the other sign":
            sign = _other_sign(x[0].type) if x[0].type.kind is not Kind.FLOAT else None
            if sign is None:
                return apply(Prim.BITS, type, apply(prim, _other_sign(type), *x))
            x = [apply(Prim.BITS, sign, each) if each.type == x[0].type else each for each in x]
            made = apply(prim, sign if type.kind in (Kind.UINT, Kind.SINT) and prim is not Prim.RESIZE else type, *x)
            return made if made.type == type else apply(Prim.BITS, type, made)
        elif how == "rounded twice":
            return apply(Prim.ADD, type, apply(Prim.MUL, type, x[0], x[1]), x[2])
        elif how == "rounded toward zero":
            return _cut(apply, self.inner, type, x[0])
        elif how == "left out":
            return x[0]
        elif how == "the next lane":
            return apply(Prim.ADD, U32, apply(prim, type), self.inner.constant(U32, 1))
        else:
            prim = Prim[how]
        return apply(prim, type, *x)


def _other_sign(type: Type) -> Type:
    return type.signed if type.kind is Kind.UINT else type.unsigned


def _cut(apply: Any, ops: Any, type: Type, wide: Value) -> Value:
    """A narrower float whose magnitude is never above the wide one's."""
    near = apply(Prim.CONVERT, type, wide)
    size = near.as_(type.unsigned) & ((1 << type.bits - 1) - 1)
    back = abs(apply(Prim.CONVERT, wide.type, near))
    return select(abs(wide) < back, near.as_(type.unsigned) - select(size.ne(0), ops.constant(size.type, 1), 0),
                  near.as_(type.unsigned)).as_(type)


def _ways(prim: Prim, type: Type, x: list[Value]) -> tuple[str, ...]:
    floats = bool(x) and x[0].type.kind is Kind.FLOAT
    ways = [other.name for other in _ALIKE.get(prim, ()) if not (
        x and x[0].type is BOOL and other in (Prim.SUB, Prim.LE, Prim.LT))]
    if prim is Prim.SQRT or prim is Prim.REVERSE:
        ways.append("left out")
    if prim is Prim.LANE:
        ways.append("the next lane")
    if prim in _ORDERED and (prim is not Prim.SHL and prim is not Prim.SHR):
        ways.append("operands swapped")
    if prim is Prim.FMA:
        ways.append("rounded twice")
    if prim is Prim.CONVERT and floats and type.kind is Kind.FLOAT and type.bits < x[0].type.bits:
        ways.append("rounded toward zero")
    integers = {Kind.UINT, Kind.SINT}
    if prim in _SIGNED and x[0].type is not BOOL and ({x[0].type.kind} <= integers or type.kind in integers):
        narrows = prim is Prim.RESIZE and type.bits <= x[0].type.bits
        if not narrows:
            ways.append("the other sign")
    return tuple(ways)


class _Trace:
    """Ops whose values are nothing; to see which steps a function takes."""

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, None)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        return Value(self, type, None)


def _functions(row: Lanes | Scalar) -> Iterator[Any]:
    for what, compute in _wrong(row, row.compute):
        yield Mutant(what, _with(row, compute=compute))
    for what, compute in _wrong(row, row.compute if isinstance(row, Scalar) else row.saturating):
        if isinstance(row, Lanes):
            yield Mutant(f"under clamp: {what}", _with(row, saturating=compute))
    yield from (Mutant(what, _with(row, compute=compute)) for what, compute in _swapped(row))
    if isinstance(row, Lanes):
        if row.saturating is not None:
            yield Mutant(CLAMP, _with(row, saturating=None))
        if any(slot.type.kind is Kind.FLOAT for slot in (*row.signature.sources, *row.signature.results)):
            yield Mutant("flushes what it keeps, or keeps what it flushes", _with(row, flushes=not row.flushes))


def _with(row: Lanes | Scalar, **changes: Any) -> Any:
    if isinstance(row, Scalar):
        return Scalar(row.signature, changes["compute"])
    return replace(row, **changes)


def _wrong(row: Lanes | Scalar, compute: Any) -> Iterator[tuple[str, Any]]:
    if compute is None:
        return
    tracer = _Wrong(_Trace(), -1, "")
    _called(compute, tracer, _typed(row, tracer.inner))
    every = [(step, how) for step, ways in enumerate(tracer.seen) for how in ways]
    for step, how in every[:: -(-len(every) // MOST) or 1]:
        yield f"step {step}: {how}", _broken(compute, step, how)


def _typed(row: Lanes | Scalar, ops: Any) -> list[Any]:
    wide = next((slot.type for slot in (*row.signature.results, *row.signature.sources) if slot.type.bits > 1), F32)
    packed = isinstance(row, Lanes) and row.packed
    found = []
    for slot in row.signature.sources:
        value = Value(ops, slot.type if slot.type.bits else wide, None)
        found.append((value,) * slot.count if slot.count > 1 and not packed else value)
    return found


def _called(compute: Any, ops: _Wrong, values: list[Any]) -> Any:
    wrapped = [tuple(map(ops.wrap, each)) if isinstance(each, tuple) else ops.wrap(each) for each in values]
    found = compute(*wrapped)
    return tuple(map(ops.unwrap, found)) if isinstance(found, tuple) else ops.unwrap(found)


def _broken(compute: Any, step: int, how: str) -> Any:
    def wrong(*values: Any) -> Any:
        first = values[0][0] if isinstance(values[0], tuple) else values[0]
        return _called(compute, _Wrong(first.ops, step, how), list(values))

    return wrong


def _swapped(row: Lanes | Scalar) -> Iterator[tuple[str, Any]]:
    """Two sources of one width in each other's place."""
    sources = row.signature.sources
    for i, first in enumerate(sources):
        for j in range(i + 1, len(sources)):
            second = sources[j]
            if (first.type.bits, first.count) == (second.type.bits, second.count) and first.type.bits:
                def compute(*values: Any, i: int = i, j: int = j) -> Any:
                    given = list(values)
                    given[i], given[j] = _as(values[j], values[i]), _as(values[i], values[j])
                    return row.compute(*given)

                yield f"sources {i} and {j} swapped", compute


def _as(value: Any, like: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_as(a, b) for a, b in zip(value, like, strict=True))
    return value.as_(like.type)


# Rows that are data: one field is another.
_WIDTHS = {4: (8,), 6: (4,), 8: (16, 32), 16: (8, 32), 32: (16, 64), 64: (32,)}
_WORDS = {"half": ("", "low", "high"), "kind": ("u", "i", "f", "p", "b")}


def _data(row: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(row, Enum):
        for other in type(row):
            if other is not row:
                yield f"{other.name} for {row.name}", other
        return
    for each in fields(row) if is_dataclass(row) else ():
        value = getattr(row, each.name)
        if _idle(row, each.name, value):
            continue
        if is_dataclass(value) and not isinstance(value, Lanes):
            yield from ((what, replace(row, **{each.name: other})) for what, other in _data(value)
                        if not (isinstance(row, ScalarAtomic) and what.startswith("compare_first")))  # of LDS alone
            continue
        for other in _others(each.name, value):
            if isinstance(row, Store) and other == "low" or isinstance(row, Load | Store | LoadToLds) and other == 64:
                continue  # where it is anyway; more than there are
            yield f"{each.name} is {_short(other)}", replace(row, **{each.name: other})


def _idle(row: Any, name: str, value: Any) -> bool:
    """Fields that do nothing here: no comparison, dwords without half, halves without sign, no fetch refused."""
    if name == "compare_first":
        return row.modify is not Modify.COMPARE_SWAP
    if name == "signed" and isinstance(row, Load) and row.half and row.bits == 16:
        return True
    if name in ("half", "signed", "bits") and isinstance(row, Load | Store | LoadToLds):
        return row.bits == 32 and (name != "bits" or row.dwords > 1)
    if name == "dwords" and isinstance(row, Load | Store | LoadToLds):
        return row.bits < 32
    if isinstance(row, ScalarLoad | ScalarStore) and name in ("signed", "bits") and row.bits == 32:
        return True
    if isinstance(row, FormatLoad | FormatStore) and name in ("high", "whole"):
        return not row.narrow or row.components > 1 or name == "whole" and row.high
    return name == "status" or name in ("by_lane", "buffer") and not value or name == "unit" and value == 1


def _short(value: Any) -> str:
    return value.name if isinstance(value, Enum) else str(value)[:60]


def _others(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, Enum):
        yield from (other for other in type(value) if other is not value)
    elif isinstance(value, int):
        if name == "per_lane":  # of A and B alike: another number changes the order of a sum at most
            return
        yield from _WIDTHS.get(value, ()) if name == "bits" else (value + 1, *((value - 1,) if value > 1 else ()))
    elif isinstance(value, str):
        yield from (other for other in _WORDS.get(name, ()) if other != value)
    elif isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, int) for each in value):
        yield (value[0] + 1, value[1])
        if value[1] <= 8:  # of numbers of registers, of which there are 256
            yield (value[0], value[1] - 1)
    elif isinstance(value, Lanes):
        yield from (each.row for each in _functions(value))


# Encodings: a field that nobody looks at.
_DEFAULTS = {
    "clamp": 0, "omod": 0, "dst_sel": 6, "src0_sel": 6, "src1_sel": 6, "dst_unused": 0, "row_mask": 15,
    "bank_mask": 15, "bound_ctrl": 0, "fi": 0, "dpp_ctrl": 0xE4, "dpp8": 0xFAC688, "offset": 0, "offset0": 0,
    "offset1": 0, "cbsz": 0, "abid": 0, "blgp": 0,
}  # fmt: skip
_MODIFIERS = {1: "neg", 2: "abs (neg_hi)", 4: "op_sel", 8: "op_sel_hi", 16: "sext"}
_VECTOR = OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS


def encodings(op: OpInfo, row: Any) -> Iterator[Mutant]:
    """What is wrong in this encoding of the meaning."""
    for info in op.operands:
        width = sum(1 << at for _, bits, at in info.segments for at in range(at, at + bits))
        if info.name.endswith("_modifiers"):
            for bit, word in _MODIFIERS.items():
                if width & bit:
                    kept = bit if op.format == "VOP3P" and bit == 8 else 0
                    yield Mutant(f"{word} of {info.name[:4]} is ignored", row, _setting(info.name, ~bit, kept))
        elif not _counts(info.name, row):
            continue
        elif info.name in _DEFAULTS or info.kind in ("dpp", "dpp64"):
            value = 0xE9 if info.name == "fi" and any(each.name == "dpp8" for each in op.operands) else _DEFAULTS.get(
                info.name, 0xE4)
            yield Mutant(f"{info.name} is ignored", row, _setting(info.name, 0, value))
            if info.name == "offset" and info.signed > 1 and not op.base.startswith("S_BUFFER"):  # below 0 is outside
                yield Mutant("the sign of offset is ignored", row, _setting("offset", (1 << info.signed) - 1, 0))
        elif info.kind.endswith("16lo") or info.kind == "v16":
            yield Mutant(f"the half of {info.name} is ignored", row, _setting(info.name, 0, 0))
        elif info.name in ("simm16", "imm") and Access.READ in info.access:
            yield Mutant(f"{info.name} is one more", row, _adding(info.name))
    if op.flags & _VECTOR and "exec" in collect_effects(op, row).reads:
        yield Mutant("EXEC is ignored", row, everywhere=True)


def _counts(name: str, row: Any) -> bool:
    """Whether a meaning like this looks at the field at all. CBSZ, ABID and BLGP of plain matrices are refused."""
    if name in ("cbsz", "abid", "blgp"):
        return not isinstance(row, Matrix)
    row = row.typical if isinstance(row, Variants) else row
    if name not in ("clamp", "omod") or not isinstance(row, Lanes):
        return True
    floats = any(slot.type.kind is Kind.FLOAT for slot in row.signature.results)
    return floats and row.clamps or name == "clamp" and row.saturating is not None


def _setting(name: str, mask: int, bits: int) -> Callable[[Inst], Inst]:
    return _changing(name, lambda value: value & mask | bits)


def _adding(name: str) -> Callable[[Inst], Inst]:
    return _changing(name, lambda value: value + 1)


def _changing(name: str, of: Callable[[int], int]) -> Callable[[Inst], Inst]:
    def change(inst: Inst) -> Inst:
        operands = tuple(replace(each, value=of(each.value)) if each.name == name else each for each in inst.operands)
        return Inst(inst.op, inst.fields, inst.literal, inst.raw, operands)

    return change
