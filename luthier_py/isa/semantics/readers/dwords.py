"""Which dwords of its sources each dword of a result is made of, as the instruction's modifiers say.

In: an instruction that maps values to values in each lane. Out: for each operand that is a source, but masks, and each
dword of it, the dwords of results that depend on it, as a bit mask. Invariant: it follows from the meaning, run on
values that remember of which dwords theirs were made; what it does not name has no influence, but for this: in a shift
of 64 bits to the right nothing counts as coming down, since compilers cut it off where no instruction wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_

from luthier_py.isa.encoding.instruction import Inst
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import BOOL, I64, U64, Kind, Prim, Type, Value
from luthier_py.isa.semantics.crossings import RelativeMove
from luthier_py.isa.semantics.meaning import Lanes, SignaturePart, Situation, Variants
from luthier_py.isa.semantics.operand_parts import OP_SEL, OP_SEL_HI
from luthier_py.isa.semantics.readers import binding

SourceDword = tuple[str, int]
"""An operand's name, and the dword's number."""
MadeOf = tuple[frozenset[SourceDword], ...]
"""Of each dword of a value, the lowest first."""
MOST_DWORDS = 32
_NOTHING = frozenset[SourceDword]()
_BY_BITS = frozenset({Prim.AND, Prim.OR, Prim.XOR, Prim.BITS})
_UPWARDS = frozenset({Prim.ADD, Prim.SUB, Prim.MUL})
OF_MASKS = 7
"""The place of all results that are masks."""


def dependents(inst: Inst) -> dict[str, list[int]]:
    """By operand; nothing for instructions of another kind."""
    row = find_meaning(inst.op)
    if isinstance(row, Variants):
        row = row.of(Situation(lambda name: _field(inst, name)))
    if isinstance(row, RelativeMove):
        row = row.row
    if not isinstance(row, Lanes):
        return {}
    names = binding.sources(inst.op, row)
    found = {name: [0] * MOST_DWORDS for name, slot in zip(names, row.signature.sources, strict=True)
             if name not in binding.REGISTERS and slot.type is not BOOL}
    for place, made in _results(inst, names, row):
        for name, number in made:
            if name in found:
                found[name][number] |= 1 << place
    shifted = [name for name, slot in zip(names, row.signature.sources, strict=True) if slot.type in (U64, I64)]
    if len(shifted) == 1 and len(names) == 2 and row.signature.results[0].type in (U64, I64):
        found[shifted[0]][1] &= ~1
    return found


def _results(inst: Inst, names: tuple[str, ...], row: Lanes) -> Iterator[tuple[int, frozenset[SourceDword]]]:
    """What each dword is made of, of all vector results one behind the other."""
    slots = row.signature.results
    for element in range(slots[0].count) if row.packed else (None,):
        outcome = row.compute(*(_source(inst, name, slot, row, element)
                                for name, slot in zip(names, row.signature.sources, strict=True)))
        if row.packed:
            assert isinstance(outcome, Value)
            yield element * slots[0].type.bits // 32 if element else 0, _together(outcome)
            continue
        first = 0
        for slot, one in zip(slots, outcome if len(slots) > 1 else (outcome,), strict=True):
            if slot.type is BOOL or slot.name == "exec":
                yield OF_MASKS, _together(one)
                continue
            if isinstance(one, Value):
                yield from enumerate(_read_origins(one), first)
            else:  # elements of one register, or of several
                every = _together(*one)
                yield from ((place, every) for place in range(first, first + _count(slot)))
            first += _count(slot)


def _together(*values: Value) -> frozenset[SourceDword]:
    return _NOTHING.union(*(dwords for value in values for dwords in _read_origins(value)))


def _field(inst: Inst, name: str) -> int:
    operand = inst.find(name)
    return 0 if operand is None else operand.value


def _source(inst: Inst, name: str, slot: SignaturePart, row: Lanes, element: int | None) -> Value | tuple[Value, ...]:
    type = slot.type if slot.type.bits else binding.width(row)

    def read(number: int) -> Value:
        first = _select_element(inst, name, number, slot) * type.bits // 32
        return Value(_TRACE, type, tuple(frozenset({(name, first + dword)}) for dword in range(_count(type))))

    if slot.count == 1:
        return read(0)
    return tuple(map(read, range(slot.count))) if element is None else read(element)


def _select_element(inst: Inst, name: str, number: int, slot: SignaturePart) -> int:
    """The element of the register that one of the instruction's is read from."""
    if slot.count != 2 or inst.op.format != "VOP3P" or name not in ("src0", "src1", "src2"):
        return number
    return int(bool(_field(inst, f"{name}_modifiers") & (OP_SEL_HI if number else OP_SEL)))


def _count(of: Type | SignaturePart) -> int:
    """Dwords."""
    return max((of.bits if isinstance(of, Type) else of.type.bits * of.count) // 32, 1)


def _read_origins(value: Value) -> MadeOf:
    ref = value.ref
    return ref if isinstance(ref, tuple) else (_NOTHING,) * _count(value.type)


class _DwordTrace:
    """Ops of values that remember; a constant's is its number."""

    def constant(self, type: Type, value: int | float) -> Value:
        return Value(self, type, value)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        made, count = [_read_origins(operand) for operand in operands], _count(type)
        if prim is Prim.RESIZE:
            rest = made[0][-1] if operands[0].type.kind is Kind.SINT else _NOTHING
            return Value(self, type, (*made[0], *[rest] * count)[:count])
        if prim in (Prim.SHL, Prim.SHR):
            amount = operands[1].ref if isinstance(operands[1].ref, int) else None
            return Value(self, type, _shift_origins(made[0], made[1], amount, 1 if prim is Prim.SHR else -1))
        place = self._rule(prim, type)
        every = [each if len(each) == count else (reduce(or_, each),) * count for each in made]
        return Value(self, type, tuple(reduce(or_, (part for each in every for part in place(each, number)), _NOTHING)
                                       for number in range(count)))

    def _rule(self, prim: Prim, type: Type) -> Callable[[MadeOf, int], MadeOf]:
        if prim in _BY_BITS or prim is Prim.SELECT:
            return lambda made, number: made[number : number + 1]
        if type.kind is not Kind.FLOAT and prim in _UPWARDS:
            return lambda made, number: made[: number + 1]
        return lambda made, number: made


def _shift_origins(made: MadeOf, by: MadeOf, amount: int | None, way: int) -> MadeOf:
    """``amount``: in bits, if it is known; ``way``: 1 for downwards, -1 for upwards."""
    least, most = (0, len(made) - 1) if amount is None else (amount // 32, -(-amount // 32))
    return tuple(_NOTHING.union(*by, *(made[place] for place in (number + way * step for step in range(least, most + 1))
                                       if 0 <= place < len(made))) for number in range(len(made)))


_TRACE = _DwordTrace()
