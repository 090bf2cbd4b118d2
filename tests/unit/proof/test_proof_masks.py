"""What instructions do to the bit of one lane in EXEC."""

from __future__ import annotations

import pytest

from luthier_py.isa import EXEC, instruction_set, target
from luthier_py.proof.lanes import ON, next_states
from luthier_py.proof.masks import MASKS, change

ISA = instruction_set(target("gfx900"))
S4 = 1 << 4
OFF, BOTH = {0}, {0, ON}


@pytest.mark.parametrize(("text", "active", "saved", "after"), [
    ("s_mov_b32 exec_lo, 0", 0, 0, OFF), ("s_mov_b32 exec_hi, 0", 0, 0, OFF), ("s_mov_b32 exec_lo, 0", 1, 0, BOTH),
    ("s_mov_b32 exec_lo, -1", 1, 0, {ON}), ("s_mov_b32 exec_lo, -1", 0, 0, BOTH),
    ("s_mov_b32 exec_lo, 5", 0, 0, BOTH), ("s_mov_b32 exec_hi, 5", 1, 0, BOTH),
    ("s_mov_b32 exec_lo, s4", 0, 0, OFF), ("s_mov_b32 exec_lo, s4", 1, 1, {ON}), ("s_mov_b32 exec_lo, s4", 1, 0, BOTH),
    ("s_mov_b32 exec_hi, s4", 0, 0, BOTH), ("s_mov_b32 exec_lo, s5", 1, 1, BOTH), ("s_mov_b32 exec_hi, s5", 0, 0, OFF),
    ("s_and_b32 exec_lo, exec_lo, s4", 0, 1, OFF), ("s_or_b32 exec_hi, exec_hi, s5", 1, 0, {ON}),
    ("s_and_b32 exec_lo, exec_hi, s5", 0, 1, BOTH), ("s_add_u32 exec_lo, exec_lo, s4", 0, 0, BOTH),
    ("s_not_b32 exec_lo, exec_lo", 0, 0, BOTH), ("s_mov_b64 exec, s[4:5]", 0, 1, {ON}),
])
def test_halves_of_exec(text: str, active: int, saved: int, after: set[int]) -> None:
    made = change(ISA, ISA.parse(text))
    assert made is not None and made.written >> EXEC & 1
    states = next_states(made, (ON | S4, active << EXEC | saved * S4), MASKS)
    assert {has & ON for _, has in states} == after and all(known & ON for known, _ in states)
