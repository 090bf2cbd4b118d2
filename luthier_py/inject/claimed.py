"""What these passes say of a clone to those who do not believe them (`proof.claim`).

In: a clone, where its items stand, and its insertions. Out: a ClonedFunction. Invariant: nothing in it is an object
of these rooms; it is numbers, names, registers and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from luthier_py.inject.model import Clone, Item
from luthier_py.ir import Instr
from luthier_py.isa import Reg
from luthier_py.jit import Payload, PayloadKey, payload_key
from luthier_py.proof.claim import Address, Call, ClonedFunction, Side, Stretch, Value
from luthier_py.proof.claim import Payload as ClaimedPayload
from luthier_py.tool import Insertion, Lanes, Place, Pointer, Variable, WaveVariable
from luthier_py.tool.variables import Element

SIDES = {Place.BEFORE: Side.BEFORE, Place.AFTER: Side.AFTER}
_EXEC = {Lanes.ACTIVE: None, Lanes.ONE: 1, Lanes.ALL: -1}


@dataclass(frozen=True, slots=True)
class WovenCall:
    """An insertion where it went. ``first`` is the item of its payload's first instruction."""

    insertion: Insertion
    instr: Instr
    side: Side
    first: Item
    homes: Mapping[WaveVariable, Reg]

    def claimed(self, numbers: Mapping[PayloadKey, int], offsets: Mapping[Item, int]) -> Call:
        insertion = self.insertion
        return Call(
            numbers[payload_key(insertion)], offsets[self.first], self.instr.pc, self.side,
            tuple(_value(argument, self.homes) for argument in insertion.runtime_args),
            tuple(self.homes[to] if isinstance(to, WaveVariable) else to for to in insertion.into),
            _EXEC[insertion.hook.lanes],
        )


def _value(argument: object, homes: Mapping[WaveVariable, Reg]) -> Value:
    if isinstance(argument, Variable):
        return Address(argument.name)
    if isinstance(argument, Element):
        return Address(argument.variable.name, argument.offset_bytes)
    if isinstance(argument, WaveVariable):
        return homes[argument]
    assert isinstance(argument, Reg)
    return argument


def claimed_function(
    clone: Clone, offsets: Mapping[Item, int], calls: Iterable[WovenCall], numbers: Mapping[PayloadKey, int],
    homes: Iterable[Reg],
) -> ClonedFunction:
    """``numbers`` are those of payloads in the claim."""
    here = [call for call in calls if call.first in offsets]
    source = clone.source
    return ClonedFunction(
        source.name, source.address, clone.name, tuple(_stretches(clone, offsets)),
        tuple(sorted((call.claimed(numbers, offsets) for call in here), key=lambda call: call.start)), tuple(homes),
    )


def _stretches(clone: Clone, offsets: Mapping[Item, int]) -> Iterable[Stretch]:
    """The application's instructions, in rows as long as they can be."""
    original = at = size = 0
    for item in clone.items:
        if item.origin is None:
            continue
        pc, offset, whole = item.origin.pc, offsets[item], item.inst.size_bytes == item.origin.inst.size_bytes
        if size and whole and (pc, offset) == (original + size, at + size):
            size += item.inst.size_bytes
            continue
        if size:
            yield Stretch(original, at, size)
        original, at, size = pc, offset, item.origin.inst.size_bytes
        if not whole:
            yield Stretch(original, at, size)
            size = 0
    if size:
        yield Stretch(original, at, size)


def claimed_payload(key: PayloadKey, payload: Payload) -> ClaimedPayload:
    """``payload`` in its own registers."""
    parameters = zip(key.hook.signature.parameters, key.constants, strict=True)
    pointers = tuple(isinstance(parameter.type, Pointer) for parameter, constant in parameters if constant is None)
    return ClaimedPayload(
        key.hook.name, b"".join(inst.raw for inst in payload.instrs), tuple(slot.reg for slot in payload.params),
        tuple(slot.reg for slot in payload.results), pointers,
    )

