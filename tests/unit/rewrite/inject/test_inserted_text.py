"""Assembly that a tool inserts: it reads the application's registers, writes those that it may, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emulated import ISA, LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, everywhere, full, instrumented, stores, words

from luthier_py import Variable, u64
from luthier_py.base.errors import CheckFailed, HookError, Unsupported
from luthier_py.isa import EXEC
from luthier_py.proof import prove
from luthier_py.rewrite.claim_check import check_claim_of_tool
from luthier_py.rewrite.pipeline import compile_hooks

ROWS = [*POINTERS, ("v_mov_b32", V(1), 5), ("s_mov_b32", S(9), 7), ("v_mov_b32", V(2), 100), ("s_nop", 3),
        *stores(V(1), S(9), V(2)), END]


SHOWN = [("v_lshlrev_b32", V(30), 2, V(29)), ISA.make("global_store_dword", V(30), V(0), S(2, 2)).raw]


@pytest.fixture(scope="module")
def bench():
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


def marker(m):
    return next(i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")


def inserted(text, *writes, rows=ROWS, side="before"):
    return instrumented(code_object({"k": rows}), lambda tool, m: m.insert(text, **{side: marker(m)}, writes=writes))[1]


@pytest.mark.parametrize("side", ["before", "after"])
def test_it_changes_what_it_may_and_nothing_else(bench, side):
    """v2 is its own: the application's stays."""
    made = inserted("v_lshlrev_b32 v2, 1, v1\n v_add_u32 v1, s9, v2\n s_add_u32 s9, s9, 1", V(1), S(9), side=side)
    ran = bench.run(made.data, "k.luthier")
    assert [words(ran, n)[0] for n in range(3)] == [5 * 2 + 7, 8, 100]


def test_scc_and_vcc_are_kept(bench):
    rows = [*POINTERS, ("v_mov_b32", V(1), 5), ("v_cmp_eq_u32", S(106, 2), 5, V(1)), ("s_cmp_eq_u32", S(4), S(4)),
            ("s_nop", 3), ("s_cselect_b32", S(9), 1, 2), ("v_cndmask_b32", V(2), 3, V(1), S(106, 2)),
            *stores(S(9), V(2)), END]
    made = inserted("v_cmp_ne_u32 vcc, v1, v1\n s_cmp_lg_u32 s4, s4\n v_add_co_u32 v1, vcc, 1, v1", rows=rows)
    ran = bench.run(made.data, "k.luthier")
    assert [words(ran, n)[0] for n in range(2)] == [1, 5]


def test_memory_on_purpose(bench):
    """Through the application's own pointer: word 1 of what it shows in word 4."""
    text = """global_load_dword v9, v8, s[0:1] offset:4
        s_waitcnt vmcnt(0)
        global_store_dword v8, v9, s[2:3] offset:1024"""
    made = inserted("v_mov_b32 v8, 0\n" + text)
    ran = bench.run(made.data, "k.luthier")
    assert words(ran, 4)[0] == int.from_bytes(bytes(range(4, 8)), "little") and words(ran, 0)[0] == 5


def test_branches(bench):
    text = """s_cmp_lt_u32 s9, 3
        s_cbranch_scc1 end
        s_mov_b32 s9, 77
        end:"""
    ran = bench.run(inserted(text, S(9)).data, "k.luthier")
    assert words(ran, 1)[0] == 77
    ran = bench.run(inserted(text.replace("s9, 3", "s9, 30"), S(9)).data, "k.luthier")
    assert words(ran, 1)[0] == 7


def test_pairs_stay_pairs(bench):
    text = "v_lshlrev_b64 v[4:5], 1, v[2:3]\n v_mov_b32 v1, v5"
    rows = [*POINTERS, ("v_mov_b32", V(2), -1), ("v_mov_b32", V(3), 1), ("s_nop", 3), *stores(V(1), V(2)), END]
    ran = bench.run(inserted(text, V(1), rows=rows).data, "k.luthier")
    assert [words(ran, n)[0] for n in range(2)] == [3, 0xFFFFFFFF]


def test_where_all_registers_are_in_use(bench):
    """Those that it may write are enough."""
    rows = [*POINTERS, ("v_mov_b32", V(29), V(0)), *full(V, 28), *SHOWN, END]
    made = inserted("v_add_u32 v3, v4, v5", V(3), rows=rows)
    assert words(bench.run(made.data, "k.luthier"), 0)[0] == 1 + 28 + 1


def test_what_it_reads_is_kept_until_there(bench):
    """v0 is dead but for the text."""
    rows = [*POINTERS, ("v_mov_b32", V(29), V(0)), ("v_mov_b32", V(0), 7), ("s_nop", 1), ("s_nop", 3),
            ("v_mov_b32", V(0), 8), ("v_mov_b32", V(0), V(1)), *SHOWN, END]

    def visit(tool, m):
        first, second = (i for i in m.functions()[0].instrs if i.inst.op.base == "S_NOP")
        m.before(first, everywhere, tool.rows)
        m.insert("v_mov_b32 v1, v0", before=second, writes=[V(1)])

    tool, made = instrumented(code_object({"k": rows}), visit, rows=Variable(u64, LANES, name="rows"))
    ran = bench.run(made.data, "k.luthier")
    assert set(words(ran, 0)) == {7} and ran[tool.rows] == (1,) * LANES


@pytest.mark.parametrize(("text", "writes", "why"), [
    ("", (), "no instruction"), ("v_nonsense v1", (), "v_nonsense"),
    ("s_mov_b64 exec, 0", (), "may not write"), ("v_cndmask_b32 v1, v2, v3, vcc", (V(1),), "cannot take"),
    ("v_mov_b32 v1, v2", (V(3),), "does not write"), ("v_accvgpr_read_b32 v1, a1", (V(1),), "plain SGPRs and VGPRs"),
    ("global_load_dword v1, v2, s[0:1]", (V(1),), "must wait"), ("s_endpgm", (), "goes elsewhere"),
    ("s_setprio 3", (), "effect of its own"), ("v_clrexcp", (), "effect of its own"),
    ("s_icache_inv", (), "effect of its own"), ("s_sethalt 1", (), "stops"),
    ("v_writelane_b32 v1, s9, 3", (V(1),), "no others"), ("v_readlane_b32 s9, v1, 3", (S(9),), "no others"),
    ("v_mov_b32_dpp v1, v2 row_shr:1", (V(1),), "no others"),
    ("s_mov_b64 vcc, 0", (S(106, 2),), "plain SGPRs and VGPRs"),
])
def test_what_text_may_not_do(text, writes, why):
    with pytest.raises(Exception, match=why) as caught:
        inserted(text, *writes)
    assert "test_inserted_text.py:" in str(caught.value)


def test_before_or_after():
    with pytest.raises(HookError, match="before= or after="):
        instrumented(code_object({"k": ROWS}), lambda tool, m: m.insert("s_nop 0"))


def test_lds_is_not_global_memory():
    with pytest.raises(Unsupported, match="changes the application's LDS"):
        inserted("v_mov_b32 v8, 0\n ds_write_b32 v8, v8")
    with pytest.raises(CheckFailed, match="local memory"):
        inserted("v_mov_b32 v8, 0\n ds_read_b32 v8, v8\n s_waitcnt lgkmcnt(0)")


def test_the_proof_knows_the_text():
    made = inserted("v_lshlrev_b32 v2, 1, v1\n v_add_u32 v1, s9, v2", V(1))
    claim = made.patched.claim
    prove(made.obj.data, made.data, claim)
    function, = claim.functions
    call, = function.calls
    for wrong in (replace(call, arguments=call.arguments[::-1]), replace(call, into=(V(2),))):
        with pytest.raises(CheckFailed):
            prove(made.obj.data, made.data, replace(claim, functions=(replace(function, calls=(wrong,)),)))
    payload, = claim.payloads
    other = replace(payload, code=ISA.make("v_lshlrev_b32", V(2), 2, V(1)).raw + payload.code[4:])
    with pytest.raises(CheckFailed, match="not as it was compiled"):
        prove(made.obj.data, made.data, replace(claim, payloads=(other,)))
    clones = {row.name: row.clone for row in made.patched.report}
    compiled = compile_hooks(made.edits, made.program.isa)
    check_claim_of_tool(claim, made.edits, compiled, made.program, clones, ())
    with pytest.raises(CheckFailed, match="something else"):
        check_claim_of_tool(replace(claim, payloads=(other,)), made.edits, compiled, made.program, clones, ())


def test_exec_is_what_the_application_has(bench):
    rows = [*POINTERS, ("v_mov_b32", V(1), 5), ("s_mov_b64", S(EXEC, 2), 1), ("s_nop", 3),
            ("s_mov_b64", S(EXEC, 2), -1), *stores(V(1)), END]
    ran = bench.run(inserted("v_mov_b32 v1, 6", V(1), rows=rows).data, "k.luthier")
    assert words(ran, 0) == (6,) + (5,) * (LANES - 1)
