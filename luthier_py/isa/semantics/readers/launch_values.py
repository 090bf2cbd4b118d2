"""The results of one instruction over a domain of waves.

In: an instruction, and what is known of each dword before it: a number of the wave's, or one for each of its lanes.
Out: what is known of the dwords that it writes. Invariant: what an instruction computes is known only where all that it
reads is; a dword that it writes, and that is not in the answer, is not known. Of vector registers the answer holds in
active lanes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from luthier_py.isa.encoding.dual import halves
from luthier_py.isa.encoding.instruction import Inst, Operand, OperandKind
from luthier_py.isa.model.registers import EXEC, SCC, Reg, RegFile
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.algebra import BOOL, U32, Kind, Type, Value
from luthier_py.isa.semantics.control import Branch, CrossLane
from luthier_py.isa.semantics.meaning import Dual, Lanes, Scalar, Variants
from luthier_py.isa.semantics.readers.binding import (
    DESTINATIONS,
    REGISTERS,
    results,
    select_operand_names,
    sources,
    width,
)
from luthier_py.isa.semantics.readers.evaluate import Dword, copies, is_modified
from luthier_py.isa.semantics.readers.sums import (
    Depends,
    DomainValue,
    HalfKnown,
    Low,
    Sum,
    Sums,
    depends,
    select_sum,
)

ReadDomainValue: TypeAlias = Callable[[RegFile, int], DomainValue]


class DomainEvaluator:
    """What instructions do to waves of one domain."""

    def __init__(self, ops: Sums) -> None:
        self._ops, self._dwords = ops, ops.lanes // 32

    def results(self, inst: Inst, read: ReadDomainValue) -> dict[Dword, DomainValue]:
        """But for memory and calls, of which nothing is said here."""
        row = find_meaning(inst.op)
        if isinstance(row, Dual):
            return {place: known for half in halves(inst) for place, known in self.results(half, read).items()}
        if isinstance(row, CrossLane):
            return dict(self._of_lane(inst, row, read))
        if isinstance(row, Variants):
            row = row.typical if row.of_nan else row
        if not isinstance(row, (Lanes, Scalar)) or is_modified(inst, row):
            return {}
        if copies(inst.op) and (source := inst[sources(inst.op, row)[0]].reg) is not None:
            return dict(_copy_dwords(inst[results(inst.op, row)[0]].reg, source, read))
        given = []
        for name, slot in zip(sources(inst.op, row), row.signature.sources, strict=True):
            type = slot.type if slot.type.bits else width(row)
            given.append(self._value(type, self._read_source(inst, name, type, read, isinstance(row, Lanes))))
        computed = row.compute(*given)
        outputs = computed if isinstance(computed, tuple) else (computed,)
        found: dict[Dword, DomainValue] = {}
        for name, value in zip(results(inst.op, row), outputs, strict=True):
            found.update(self._write_result(inst, name, value, read))
        return found

    def decision(self, row: Branch, read: ReadDomainValue) -> DomainValue:
        """The decision of a branch on a register: not 0 where it is taken."""
        if row.register == "scc":
            known = read(RegFile.SGPR, SCC)
        else:
            known = self.mask(REGISTERS[row.register or "exec"], read)
        if not isinstance(known, Sum) or known.terms:
            return known
        return Sum(int((known.base == 0) is row.if_zero))

    def mask(self, register: int, read: ReadDomainValue) -> DomainValue:
        """A mask of all lanes as one number."""
        known = self._registers(RegFile.SGPR, register, self._dwords, read)
        return None if isinstance(known, Low) else known

    def _bits(self, register: int, read: ReadDomainValue) -> DomainValue:
        """A mask as a bit in each lane."""
        known = self.mask(register, read)
        if not isinstance(known, Sum) or known.terms:
            return known if known is None else depends(known)
        value = known.base
        assert isinstance(value, int)
        return Sum(tuple([value >> lane & 1 for lane in range(self._ops.lanes)]))

    def _read_source(self, inst: Inst, name: str, type: Type, read: ReadDomainValue, by_lane: bool) -> HalfKnown:
        if name == "scc":
            return read(RegFile.SGPR, SCC)
        if name in REGISTERS:
            first = REGISTERS[name]
            return self._bits(first, read) if type is BOOL else \
                self._registers(RegFile.SGPR, first, _dwords(type), read)
        operand = inst[name]
        if type is BOOL:
            reg = operand.reg
            return self._bits(reg.index, read) if by_lane and reg is not None and reg.file is RegFile.SGPR else None
        return self._operand(operand, type, read)

    def _registers(self, file: RegFile, first: int, dwords: int, read: ReadDomainValue) -> HalfKnown:
        return read(file, first) if dwords == 1 else self._ops.join_halves(read(file, first), read(file, first + 1))

    def _operand(self, operand: Operand, type: Type, read: ReadDomainValue) -> HalfKnown:
        if operand.reg is not None:
            upper = operand.value  # its upper half
            return None if upper else self._registers(operand.reg.file, operand.reg.index, _dwords(type), read)
        if operand.kind in (OperandKind.CONSTANT, OperandKind.IMMEDIATE):
            return Sum(operand.value & (1 << 32 * _dwords(type)) - 1)
        return None

    def _dword(self, operand: Operand, read: ReadDomainValue) -> DomainValue:
        known = self._operand(operand, U32, read)
        assert not isinstance(known, Low)
        return known

    def _split(self, first: Dword, known: HalfKnown, dwords: int) -> Iterator[tuple[Dword, DomainValue]]:
        file, index = first
        if isinstance(known, Low):
            yield first, known.half
        elif dwords == 1 or known is None:
            yield first, known
        else:
            yield from zip((first, (file, index + 1)), self._ops.split_halves(known), strict=True)

    def _value(self, type: Type, known: HalfKnown) -> Value:
        if type is BOOL:
            return Value(self._ops, BOOL, known)
        whole = Value(self._ops, Type(Kind.UINT, 32 * _dwords(type)), known)
        return whole.as_(type) if type.bits == whole.type.bits else whole.to(type.unsigned).as_(type)

    def _write_result(self, inst: Inst, name: str, value: Value,
                      read: ReadDomainValue) -> Iterator[tuple[Dword, DomainValue]]:
        known: HalfKnown = value.ref  # type: ignore[assignment]
        if name == "scc":
            yield (RegFile.SGPR, SCC), None if isinstance(known, Low) else known
            return
        reg = None if name in REGISTERS else inst[name].reg
        file, index = (reg.file, reg.index) if reg is not None else (RegFile.SGPR, REGISTERS.get(name, -1))
        if index < 0 or known is None:
            return
        if value.type is BOOL and not isinstance(known, Low):
            yield from self._split((file, index), self._as_mask(known, read), self._dwords)
        elif value.type.bits in (32, 64):
            yield from self._split((file, index), known, value.type.bits // 32)

    def _as_mask(self, known: Sum | Depends, read: ReadDomainValue) -> DomainValue:
        """A bit in each lane as a mask; 0 where lanes are not active."""
        active = self.mask(EXEC, read)
        if not isinstance(active, Sum) or not isinstance(known, Sum):
            return depends(known, active)
        bits = known.base if isinstance(known.base, tuple) else (known.base,) * self._ops.lanes
        assert isinstance(active.base, int)
        return Sum(sum(bit << lane for lane, bit in enumerate(bits)) & active.base)

    def _of_lane(self, inst: Inst, row: CrossLane, read: ReadDomainValue) -> Iterator[tuple[Dword, DomainValue]]:
        """v_readfirstlane and v_readlane."""
        target, source = inst[next(select_operand_names(inst.op, DESTINATIONS))].reg, inst["src0"].reg
        if row not in (CrossLane.READ, CrossLane.READ_FIRST) or target is None or source is None:
            return
        known = read(source.file, source.index)
        lane = self.mask(EXEC, read) if row is CrossLane.READ_FIRST else self._dword(inst["src1"], read)
        if not isinstance(known, Sum) or not isinstance(lane, Sum) or lane.terms:
            yield (RegFile.SGPR, target.index), depends(known, lane)
            return
        assert isinstance(lane.base, int)
        number = max(0, (lane.base & -lane.base).bit_length() - 1) if row is CrossLane.READ_FIRST else \
            lane.base % self._ops.lanes
        base = known.base[number] if isinstance(known.base, tuple) else known.base
        yield (RegFile.SGPR, target.index), Sum(base, known.terms)

    def merge_lanes(self, new: DomainValue, old: DomainValue, read: ReadDomainValue) -> DomainValue:
        """A vector register after a write in the active lanes."""
        active = self.mask(EXEC, read)
        if not isinstance(new, Sum) or not isinstance(old, Sum) or not isinstance(active, Sum) or active.terms:
            return depends(new, old, active)
        mask = active.base
        assert isinstance(mask, int)
        found = select_sum(tuple([mask >> lane & 1 for lane in range(self._ops.lanes)]), new, old)
        return depends(new, old) if found is None else found


def one_of(a: DomainValue, b: DomainValue) -> DomainValue:
    """What is one of two, of which the launch decides."""
    return a if a == b else depends(a, b)


def _dwords(type: Type) -> int:
    return 2 if type.bits > 32 else 1


def _copy_dwords(target: Reg | None, source: Reg, read: ReadDomainValue) -> Iterator[tuple[Dword, DomainValue]]:
    """Dword by dword, of which one may be an address that is not known."""
    if target is not None:
        for each in range(target.dwords):
            yield (target.file, target.index + each), read(source.file, source.index + each)
