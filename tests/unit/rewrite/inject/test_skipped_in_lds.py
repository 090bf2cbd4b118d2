"""Instructions on LDS that run only where a hook says so: the application's own, or none. Whatever an injector makes of
them, the proof lets no other code change LDS."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emulated import ISA, LANES, Bench, code_object
from shown_kernels import END, POINTERS, WORDS, S, V, instrumented, stores

from luthier_py import hook, u32
from luthier_py.base.errors import CheckFailed, HookError
from luthier_py.isa import instruction_set, target
from luthier_py.isa.build import jump_if_flag
from luthier_py.proof import prove
from luthier_py.proof.claim import Side
from luthier_py.rewrite.tool import mutator
from luthier_py.rewrite.tool.hooks.assembly import conditional

SKIPPED = ("ds_write_b32 v28, v1", "ds_add_u32 v28, v1 offset:4", "ds_add_rtn_u32 v1, v28, v1", "ds_read_b32 v1, v28",
           "ds_read_b32 v28, v28 offset:8", "ds_read2_b32 v[2:3], v28 offset1:2", "ds_write2_b32 v28, v1, v0 offset1:1",
           "ds_write_b8 v0, v1", "ds_cmpst_rtn_b32 v2, v28, v0, v1", "ds_write_b64 v29, v[28:29]",
           "ds_wrxchg_rtn_b32 v28, v28, v28")  # fmt: skip


@pytest.fixture(scope="module")
def bench():
    return Bench(bytes(range(64)), bytes(4 * WORDS * LANES))


@hook
def odd(x: u32) -> u32:
    return x & u32(1)


def kernel(text, flag):
    """What ``text`` does, in some lanes, to registers and LDS."""
    fill, show = (ISA.parse(each).raw for each in ("ds_write_b32 v27, v0", "ds_read_b32 v4, v27"))
    return code_object({"k": [
        *POINTERS, *(("v_lshlrev_b32", V(27 + k), 2 + k // 2, V(0)) for k in range(3)),
        *(("v_mov_b32", V(k), 30 + k) for k in range(1, 4)), fill, ("s_mov_b32", S(9), flag),
        ("s_mov_b64", S(126, 2), 63), ISA.parse(text).raw, ("s_mov_b64", S(126, 2), -1), ("s_waitcnt", 0), show,
        ("s_waitcnt", 0), *stores(V(1), V(2), V(3), V(4), V(28)), END]}, lds_bytes=1024)


def skip(tool, m):
    """The second instruction on LDS."""
    m.skip_if(m.instrs(m.functions()[0], where="lds")[1], odd, S(9))


@pytest.mark.parametrize("text", SKIPPED)
def test_it_runs_as_it_is_or_not_at_all(bench, text):
    for flag in (1, 2):
        wanted = bench.run(kernel("s_nop 0" if flag == 1 else text, flag), "k").buffers[1]
        made = instrumented(kernel(text, flag), skip)[1]
        assert bench.run(made.data, "k.luthier").buffers[1] == wanted


def other(text):
    """An injector that runs another instruction."""
    return lambda code: replace(code, code=code.code.replace(ISA.parse("ds_add_u32 v28, v1").raw, ISA.parse(text).raw))


def twice(code):
    raw = ISA.parse("ds_add_u32 v28, v1").raw
    over = ISA.with_field(jump_if_flag(ISA), "simm16", 2 * len(raw) // 4 + 1).raw
    at = code.code.index(raw)
    return replace(code, code=code.code[:at - 4] + over + raw + code.code[at:])


def again(code):
    """It goes round as long as the flag says."""
    raw = ISA.parse("ds_add_u32 v28, v1").raw
    back = ISA.with_field(jump_if_flag(ISA), "simm16", -1 - (len(raw) + 4) // 4).raw
    at = code.code.index(raw)
    return replace(code, code=code.code[:at] + raw + b"".join((ISA.parse("s_not_b32 s0, s0").raw, back)))


def changed(code):
    """It computes its data anew."""
    at = code.code.index(ISA.parse("ds_add_u32 v28, v1").raw)
    return replace(code, code=code.code[:at - 4] + ISA.parse("v_add_u32_e32 v1, v1, v1").raw + code.code[at - 4:])


@pytest.mark.parametrize("wrong", [
    pytest.param(other("ds_add_u32 v28, v1 offset:4"), id="offset"),
    pytest.param(other("ds_sub_u32 v28, v1"), id="operation"), pytest.param(other("ds_write_b32 v28, v1"), id="store"),
    pytest.param(other("ds_add_u32 v28, v3"), id="operands"), pytest.param(twice, id="twice"),
    pytest.param(again, id="again"), pytest.param(changed, id="changed"),
])
def test_no_other_code_changes_lds(monkeypatch, wrong):
    def made():
        return instrumented(kernel("ds_add_u32 v28, v1", 1), skip)

    made()

    def injected(isa, inst, place):
        code, flag = conditional(isa, inst, place)
        return wrong(code), flag

    monkeypatch.setattr(mutator, "conditional", injected)
    with pytest.raises(CheckFailed, match="changes LDS, not as the application would"):
        made()


def test_nor_elsewhere_nor_with_other_registers():
    """Where the instruction is still there, on its other side, twice, and where the call gets another register."""
    made = instrumented(kernel("ds_add_u32 v28, v1", 1), skip)[1]
    function, = made.patched.claim.functions
    call, = [each for each in function.calls if V(28) in each.arguments]
    prove(made.obj.data, made.data, made.patched.claim)
    given = tuple(V(3) if each == V(1) else each for each in call.arguments)
    others = [tuple(new for each in function.calls for new in (other if each == call else [each]))
              for other in ([replace(call, side=Side.AFTER)], [replace(call, arguments=given)], [call, call])]
    for changed in (replace(function, instead={}), *(replace(function, calls=calls) for calls in others)):
        claim = replace(made.patched.claim, functions=(changed,))
        with pytest.raises(CheckFailed, match="changes LDS, not as the application would"):
            prove(made.obj.data, made.data, claim)


@pytest.mark.parametrize(("name", "text", "why"), [
    ("gfx803", "ds_write_b32 v0, v1", "an instruction that reads m0 cannot be skipped: it would run in code of hooks"),
    *((name, f"flat_store_{width} v[0:1], v2", f"by lgkmcnt and vscnt, and {name} has no single instruction")
      for name, width in (("gfx1030", "dword"), ("gfx1100", "b32"))),
    *(("gfx90a", text, "a scalar memory instruction with a result cannot be skipped")
      for text in ("s_load_dword s8, s[0:1], 0x0", "s_buffer_load_dwordx2 s[8:9], s[12:15], 0x0", "s_memtime s[8:9]")),
    *((name, text, "an instruction with a descriptor cannot be skipped: code of hooks touches memory through pointers")
      for name, text in (("gfx90a", "buffer_store_dword v2, off, s[12:15], 0"),
                         ("gfx1100", "buffer_load_b32 v2, v1, s[12:15], 0 offen"),
                         ("gfx1100", "image_load v0, v[0:1], s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_2D"))),
    ("gfx90a", "s_dcache_inv", None), ("gfx906", "ds_write_b32 v0, v1", None),
    ("gfx90a", "flat_store_dword v[0:1], v2", None),
    ("gfx1030", "flat_load_dword v2, v[0:1]", None), ("gfx1201", "flat_store_b32 v[0:1], v2", None),
])
def test_what_cannot_be_skipped_and_why(name, text, why):
    isa = instruction_set(target(name))
    if why is None:
        assert conditional(isa, isa.parse(text), "here")[0].resumes
        return
    with pytest.raises(HookError, match=why):
        conditional(isa, isa.parse(text), "here")
