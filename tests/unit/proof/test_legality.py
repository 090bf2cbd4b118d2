"""Inserted instructions that can be encoded, and that hardware does not run, are refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.isa import Inst, instruction_set, target
from luthier_py.proof.legality import check_legal
from luthier_py.proof.linked import Linked


def linked(insts: Sequence[Inst], inserted: bool) -> Linked:
    """All of them one behind the other."""
    pcs = np.cumsum([0, *(inst.size_bytes for inst in insts[:-1])])
    return Linked("k", pcs, np.arange(len(insts)), insts, np.full(len(insts), inserted), tuple(insts), False)


ILLEGAL = {  # target, an instruction, other registers for it, what is said
    "a bank": ("gfx1100", "v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v7", {"src0Y": 5}, "same bank"),
    "gfx12's": ("gfx1201", "v_dual_mul_f32 v0, v1, v2 :: v_dual_add_f32 v3, v4, v7", {"vsrc1Y": 6}, "same bank"),
    "two scalars": ("gfx900", "v_add3_u32 v0, s2, s2, v1", {"src1": 3}, "more than 1 scalar"),
    "three scalars": ("gfx1030", "v_add3_u32 v0, s2, s2, s3", {"src1": 4}, "more than 2 scalar"),
    "an amount": ("gfx90a", "v_lshlrev_b64 v[0:1], v6, v[2:3]", {"src0": 7}, "hardware gets wrong"),
}


@pytest.mark.parametrize(("name", "text", "renamed", "why"), ILLEGAL.values(), ids=ILLEGAL)
def test_registers_that_cannot_stand_together(name: str, text: str, renamed: dict[str, int], why: str) -> None:
    isa = instruction_set(target(name))
    right = isa.parse(text)
    wrong = isa.with_registers(right, lambda operand: renamed.get(operand.name, operand.reg.index))
    check_legal(isa, linked([right], True))
    check_legal(isa, linked([wrong], False))  # the application's own business
    check_legal(isa, replace(linked([wrong, right], True), added=(right,)))  # where others stand for its own, too
    with pytest.raises(CheckFailed, match=why):
        check_legal(isa, linked([wrong], True))


@pytest.mark.parametrize("inserted", [True, False])
def test_a_branch_hangs_over_one_distance_on_gfx10_1(inserted: bool) -> None:
    for name, dwords, hangs in (("gfx1010", 63, True), ("gfx1010", 62, False), ("gfx1030", 63, False)):
        isa = instruction_set(target(name))
        code = linked([isa.make("s_branch", dwords), *[isa.make("s_nop", 0)] * 64], inserted)
        if hangs:
            with pytest.raises(CheckFailed, match="over which it hangs"):
                check_legal(isa, code)
        else:
            check_legal(isa, code)
