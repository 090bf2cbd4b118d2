"""Addresses for a clone: items to bytes.

In: a Clone. Out: a Chunk (bytes and fixups) and the offset of every item. Invariant: every direct branch
reaches its target; where 16 bits of displacement do not suffice it goes through islands, lone `s_branch`es
that need no register and no SCC. Islands stand together in groups, which the code around them jumps over, and
all branches that go the same way share them: so a function of any size is laid out in few passes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass

from luthier_py.inject.model import Clone, Item, Target
from luthier_py.inject.patch import ENTRY_ALIGN_BYTES, Chunk, Fixup
from luthier_py.isa import InstructionSet, OperandKind
from luthier_py.isa.hazards import unsafe_displacement

REACH_BYTES = range(-4 * 32768, 4 * 32768)  # of s_branch: signed 16-bit dwords (AMD ISA, SOPP)
STEP_BYTES = 4 * 28000   # from a branch to an island, at most: leaves room for islands that come later
GROUP_BYTES = 4 * 7000   # from one group of islands to the next


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
    while True:
        distances = {i: _distance(i, to, offsets) for i, to in jumps.items()}
        if far := [i for i, distance in distances.items() if distance not in REACH_BYTES]:
            items = _with_islands(isa, items, jumps, offsets, far)
        elif unsafe := {i for i, distance in distances.items() if unsafe_displacement(isa.target, distance // 4)}:
            items = [new for item in items for new in (item, *[Item(isa.make("s_nop", 0))] * (item in unsafe))]
        else:
            break
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
            kind, target = item.reference.kind, item.reference.target
            if target.block is not None:
                raw[-kind.size_bytes :] = kind.stored(offsets[clone.labels[target.block]] - base)
            else:
                at = len(code) + len(raw) - kind.size_bytes
                fixups.append(Fixup(at, kind, _name(target, names), target.offset, base))
        code += raw
    return Placed(Chunk(clone.name, bytes(code), tuple(fixups), ENTRY_ALIGN_BYTES), offsets)


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


def _with_islands(
    isa: InstructionSet, items: list[Item], jumps: dict[Item, Item], offsets: dict[Item, int], far: list[Item]
) -> list[Item]:
    """The items with islands, through which the branches in ``far`` go now (changes ``jumps``)."""
    groups = _group_places(items, offsets)
    places = [offsets[item] for item in groups]
    islands: dict[tuple[Item, Item], Item] = {}
    for item in far:
        at, destination = offsets[item], jumps[item]
        forward = offsets[destination] > at
        number = bisect_right(places, at + STEP_BYTES) - 1 if forward else bisect_left(places, at - STEP_BYTES)
        key = groups[number], destination
        if key not in islands:
            islands[key] = Item(isa.make("s_branch", 0))
            jumps[islands[key]] = destination
        jumps[item] = islands[key]
    standing: dict[Item, list[Item]] = defaultdict(list)
    for (group, _), island in islands.items():
        standing[group].append(island)
    out: list[Item] = []
    for item in items:
        if item in standing:
            over = Item(isa.make("s_branch", 0))
            jumps[over] = item
            out += [over, *standing[item]]
        out.append(item)
    return out


def _group_places(items: list[Item], offsets: dict[Item, int]) -> list[Item]:
    """Items before which islands may stand."""
    found, last = [], 0
    for item in items:
        if offsets[item] >= last + GROUP_BYTES:
            found.append(item)
            last = offsets[item]
    return found
