"""Hooks on ways between blocks: the proof and the comparison with the edits tell one way from the other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from emulated import LANES, code_object
from shown_kernels import END, POINTERS, S, V, everywhere, instrumented, note_lanes

from luthier_py import Variable, u32, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.program.analysis import Facts
from luthier_py.proof import prove
from luthier_py.proof.claim import Side
from luthier_py.rewrite.claim_check import check_claim_of_tool
from luthier_py.rewrite.pipeline import compile_hooks
from luthier_py.rewrite.tool import Place

ROWS = [*POINTERS, ("v_mov_b32", V(0), 7), ("s_nop", 7), ("s_cmp_eq_u32", S(0), S(0)),
        ("s_cbranch_scc1", "on"), "next:", ("s_nop", 1), "on:", ("s_cbranch_scc0", "next"), ("v_mov_b32", V(0), 1), END]


def visit(tool, m, only=(True, False)):
    function, = m.functions()
    for edge in (edge for edge in m.edges(function) if edge.taken in only):
        m.at_edge(edge, note_lanes, tool.slot, V(0))
    marker = next(i for i in function.instrs if i.inst.op.base == "S_NOP")
    m.before(marker, everywhere, tool.rows)


def made(*only):
    return instrumented(code_object({"k": ROWS}), partial(visit, only=only or (True, False)),
                        rows=Variable(u64, LANES, name="rows"), slot=Variable(u32, name="slot"))[1]


def test_a_call_on_the_other_way_is_refused():
    right = made()
    function, = right.patched.claim.functions
    assert {call.side for call in function.calls} == set(Side)
    for number, call in enumerate(function.calls):
        if call.side is not Side.BEFORE:
            other = replace(call, side=Side.AFTER if call.side is Side.TAKEN else Side.TAKEN)
            calls = (*function.calls[:number], other, *function.calls[number + 1:])
            claim = replace(right.patched.claim, functions=(replace(function, calls=calls),))
            with pytest.raises(CheckFailed, match="not those that the claim says|nothing is inserted"):
                prove(right.obj.data, right.data, claim)


def test_a_branch_that_goes_past_the_hook_is_refused():
    right = made()
    isa, source = right.program.isa, right.patched.maps[0]
    symbol = load(right.data).symbol(source.chunk)
    branch = next(i for i in source.instructions if i.inst.op.base == "S_CBRANCH_SCC0")
    place, goal = source.instructions[branch], source.labels[branch.inst.branch_target(branch.pc)]
    inst = isa.with_field(branch.inst, "simm16", (goal - place - 4) // 4)
    at = file_offset(right.data, symbol.address) + place
    with pytest.raises(CheckFailed, match="not those that the claim says"):
        prove(right.obj.data, right.data[:at] + inst.raw + right.data[at + 4:], right.patched.claim)


def file_offset(data, address):
    segment = load(data).elf.load_at(address)
    return segment.offset + address - segment.address


def test_what_is_read_on_a_way_is_kept_until_there(monkeypatch):
    """An injector that forgets what hooks read where a branch is taken, or where it is not."""
    with_reads = Facts.with_reads
    forgetting = {
        True: lambda self, before, after, taken: with_reads(self, before, after, {}),
        False: lambda self, before, after, taken: with_reads(self, {}, {}, taken),
    }
    for taken, forgets in forgetting.items():
        made(taken)
        monkeypatch.setattr(Facts, "with_reads", forgets)
        with pytest.raises(CheckFailed, match="is still needed|live and not restored"):
            made(taken)
        monkeypatch.undo()


def test_the_edits_say_which_way():
    right = made()
    sides = {Place.TAKEN: Place.AFTER, Place.AFTER: Place.TAKEN, Place.BEFORE: Place.BEFORE}
    other = replace(right.edits, insertions=tuple(
        replace(each, places=tuple((instr, sides[place]) for instr, place in each.places))
        for each in right.edits.insertions))
    payloads = compile_hooks(right.edits, right.program.isa)
    clones = {row.name: row.clone for row in right.patched.report}
    check_claim_of_tool(right.patched.claim, right.edits, payloads, right.program, clones, ())
    with pytest.raises(CheckFailed, match="does not run at its place"):
        check_claim_of_tool(right.patched.claim, other, payloads, right.program, clones, ())
