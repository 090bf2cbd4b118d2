"""A function that is called becomes a fragment: all its ways out lead to the end."""

from __future__ import annotations

from itertools import accumulate

import pytest

from luthier_py.isa import Counter, Inst, instruction_set, sgpr, target, vgpr
from luthier_py.rewrite.jit.called import returns, without_returns


@pytest.mark.parametrize("name", ["gfx90a", "gfx1100", "gfx1201"])
def test_returns_in_the_middle_go_to_the_end(name: str) -> None:
    isa = instruction_set(target(name))

    def nop() -> Inst:
        return isa.make("s_nop", 0)

    back, long = isa.make("s_setpc_b64", sgpr(30, 2)), isa.make("v_mov_b32", vgpr(0), 0x12345678)
    (wait, *_) = isa.waits({Counter.LGKM: 0})
    made = without_returns((wait, nop(), back, long, nop(), back, nop(), back), isa)
    assert not any(map(returns, made)) and made[0].op.base == "S_NOP"
    starts = [0, *accumulate(inst.size_bytes for inst in made)]
    targets = {k: inst.branch_target(starts[k]) for k, inst in enumerate(made) if inst.op.base == "S_BRANCH"}
    assert targets == {1: starts[-1], 4: starts[-1]}
