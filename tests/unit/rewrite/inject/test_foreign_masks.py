"""A hook that writes a mask of the application: what its lanes may read behind that is not taken for dead."""

from __future__ import annotations

import pytest
from emulated import LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, everywhere, instrumented, stores, words

from luthier_py import Variable, hook, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.isa import EXEC
from luthier_py.program.analysis import Facts


@hook
def all_lanes() -> u64:
    return u64(0xFFFFFFFFFFFFFFFF)


def kernel():
    """s[20:21] is 0, and is EXEC for a while: then nobody would read v5, which all write afterwards."""
    return code_object({"k": [
        *POINTERS, ("v_mov_b32", V(5), 7), ("v_mov_b32", V(6), 1), ("s_mov_b64", S(20, 2), 0), ("s_nop", 6),
        ("s_mov_b64", S(22, 2), S(EXEC, 2)), ("s_nop", 7), ("s_mov_b64", S(EXEC, 2), S(20, 2)),
        ("v_mov_b32", V(6), V(5)), ("s_mov_b64", S(EXEC, 2), S(22, 2)), ("v_mov_b32", V(5), 9),
        *stores(V(6)), END]}, vgprs=32)


def visit(tool, m):
    mask, other = [i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP"]
    m.before(mask, all_lanes, into=S(20, 2))
    for _ in range(4):
        m.before(other, everywhere, tool.rows)


def test_a_mask_that_a_hook_sets_is_believed_by_nobody(monkeypatch):
    monkeypatch.setattr("luthier_py.rewrite.inject.policies.at_no_cost", only_v5)
    bench = Bench(bytes(64), bytes(4 * WORDS * LANES))
    assert set(words(bench.run(kernel(), "k"), 0)) == {1}
    tool, made = instrumented(kernel(), visit, rows=Variable(u64, LANES, name="rows"))
    ran = bench.run(made.data, "k.luthier")
    assert set(words(ran, 0)) == {7} and ran[tool.rows] == (4,) * LANES


def test_the_proof_does_not_either(monkeypatch):
    with_instead = Facts.with_instead
    monkeypatch.setattr(Facts, "with_instead", lambda facts, instead, written: with_instead(facts, instead))
    monkeypatch.setattr("luthier_py.rewrite.inject.policies.at_no_cost", only_v5)
    with pytest.raises(CheckFailed, match="v5"):
        instrumented(kernel(), visit, rows=Variable(u64, LANES, name="rows"))


def only_v5(program, *_):
    """Vector registers for hooks: v5 comes first, if it is dead."""
    from luthier_py.isa import RegSet
    from luthier_py.rewrite.inject.fragment import general_registers

    general = general_registers(program.isa)
    return RegSet.by_file(general.sgpr, RegSet.of(V(5), *map(V, range(8, 16))).vgpr)
