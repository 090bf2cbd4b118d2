"""Memory instructions, one lane after the other, lowest first.

In: a wave, an instruction and its row. Out: registers and memory after it. Sources: AMD Instinct MI200 ISA, chapters 8
to 11; 9.1.5 for the ranges of buffers, 9.5 for float atomics.
"""

from __future__ import annotations

from luthier_py.isa import M0, Inst, Operand, OperandKind, OpFlag, Reg
from luthier_py.isa.semantics.algebra import F16, F32, F64, Kind, Type
from luthier_py.isa.semantics.lds import ExchangeTwo, FromLds, LaneCount, LoadTwo, StoreTwo
from luthier_py.isa.semantics.memory import Atomic, Load, Modify, ScalarAtomic, ScalarLoad, ScalarStore, Store
from reference import floats
from reference.algebra import flushed, limits, signed
from reference.buffers import lane_operands, resource_of
from reference.vector import field, raw
from reference.wave import M32, Wave


class Space:
    """Where a lane's instruction reads and writes: ``address`` None is out of a buffer's range."""

    def __init__(self, wave: Wave, inst: Inst, lane: int) -> None:
        self.wave, self.inst, self.lane = wave, inst, lane
        self.family = inst.op.base.split("_", 1)[0]

    def load(self, first: int, size: int) -> int:
        if self.family == "DS":
            at = self._lds(first)
            return int.from_bytes(self.wave.lds[at : at + size], "little")
        if self.family == "SCRATCH":
            at = self._scratch() + first
            dword = self.wave.scratch.get((self.lane, at // 4), 0)
            return dword >> 8 * (at % 4) & ((1 << 8 * size) - 1)
        address = self.address(first, size)
        return 0 if address is None else self.wave.load(address, size)

    def store(self, first: int, size: int, value: int) -> None:
        value &= (1 << 8 * size) - 1
        if self.family == "DS":
            at = self._lds(first)
            self.wave.lds[at : at + size] = value.to_bytes(size, "little")
        elif self.family == "SCRATCH":
            at = self._scratch() + first
            mask = ((1 << 8 * size) - 1) << 8 * (at % 4)
            old = self.wave.scratch.get((self.lane, at // 4), 0)
            self.wave.scratch[self.lane, at // 4] = old & ~mask | value << 8 * (at % 4)
        else:
            address = self.address(first, size)
            if address is not None:
                self.wave.store(address, size, value)

    def _vector(self, name: str) -> int:
        operand = self.inst.find(name)
        if operand is None or operand.reg is None:
            return 0
        return self.wave.vector(operand.reg, self.lane)

    def _lds(self, first: int) -> int:
        if self.inst.find("addr") is None:  # ADDTID
            return self.wave.scalar(M0) % 0x10000 + 4 * self.lane + first
        return self._vector("addr") + first & M32

    def _scratch(self) -> int:
        """An offset in private memory, of 32 bits: clang adds immediates to negative registers."""
        return self._vector("vaddr") + self._vector("saddr") + field(self.inst, "offset") & M32

    def address(self, first: int, size: int) -> int | None:
        if self.family == "BUFFER":
            return self._buffer(first, size)
        own = self._vector("vaddr") if self.inst.find("vaddr") else 4 * self.lane  # ADDTID
        return own + self._vector("saddr") + field(self.inst, "offset") + first

    def _buffer(self, first: int, size: int) -> int | None:
        resource = resource_of(self.wave, self.inst)
        at = lane_operands(self.wave, self.inst, self.lane, resource)
        if not resource.inside(at.index, at.offset + first, at.scalar, size, at.indexed):
            return None
        return resource.address(at.index, at.offset, at.scalar) + first


def load(wave: Wave, inst: Inst, row: Load) -> None:
    target = (inst.find("vdst") or inst["vdata"]).reg
    assert target is not None
    target = Reg(target.file, target.index, row.dwords)  # TFE: nothing is refused, so the dword behind it stays
    found = {}
    for lane in wave.lanes():
        space, offset = Space(wave, inst, lane), lds_offset(inst)
        if row.bits == 32:
            found[lane] = sum(space.load(offset + 4 * i, 4) << 32 * i for i in range(row.dwords))
            continue
        value = space.load(offset, row.bits // 8)
        if row.signed and value >> row.bits - 1:
            value -= 1 << row.bits
        old = 0 if wave.d16_clears else wave.vector(target, lane)
        half = value & 0xFFFF
        found[lane] = {"": value & M32, "low": old & 0xFFFF0000 | half, "high": old & 0xFFFF | half << 16}[row.half]
    _give(wave, target, found)


def lds_offset(inst: Inst) -> int:
    return field(inst, "offset") if inst.op.base.startswith("DS_") else 0


def _give(wave: Wave, target: Reg, found: dict[int, int]) -> None:
    for lane, value in found.items():
        wave.set_vector(target, lane, value)


def store(wave: Wave, inst: Inst, row: Store) -> None:
    data = (inst.find("vdata") or inst["data0"]).reg
    assert data is not None
    for lane in wave.lanes():
        space, offset, value = Space(wave, inst, lane), lds_offset(inst), wave.vector(data, lane)
        if row.bits < 32:
            space.store(offset, row.bits // 8, value >> (16 if row.half == "high" else 0))
            continue
        for i in range(row.dwords):
            space.store(offset + 4 * i, 4, value >> 32 * i)


def load_two(wave: Wave, inst: Inst, row: LoadTwo) -> None:
    target = inst["vdst"].reg
    assert target is not None
    size, found = 4 * row.dwords, {}
    for lane in wave.lanes():
        parts = [Space(wave, inst, lane).load(field(inst, f"offset{i}") * row.stride, size) for i in (0, 1)]
        found[lane] = parts[0] | parts[1] << 8 * size
    _give(wave, target, found)


def store_two(wave: Wave, inst: Inst, row: StoreTwo) -> None:
    for lane in wave.lanes():
        for i in (0, 1):
            value = raw(wave, inst[f"data{i}"], lane, 32 * row.dwords)
            Space(wave, inst, lane).store(field(inst, f"offset{i}") * row.stride, 4 * row.dwords, value)


def exchange_two(wave: Wave, inst: Inst, row: ExchangeTwo) -> None:
    """Both places are read before either is written."""
    target = inst["vdst"].reg
    assert target is not None
    size, found = 4 * row.dwords, {}
    for lane in wave.lanes():
        space, places = Space(wave, inst, lane), [field(inst, f"offset{i}") * row.stride for i in (0, 1)]
        found[lane] = space.load(places[0], size) | space.load(places[1], size) << 8 * size
        for i, place in enumerate(places):
            space.store(place, size, raw(wave, inst[f"data{i}"], lane, 8 * size))
    _give(wave, target, found)


def from_lds(wave: Wave, inst: Inst, row: FromLds) -> None:
    """GCN 3 ISA, 12.14: B = A + 4 * offset, DS[A] = DS[A] op DS[B]."""
    size, offset = row.atomic.bits // 8, field(inst, "offset")
    assert offset < 0x8000
    distance = 4 * (offset if offset < 0x4000 else offset - 0x8000)
    given = {lane: Space(wave, inst, lane).load(distance, size) for lane in wave.lanes()}
    for lane, data in given.items():
        space = Space(wave, inst, lane)
        new = modified(row.atomic, flushes(wave, row.atomic, "DS"), space.load(0, size), data, 0, wave.numbers_win)
        space.store(0, size, new)


def count_lanes(wave: Wave, inst: Inst, row: LaneCount) -> None:
    """DS_APPEND and DS_CONSUME (CDNA 4 ISA, 12.12), with the address where LLVM puts it."""
    target, lanes = inst["vdst"].reg, list(wave.lanes())
    assert target is not None
    at = wave.scalar(M0) % 0x10000 + field(inst, "offset")
    before = int.from_bytes(wave.lds[at : at + 4], "little")
    after = before + len(lanes) * (1 if row.modify is Modify.ADD else -1)
    if lanes:
        wave.lds[at : at + 4] = (after & M32).to_bytes(4, "little")
    _give(wave, target, dict.fromkeys(lanes, before))


def atomic(wave: Wave, inst: Inst, row: Atomic) -> None:
    """The old values are given back when all lanes have done their step."""
    first = (inst.find("vdata") or inst["data0"]).reg
    second = inst.find("data1")
    assert first is not None
    width, found = row.bits, {}
    for lane in wave.lanes():
        space, offset = Space(wave, inst, lane), lds_offset(inst)
        whole = wave.vector(first, lane)
        data, other = whole & ((1 << width) - 1), whole >> width
        if second is not None:
            other = raw(wave, second, lane, width)
            if row.modify is Modify.COMPARE_SWAP and inst.op.base.startswith("DS_CMPST_"):  # the other way round
                data, other = other, data
        old = space.load(offset, width // 8)
        new = modified(row, flushes(wave, row, space.family), old, data, other, wave.numbers_win)
        space.store(offset, width // 8, new)
        found[lane] = old
    if OpFlag.ATOMIC_RETURN in inst.op.flags:
        reg = (inst.find("vdst") or inst["vdata"]).reg
        assert reg is not None
        _give(wave, Reg(reg.file, reg.index, width // 32), found)


def flushes(wave: Wave, row: Atomic, family: str) -> bool:
    """Whether denormals become zeros: those of f32 in LDS as MODE says (LLVM, PR 89468); in the cache always before
    gfx942 and gfx11, never from these on (LLVM, PR 96443)."""
    assert wave.target is not None
    keeps = wave.target.name in ("gfx942", "gfx950") or wave.target.generation >= 11
    return row.bits == 32 and (wave.flushes(32) if family == "DS" else not keeps)


def modified(row: Atomic, flushes: bool, old: int, data: int, second: int, numbers_win: bool = False) -> int:
    """``numbers_win``: of RDNA 4, whose minima and maxima are others."""
    width = row.bits
    if row.kind == "b":
        return _bf16_sum(old & 0xFFFF, data & 0xFFFF) | _bf16_sum(old >> 16, data >> 16) << 16
    if row.kind == "p":
        halves = [floats.add(old >> at & 0xFFFF, data >> at & 0xFFFF, F16.bits) for at in (0, 16)]
        return halves[0] | halves[1] << 16
    if row.kind == "f":
        if numbers_win and row.modify in (Modify.MIN, Modify.MAX):
            return _extreme_number(row.modify, width, old, data)
        return _modified_float(row.modify, F32 if width == 32 else F64, flushes, old, data, second)
    kind = Type(Kind.SINT if row.kind == "i" else Kind.UINT, width)
    memory, given = signed(old, kind), signed(data, kind)
    results = {
        Modify.ADD: memory + given, Modify.SUB: memory - given, Modify.RSUB: given - memory,
        Modify.INC: 0 if memory >= given else memory + 1,
        Modify.DEC: given if memory == 0 or memory > given else memory - 1,
        Modify.MIN: min(memory, given), Modify.MAX: max(memory, given), Modify.AND: old & data, Modify.OR: old | data,
        Modify.XOR: old ^ data, Modify.SWAP: data, Modify.COMPARE_SWAP: data if old == second else old,
        Modify.MASK_OR: old & ~data | second, Modify.WRAP: old - data if old >= data else old + second,
        Modify.CLAMPED_SUB: max(memory - given, 0), Modify.CONDITIONAL_SUB: old - (data if data <= old else 0),
        Modify.MARKED_SWAP: sum((data >> at & M32 >> 1 if data >> at + 31 & 1 else old >> at & M32) << at
                                for at in range(0, width, 32)),
    }  # fmt: skip
    assert limits(kind)[0] <= memory <= limits(kind)[1]
    return results[row.modify]


def _bf16_sum(a: int, b: int) -> int:
    """To the nearest, of two ties the even one: the sum in 32 bits leaves no tie that was none."""
    whole = floats.add(a << 16, b << 16, 32)
    top, rest = whole >> 16, whole & 0xFFFF
    return top + (rest > 0x8000 or rest == 0x8000 and top & 1)


def _modified_float(modify: Modify, type: Type, flushes: bool, old: int, data: int, second: int) -> int:
    width = type.bits
    if modify is Modify.COMPARE_SWAP:
        return data if floats.equal(old, second, width) else old
    if modify is Modify.ADD:
        if not flushes:
            return floats.add(old, data, width)
        return flushed(floats.add(flushed(old, width), flushed(data, width), width), width)
    for value in (old, data):
        if floats.is_nan(value, width) and not value & floats.quiet_bit(width):
            return value | floats.quiet_bit(width)
    if floats.is_nan(old, width) or floats.is_nan(data, width):
        return data if floats.is_nan(old, width) else old
    pair = sorted((old, data), key=lambda bits: _order(bits, width))
    return pair[0] if modify is Modify.MIN else pair[1]


def _extreme_number(modify: Modify, width: int, old: int, data: int) -> int:
    """RDNA 4 ISA, 16.15 (DS_MIN_NUM_F32): of two NaN the data, made quiet."""
    if floats.is_nan(data, width):
        return data | floats.quiet_bit(width) if floats.is_nan(old, width) else old
    if floats.is_nan(old, width):
        return data
    return (min if modify is Modify.MIN else max)(old, data, key=lambda bits: _order(bits, width))


def _order(bits: int, width: int) -> int:
    """-inf to +inf, -0 before +0."""
    return -1 - floats.magnitude(bits, width) if floats.negative(bits, width) else bits


def _scalar_buffer(wave: Wave, inst: Inst, offset: int, size: int) -> int | None:
    """The address of ``size`` bytes in a scalar instruction's resource, if they are in range."""
    resource = resource_of(wave, inst, "sbase", converts=True)
    unit = resource.stride if resource.stride and not resource.target.wide_resources else 1
    return resource.base + offset if offset + size <= resource.records * unit else None


def _scalar_atomic(wave: Wave, inst: Inst, row: ScalarAtomic, offset: int) -> None:
    """Vega ISA, 12.6; out of range it does nothing and gives 0."""
    data, base, width = (inst.find("sdst") or inst["sdata"]).reg, inst["sbase"].reg, row.atomic.bits
    assert data is not None and base is not None
    address: int | None = wave.scalar(base.index, 2) + offset
    if row.buffer:
        address = _scalar_buffer(wave, inst, offset, width // 8)
    old = 0
    if address is not None:
        old, whole = wave.load(address, width // 8), wave.scalar(data.index, data.dwords)
        new = modified(row.atomic, False, old, whole & ((1 << width) - 1), whole >> width)
        wave.store(address, width // 8, new)
    if OpFlag.ATOMIC_RETURN in inst.op.flags:
        wave.set_scalar(data.index, old, width // 32)


def scalar_memory(wave: Wave, inst: Inst, row: ScalarLoad | ScalarStore | ScalarAtomic) -> None:
    base_operand, data = inst["sbase"], (inst.find("sdst") or inst["sdata"]).reg
    assert base_operand.reg is not None and data is not None
    offset = field(inst, "offset") + row.unit * _scalar_offset(wave, inst.find("soffset"))
    if isinstance(row, ScalarAtomic):
        _scalar_atomic(wave, inst, row, offset)
        return
    if isinstance(row, ScalarStore) and row.buffer:
        for i in range(row.dwords):
            address = _scalar_buffer(wave, inst, (offset & ~3) + 4 * i, 4)
            if address is not None:
                wave.store(address, 4, wave.scalar(data.index + i))
        return
    if isinstance(row, ScalarStore):
        address = (wave.scalar(base_operand.reg.index, 2) + offset) & ~3
        for i in range(row.dwords):
            wave.store(address + 4 * i, 4, wave.scalar(data.index + i))
        return
    base = wave.scalar(base_operand.reg.index, 2)
    if row.buffer:
        size, offset = (4, offset & ~3) if row.bits == 32 else (row.bits // 8, offset)
        places = [_scalar_buffer(wave, inst, offset + size * i, size) for i in range(row.dwords)]
        loaded = [0 if place is None else wave.load(place, size) for place in places]
    elif row.bits == 32:
        loaded = [wave.load((base + offset & ~3) + 4 * i, 4) for i in range(row.dwords)]
    else:
        loaded = [wave.load(base + offset, row.bits // 8)]
    for i, value in enumerate(loaded):
        wave.set_scalar(data.index + i, value if row.bits == 32 else extended(value, row.bits, row.signed))


def extended(value: int, bits: int, signed: bool) -> int:
    return value | (M32 & -1 << bits if signed and value >> bits - 1 else 0)


def _scalar_offset(wave: Wave, operand: Operand | None) -> int:
    if operand is None or operand.kind is OperandKind.ABSENT:
        return 0
    return raw(wave, operand, 0, 32)
