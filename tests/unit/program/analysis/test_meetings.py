"""Facts where paths meet and where functions end: what holds on one way only, and what a whole function adds up to."""

from __future__ import annotations

from dataclasses import replace

from synthetic import Row, build

from luthier_py.isa import EXEC, VCC, Counter, Reg, RegSet, sgpr, vgpr
from luthier_py.program.analysis import Facts, analyse
from luthier_py.program.analysis.lanes import ACTIVE, EXEC_BIT, INACTIVE, LaneState, States
from luthier_py.program.analysis.lanes import _join as join_lanes
from luthier_py.program.analysis.registers import collect_owned_registers, compute_allocated_registers
from luthier_py.program.ir import Instr, Program, lift

END: Row = ("s_endpgm",)
NOP: Row = ("s_nop", 0)
E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
RETURN: Row = ("s_setpc_b64", sgpr(30, 2))


def lifted(*rows: Row, **functions: list[Row]) -> Program:
    return lift(build({"k": list(rows), **functions}))


def solved(*rows: Row) -> tuple[Facts, list[Instr]]:
    program = lifted(*rows)
    return analyse(program), list(program.kernel("k").function.instrs)


def live(reg: Reg, *rows: Row) -> str:
    """For each instruction: A if ``reg`` is live for active lanes, i if only for inactive ones, else a dot."""
    facts, instrs = solved(*rows)
    return "".join(
        "A" if reg in facts.live_before(i) else "i" if reg in facts.live_before_all_lanes(i) else "." for i in instrs
    )


def to(name: str, last: Row) -> list[Row]:
    """A call or jump to a function."""
    return [("s_getpc_b64", sgpr(6, 2)), ("s_add_u32", sgpr(6), sgpr(6), name),
            ("s_addc_u32", sgpr(7), sgpr(7), name), last]


def test_what_one_way_reads_is_live_before_the_fork() -> None:
    rows: list[Row] = [NOP, ("s_cbranch_scc0", "end"), ("s_add_u32", sgpr(1), sgpr(0), 1), END, "end:", END]
    assert live(sgpr(0), *rows) == "AAA.."


def test_what_a_block_reads_and_then_writes_is_live_before_it() -> None:
    rows: list[Row] = [("s_mov_b32", sgpr(0), 1), ("s_branch", "next"), "next:", ("s_add_u32", sgpr(0), sgpr(0), 1),
                       ("s_mov_b32", sgpr(1), sgpr(0)), END]
    assert live(sgpr(0), *rows) == ".AAA."


def test_exec_is_live_even_where_the_next_block_overwrites_it() -> None:
    facts, instrs = solved(NOP, ("s_branch", "next"), "next:", ("s_mov_b64", E, -1), NOP, ("s_mov_b64", E, 1), END)
    assert all(E in facts.live_before(each) and E in facts.live_after(each) for each in instrs)


def test_what_somebody_else_reads_adds_to_what_the_instruction_reads() -> None:
    facts, instrs = solved(NOP, ("s_mov_b32", sgpr(1), sgpr(0)), END)
    facts = facts.with_reads({instrs[1]: RegSet.of(sgpr(9))}, {}, {})
    assert sgpr(0) in facts.live_before(instrs[0]) and sgpr(9) in facts.live_before(instrs[0])


def test_lanes_that_may_all_be_off_on_one_way_may_be_so_where_ways_meet() -> None:
    rows: list[Row] = [("v_mov_b32", vgpr(1), 0), ("s_cbranch_scc0", "end"), ("s_and_b64", E, E, V), "end:",
                       ("v_readfirstlane_b32", sgpr(0), vgpr(1)), END]
    assert live(vgpr(1), *rows)[0] == "i"
    assert live(vgpr(1), *rows[:2], NOP, *rows[3:])[0] == "."


def test_register_indexes_that_are_on_on_one_way_may_be_on_where_ways_meet() -> None:
    facts, instrs = solved(("s_cbranch_scc0", "end"), ("s_set_gpr_idx_on", sgpr(0), 1), "end:", NOP, END)
    assert facts.obstacle(instrs[0]) is None
    assert facts.obstacle(instrs[2]) is not None


def test_a_flat_load_may_end_behind_later_loads() -> None:
    facts, instrs = solved(("flat_load_dword", vgpr(4), vgpr(0, 2)),
                           ("global_load_dword", vgpr(5), vgpr(0, 2), "off"), END)
    counts = facts.pending_before(instrs[2]).counts_for(RegSet.of(vgpr(4)))
    assert counts == {Counter.VM: 0, Counter.LGKM: 0}


def test_an_export_still_reads_its_registers() -> None:
    export = bytes.fromhex("0f0800c401020304")  # exp mrt0 v1, v2, v3, v4 done vm
    program = lift(build({"k": [export, END]}, gpu="gfx900"))
    facts, instrs = analyse(program), list(program.kernel("k").function.instrs)
    assert instrs[0].inst.op.base.startswith("EXP")
    assert facts.pending_before(instrs[1]).of(Counter.EXP).vgpr == RegSet.of(vgpr(1, 4)).vgpr


def test_a_function_that_is_jumped_to_at_the_end_returns_to_the_caller_of_the_first() -> None:
    program = lifted(("s_mov_b32", sgpr(50), 1), *to("f", ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2))),
                     ("s_mov_b32", sgpr(0), sgpr(50)), END,
                     f=[NOP, *to("g", ("s_setpc_b64", sgpr(6, 2)))], g=[NOP, RETURN])
    facts = analyse(program)
    (last,) = [function for function in program.functions if function.name == "g"]
    live = facts.live_before(next(iter(last.instrs)))
    assert sgpr(50) in live and sgpr(51) not in live


def test_a_function_of_two_kernels_has_the_registers_of_both() -> None:
    calls = to("f", ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2)))
    obj = build({"a": [*calls, END], "b": [*calls, END], "f": [NOP, RETURN]}, kernels=("a", "b"))
    sizes = {"a": 64, "b": 32}
    records = {name: replace(record, descriptor=record.descriptor.with_vgpr_count(obj.target, sizes[name])
                             .with_accum_offset(sizes[name])) for name, record in obj._kernels.items()}
    program = lift(replace(obj, kernels=tuple(records.values()), _kernels=records))
    found = {function.name: regs for function, regs in collect_owned_registers(program).items()}
    assert found["b"] == compute_allocated_registers(obj.target, records["b"].descriptor) != found["a"]
    assert found["f"] == found["a"] | found["b"]


def test_a_call_of_code_that_cannot_be_read_may_read_everything() -> None:
    call = to("f", ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2)))
    for body, known in (([NOP, RETURN], True), ([NOP, b"\xff\xff\xff\xff", RETURN], False)):
        program = lifted(*call, END, f=body)
        live = analyse(program).live_before(next(iter(program.kernel("k").function.instrs)))
        assert (sgpr(50) in live) is not known


def test_a_function_that_nobody_is_seen_to_call_is_called_from_anywhere() -> None:
    """By a pointer, say: whoever calls may have switched all lanes off, may read everything, and may be owed loads."""
    rows: list[Row] = [("v_mov_b32", vgpr(1), 0), ("v_readfirstlane_b32", sgpr(0), vgpr(1)), RETURN]
    program = lifted(*to("f", ("s_setpc_b64", sgpr(6, 2))), f=rows)
    facts, (function,) = analyse(program), [each for each in program.functions if each.name == "f"]
    _, second, last = function.instrs
    assert sgpr(50) in facts.live_before(last) and vgpr(7) in facts.live_before(last)
    assert sgpr(50) in facts.pending_before(second).registers
    program = lifted(*to("f", ("s_setpc_b64", sgpr(6, 2))), f=[*rows[:2], END])
    facts, (function,) = analyse(program), [each for each in program.functions if each.name == "f"]
    assert vgpr(1) in facts.live_before_all_lanes(next(iter(function.instrs)))
    assert live(vgpr(1), *rows[:2], END)[0] == "."


def test_behind_a_branch_on_exec_there_is_a_lane_on_one_of_two_ways() -> None:
    read: Row = ("v_readfirstlane_b32", sgpr(0), vgpr(1))
    head: list[Row] = [("v_mov_b32", vgpr(1), 0), ("s_and_b64", E, E, V)]
    assert live(vgpr(1), *head, ("s_cbranch_execz", "end"), read, "end:", END)[0] == "."
    assert live(vgpr(1), *head, ("s_cbranch_execz", "there"), END, "there:", read, END)[0] == "i"
    assert live(vgpr(1), *head, ("s_cbranch_execnz", "there"), END, "there:", read, END)[0] == "."
    assert live(vgpr(1), *head, ("s_cbranch_execnz", "end"), read, "end:", END)[0] == "i"


def test_half_of_a_mask_that_is_overwritten_may_have_been_all_of_it() -> None:
    head: list[Row] = [("v_mov_b32", vgpr(1), 0), ("s_mov_b64", sgpr(4, 2), E)]
    tail: list[Row] = [("s_mov_b64", E, sgpr(4, 2)), ("v_readfirstlane_b32", sgpr(0), vgpr(1)), END]
    assert live(vgpr(1), *head, *tail)[0] == "."
    for half in (4, 5):
        assert live(vgpr(1), *head, ("s_mov_b32", sgpr(half), 0), *tail)[0] == "i"


def test_a_lane_that_is_read_by_an_index_may_be_any_register_s() -> None:
    rows: list[Row] = [("v_mov_b32", vgpr(7), 0), ("s_set_gpr_idx_on", sgpr(0), 1),
                       ("v_readlane_b32", sgpr(1), vgpr(1), 0), ("s_set_gpr_idx_off",), END]
    assert live(vgpr(7), *rows)[0] == "i"
    assert live(vgpr(7), rows[0], NOP, *rows[2:])[0] == "."


def test_lanes_that_were_forgotten_stay_so_where_ways_meet() -> None:
    """Otherwise a loop would forget them and find them again for ever."""
    few, more = States(frozenset({ACTIVE}), True), States(frozenset({LaneState(EXEC_BIT | 1, 1)}), False)
    for joined in (join_lanes(few, more), join_lanes(more, few)):
        assert joined == States(frozenset({ACTIVE, INACTIVE}), True)
