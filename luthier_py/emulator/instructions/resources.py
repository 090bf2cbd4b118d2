"""Buffer resources: what their four dwords say, and which bytes are in their range, on every generation.

In: the dwords, and a lane's index and offset. Out: values. Sources: GCN 3 ISA, 8.1.5; AMD Instinct MI200 ISA and CDNA 3
ISA, 9.1.5 and 9.1.8 (Vega, too); Mesa, ac_set_buf_desc_word3 (RDNA 1 and 2); RDNA 3 ISA, 9.4 and 9.6; RDNA 4 ISA, the
same; for wide resources, which have other fields, hipBLASLt's SrdUpperValue125X and rocjitsu's addr_calc.cpp.

Invariant: dwords of a lane are in range or not each on its own, as manuals have it for what converts nothing; elements
that are converted, and atomics, only as a whole.
"""

from __future__ import annotations

from luthier_py.base.records import dataclass
from luthier_py.emulator.vector_regions.lane_strip import LaneStrip
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics.algebra import BOOL, U32, U64, Value, minimum, select

ADD_TID = 1 << 23
_STRIDE_FACTORS = 0x20080401  # of stride scales 0 to 3, a byte each
_RAW = 3  # of OOB_SELECT


@dataclass(frozen=True, slots=True)
class BufferResource:
    """Fields as scalar values; ``wide`` resources have neither formats, nor lanes' numbers to add."""

    target: Target
    base: Value          # u64
    stride: Value        # u32, bytes
    records: Value       # u64
    swizzled: Value      # BOOL
    element: Value       # u32: bytes that stay together where it is swizzled
    index_stride: Value  # u32
    adds_lane: Value     # BOOL
    bound: Value         # BOOL: it has a format
    check: Value         # u32: OOB_SELECT
    soffset: Value       # u64: the instruction's scalar offset
    start: Value         # u64: base, and that
    raw: Value           # BOOL: without records
    by_record: Value     # BOOL: swizzled, of records

    @property
    def private(self) -> Value:
        """Whether it is that of private memory, as the hardware sets it up."""
        return self.adds_lane & self.swizzled


def buffer_resource(target: Target, words: list[Value], soffset: Value, formatted: bool = False) -> BufferResource:
    """``formatted``: for an instruction that converts; others have four more bits of stride there where lanes count."""
    low, high, records, last = words
    nothing = low.ops.constant(BOOL, 0)
    if target.wide_resources:
        base = low.to(U64) | (high & 0x1FFFFFF).to(U64) << 32
        count = (high >> 25).to(U64) | records.to(U64) << 7 | (last & 63).to(U64) << 39
        stride = _scale_stride((last >> 12) & 0x3FFF, (last >> 26) & 3)
        return BufferResource(target, base, stride, count, ((last >> 28) & 1).ne(0), low.lift(4), low.lift(8), nothing,
                              low.ops.constant(BOOL, 1), (last >> 29) & 1, soffset, base + soffset, nothing, nothing)
    stride = (high >> 16) & 0x3FFF
    if target.generation == 12:
        stride = _scale_stride(stride, (last >> 18) & 3)
    swizzled, element = (high >> 31).ne(0), low.lift(4)
    if target.generation == 8:
        element = low.lift(2) << ((last >> 19) & 3)
    elif target.generation >= 11:
        swizzled, element = (high >> 30).ne(0), select((high >> 30).eq(3), low.lift(16), 4)
    adds_lane = (last & ADD_TID).ne(0)
    if target.generation <= 9 and not formatted:
        stride = select(adds_lane, stride | ((last >> 15) & 15) << 14, stride)
    base, raw = low.to(U64) | (high & 0xFFFF).to(U64) << 32, stride.eq(0)
    if target.generation == 8:
        raw = raw | ~swizzled
    return BufferResource(target, base, stride, records.to(U64), swizzled, element, low.lift(8) << ((last >> 21) & 3),
                          adds_lane, format_code(target, last).ne(0) | adds_lane, (last >> 28) & 3, soffset,
                          base + soffset, raw, swizzled & ~raw)


def format_code(target: Target, last: Value) -> Value:
    """Of a resource's dword 3; 0 where nothing is bound: before RDNA, where there are no fields."""
    if target.generation >= 10:
        return (last >> 12) & (63 if target.generation >= 11 else 127)
    code = (last >> 12) & 127
    return select((code >> 3).eq(0), 0, code)


def _scale_stride(stride: Value, scale: Value) -> Value:
    return stride * ((stride.lift(_STRIDE_FACTORS) >> (scale << 3)) & 0xFF)


@dataclass(frozen=True, slots=True)
class LanePlace:
    """Where a strip of lanes looks: index and offset as registers and instruction give them (u32)."""

    strip: LaneStrip
    resource: BufferResource
    index: Value
    offset: Value
    indexed: bool    # the instruction has an index

    def address(self) -> Value:
        """Of the first byte, u64."""
        splat, r = self.strip.splat, self.resource
        place = select(splat(r.swizzled), self._swizzle_offset(), self._linear())
        return splat(r.start) + place

    def inside(self, start: int, size: Value | int) -> Value:
        """Whether ``size`` bytes from ``start`` on, which are taken as a whole, are in range (BOOL)."""
        size = self.strip.ops.constant(U64, size) if isinstance(size, int) else self.strip.splat(size)
        found, r, splat = self._check_bounds(start, size), self.resource, self.strip.splat
        return found & splat(r.bound)

    def _check_bounds(self, start: int, size: Value) -> Value:
        r, splat, offset = self.resource, self.strip.splat, self.offset.to(U64) + start
        records = splat(r.records)
        in_records = self.index.to(U64) < records
        if r.target.wide_resources:
            own = offset + splat(self.resource.soffset)
            total = own + self.index.to(U64) * splat(r.stride).to(U64)
            in_record = own + size <= splat(r.stride).to(U64)
            return (total + size <= records) & (in_record | splat(r.check).eq(0))
        if r.target.generation >= 10:
            return self._by_check(offset, size, in_records)
        last = offset + (size - minimum(size, 4))  # of the last dword: where it begins counts
        raw, room = splat(r.raw) if self.indexed or r.target.generation == 8 else None, records
        if r.target.generation == 8:
            room = self._less(records)
            last = last + self.index.to(U64) * splat(r.stride).to(U64)
        found = last < room if raw is None else _either(raw, last < room, in_records)
        return found if self.indexed else found | splat(r.adds_lane)

    def _by_check(self, offset: Value, size: Value, in_records: Value) -> Value:
        """OOB_SELECT. Up to RDNA 2 it is the beginning that counts."""
        r, splat = self.resource, self.strip.splat
        stride, records = splat(r.stride).to(U64), splat(r.records)
        if r.target.generation == 10:
            offset, size = offset + (size - minimum(size, 4)), size.lift(1)
        in_record, less = offset + size <= stride, self._less(records)
        swizzled = in_records & in_record
        by_record = r.by_record
        if r.target.generation == 10:
            swizzled, by_record = self._swizzle_offset() + size <= less, r.swizzled
        raw = _either(splat(by_record), swizzled, offset + size <= less)
        check = splat(r.check)
        found = _either(check.eq(_RAW), raw, records.ne(0))
        found = _either(check.eq(1), in_records, found)
        return _either(check.eq(0), in_records & in_record, found)

    def _less(self, records: Value) -> Value:
        """Bytes behind the scalar offset, which is part of the base."""
        scalar = self.strip.splat(self.resource.soffset)
        return select(records > scalar, records - scalar, 0)

    def _linear(self) -> Value:
        return self.index.to(U64) * self.strip.splat(self.resource.stride).to(U64) + self.offset.to(U64)

    def _swizzle_offset(self) -> Value:
        """Where ``index_stride`` records have their elements side by side. RDNA 4 counts the scalar offset in."""
        r, splat = self.resource, self.strip.splat
        element, together, stride = splat(r.element), splat(r.index_stride), splat(r.stride).to(U64)
        scalar = splat(self.resource.soffset).to(U32) if r.target.generation == 12 else self.offset.lift(0)
        offset = self.offset + scalar
        in_element, in_stride = offset & (element - 1), self.index & (together - 1)
        blocks = (self.index - in_stride).to(U64) * stride + (offset - in_element).to(U64) * together.to(U64)
        return blocks + (in_stride * element + in_element).to(U64) - scalar.to(U64)


def _either(condition: Value, a: Value, b: Value) -> Value:
    return (condition & a) | (~condition & b)
