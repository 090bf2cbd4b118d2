"""Hooks that give what they get: they have no code, and a vector instruction moves their results all the same."""

from __future__ import annotations

import pytest
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, instrumented, stores, words

from luthier_py import Lane, hook, u32
from luthier_py.base.errors import EditConflict

ROWS = [*POINTERS, ("s_mov_b32", S(8), 1), ("v_mov_b32", V(1), 5), ("v_mov_b32", V(2), 7), ("v_mov_b32", V(3), 9),
        ("s_set_gpr_idx_on", S(8), 1), ("s_nop", 7), ("s_set_gpr_idx_off",), *stores(V(3)), END]  # fmt: skip


@hook
def same(x: Lane[u32]) -> Lane[u32]:
    return x


def marker(m):
    return next(instr for instr in m.functions()[0].instrs if instr.inst.op.base == "S_NOP")


def test_they_are_not_put_where_registers_are_indexed():
    with pytest.raises(EditConflict, match=r"hook same uses vector registers.*s_set_gpr_idx_on.*`s_nop 7`"):
        instrumented(code_object({"k": ROWS}), lambda tool, m: m.before(marker(m), same, V(1), into=V(3)))


def test_they_are_moved_elsewhere():
    plain = [row for row in ROWS if "s_set_gpr_idx" not in str(row[0])]
    made = instrumented(code_object({"k": plain}), lambda tool, m: m.before(marker(m), same, V(1), into=V(3)))[1]
    ran = Bench(bytes(range(64)), bytes(4 * WORDS * LANES)).run(made.data, "k.luthier")
    assert set(words(ran, 0)) == {5}
