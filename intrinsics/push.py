"""push(channel, fields...): a record for each active lane, or one for the wave; `luthier_py.tool.ring` says how."""

from __future__ import annotations

from contextlib import nullcontext

from luthier_py.tool import (
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
from luthier_py.tool.channel import LAUNCH_AT, MASK_AT, NUMBER_AT, RecordField, RecordType

from .reserve import launch_of, reserve, slot_of

EVERY_LANE = (1 << 64) - 1


@intrinsic(result=Result.UNIFORM)
def push(ir: Ir, channel: Operand, *fields: Operand) -> None:
    """Sends a record with these fields, in their order: one for each active lane, or one for the wave."""
    if not isinstance(channel, Value) or not isinstance(channel.type, ChannelType):
        ir.refuse("push needs a channel first: declare the parameter as channel[Record]")
    record, cell = channel.type.record, Value(Pointer(channel.type.element), channel.text, channel.lane)
    given = _fields(ir, record, fields)
    mask = mask_of(ir, True)
    one = ir.value(1, U32)
    count = one if record.of_wave else ir.call("llvm.ctpop.i64", U64, mask)
    first, room = ir.inline(reserve, cell, ir.convert(count, U32))
    number = first if record.of_wave else _sum(ir, first, ir.convert(bits_below(ir, mask), U64))
    (slot,) = ir.inline(slot_of, cell, number, room, ir.value(record.slot_bytes, U64))
    (launch,) = ir.inline(launch_of, cell)
    for field, value in given:
        if field.lane:
            _store(ir, slot, field.offset_bytes, value, _lane_offset(ir, field))
    with ir.where(_is_first(ir, mask)) if record.of_wave else nullcontext():
        _store(ir, slot, LAUNCH_AT, launch)
        if record.of_wave:
            _store(ir, slot, MASK_AT, mask)
        for field, value in given:
            if not field.lane:
                _store(ir, slot, field.offset_bytes, value)
        done = ir.convert(_sum(ir, number, ir.value(1, U64)), U32)
        ir.line(f"store atomic i32 {done.text}, {_pointer(ir, slot, NUMBER_AT)} release, align 4")


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


def _sum(ir: Ir, a: Value, b: Value) -> Value:
    return ir.emit(U64, f"add i64 {a.text}, {b.text}")


def _is_first(ir: Ir, mask: Value) -> Value:
    return ir.emit(BOOL, f"icmp eq i32 {bits_below(ir, mask).text}, 0")


def _lane_offset(ir: Ir, field: RecordField) -> Value:
    """Of this lane's entry in a field that has one for each."""
    lane = ir.convert(bits_below(ir, ir.value(EVERY_LANE, U64)), U64)
    return ir.emit(U64, f"mul i64 {lane.text}, {field.type.size_bytes}")


def _pointer(ir: Ir, slot: Value, offset_bytes: int, more: Value | None = None) -> str:
    base = slot if more is None else _sum(ir, slot, more)
    at = ir.emit(U64, f"add i64 {base.text}, {offset_bytes}")
    return f"ptr addrspace(1) {ir.raw(f'inttoptr i64 {at.text} to ptr addrspace(1)')}"


def _store(ir: Ir, slot: Value, offset_bytes: int, value: Value, more: Value | None = None) -> None:
    where = _pointer(ir, slot, offset_bytes, more)
    ir.line(f"store {ir.llvm(value.type)} {value.text}, {where}, align {value.type.size_bytes}")
