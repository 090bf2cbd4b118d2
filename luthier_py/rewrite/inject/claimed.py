"""What these passes say of a clone to those who do not believe them (`proof.claim`).

In: a clone, where its items stand, and its insertions. Out: a ClonedFunction. Invariant: nothing in it is an object
of these rooms; it is numbers, names, registers and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from operator import or_

from luthier_py.isa import LaneOf, Reg, Space
from luthier_py.program.analysis import PLAIN_MODE
from luthier_py.program.ir import Function
from luthier_py.proof.claim import Address, Call, ClonedFunction, InCell, Kept, Side, Stretch, Value
from luthier_py.proof.claim import Payload as ClaimedPayload
from luthier_py.rewrite.inject.items import (
    AssignedLocation,
    Label,
    PersistentValue,
    PrivateCell,
    Run,
    Single,
    Slice,
    SpilledLocation,
)
from luthier_py.rewrite.inject.layout import Placed
from luthier_py.rewrite.inject.placing import Calls
from luthier_py.rewrite.inject.policies import CELL_BYTES
from luthier_py.rewrite.jit import Payload, PayloadKey
from luthier_py.rewrite.tool import Assembly, Entry, Lanes, Place, Pointer, Variable, WaveVariable
from luthier_py.rewrite.tool.edits import RuntimeArg
from luthier_py.rewrite.tool.hooks.hook import FloatMode, Parameter
from luthier_py.rewrite.tool.hooks.types import NearPointer, Struct, Type
from luthier_py.rewrite.tool.variables import Element

SIDES = {Place.BEFORE: Side.BEFORE, Place.AFTER: Side.AFTER, Place.TAKEN: Side.TAKEN}
_EXEC = {Lanes.ACTIVE: None, Lanes.ONE: 1, Lanes.ALL: -1}


def _value(argument: RuntimeArg, kept: Mapping[PersistentValue, int | str]) -> Value:
    if isinstance(argument, Variable):
        return Address(argument.name)
    if isinstance(argument, Element):
        return Address(argument.variable.name, argument.offset_bytes)
    if isinstance(argument, (Entry, WaveVariable)):
        return Kept(kept[argument])
    return argument


def build_function_claim(source: Function, placed: Placed, calls: Calls,
                         kept: Mapping[PersistentValue, int | str]) -> ClonedFunction:
    """``kept``: numbers of wave variables, and names of what waves start with."""
    return ClonedFunction(
        source.name, source.address, placed.clone.name, source.isa.wave_size, tuple(_stretches(placed)),
        tuple(_calls(placed, calls, kept)),
        {kept[value]: _place(location, calls.private.start) for value, location in calls.locations.items()},
        {item.origin.pc: item.inst.raw for item in placed.clone.items
         if isinstance(item, Single) and item.origin is not None and item.instead}, calls.private)


def _place(location: AssignedLocation, private: int) -> Reg | LaneOf | InCell:
    """``private``: where the tool's private memory begins."""
    if not isinstance(location, SpilledLocation):
        return location
    if isinstance(location.slot, PrivateCell):
        return InCell((location.slot.offset_bytes - private) // CELL_BYTES, location.first, location.dwords)
    return location.lanes(location.slot)


def _calls(placed: Placed, calls: Calls, kept: Mapping[PersistentValue, int | str]) -> Iterator[Call]:
    """The calls in a clone, as they stand: each begins with its payload's first instruction."""
    begun: set[int] = set()
    for item, at in zip(placed.clone.items, placed.offsets, strict=True):
        edit = item.edit if isinstance(item, Run) or (isinstance(item, Single) and item.payload) else None
        if edit is None or edit.number in begun:
            continue
        begun.add(edit.number)
        insertion, site, key = calls.made[edit.number]
        yield Call(
            calls.numbers[key], insertion.order, at, site.instr.pc, SIDES[site.place],
            tuple(_value(argument, kept) for argument in insertion.runtime_args),
            tuple(Kept(kept[to]) if isinstance(to, WaveVariable) else to for to in insertion.into),
            tuple(hole.compute_dword(insertion.hook, insertion.args) for hole in calls.fragments[key].payload.holes),
        )


def _stretches(placed: Placed) -> Iterator[Stretch]:
    """The application's instructions, in rows as long as they can be."""
    original = clone = size = 0
    for item, at in zip(placed.clone.items, placed.offsets, strict=True):
        if isinstance(item, (Label, Run)) or (isinstance(item, Single) and item.origin is None):
            continue
        pc, own = (item.pc, item.size_bytes) if isinstance(item, Slice) else _of(item)
        whole = isinstance(item, Slice) or item.size_bytes == own
        if whole and size and pc == original + size and at == clone + size:
            size += own
            continue
        if size:
            yield Stretch(original, clone, size)
        original, clone, size = pc, at, own
        if not whole:
            yield Stretch(original, clone, size)
            size = 0
    if size:
        yield Stretch(original, clone, size)


def _of(item: Single) -> tuple[int, int]:
    """Address and size of the application's instruction."""
    assert item.origin is not None
    return item.origin.pc, item.origin.inst.size_bytes


def build_payload_claim(key: PayloadKey, payload: Payload) -> ClaimedPayload:
    """``payload`` in its own registers."""
    parameters = key.hook.signature.parameters
    given = [(_depth(each.type), constant) for each, constant in zip(parameters, key.constants, strict=True)]
    ends = list(accumulate(inst.size_bytes for inst in payload.instrs))
    return ClaimedPayload(
        key.hook.name,
        b"".join(inst.raw for inst in payload.instrs),
        tuple(slot.reg for slot in payload.params),
        tuple(slot.reg for slot in payload.results),
        tuple(depth for depth, constant in given if constant is None),
        tuple(_compute_pointee_bytes(parameter.type) for parameter,
              constant in zip(parameters, key.constants, strict=True) if constant is None),
        _EXEC[key.hook.lanes],
        max((depth for depth, constant in given if constant is not None), default=0),
        tuple(ends[hole.instr] - 4 for hole in payload.holes),
        payload.stack,
        payload.frame_bytes,
        *_near(parameters, key.constants),
        payload.resource,
        PLAIN_MODE if key.hook.mode is FloatMode.OWN else None,
        isinstance(key.hook.function, Assembly),
    )


def _near(parameters: Sequence[Parameter], constants: Sequence[object]) -> tuple[tuple[Space, ...], Space]:
    """Which memory beside global memory they point to, and what numbers in the code point to."""
    spaces = [each.type.space if isinstance(each.type, NearPointer) else Space.NONE for each in parameters]
    given = tuple(space for space, constant in zip(spaces, constants, strict=True) if constant is None)
    inside = [space for space, constant in zip(spaces, constants, strict=True) if constant is not None]
    return given if any(given) else (), reduce(or_, inside, Space.NONE)


def _depth(type: Type) -> int:
    """How many times a type is a pointer into global memory; of a structure the most of its members."""
    if isinstance(type, Struct):
        return max(_depth(member.type) for member in type.members)
    return 1 + _depth(type.element) if isinstance(type, Pointer) and not isinstance(type, NearPointer) else 0


def _compute_pointee_bytes(type: Type) -> int:
    """Bytes of what a pointer points to."""
    return type.element.size_bytes if isinstance(type, Pointer) else 0
