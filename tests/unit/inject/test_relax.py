"""Layout: displacements, islands, PC-relative literals."""

from __future__ import annotations

import struct

import pytest

from luthier_py.inject.model import PLACEHOLDER, Clone, Item, Reference, Target
from luthier_py.inject.patch import Fixup, FixupKind
from luthier_py.inject.relax import REACH_BYTES, place
from luthier_py.isa import instruction_set, sgpr, target

ISA = instruction_set(target("gfx90a"))
START, END = 0x1000, 0x2000  # block addresses in the imagined original


def clone(middle: int, first: str = "s_cbranch_scc0", last: str = "s_cbranch_scc1") -> Clone:
    """Forward over ``middle`` instructions, and back again."""
    head, tail = Item(ISA.make(first, 0), jump=END), Item(ISA.make(last, 0), jump=START)
    fill = [Item(ISA.make("s_nop", 0)) for _ in range(middle)]
    items = [head, *fill, tail, Item(ISA.make("s_endpgm"))]
    return Clone(None, "f", items, {START: head, END: tail})  # type: ignore[arg-type]


def walk(code: bytes, at: int, taken: bool) -> int:
    """Follow one branch, and unconditional ones after it, to an instruction that is none."""
    inst = ISA.decode(code, at)
    at = inst.branch_target(at) if taken else at + inst.size_bytes
    while (inst := ISA.decode(code, at)).op.base == "S_BRANCH":
        at = inst.branch_target(at)
    return at


@pytest.mark.parametrize("middle", [0, 1, 1000, 32766, 32767, 70_000])
def test_branches_reach_their_targets_both_ways(middle):
    made = clone(middle)
    placed = place(ISA, made, {})
    code, offsets = placed.chunk.code, placed.offsets
    head, tail = offsets[made.labels[START]], offsets[made.labels[END]]
    assert walk(code, head, taken=True) == tail
    assert walk(code, tail, taken=True) == head
    islands = len(code) // 4 - middle - 3
    assert (islands > 0) == (-4 * middle - 8 not in REACH_BYTES)  # the way back is the longer one


def test_code_around_an_island_falls_over_it():
    made = clone(70_000)
    placed = place(ISA, made, {})
    at, seen = 0, 0
    end = placed.offsets[made.items[-1]]
    while at != end:  # not taken at conditional branches
        inst = ISA.decode(placed.chunk.code, at)
        seen += inst.op.base == "S_NOP"
        at = inst.branch_target(at) if inst.op.base == "S_BRANCH" else at + inst.size_bytes
    assert seen == 70_000


def test_a_literal_for_a_block_is_filled_in_and_others_become_fixups():
    getpc = Item(ISA.make("s_getpc_b64", sgpr(4, 2)))
    inside = Reference(FixupKind.REL32_LO, Target(block=END), getpc)
    outside = Reference(FixupKind.REL32_HI, Target(variable="v", offset=24), getpc)
    low = Item(ISA.make("s_add_u32", sgpr(4), sgpr(4), PLACEHOLDER), reference=inside)
    high = Item(ISA.make("s_addc_u32", sgpr(5), sgpr(5), PLACEHOLDER), reference=outside)
    end = Item(ISA.make("s_endpgm"))
    placed = place(ISA, Clone(None, "f", [getpc, low, high, end], {END: end}), {})  # type: ignore[arg-type]
    assert struct.unpack_from("<I", placed.chunk.code, 8) == (placed.offsets[end] - 4,)
    assert placed.chunk.fixups == (Fixup(16, FixupKind.REL32_HI, "v", 24, 4),)
