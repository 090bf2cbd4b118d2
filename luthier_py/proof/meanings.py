"""What scalar instructions compute, as terms: the one place where the proof reads isa/semantics for values.

In: an instruction and what its sources hold. Out: what its results hold. Invariant: a term that is not UNKNOWN is what
the instruction computes in every run.

A term is an int (bits), or a tuple: ("reg", n) is what register n held at the start; ("lo", a) and ("hi", a) are halves
of the address at which what the object has at ``a`` is loaded; ("cat", low, high) is both halves of 64 bits;
("flag", t) is 1 where t holds, else 0; ("some", t) holds where t is not 0.
What a wave starts with (`birth`) is ("initial", what, dword); ("first", t) is what its first lane has; of those and of
trap registers alone sums of bits are terms: ("shl", t, n), ("or", t, u)... All bits of t the other way round are
("not", t). ("taken", a, n) is what an address, the lower half of which is ``a``, loses of its upper half when n, of 64
bits, is subtracted. The sum of what two registers held is ("sum", t, u), of 32 bits, and ("carry", t, u) what that
leaves over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from luthier_py.isa import SCC, TTMP0, Inst, Operand, OperandKind
from luthier_py.isa.encoding.instruction import OpInfo
from luthier_py.isa.semantics import Lanes, Scalar, find_meaning
from luthier_py.isa.semantics.algebra import BOOL, U32, Kind, Prim, Type, Value
from luthier_py.isa.semantics.meaning import SignaturePart
from luthier_py.proof.code import number

Term: TypeAlias = Any
UNKNOWN: Term = ("unknown",)
_LOW = (1 << 32) - 1
_WIDE = (1 << 64) - 1
_NAMED = frozenset({"initial", "first", "shl", "shr", "or", "and", "more than"})
_TRAP_REGISTERS = range(TTMP0, TTMP0 + 16)
_SUMMANDS = _NAMED | {"reg"}
_DESTINATIONS = ("sdst", "vdst")
_MODIFIERS = ("src0_modifiers", "src1_modifiers", "src2_modifiers", "clamp", "omod", "op_sel")
_VALUES = ("src0", "src1", "src2", "imm", "simm16")


@cache
def sources_of(op: OpInfo) -> tuple[tuple[SignaturePart, str | None], ...]:
    """For each source of a value's meaning its slot and the operand that it comes from; None where it is a register
    that the slot names."""
    row = find_meaning(op)
    assert isinstance(row, (Scalar, Lanes))
    names = [info.name for info in op.operands if info.name in _VALUES]
    destination = next((info.name for info in op.operands if info.name in _DESTINATIONS), None)
    plain = sum(not slot.special for slot in row.signature.sources)
    if isinstance(row, Scalar) and len(names) < plain and destination is not None:
        names.insert(0, destination)
    found: list[tuple[SignaturePart, str | None]] = []
    for slot in row.signature.sources:
        if slot.name == "old":
            found.append((slot, destination))
        elif slot.special:
            found.append((slot, None))
        else:
            found.append((slot, names.pop(0) if names else None if slot.name == "b" else destination))
    return tuple(found)


class _Terms:
    """Ops of terms."""

    def constant(self, type: Type, value: int | float) -> Value:
        if isinstance(value, float) or type.kind is Kind.FLOAT:
            return Value(self, type, UNKNOWN)
        return Value(self, type, value & (1 << type.bits) - 1)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        rule = _RULES.get(prim)
        return Value(self, type, UNKNOWN if rule is None else rule(type, operands))


TERMS = _Terms()
_OF_ADDRESSES = frozenset({
    Prim.ADD, Prim.SUB, Prim.MUL, Prim.AND, Prim.OR, Prim.SHL, Prim.SHR, Prim.EQ, Prim.NE, Prim.LT, Prim.LE,
    Prim.SELECT, Prim.BITS, Prim.RESIZE})  # fmt: skip


class _Mangled:
    """Ops that note whether others than those of addresses were used for a value."""

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, False)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        others = prim not in _OF_ADDRESSES or type.kind is Kind.FLOAT
        return Value(self, type, others or any(operand.ref for operand in operands))


_MANGLED = _Mangled()


@cache
def mangles(op: OpInfo) -> bool:
    """Whether an operation makes of an address what is none: it does more than add, shift, mask and choose. Conditions
    that it makes beside, as that a sum of signed numbers overflows, are no addresses anyway."""
    row = find_meaning(op)
    if not isinstance(row, (Scalar, Lanes)) or any(slot.count > 1 for slot in row.signature.sources):
        return False
    types = [slot.type if slot.type.bits else Type(Kind.UINT, 32) for slot in row.signature.sources]
    made = row.compute(*(Value(_MANGLED, type, False) for type in types))
    values = made if isinstance(made, tuple) else (made,)
    conditions = len(values) > 1
    return any(value.ref for slot, value in zip(row.signature.results, values, strict=True)
               if not (conditions and slot.type == BOOL))


Operands = tuple[Value, ...]


def _refs(operands: Operands) -> list[Term]:
    return [operand.ref for operand in operands]


def _bits(type: Type, operands: Operands) -> Term:
    return operands[0].ref


def _add(type: Type, operands: Operands) -> Term:
    a, b = _refs(operands)
    if type.kind is Kind.FLOAT:
        return UNKNOWN  # -0.0 + 0 is not what it was, nor are denormals
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int) and isinstance(b, int):
        return a + b & (1 << type.bits) - 1
    if b == 0:
        return a
    if isinstance(b, int) and a[0] == "zext" and a[1][0] == "taken":
        return "zext", ("taken", a[1][1], a[1][2] + (b << 32))
    if a[0] == "lo" and isinstance(b, int):
        return "lo", a[1] + b & _LOW
    if isinstance(b, int) and a[0] == "cat" and isinstance(a[2], tuple) and a[2][0] == "hi" and a == address(a[2][1]):
        return address(a[2][1] + b)
    if a[0] == "zext" and a[1][0] == "hi" and isinstance(b, int):
        return "high sum", a[1][1] + (b << 32)
    if not isinstance(b, int) and b[0] == "zext" and b[1][0] == "below":
        if a[0] == "zext" and a[1][0] == "hi":
            a = "high sum", a[1][1]
        total, before = b[1][1], b[1][2]
        if a[0] == "high sum" and a[1] & _LOW == before:
            return "high", a[1] + (total - before & _LOW) & _WIDE
    if a[0] == "zext" and _is_summand(a[1]) and not isinstance(b, int) and b[0] == "zext" and b[1][0] == "carry":
        return "zext sum", a[1], b[1]
    return ("sum", a, b) if type.bits == 32 and _is_summand(a) and _is_summand(b) else UNKNOWN


def _subtract(type: Type, operands: Operands) -> Term:
    a, b = _refs(operands)
    if type.kind is Kind.FLOAT:
        return UNKNOWN
    if isinstance(a, int):
        return _make_folding_rule(int.__sub__)(type, operands)
    if a[0] == "lo" and isinstance(b, int):
        return "lo", a[1] - b & _LOW
    if a[0] == "zext" and a[1][0] == "hi":
        address = a[1][1]
        if b == 0:
            return a
        if not isinstance(b, int) and b[0] == "zext" and b[1][0] == "taken" and b[1][1] == address & _LOW:
            return "high", address - b[1][2] & _WIDE
    return UNKNOWN


def _is_summand(term: Term) -> bool:
    return isinstance(term, tuple) and term[0] in _SUMMANDS


def sum_of(start: tuple[Term, ...], offset: Term) -> tuple[Term, Term]:
    """Halves of ``start``, of 64 bits, plus ``offset``, of 32."""
    return ("sum", start[0], offset), ("sum", start[1], ("carry", start[0], offset))


def address(at: int) -> Term:
    """Where what the object has at ``at`` is loaded."""
    return "cat", ("lo", at & _LOW), ("hi", at & _WIDE)


def _resize(type: Type, operands: Operands) -> Term:
    (a,), have = _refs(operands), operands[0].type
    if isinstance(a, int):
        if have.kind is Kind.SINT and a >> have.bits - 1:
            a -= 1 << have.bits
        return a & (1 << type.bits) - 1
    if type.bits == 32 and a[0] == "cat":
        return a[1]
    if type.bits == 32 and a[0] == "high":
        return "hi", a[1]
    if type.bits == 32 and a[0] == "high sum":
        return "hi", a[1] & _WIDE
    if type.bits == 32 and a[0] == "zext sum":
        return "sum", a[1], a[2]
    if type.bits == 64 and have.kind is not Kind.SINT:
        return "zext", a
    if type.bits == 16 and a[0] == "hi":
        return "low of hi", a[1]
    if type.bits == 32 and a[0] == "low of hi" and have.kind is Kind.SINT:
        return "hi", a[1]  # addresses have no more than 48 bits; s_getpc leaves the sign of the upper half to this
    return UNKNOWN


def _below(type: Type, operands: Operands) -> Term:
    (a, b), of = _refs(operands), operands[0].type
    if of.kind is Kind.FLOAT:
        return UNKNOWN
    if isinstance(a, int) and isinstance(b, int):
        if of.kind is Kind.SINT:
            half = 1 << of.bits - 1
            a, b = a ^ half, b ^ half
        return int(a < b)
    if of.kind is Kind.SINT:
        return UNKNOWN  # halves of addresses and sums have no sign
    if not isinstance(a, int) and not isinstance(b, int) and a[0] == b[0] == "lo":
        return "below", a[1], b[1]
    if isinstance(a, tuple) and a[0] == "lo" and isinstance(b, int):
        return ("taken", a[1], b) if of == U32 else UNKNOWN
    return ("carry", a[1], a[2]) if isinstance(a, tuple) and a[0] == "sum" and b == a[1] else UNKNOWN


def _equal(wanted: bool) -> Callable[[Type, Operands], Term]:
    def rule(type: Type, operands: Operands) -> Term:
        a, b = _refs(operands)
        if operands[0].type.kind is Kind.FLOAT:
            return UNKNOWN  # -0.0 is 0.0, and NaN is nothing
        if isinstance(a, int) and isinstance(b, int):
            return int((a == b) is wanted)
        if wanted or b != 0 or isinstance(a, int) or a == UNKNOWN:
            return UNKNOWN
        return a[1] if a[0] == "flag" else ("some", a)

    return rule


def _select(type: Type, operands: Operands) -> Term:
    condition, a, b = _refs(operands)
    if isinstance(condition, int):
        return a if condition else b
    return a if a == b else ("flag", condition) if (a, b) == (1, 0) and condition != UNKNOWN else UNKNOWN


def _is_named(term: Term) -> bool:
    """Whether what is done to it has a name."""
    return not isinstance(term, int) and (term[0] in _NAMED or term[0] == "reg" and term[1] in _TRAP_REGISTERS)


def _both(name: str, compute: Callable[[int, int], int]) -> Callable[[Type, Operands], Term]:
    """Of bits, in any order."""
    folded = _make_folding_rule(compute)

    def rule(type: Type, operands: Operands) -> Term:
        a, b = _refs(operands)
        if not _is_named(a):
            a, b = b, a
        if not _is_named(a) or not (isinstance(b, int) or _is_named(b)):
            return folded(type, operands)
        return a[1] if (name, a[0], a[-1]) == ("and", "more than", b) else (name, a, b)

    return rule


def _make_shift_rule(name: str, compute: Callable[[int, int], int]) -> Callable[[Type, Operands], Term]:
    folded = _make_folding_rule(compute)

    def rule(type: Type, operands: Operands) -> Term:
        a, b = _refs(operands)
        return (name, a, b) if _is_named(a) and isinstance(b, int) else folded(type, operands)

    return rule


def _shift_right(type: Type, operands: Operands) -> Term:
    a, b = _refs(operands)
    if type.kind is not Kind.SINT:
        return _SHIFTED_DOWN(type, operands)
    if not isinstance(a, int) or not isinstance(b, int):
        return UNKNOWN
    return (a - (a >> type.bits - 1 << type.bits) >> (b & 63)) & (1 << type.bits) - 1


def _flip_bits(type: Type, operands: Operands) -> Term:
    """All bits of a term are another one, and of that the first again."""
    a, b = _refs(operands)
    if isinstance(a, int):
        a, b = b, a
    whole = (1 << type.bits) - 1
    if isinstance(a, int):
        return a ^ b & whole
    return _not(a) if b == whole else UNKNOWN


def _not(term: Term) -> Term:
    if isinstance(term, int):
        return term ^ _LOW
    if term == UNKNOWN or term[0] == "not":
        return UNKNOWN if term == UNKNOWN else term[1]
    return ("cat", _not(term[1]), _not(term[2])) if term[0] == "cat" else ("not", term)


def _make_folding_rule(compute: Callable[[int, int], int]) -> Callable[[Type, Operands], Term]:
    def rule(type: Type, operands: Operands) -> Term:
        a, b = _refs(operands)
        known = isinstance(a, int) and isinstance(b, int) and type.kind is not Kind.FLOAT
        return compute(a, b) & (1 << type.bits) - 1 if known else UNKNOWN

    return rule


_SHIFTED_DOWN = _make_shift_rule("shr", lambda a, b: a >> (b & 63))
_RULES: dict[Prim, Callable[[Type, Operands], Term]] = {
    Prim.BITS: _bits, Prim.ADD: _add, Prim.RESIZE: _resize, Prim.LT: _below, Prim.EQ: _equal(True),
    Prim.NE: _equal(False), Prim.SELECT: _select, Prim.SUB: _subtract, Prim.MUL: _make_folding_rule(int.__mul__),
    Prim.AND: _both("and", int.__and__), Prim.OR: _both("or", int.__or__), Prim.XOR: _flip_bits,
    Prim.SHL: _make_shift_rule("shl", lambda a, b: a << (b & 63)), Prim.SHR: _shift_right,
}

Read = Callable[[str | Operand, int], Term]
"""What a register that a meaning names, or an operand, holds; the second argument is its width in bits."""


def results(inst: Inst, read: Read, width: int) -> list[tuple[str, Type, Term]]:
    """What an instruction whose meaning is a value computes: its destination ("dst", "scc", "exec"), and the term."""
    row = find_meaning(inst.op)
    if not isinstance(row, (Scalar, Lanes)) or any(slot.count > 1 for slot in row.signature.sources):
        return []
    if any(operand.value for operand in inst.operands if operand.name in _MODIFIERS):
        return []
    values = []
    for slot, name in sources_of(inst.op):
        operand = inst.find(name) if name is not None else None
        old = 32 * operand.reg.dwords if slot.name == "old" and operand is not None and operand.reg is not None else 0
        type = slot.type if slot.type.bits else Type(Kind.UINT, old or width)
        values.append(Value(TERMS, type, read(operand if operand is not None else slot.name, type.bits)))
    computed = row.compute(*values)
    computed = computed if isinstance(computed, tuple) else (computed,)
    return [(slot.name if slot.special else "dst", value.type, value.ref)
            for slot, value in zip(row.signature.results, computed, strict=True)]


def read_source(source: str | Operand, bits: int, get: Callable[[int], Term]) -> Term:
    """What a source holds, of which ``get`` says what registers do."""
    if isinstance(source, str):
        return get(SCC) if source == "scc" else UNKNOWN
    if source.kind in (OperandKind.CONSTANT, OperandKind.IMMEDIATE):
        return source.value & (1 << bits) - 1
    if source.reg is None:
        return UNKNOWN
    first = number(source.reg)
    if bits <= 32:
        found = get(first)
        return UNKNOWN if 1 < bits < 32 and not isinstance(found, int) else found
    low, high = get(first), get(first + 1)
    if isinstance(low, int) and isinstance(high, int):
        return low | high << 32
    return UNKNOWN if UNKNOWN in (low, high) else ("cat", low, high)


def spread(first: int, dwords: int, term: Term) -> dict[int, Term]:
    """A result over its destination registers."""
    if dwords == 1:
        return {first: term}
    if isinstance(term, int):
        return {first: term & _LOW, first + 1: term >> 32}
    return {first: term[1], first + 1: term[2]} if term[0] == "cat" else {first: UNKNOWN, first + 1: UNKNOWN}
