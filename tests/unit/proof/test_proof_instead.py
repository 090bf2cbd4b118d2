"""Instructions in the place of the application's: the proof holds all else as before, whatever the injector does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emulated import ISA, LANES, code_object
from shown_kernels import END, POINTERS, S, V, everywhere, instrumented

from luthier_py import Lane, Variable, hook, u32, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.isa.build import nothing
from luthier_py.program.analysis import Facts
from luthier_py.proof import prove
from luthier_py.proof.code import decode_functions
from luthier_py.proof.instead import with_instead
from luthier_py.rewrite.claim_check import check_claim_of_tool
from luthier_py.rewrite.inject.items import Clone
from luthier_py.rewrite.pipeline import compile_hooks
from luthier_py.rewrite.tool import recorder

LOAD = ISA.make("global_load_dword", V(3), V(2), S(0, 2)).raw
ROWS = [*POINTERS, ("v_mov_b32", V(29), V(0)), ("v_mov_b32", V(0), 7), ("s_nop", 1), ("v_mov_b32", V(0), 8),
        ("v_lshlrev_b32", V(30), 2, V(29)), ISA.make("global_store_dword", V(30), V(0), S(2, 2)).raw, END]


@hook
def same(x: Lane[u32]) -> Lane[u32]:
    return x


def found(m, base):
    return [instr for function in m.functions() for instr in function.instrs if instr.inst.op.base == base]


def visit(tool, m):
    m.before(found(m, "S_NOP")[0], everywhere, tool.rows)
    m.remove(found(m, "V_MOV_B32")[2])
    m.change(found(m, "V_MOV_B32")[1], src0=0x1234567)
    m.replace(found(m, "V_MOV_B32")[0], same)


def made(rows=ROWS, doing=visit):
    return instrumented(code_object({"k": rows}), doing, rows=Variable(u64, LANES, name="rows"))[1]


def claimed(right, change):
    function, = right.patched.claim.functions
    return replace(right.patched.claim, functions=(replace(function, instead=change(dict(function.instead))),))


def test_what_the_claim_says_stands_there():
    right = made()
    prove(right.obj.data, right.data, right.patched.claim)
    function, = right.patched.claim.functions
    assert len(function.instead) == 3
    for pc in function.instead:
        with pytest.raises(CheckFailed, match="it should be"):
            prove(right.obj.data, right.data, claimed(right, lambda had, pc=pc: had | {pc: ISA.make("s_nop", 3).raw}))
        with pytest.raises(CheckFailed):
            prove(right.obj.data, right.data, claimed(right, lambda had, pc=pc: {
                each: raw for each, raw in had.items() if each != pc}))


def test_another_instruction_in_the_code_is_refused():
    right = made()
    clone = load(right.data)
    source, = right.patched.maps
    segment = clone.elf.load_at(start := clone.symbol(source.chunk).address)
    for each in right.edits.instead:
        at = segment.offset + start - segment.address + source.instructions[each.instr]
        other = ISA.make("v_mov_b32", V(29), V(1)).raw if each.inst.size_bytes == 4 else ISA.make(
            "v_mov_b32", V(0), 0x1234568).raw
        with pytest.raises(CheckFailed, match="it should be"):
            prove(right.obj.data, right.data[:at] + other + right.data[at + len(other):], right.patched.claim)


def test_a_register_that_nobody_writes_any_more_is_live(monkeypatch):
    """An injector that asks the program as it was."""
    monkeypatch.setattr(Facts, "with_instead", lambda self, instead, written: self)
    with pytest.raises(CheckFailed, match="still needed|live and not restored"):
        made()


def test_an_operation_on_memory_that_is_gone_is_waited_for(monkeypatch):
    rows = [*POINTERS, ("v_mov_b32", V(2), 0), LOAD, ("s_waitcnt", 0), END]

    def without(tool, m):
        m.remove(found(m, "GLOBAL_LOAD_DWORD")[0])

    made(rows, without)
    monkeypatch.setattr(recorder, "make_replacement", lambda isa, inst, given: nothing(isa))
    with pytest.raises(CheckFailed, match="counted otherwise"):
        made(rows, without)


def test_the_applications_own_distances_are_kept(monkeypatch):
    """Four wait states from a write of a lane's number to its use: the instruction that made them is gone."""
    rows = [*POINTERS, ("v_readfirstlane_b32", S(9), V(1)), ("s_nop", 3), ("v_readlane_b32", S(10), V(2), S(9)), END]

    def shorter(tool, m):
        m.change(found(m, "S_NOP")[0], simm16=0)

    made(rows, shorter)
    monkeypatch.setattr(Clone, "rewritten", False)
    with pytest.raises(CheckFailed, match="a wait is missing"):
        made(rows, shorter)


@pytest.mark.parametrize(("old", "new", "why"), [
    ("s_branch 0", "s_nop 0", "control would go elsewhere"), ("s_nop 0", "s_endpgm", "control would go elsewhere"),
    ("s_nop 0", "s_setreg_imm32_b32 hwreg(HW_REG_MODE), 0x0", "MODE would be another"),
    ("s_waitcnt vmcnt(0)", "s_nop 0", "a wait would be lost"),
    ("s_load_dword s0, s[2:3], 0x0", "s_waitcnt lgkmcnt(1)", "counted otherwise"),
    ("s_load_dword s0, s[2:3], 0x0", "s_waitcnt vmcnt(0)", "counted otherwise"),
    ("s_nop 0", "s_load_dword s0, s[2:3], 0x0", "counted otherwise"),
    ("flat_load_dword v0, v[2:3]", "s_waitcnt vmcnt(0)", "counted otherwise"),
])
def test_what_no_tool_may_want(old, new, why):
    inst = ISA.parse(old)
    code = decode_functions(ISA, [("k", [(0x1000, inst.size_bytes)])], lambda at, size: inst.raw)[0]
    with pytest.raises(CheckFailed, match=why):
        with_instead(code, {0x1000: ISA.parse(new).raw}, "k")


def test_something_else_than_one_instruction():
    code = decode_functions(ISA, [("k", [(0x1000, 4)])], lambda at, size: nothing(ISA).raw)[0]
    for raw, at in ((b"\xff" * 4, 0x1000), (nothing(ISA).raw * 2, 0x1000), (nothing(ISA).raw, 0x1004)):
        with pytest.raises(CheckFailed):
            with_instead(code, {at: raw}, "k")


def test_the_edits_say_what_stands_where():
    right = made()
    payloads = compile_hooks(right.edits, right.program.isa)
    clones = {row.name: row.clone for row in right.patched.report}
    check_claim_of_tool(right.patched.claim, right.edits, payloads, right.program, clones, ())
    for instead in (right.edits.instead[1:], tuple(
            replace(each, inst=ISA.make("s_nop", 5)) for each in right.edits.instead)):
        with pytest.raises(CheckFailed, match="other instructions stand"):
            other = replace(right.edits, instead=instead)
            check_claim_of_tool(right.patched.claim, other, payloads, right.program, clones, ())
