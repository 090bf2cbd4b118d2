"""Addresses for a clone: items to bytes.

In: a Clone. Out: a Chunk (bytes and fixups) and the offset of every item. Invariant: every direct branch
reaches its target; where 16 bits of displacement do not suffice it goes through islands, lone `s_branch`es
that need no register and no SCC and are jumped over by the code around them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from luthier_py.inject.model import Clone, Item, Target
from luthier_py.inject.patch import ENTRY_ALIGN_BYTES, Chunk, Fixup, FixupKind
from luthier_py.isa import InstructionSet, OperandKind

REACH_BYTES = range(-4 * 32768, 4 * 32768)  # of s_branch: signed 16-bit dwords (AMD ISA, SOPP)
ISLAND_STEP_BYTES = 4 * 28000  # leaves room for islands that come later


@dataclass(frozen=True, slots=True)
class Placed:
    """A chunk and where each item starts in it (bytes)."""

    chunk: Chunk
    offsets: dict[Item, int]


def place(isa: InstructionSet, clone: Clone, names: dict[int, str]) -> Placed:
    """``names``: chunk names of cloned functions by original address."""
    items = list(clone.items)
    jumps = {i: i.jump if isinstance(i.jump, Item) else clone.labels[i.jump] for i in items if i.jump is not None}
    offsets = _offsets(items)
    while (far := _first_out_of_reach(jumps, offsets)) is not None:
        _insert_island(isa, items, jumps, offsets, far)
        offsets = _offsets(items)
    code = bytearray()
    fixups: list[Fixup] = []
    for item in items:
        raw = bytearray(item.inst.raw)
        if item in jumps:
            distance = _distance(item, jumps[item], offsets)
            raw = bytearray(isa.with_field(item.inst, _target_name(item), distance // 4).raw)
        if item.reference is not None:
            base = offsets[item.reference.base] + item.reference.base.inst.size_bytes
            target = item.reference.target
            if target.block is not None:
                raw[-4:] = _half(item.reference.half, offsets[clone.labels[target.block]] - base)
            else:
                at = len(code) + len(raw) - 4
                fixups.append(Fixup(at, item.reference.half, _name(target, names), target.offset, base))
        code += raw
    return Placed(Chunk(clone.name, bytes(code), tuple(fixups), ENTRY_ALIGN_BYTES), offsets)


def _half(half: FixupKind, distance: int) -> bytes:
    low, high = struct.unpack("<2I", struct.pack("<q", distance))
    return struct.pack("<I", low if half is FixupKind.REL32_LO else high)


def _name(target: Target, names: dict[int, str]) -> str | int:
    if target.function is not None:
        return names[target.function]
    if target.variable is not None:
        return target.variable
    assert target.address is not None
    return target.address


def _offsets(items: list[Item]) -> dict[Item, int]:
    offsets, at = {}, 0
    for item in items:
        offsets[item] = at
        at += item.inst.size_bytes
    return offsets


def _distance(item: Item, destination: Item, offsets: dict[Item, int]) -> int:
    return offsets[destination] - offsets[item] - item.inst.size_bytes


def _target_name(item: Item) -> str:
    return next(o.name for o in item.inst.operands if o.kind is OperandKind.TARGET)


def _first_out_of_reach(jumps: dict[Item, Item], offsets: dict[Item, int]) -> Item | None:
    far = (item for item, to in jumps.items() if _distance(item, to, offsets) not in REACH_BYTES)
    return next(far, None)


def _insert_island(
    isa: InstructionSet, items: list[Item], jumps: dict[Item, Item], offsets: dict[Item, int], far: Item
) -> None:
    """Send ``far`` to a new island one step closer to its destination."""
    forward = offsets[jumps[far]] > offsets[far]
    wanted = offsets[far] + (ISLAND_STEP_BYTES if forward else -ISLAND_STEP_BYTES)
    at = max(i for i, item in enumerate(items) if offsets[item] <= wanted)
    over, island = Item(isa.make("s_branch", 0)), Item(isa.make("s_branch", 0))
    jumps[over], jumps[island], jumps[far] = items[at], jumps[far], island
    items[at:at] = [over, island]
