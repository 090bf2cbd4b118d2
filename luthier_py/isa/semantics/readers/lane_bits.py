"""What an instruction does to lane masks, seen from one lane: a mask is the one bit of it that is the lane's.

In: an instruction. Out: assignments to bits. For one lane EXEC and every SGPR that holds a lane mask is one bit, and
the scalar logic by which code enters and leaves `if`s and loops is logic on these bits:

    s_and_saveexec_b64 s[4:5], vcc      s4 := exec, exec := exec & vcc
    s_or_b64 exec, exec, s[4:5]         exec := exec | s4
    v_cmp_lt_u32_e32 vcc, v0, v1        vcc := exec & ?          (inactive lanes come out 0: MI200 ISA, 3.3 and 12.10)

A bit is on, off or unknown (1, 0, None). The meaning is run once for each combination of the bits that it reads, so
an assignment is a table. Invariant: what the meaning does not say of the lane's own bit alone is unknown, never wrong.
Carries are unknown: no manual says what inactive lanes get.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple, TypeAlias

from luthier_py.isa.encoding.instruction import Inst, Operand, OperandKind, OpFlag, OpInfo
from luthier_py.isa.model.registers import EXEC, RegFile
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import Prim, Type, Value
from luthier_py.isa.semantics.meaning import Lanes, Scalar
from luthier_py.isa.semantics.readers.binding import REGISTERS, results, sources, width
from luthier_py.isa.semantics.readers.numbers import Number, Numbers

Bit: TypeAlias = int | None
BitTable: TypeAlias = tuple[Bit, ...]  # one result for each combination of the sources' bits, the first source lowest
MaskSource: TypeAlias = int             # a mask's first SGPR, or one of these:
UNKNOWN, ZERO, ONE, SOME = -1, -2, -3, -4  # SOME: has some lane, but which is not said
MASKS = (1 << 128) - 1              # SCC and what lies above are no masks
UNKNOWN_TABLE: BitTable = (None,)


class Assign(NamedTuple):
    """``mask`` := what ``table`` has for the bits of ``sources``; all of an instruction read the bits before it.

    ``value`` numbers the results of one instruction: where it is the same, so is the bit.
    """

    mask: int
    sources: tuple[MaskSource, ...]
    table: BitTable
    value: int = 0


class Write(NamedTuple):
    """The same of SGPRs: so many ``dwords`` from ``first`` on, and from each source on."""

    first: int
    dwords: int
    sources: tuple[MaskSource, ...]
    table: BitTable
    value: int


@cache
def outcome(table: BitTable, bits: tuple[Bit, ...]) -> Bit:
    """The result of a table where some bits may be unknown."""
    combinations = (sum(bit << place for place, bit in enumerate(each))
                    for each in product(*((0, 1) if bit is None else (bit,) for bit in bits)))
    found = {table[each] for each in combinations}
    return found.pop() if len(found) == 1 else None


@lru_cache(maxsize=1 << 16)
def assignments(inst: Inst, wave_size: int) -> tuple[Assign, ...]:
    """To the masks of a wave, each named by its first SGPR, which is even where a mask takes two."""
    written = inst.writes.sgpr & MASKS
    if not written:
        return ()
    known = _writes(inst, wave_size)
    if wave_size == 32:
        found = [_of_half(write, half) for write in known for half in range(write.dwords)]
    else:
        found = [_whole(write) if write.dwords == 2 else _assign_half(write) for write in known]
    step = wave_size // 32
    done = {assign.mask for assign in found}
    rest = {index - index % step for index in range(written.bit_length()) if written >> index & 1} - done
    return (*found, *(Assign(mask, (), UNKNOWN_TABLE, -1) for mask in sorted(rest)))


def assignments_in_half(inst: Inst, wave_size: int, half: int) -> tuple[Assign, ...]:
    """As a lane of the low or high half of a wave of 64 sees it: a mask is the SGPR that has the lane's bit."""
    return tuple(_of_half(write, half if write.dwords == 2 else 0) for write in _writes(inst, wave_size))


def some_lanes(inst: Inst, wave_size: int) -> tuple[tuple[int, tuple[MaskSource, ...]], ...]:
    """Masks that have some lane afterwards if any of these sources has, which SOME always does."""
    found = []
    for write in _writes(inst, wave_size):
        alone, always = _find_deciding_sources(write.table, len(write.sources))
        enough = [source for source, decides in zip(write.sources, alone, strict=True) if decides] + [SOME] * always
        if write.dwords * 32 >= wave_size:
            masks = write.dwords * 32 // wave_size
            found += [(write.first + half, _shift_sources(tuple(enough), half)) for half in range(masks)]
        elif SOME in enough:  # one SGPR of a pair
            found.append((write.first & ~1, (SOME,)))
    return tuple(found)


@cache
def _find_deciding_sources(table: BitTable, count: int) -> tuple[list[bool], bool]:
    """For each of so many sources whether the result is 1 if it is, and whether the result always is."""
    alone = [tuple(1 if place == each else None for place in range(count)) for each in range(count)]
    return [outcome(table, bits) == 1 for bits in alone], outcome(table, (None,) * count) == 1


def _of_half(write: Write, half: int) -> Assign:
    return Assign(write.first + half, _shift_sources(write.sources, half), write.table, write.value)


def _shift_sources(given: tuple[MaskSource, ...], by: int) -> tuple[MaskSource, ...]:
    return tuple(source + by if source >= 0 else source for source in given)


def _whole(write: Write) -> Assign:
    return Assign(write.first, write.sources, write.table, write.value)


def _assign_half(write: Write) -> Assign:
    """One SGPR of a pair: a lane of the other half keeps its bit, and which half a lane is in is not known."""
    half = write.first & 1
    mask = write.first - half
    seen = tuple(SOME if source == SOME else source - half if source & 1 == half else UNKNOWN
                 for source in write.sources)
    table = (*(0 if bit == 0 else None for bit in write.table), *(1 if bit == 1 else None for bit in write.table))
    return Assign(mask, (*seen, mask), table, write.value)


@lru_cache(maxsize=1 << 16)
def _writes(inst: Inst, wave_size: int) -> tuple[Write, ...]:
    row = find_meaning(inst.op)
    if isinstance(row, Scalar):
        return _scalar(inst, row)
    return _compare(inst, row, wave_size // 32) if isinstance(row, Lanes) else ()


def _scalar(inst: Inst, row: Scalar) -> tuple[Write, ...]:
    op, bits = inst.op, width(row).bits
    names, dwords = sources(op, row), bits // 32
    given = tuple(_resolve_source(inst, name, dwords) for name in names)
    found = {}
    tables = _tables(op, tuple(0 if source == SOME else min(source, 0) for source in given))
    for name, (table, value) in zip(results(op, row), tables, strict=True):
        target = _resolve_source(inst, name, dwords)
        if target >= 0:  # EXEC_HI is not EXEC's in waves of 32 lanes
            used = tuple(source for source in given if source >= 0 or source == SOME)
            count = dwords if inst.writes.sgpr >> target + dwords - 1 & 1 else 1
            found[target] = Write(target, count, used, table, value)  # of two for EXEC the saved one is lost
    return tuple(found.values())


def _resolve_source(inst: Inst, name: str, dwords: int) -> MaskSource:
    if name in REGISTERS:
        return REGISTERS[name] if name == "exec" else UNKNOWN
    return _source(inst[name], dwords)


def _source(operand: Operand, dwords: int) -> MaskSource:
    reg = operand.reg
    if reg is not None and reg.file is RegFile.SGPR:
        return reg.index if reg.dwords == dwords and 1 << reg.index & MASKS else UNKNOWN
    if operand.kind is OperandKind.CONSTANT:
        return {0: ZERO, (1 << 32 * dwords) - 1: ONE}.get(operand.value & (1 << 32 * dwords) - 1, SOME)
    return UNKNOWN


@cache
def _tables(op: OpInfo, given: tuple[MaskSource, ...]) -> tuple[tuple[BitTable, int], ...]:
    """For each result its table, and its number; in ``given`` 0 marks a mask that the table is about."""
    row = find_meaning(op)
    assert isinstance(row, Scalar)
    count = given.count(0)
    runs = []
    for each in range(1 << count):
        bits = iter([each >> place & 1 for place in range(count)])
        runs.append(_run(row, [next(bits) if source == 0 else _bit_of(source) for source in given]))
    values = list(runs[0])
    return tuple((tuple(run[place].ref for run in runs), next(n for n, v in enumerate(values) if v is values[place]))  # type: ignore[misc]
                 for place in range(len(values)))


def _bit_of(source: MaskSource) -> Bit:
    return {ZERO: 0, ONE: 1}.get(source)


def _run(row: Scalar, bits: list[Bit]) -> tuple[Value, ...]:
    whole = width(row)
    given = [Value(_OPS, slot.type if slot.type.bits else whole, bit)
             for slot, bit in zip(row.signature.sources, bits, strict=True)]
    found = row.compute(*given)
    return found if isinstance(found, tuple) else (found,)


class _OneBit:
    """Ops on the bit at one place of integers of one width, the same place in all."""

    def constant(self, type: Type, value: int | float) -> Value:
        ones = (1 << type.bits) - 1
        bit = {0: 0, ones: 1}.get(value & ones) if isinstance(value, int) else None
        return Value(self, type, bit)

    def apply(self, prim: Prim, type: Type, *operands: Value) -> Value:
        refs: list[Bit] = [operand.ref for operand in operands]  # type: ignore[misc]
        return Value(self, type, _RULES[prim](*refs) if prim in _RULES else None)


_OPS = _OneBit()


def _and(a: Bit, b: Bit) -> Bit:
    return 0 if a == 0 or b == 0 else None if a is None or b is None else 1


def _or(a: Bit, b: Bit) -> Bit:
    return 1 if a == 1 or b == 1 else None if a is None or b is None else 0


_RULES: dict[Prim, Callable[..., Bit]] = {
    Prim.AND: _and, Prim.OR: _or, Prim.XOR: lambda a, b: None if a is None or b is None else a ^ b,
    Prim.SELECT: lambda condition, a, b: a if a == b else None, Prim.BITS: lambda a: a,
}


def _compare(inst: Inst, row: Lanes, dwords: int) -> tuple[Write, ...]:
    """A comparison: 0 for inactive lanes."""
    op = inst.op
    if inst.writes.vgpr or inst.writes.agpr or inst.find("vdst") is not None or OpFlag.DPP in op.flags:
        return ()
    found = []
    for name in results(op, row):
        index = REGISTERS[name] if name in REGISTERS else _source(inst[name], dwords)
        if index >= 0 and inst.writes.sgpr >> index & 1:
            found.append(Write(index, dwords, (EXEC,), (0, _result(row)), 0))
    return tuple(found)


@cache
def _result(row: Lanes) -> Bit:
    """Of a comparison in active lanes, if it is the same whatever is compared."""
    numbers = Numbers()
    found = row.compute(*(Value(numbers, slot.type, None) for slot in row.signature.sources))
    value = found[0] if isinstance(found, tuple) else found
    return value.ref.constant if isinstance(value.ref, Number) else None
