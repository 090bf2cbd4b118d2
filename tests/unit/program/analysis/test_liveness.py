"""Liveness on code whose answer is known: lanes, EXEC, scalars, calls and what is not known."""

from __future__ import annotations

from synthetic import VGPRS, Row, build

from luthier_py.isa import EXEC, M0, MODE, SCC, VCC, Reg, RegSet, agpr, sgpr, vgpr
from luthier_py.program.analysis import Facts, analyse
from luthier_py.program.ir import Instr, lift

END: Row = ("s_endpgm",)
NOP: Row = ("s_nop", 0)
E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
IF: Row = ("s_and_saveexec_b64", sgpr(4, 2), V)
FI: Row = ("s_or_b64", E, E, sgpr(4, 2))
RETURN: Row = ("s_setpc_b64", sgpr(30, 2))


def use(number: int) -> Row:
    return ("ds_write_b32", vgpr(9), vgpr(number))


def put(number: int) -> Row:
    return ("v_mov_b32", vgpr(number), 0)


def call(pair: int = 6) -> list[Row]:
    return [("s_getpc_b64", sgpr(pair, 2)), ("s_add_u32", sgpr(pair), sgpr(pair), "f"),
            ("s_addc_u32", sgpr(pair + 1), sgpr(pair + 1), "f"), ("s_swappc_b64", sgpr(30, 2), sgpr(pair, 2))]


def solved(*rows: Row, **functions: list[Row]) -> tuple[Facts, list[Instr]]:
    program = lift(build({"k": list(rows), **functions}))
    return analyse(program), list(program.kernel("k").function.instrs)


def live(reg: Reg, *rows: Row, **functions: list[Row]) -> str:
    """For each instruction: A if ``reg`` is live for active lanes, i if only for inactive ones, else a dot."""
    facts, instrs = solved(*rows, **functions)
    return "".join(
        "A" if reg in facts.live_before(i) else "i" if reg in facts.live_before_all_lanes(i) else "." for i in instrs
    )


def test_a_scalar_lives_from_its_write_to_its_last_read() -> None:
    rows: list[Row] = [("s_mov_b32", sgpr(0), 1), NOP, ("s_add_u32", sgpr(1), sgpr(0), 1), NOP, END]
    assert live(sgpr(0), *rows) == ".AA.."
    assert live(sgpr(1), *rows) == "....."


def test_flags_and_special_registers() -> None:
    rows: list[Row] = [("s_cmp_lg_u32", sgpr(0), 0), ("s_mov_b32", sgpr(M0), 0), ("s_cselect_b32", sgpr(1), 0, 1),
                       ("s_mov_b64", V, 0), ("v_cndmask_b32", vgpr(0), vgpr(1), vgpr(2), V), ("s_sendmsg", 1), END]
    assert live(sgpr(SCC), *rows) == ".AA...."
    assert live(V, *rows) == "....A.."
    assert live(sgpr(M0), *rows) == "..AAAA."
    assert live(E, *rows) == "A" * 7
    assert live(sgpr(MODE), *rows) == "." * 7


def test_under_full_code_a_vector_write_kills_for_the_lanes_that_write() -> None:
    assert live(vgpr(1), NOP, put(1), use(1), NOP, END) == "..A.."
    assert live(vgpr(1), ("s_mov_b64", E, sgpr(0, 2)), put(1), ("s_mov_b64", E, sgpr(2, 2)), use(1), END) == "AiAA."


def test_all_lanes_known_active_kills_for_all() -> None:
    assert live(vgpr(1), NOP, ("s_mov_b64", E, -1), put(1), use(1), END) == "...A."


def test_a_value_that_an_if_overwrites_is_kept_by_the_lanes_that_skip_it() -> None:
    assert live(vgpr(1), put(1), IF, put(1), FI, use(1), END) == ".AiAA."


def test_a_value_used_inside_an_if_only_is_dead_for_the_rest() -> None:
    assert live(vgpr(1), put(2), IF, put(1), use(1), FI, use(2), END) == "...A..."


def test_lanes_outside_the_outer_if_do_not_enter_by_the_inner_one() -> None:
    inner: list[Row] = [("s_and_saveexec_b64", sgpr(10, 2), V), NOP, ("s_or_b64", E, E, sgpr(10, 2))]
    rows = [NOP, IF, put(1), *inner, use(1), FI, END]
    assert live(vgpr(1), *rows) == "...AAAA.."


def test_both_arms_of_an_else() -> None:
    rows: list[Row] = [
        NOP, IF, ("s_xor_b64", sgpr(4, 2), E, sgpr(4, 2)), put(1), ("s_andn2_saveexec_b64", sgpr(4, 2), sgpr(4, 2)),
        put(1), FI, use(1), END,
    ]
    assert live(vgpr(1), *rows) == "....AiAA."


def test_lanes_that_left_a_loop_keep_their_values() -> None:
    rows: list[Row] = [
        ("s_mov_b64", sgpr(4, 2), 0), "again:", put(1), ("v_cmp_lt_u32", V, vgpr(1), vgpr(2)),
        ("s_or_b64", sgpr(4, 2), V, sgpr(4, 2)), ("s_andn2_b64", E, E, sgpr(4, 2)), ("s_cbranch_execnz", "again"),
        FI, use(1), END,
    ]
    assert live(vgpr(1), *rows) == ".iAAAAAA."


def test_inverting_and_restoring_exec_saves_inactive_lanes_only() -> None:
    save: list[Row] = [("s_xor_saveexec_b64", sgpr(4, 2), -1), use(6), ("s_mov_b64", E, sgpr(4, 2))]
    assert live(vgpr(6), NOP, *save, END) == "iiA.."


def test_writelane_neither_reads_nor_kills() -> None:
    write: Row = ("v_writelane_b32", vgpr(1), sgpr(0), 3)
    assert live(vgpr(1), NOP, write, END) == "..."
    assert live(vgpr(1), NOP, write, use(1), END) == "AAA."


def test_readlane_reads_lanes_that_are_inactive() -> None:
    read: Row = ("v_readlane_b32", sgpr(0), vgpr(1), 3)
    assert live(vgpr(1), NOP, put(1), read, END) == "iiA."


def test_readfirstlane_reads_lane_0_when_no_lane_is_active() -> None:
    read: Row = ("v_readfirstlane_b32", sgpr(0), vgpr(1))
    assert live(vgpr(1), NOP, put(1), read, END) == "..A."  # a wave starts with some lane
    assert live(vgpr(1), NOP, IF, put(1), read, END) == "AAiA."
    assert live(vgpr(1), NOP, IF, ("s_cbranch_execz", "end"), put(1), read, "end:", END) == "....A."


def test_dpp_reads_other_lanes() -> None:
    assert live(vgpr(1), NOP, put(1), ("v_add_f32_dpp", vgpr(2), vgpr(1), vgpr(3)), use(2), END) == "iiA.."


def test_matrix_operations_take_all_lanes() -> None:
    mfma: Row = ("v_mfma_f32_4x4x1f32", agpr(0, 4), vgpr(1), vgpr(2), agpr(0, 4))
    assert live(vgpr(1), NOP, put(1), mfma, END) == "iiA."
    assert live(agpr(3), NOP, mfma, END) == "AA."


def test_partial_writes_keep_the_register() -> None:
    load: Row = ("ds_read_u16_d16_hi", vgpr(1), vgpr(9))
    assert live(vgpr(1), NOP, load, use(1), END) == "AAA."


def test_a_register_index_may_be_any_that_the_kernel_has() -> None:
    on: Row = ("s_set_gpr_idx_on", sgpr(0), 1)
    off: Row = ("s_set_gpr_idx_off",)
    rows: list[Row] = [NOP, on, ("v_mov_b32", vgpr(0), vgpr(1)), off, NOP, END]
    assert live(vgpr(VGPRS - 1), *rows) == "AAA..."
    assert live(vgpr(VGPRS), *rows) == "......"
    assert live(vgpr(0), NOP, on, ("v_mov_b32", vgpr(0), vgpr(1)), off, use(0), END) == "AAAAA."


def test_calls_pass_through_the_callee() -> None:
    f: list[Row] = [use(1), put(2), RETURN]
    rows = [NOP, *call(), use(2), use(3), END]
    assert live(vgpr(1), *rows, f=f) == "AAAAA..."
    assert live(vgpr(2), *rows, f=f)[-3:] == "A.."
    assert live(vgpr(3), *rows, f=f) == "AAAAAAA."
    assert live(sgpr(30), *rows, f=f) == "........"


def test_after_a_call_is_after_its_return() -> None:
    facts, instrs = solved(NOP, *call(), use(2), END, f=[use(1), put(2), RETURN])
    swap = instrs[4]
    assert vgpr(2) in facts.live_after(swap) and vgpr(1) not in facts.live_after(swap)
    assert vgpr(1) in facts.live_before(swap)


def test_a_callee_that_is_not_known_may_read_everything() -> None:
    rows: list[Row] = [NOP, ("s_swappc_b64", sgpr(30, 2), sgpr(6, 2)), ("v_mov_b32", vgpr(5), 0), END]
    assert live(vgpr(VGPRS - 1), *rows) == "AA.."
    assert live(vgpr(VGPRS), *rows) == "...."
    assert live(sgpr(99), *rows) == "AA.."


def test_an_incomplete_callee_may_read_everything() -> None:
    rows: list[Row] = [NOP, *call(), END]
    assert live(vgpr(VGPRS - 1), *rows, f=[b"\xff\xff\xff\xff"]) == "AAAAA."


def test_nothing_is_live_at_the_end() -> None:
    facts, instrs = solved(put(1), END)
    assert facts.live_before(instrs[-1]) == RegSet.of(E) == facts.live_before_all_lanes(instrs[-1])
    assert facts.live_after(instrs[-1]) == RegSet.of(E)


def test_vector_instructions_that_may_be_skipped_kill_nothing() -> None:
    skip: Row = ("s_setvskip", sgpr(0), 1)
    assert live(vgpr(1), NOP, skip, put(1), use(1), END) == "AAAA."
    assert live(vgpr(1), NOP, skip, ("s_setvskip", 0, 0), NOP, put(1), use(1), END) == ".....A."
    assert live(sgpr(SCC), NOP, skip, ("s_cselect_b32", sgpr(1), 0, 1), END) == "AAA."


def test_a_trap_handler_may_look_at_the_queue() -> None:
    assert live(sgpr(1), NOP, ("s_trap", 2), END) == "AA."


def test_permutes_read_and_keep_other_lanes() -> None:
    rows: list[Row] = [NOP, put(1), ("v_permlane64_b32", vgpr(1), vgpr(1)), use(1), END]
    program = lift(build({"k": rows}, gpu="gfx1100"))
    facts, instrs = analyse(program), list(program.kernel("k").function.instrs)
    assert vgpr(1) in facts.live_before_all_lanes(instrs[0])


def test_a_block_is_worked_out_once_for_all_its_places() -> None:
    facts, instrs = solved(*[put(0)] * 50, END)
    for instr in instrs:
        facts.live_before(instr), facts.pending_before(instr), facts.obstacle(instr)
    kept = (facts._liveness.inside, facts._waits.inside, facts._inside)
    assert [inside.cache_info().misses for inside in kept] == [1, 1, 1]
