"""Buffer resources as device code reads them: where an access leads, and whether it is in range.

In: a resource's halves, a lane's index and offset as registers have them, the instruction's scalar offset and constant,
and which resources the target has. Out: numbers for hooks. Sources: as of the emulator's `resources`, which is the same
for LLVM IR. Invariant: it is what the hardware makes of these; where that is not known, of swizzled resources that have
addresses of 57 bits, the address is 0 and nothing is in range.

``generation`` and the flags are known when a hook is compiled, so nothing is left of other targets' resources.
"""

from __future__ import annotations

from luthier_py.rewrite.tool.hooks.author_types import Lane, bool_, u32, u64
from luthier_py.rewrite.tool.hooks.hook import device


@device
def _scale_stride(stride: u64, scale: u64) -> u64:
    """Times 1, 4, 8 or 32."""
    return stride * (u64(0x20080401) >> (scale * 8) & 0xFF)


@device
def _adds_lane(high: u64, wide: bool_) -> bool_:
    return not wide and ((high >> 55) & 1) != 0


@device
def _stride(low: u64, high: u64, generation: u32, wide: bool_, converts: bool_) -> u64:
    """Before RDNA the bits of the format are more of it where lanes' numbers are added and nothing is converted."""
    if wide:
        return _scale_stride((high >> 44) & 0x3FFF, (high >> 58) & 3)
    stride = (low >> 48) & 0x3FFF
    if generation == 12:
        return _scale_stride(stride, (high >> 50) & 3)
    if generation <= 9 and not converts and _adds_lane(high, wide):
        return stride | ((high >> 47) & 15) << 14
    return stride


@device
def _element(low: u64, high: u64, generation: u32) -> u32:
    """Bytes that stay together where the resource is swizzled, else 0."""
    if generation >= 11:
        kind = low >> 62
        return u32(0) if kind == 0 else u32(16) if kind == 3 else u32(4)
    if (low >> 63) == 0:
        return u32(0)
    return u32(2) << (u32(high >> 51) & 3) if generation == 8 else u32(4)


@device
def _place(high: u64, index: Lane[u32], offset: Lane[u32], stride: u64, element: u32) -> Lane[u64]:
    """Behind the base: of swizzled resources, groups of records have their elements side by side."""
    if element == 0:
        return u64(index) * stride + u64(offset)
    group = u32(8) << (u32(high >> 53) & 3)
    in_element = offset & (element - 1)
    in_group = index & (group - 1)
    blocks = u64(index - in_group) * stride + u64(offset - in_element) * group
    return blocks + u64(in_group * element + in_element)


@device
def buffer_address(
    low: u64, high: u64, index: Lane[u32], offset: Lane[u32], register: u32, constant: u32, lane: Lane[u32],
    generation: u32, wide: bool_, converts: bool_,
) -> Lane[u64]:
    """RDNA 4 weaves the scalar offset into swizzled records."""
    stride = _stride(low, high, generation, wide, converts)
    place = offset + constant
    if wide:
        found = (low & 0x1FFFFFFFFFFFFFF) + register + _place(high, index, place, stride, u32(0))
        return found if ((high >> 60) & 1) == 0 else found & 0
    if _adds_lane(high, wide):
        index = index + lane
    base = low & 0xFFFFFFFFFFFF
    element = _element(low, high, generation)
    if generation == 12 and element != 0:
        return base + _place(high, index, place + register, stride, element)
    return (base + register) + _place(high, index, place, stride, element)


@device
def buffer_holds(
    low: u64, high: u64, index: Lane[u32], offset: Lane[u32], register: u32, constant: u32, lane: Lane[u32],
    generation: u32, wide: bool_, converts: bool_, size: u32, indexed: bool_,
) -> Lane[bool_]:
    """Whether ``size`` bytes are in range, all of them. Before RDNA 3 it is where the last dword begins that counts."""
    stride = _stride(low, high, generation, wide, converts)
    start = u64(offset + constant)
    if wide:
        start = start + register
        records = low >> 57 | (high & 0x3FFFFFFFFF) << 7
        fits = start + u64(index) * stride + size <= records and ((high >> 60) & 1) == 0
        return fits and (start + size <= stride or ((high >> 61) & 1) == 0)
    adds_lane = _adds_lane(high, wide)
    code = (high >> 47) & 15
    if generation == 10:
        code = (high >> 44) & 127
    if generation >= 11:
        code = (high >> 44) & 63
    bound = code != 0 or adds_lane
    if adds_lane:
        index = index + lane
    records = u64(u32(high))
    element = _element(low, high, generation)
    last = start + u64(size - 4 if size > 4 else u32(0))
    room = records - register if records > register else u64(0)
    in_records = u64(index) < records
    if generation <= 9:
        raw = stride == 0 or not indexed
        if generation == 8:
            raw = stride == 0 or element == 0
            last = last + u64(index) * stride
            records = room
        return bound and ((last < records if raw else in_records) or adds_lane and not indexed)
    in_record = start + size <= stride
    fits = in_records and in_record if element != 0 and stride != 0 else start + size <= room
    if generation == 10:
        in_record = last < stride
        fits = _place(high, index, u32(last), stride, element) < room if element != 0 else last < room
    check = (high >> 60) & 3
    if check == 0:
        return bound and in_records and in_record
    if check == 1:
        return bound and in_records
    return bound and (fits if check == 3 else records != 0)


@device
def scalar_buffer_address(low: u64, register: u32, offset: u64, unit: u64, wide: bool_) -> u64:
    """Of whole units: dwords, or bytes where less is loaded."""
    base = low & 0x1FFFFFFFFFFFFFF if wide else low & 0xFFFFFFFFFFFF
    return (base + ((u64(register) + offset) & ~(unit - 1))) & ~(unit - 1)


@device
def scalar_buffer_holds(
    low: u64, high: u64, register: u32, offset: u64, unit: u64, generation: u32, wide: bool_, size: u32
) -> bool_:
    """Whether ``size`` bytes, from the start of a unit on, are in range: NUM_RECORDS is in bytes, or where there is a
    stride and addresses are not ``wide``, in records of it."""
    stride = _stride(low, high, generation, wide, True)
    room = u64(u32(high)) if stride == 0 else u64(u32(high)) * stride
    if wide:
        room = low >> 57 | (high & 0x3FFFFFFFFF) << 7
    return ((u64(register) + offset) & ~(unit - 1)) + size <= room
