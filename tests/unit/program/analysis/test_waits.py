"""Pending registers of known code, the waits that are proposed, and the bits of s_waitcnt."""

from __future__ import annotations

import itertools

import pytest
from synthetic import Row, build

from luthier_py.base.errors import Unsupported
from luthier_py.isa import Counter, RegSet, instruction_set, sgpr, target, targets, vgpr
from luthier_py.isa.encoding.waitcnt import decode_waitcnt, encode_waitcnt, waits_for
from luthier_py.program.analysis import Facts, Pending, analyse
from luthier_py.program.ir import Instr, lift

END: Row = ("s_endpgm",)
VM, LGKM, EXP = Counter.VM, Counter.LGKM, Counter.EXP


def load(number: int) -> Row:
    return ("global_load_dword", vgpr(number), vgpr(0, 2), "off")


def lds(number: int) -> Row:
    return ("ds_read_b32", vgpr(number), vgpr(0))


def scalar(number: int) -> Row:
    return ("s_load_dword", sgpr(number), sgpr(0, 2), 0)


def wait(**counts: int) -> Row:
    return ("s_waitcnt", encode_waitcnt(target("gfx90a"), {Counter[name]: count for name, count in counts.items()}))


def solved(*rows: Row, **functions: list[Row]) -> tuple[Facts, list[Instr]]:
    program = lift(build({"k": list(rows), **functions}))
    return analyse(program), list(program.kernel("k").function.instrs)


def at_end(*rows: Row) -> Pending:
    facts, instrs = solved(*rows, END)
    return facts.pending_before(instrs[-1])


def test_a_load_is_pending_until_it_is_waited_for() -> None:
    facts, instrs = solved(load(4), wait(LGKM=0), wait(VM=0), END)
    assert [str(facts.pending_before(i).registers) for i in instrs] == ["", "v4", "v4", ""]
    assert facts.pending_after(instrs[0]).registers == RegSet.of(vgpr(4))


def test_vector_loads_finish_in_order() -> None:
    pending = at_end(load(4), load(5), load(6))
    assert pending.counts_for(RegSet.of(vgpr(4))) == {VM: 2}
    assert pending.counts_for(RegSet.of(vgpr(4), vgpr(6))) == {VM: 0}
    assert pending.counts_for(RegSet.of(vgpr(7))) == {}
    assert str(at_end(load(4), load(5), load(6), wait(VM=1)).registers) == "v6"


def test_stores_count_too() -> None:
    pending = at_end(load(4), ("global_store_dword", vgpr(0, 2), vgpr(2), "off"))
    assert pending.counts_for(RegSet.of(vgpr(4))) == {VM: 1}


def test_scalar_loads_need_a_wait_for_zero() -> None:
    pending = at_end(scalar(4), scalar(5), wait(LGKM=1))
    assert str(pending.registers) == "s[4:5]" and pending.counts_for(RegSet.of(sgpr(4))) == {LGKM: 0}


def test_lds_keeps_its_order_among_scalar_loads() -> None:
    pending = at_end(lds(4), lds(5), scalar(6))
    assert pending.counts_for(RegSet.of(vgpr(4))) == {LGKM: 1}
    assert str(at_end(lds(4), lds(5), scalar(6), wait(LGKM=1)).registers) == "s6 v5"


def test_flat_loads_need_both_counters() -> None:
    flat: Row = ("flat_load_dword", vgpr(4), vgpr(0, 2))
    assert at_end(flat).counts_for(RegSet.of(vgpr(4))) == {VM: 0, LGKM: 0}
    assert str(at_end(flat, wait(VM=0)).registers) == "v4"
    assert str(at_end(flat, wait(VM=0), wait(LGKM=0)).registers) == ""


def test_pending_registers_by_counter() -> None:
    pending = at_end(load(4), lds(5), scalar(6))
    assert [str(pending.of(counter)) for counter in (VM, LGKM, EXP, Counter.VS)] == ["v4", "s6 v5", "", ""]


def test_where_paths_meet_the_younger_one_counts() -> None:
    pending = at_end(load(4), load(5), ("s_cbranch_scc0", "end"), load(6), wait(VM=1), "end:")
    assert pending.counts_for(RegSet.of(vgpr(4))) == {VM: 1}  # not 2: on the other path v6 is not loaded
    assert str(pending.registers) == "v[4:6]"


def test_around_a_loop() -> None:
    facts, instrs = solved("again:", ("s_nop", 0), load(4), ("s_cbranch_scc0", "again"), END)
    assert facts.pending_before(instrs[0]).registers == RegSet.of(vgpr(4))


def test_a_callee_may_wait_for_its_caller() -> None:
    chain: list[Row] = [("s_getpc_b64", sgpr(6, 2)), ("s_add_u32", sgpr(6), sgpr(6), "f"),
                        ("s_addc_u32", sgpr(7), sgpr(7), "f"), ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2))]
    leave: Row = ("s_setpc_b64", sgpr(30, 2))
    facts, instrs = solved(load(4), *chain, END, f=[wait(VM=0), load(5), leave])
    assert str(facts.pending_before(instrs[4]).registers) == "v4"
    assert str(facts.pending_after(instrs[4]).registers) == "v5" == str(facts.pending_before(instrs[5]).registers)


def test_what_an_unknown_callee_leaves_behind_is_not_known() -> None:
    facts, instrs = solved(("s_swappc_b64", sgpr(30, 2), sgpr(6, 2)), wait(VM=0, LGKM=0, EXP=0), END)
    assert vgpr(99) in facts.pending_after(instrs[0]).registers and sgpr(9) in facts.pending_before(instrs[1]).registers
    assert not facts.pending_before(instrs[2]).registers


def test_the_immediate_makes_what_it_says() -> None:
    facts, instrs = solved(load(4), load(5), lds(6), END)
    isa = instruction_set(target("gfx90a"))
    ready = facts.wait_for(instrs[-1], RegSet.of(vgpr(4), vgpr(6)))
    assert ready is not None and isa.text(isa.make("s_waitcnt", ready)) == "s_waitcnt vmcnt(1) lgkmcnt(0)"
    assert facts.wait_for(instrs[0], RegSet.of(vgpr(4))) is None
    assert facts.wait_for(instrs[0], RegSet.of(vgpr(4)), after=True) == encode_waitcnt(isa.target, {VM: 0})


@pytest.mark.parametrize("gpu", ["gfx900", "gfx90a", "gfx1030", "gfx1100"])
def test_waitcnt_round_trip(gpu: str) -> None:
    row = target(gpu)
    for vm, exp, lgkm in itertools.product((None, 0, 1, 17, 62), (None, 0, 6), (None, 0, 3, 14)):
        counts = {c: n for c, n in ((VM, vm), (EXP, exp), (LGKM, lgkm)) if n is not None}
        assert decode_waitcnt(row, encode_waitcnt(row, counts)) == counts


@pytest.mark.parametrize(("gpu", "immediate", "text"), [
    ("gfx90a", 0x0F70, "s_waitcnt vmcnt(0)"), ("gfx90a", 0xC07F, "s_waitcnt lgkmcnt(0)"),
    ("gfx1030", 0x3F70, "s_waitcnt vmcnt(0)"), ("gfx1100", 0x03F7, "s_waitcnt vmcnt(0)"),
])
def test_waitcnt_as_llvm_prints_it(gpu: str, immediate: int, text: str) -> None:
    isa = instruction_set(target(gpu))
    counter = LGKM if "lgkm" in text else VM
    assert encode_waitcnt(isa.target, {counter: 0}) == immediate
    assert isa.text(isa.make("s_waitcnt", immediate)) == text
    assert waits_for(isa.target, isa.make("s_waitcnt", immediate)) == {counter: 0}


def test_every_target_has_a_layout_or_says_that_it_has_none() -> None:
    for row in targets():
        if row.generation < 12:
            assert decode_waitcnt(row, encode_waitcnt(row, {VM: 0})) == {VM: 0}
        else:
            with pytest.raises(Unsupported, match="one wait instruction for each counter"):
                encode_waitcnt(row, {VM: 0})
