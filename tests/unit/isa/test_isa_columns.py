"""What columns say of distinct instructions is what the decoded instructions say."""

from __future__ import annotations

import random

import pytest

from luthier_py.base.errors import Malformed
from luthier_py.isa import OpFlag, instruction_set, target
from luthier_py.isa.columns import NOWHERE, read_columns
from luthier_py.isa.encoding.scan import UNKNOWN

TARGETS = ("gfx803", "gfx90a", "gfx950", "gfx1030", "gfx1100", "gfx1201", "gfx1250")


def some_code(isa, seed: int) -> bytes:
    """Instructions of many rows with random fields, and what is none."""
    generator = random.Random(seed)
    found = []
    for op in isa.ops[seed::8]:
        bits = op.value | generator.getrandbits(8 * op.size_bytes) & ~op.mask
        try:
            found.append(isa.decode(bits.to_bytes(op.size_bytes, "little") + generator.randbytes(8)).raw)
        except Malformed:
            pass
    return b"".join(found) + generator.randbytes(400)


@pytest.mark.parametrize("name", TARGETS)
def test_columns_say_what_instructions_say(name: str) -> None:
    isa = instruction_set(target(name))
    code = some_code(isa, 1)
    [columns] = read_columns(isa, [(0x1000, code)])
    masks, distances = columns.distinct.masks, columns.distinct.distances
    seen = 0
    for at, pc in enumerate(columns.pcs.tolist()):
        kind = columns.kinds[at]
        if columns.row(at) == UNKNOWN or pc + columns.size(at) > 0x1000 + len(code):
            continue
        inst = isa.decode(code, pc - 0x1000)
        seen += 1
        assert columns.inst(at).raw == columns.distinct.raw(kind) == inst.raw and columns.size(at) == inst.size_bytes
        assert columns.flags[at] == inst.op.flags.value and columns.rows[at] == inst.op.row
        assert (masks.reads[kind], masks.writes[kind], masks.partial[kind]) == (
            inst.reads.bits, inst.writes.bits, inst.partial_writes.bits), inst
        goes = inst.branch_target(pc)
        assert distances[kind] == (NOWHERE if goes is None else goes - pc)
    assert seen > 40


def test_pieces_do_not_look_into_each_other() -> None:
    isa = instruction_set(target("gfx90a"))
    nop = isa.make("s_nop", 0).raw
    cut = bytes.fromhex("ff0080be")  # s_mov_b32 s0 with a literal, which is not there
    first, second = read_columns(isa, [(0, nop + cut), (0x100, nop + nop)])
    assert first.pcs.tolist() == [0, 4] and first.size(1) == 8
    assert second.pcs.tolist() == [0x100, 0x104] and second.distinct is first.distinct
    assert second.kinds[0] == second.kinds[1] == first.kinds[0]


def test_places_by_flag() -> None:
    isa = instruction_set(target("gfx90a"))
    code = b"".join(isa.make(*each).raw for each in (("s_nop", 0), ("s_branch", 1), ("s_nop", 0), ("s_endpgm",)))
    [columns] = read_columns(isa, [(0, code)])
    assert columns.find_flagged(OpFlag.TERMINATOR) == [1, 3] and columns.find_flagged(OpFlag.TERMINATOR, 2) == [3]
    assert columns.select_places(slice(1, 3)).pcs.tolist() == [4, 8]
