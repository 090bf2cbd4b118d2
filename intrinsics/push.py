"""push(channel, fields...): a record of each active lane, or one of the wave; `rewrite/tool/records/ring` says how."""

from __future__ import annotations

from contextlib import nullcontext

from luthier_py.rewrite.tool import (
    BOOL,
    U32,
    U64,
    ChannelType,
    Ir,
    Operand,
    Pointer,
    Result,
    Value,
    bits_below,
    intrinsic,
    mask_of,
)
from luthier_py.rewrite.tool.records.channel import LAUNCH_AT, MASK_AT, NUMBER_AT, RecordField, RecordType
from luthier_py.rewrite.tool.records.ring import CAPACITY, DROPS, RING, SLOTS_AT

from .reserve import reserve

EVERY_LANE = (1 << 64) - 1


@intrinsic(result=Result.UNIFORM)
def push(ir: Ir, channel: Operand, *fields: Operand) -> None:
    """Sends a record with these fields, in their order: one for each active lane, or one for the wave."""
    if not isinstance(channel, Value) or not isinstance(channel.type, ChannelType):
        ir.refuse("push needs a channel first: declare the parameter as channel[Record]")
    record = channel.type.record
    given = _fields(ir, record, fields)
    cell = ir.raw(f"addrspacecast ptr addrspace(1) {channel.text} to ptr addrspace(4)")
    head, ring = _word(ir, cell, 0), _word(ir, _constant(ir, _word(ir, cell, 0)), RING)
    mask = mask_of(ir, True)
    below = bits_below(ir, mask)
    first_lane = ir.emit(BOOL, f"icmp eq i32 {below.text}, 0")
    one = ir.value(1, U32)
    count = one if record.of_wave else ir.convert(ir.call("llvm.ctpop.i64", U64, mask), U32)
    first, place = ir.inline(
        reserve, *(Value(Pointer(U64), f"{_pointer(ir, word)}", lane=False) for word in (head, ring)), count,
        _known(ir, head, CAPACITY, channel.type.capacity), _known(ir, head, DROPS, channel.type.drops),
        ir.convert(first_lane, U32), ir.value(0, U32) if record.of_wave else below)
    slot = _slot(ir, ring, place, record.slot_bytes, channel.type.capacity)
    for field, value in given:
        if field.lane:
            _store(ir, slot, field.offset_bytes, value, _lane_offset(ir, field))
    with ir.where(first_lane) if record.of_wave else nullcontext():
        _store(ir, slot, LAUNCH_AT, ir.convert(_word(ir, cell, 1), U32))
        if record.of_wave:
            _store(ir, slot, MASK_AT, mask)
        for field, value in given:
            if not field.lane:
                _store(ir, slot, field.offset_bytes, value)
        number = first if record.of_wave else ir.emit(U32, f"add i32 {first.text}, {below.text}")
        done = ir.emit(U32, f"add i32 {number.text}, 1")
        ir.line(f"store atomic i32 {done.text}, {_at(ir, slot, NUMBER_AT)} release, align 4")


def _word(ir: Ir, words: str, number: int) -> Value:
    """One of the words that the host writes before the launch: a scalar load finds it."""
    where = ir.raw(f"getelementptr i64, ptr addrspace(4) {words}, i64 {number}")
    return ir.emit(U64, f"load i64, ptr addrspace(4) {where}, align 8, !invariant.load !0")


def _constant(ir: Ir, address: Value) -> str:
    return ir.raw(f"inttoptr i64 {address.text} to ptr addrspace(4)")


def _pointer(ir: Ir, address: Value) -> str:
    return ir.raw(f"inttoptr i64 {address.text} to ptr addrspace(1)")


def _known(ir: Ir, head: Value, word: int, known: int | None) -> Value:
    """What the head says, if it is not known when the hook is compiled."""
    return _word(ir, _constant(ir, head), word) if known is None else ir.value(int(known), U64)


def _slot(ir: Ir, ring: Value, place: Value, slot_bytes: int, capacity: int | None) -> str:
    """The address of a slot; 0 is the spare one."""
    if capacity is not None and (capacity + 1) * slot_bytes < 1 << 32:
        narrow = ir.emit(U32, f"mul i32 {place.text}, {slot_bytes}")
        offset = ir.emit(U64, f"zext i32 {narrow.text} to i64")
    else:
        wide = ir.emit(U64, f"zext i32 {place.text} to i64")
        offset = ir.emit(U64, f"mul i64 {wide.text}, {slot_bytes}")
    slots = ir.raw(f"getelementptr i8, ptr addrspace(1) {_pointer(ir, ring)}, i64 {offset.text}")
    return ir.raw(f"getelementptr i8, ptr addrspace(1) {slots}, i64 {SLOTS_AT}")


def _fields(ir: Ir, record: RecordType, fields: tuple[Operand, ...]) -> list[tuple[RecordField, Value]]:
    """Each with its value, which must be one for the wave where the field is."""
    if len(fields) != len(record.fields):
        names = ", ".join(field.name for field in record.fields)
        ir.refuse(f"record {record} has {len(record.fields)} fields ({names}), {len(fields)} given")
    values = [ir.value(given, field.type) for given, field in zip(fields, record.fields, strict=True)]
    for value, field in zip(values, record.fields, strict=True):
        if record.of_wave and value.lane and not field.lane:
            ir.refuse(f"{field.name} differs between lanes, but record {record} is one for the wave; declare it "
                      f"Lane[{field.type}] there, or take one lane's value with read_first_lane")
    return list(zip(record.fields, values, strict=True))


def _lane_offset(ir: Ir, field: RecordField) -> Value:
    """Of this lane's entry in a field that has one for each."""
    lane = bits_below(ir, ir.value(EVERY_LANE, U64))
    narrow = ir.emit(U32, f"mul i32 {lane.text}, {field.type.size_bytes}")
    return ir.emit(U64, f"zext i32 {narrow.text} to i64")


def _at(ir: Ir, slot: str, offset_bytes: int, more: Value | None = None) -> str:
    if more is not None:
        slot = ir.raw(f"getelementptr i8, ptr addrspace(1) {slot}, i64 {more.text}")
    return f"ptr addrspace(1) {ir.raw(f'getelementptr i8, ptr addrspace(1) {slot}, i64 {offset_bytes}')}"


def _store(ir: Ir, slot: str, offset_bytes: int, value: Value, more: Value | None = None) -> None:
    where = _at(ir, slot, offset_bytes, more)
    ir.line(f"store {ir.llvm(value.type)} {value.text}, {where}, align {value.type.size_bytes}")
