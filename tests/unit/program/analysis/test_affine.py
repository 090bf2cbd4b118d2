"""Strides of addresses: what registers hold as sums over lanes and work-item IDs, and in which lanes that is true."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic import Row, build

from luthier_py.binary.loader import load
from luthier_py.isa import EXEC, VCC, OpFlag, sgpr, vgpr
from luthier_py.isa.semantics.readers.numbers import Number, Varying, constant, linear
from luthier_py.program.analysis import analyse
from luthier_py.program.analysis.affine import by_lane
from luthier_py.program.ir import lift

TRANSPOSE = Path(__file__).parents[3] / "data" / "transpose.co"
END: Row = ("s_endpgm",)
E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
IF: Row = ("s_and_saveexec_b64", sgpr(4, 2), V)
FI: Row = ("s_or_b64", E, E, sgpr(4, 2))
LANE: list[Row] = [("v_mbcnt_lo_u32_b32", vgpr(1), -1, 0), ("v_mbcnt_hi_u32_b32", vgpr(1), -1, vgpr(1))]
USE: Row = ("ds_write_b32", vgpr(1), vgpr(2))


def times(factor: int) -> Row:
    return ("v_mul_u32_u24_e32", vgpr(1), factor, vgpr(1))


def put(value: int) -> Row:
    return ("v_mov_b32_e32", vgpr(1), value)


def at_uses(*rows: Row) -> list[tuple[int, int | None] | None]:
    """Stride by lane, and the constant, of v1 before each use; None where nothing is known."""
    program = lift(build({"k": list(rows)}))
    facts, found = analyse(program), list[tuple[int, int | None] | None]()
    for instr in program.kernel("k").function.instrs:
        if OpFlag.LDS in instr.inst.op.flags:
            known = facts.affine_before(instr, vgpr(1))
            found.append(None if known is None else (dict(known.terms).get(Varying.LANE, 0), known.constant))
    return found


def test_a_stride_is_followed_through_arithmetic() -> None:
    assert at_uses(*LANE, times(12), USE, ("v_add_u32_e32", vgpr(1), sgpr(6), vgpr(1)), USE,
                   ("v_cvt_f32_u32_e32", vgpr(1), vgpr(1)), USE, END) == [(12, 0), (12, None), None]


def test_a_load_makes_it_unknown() -> None:
    assert at_uses(*LANE, ("ds_read_b32", vgpr(1), vgpr(0)), USE, END)[1:] == [None]


def test_before_an_if_is_known_in_it_and_behind_it() -> None:
    assert at_uses(*LANE, IF, USE, FI, USE, END) == [(1, 0), (1, 0)]


def test_written_in_an_if_is_known_only_there() -> None:
    rows: list[Row] = [*LANE, IF, ("s_cbranch_execz", "end"), times(8), USE, "end:", FI, USE, END]
    assert at_uses(*rows) == [(8, 0), None]


def test_both_sides_of_an_if_write_the_same_in_some_lanes_each() -> None:
    """One after the other, each for its lanes: behind it the lanes differ."""
    rows: list[Row] = [*LANE, IF, ("s_xor_b64", sgpr(4, 2), E, sgpr(4, 2)), put(4),
                       ("s_or_saveexec_b64", sgpr(6, 2), sgpr(4, 2)), ("s_xor_b64", E, E, sgpr(6, 2)), put(8), USE,
                       ("s_or_b64", E, E, sgpr(6, 2)), USE, END]
    assert at_uses(*rows) == [(0, 8), None]


def test_an_if_in_an_if_finds_back_to_the_outer_one() -> None:
    rows: list[Row] = [*LANE, IF, times(8), ("s_and_saveexec_b64", sgpr(6, 2), sgpr(8, 2)), ("v_mov_b32", vgpr(2), 0),
                       ("s_or_b64", E, E, sgpr(6, 2)), USE, FI, USE, END]
    assert at_uses(*rows) == [(8, 0), None]


def test_a_loop_that_lanes_leave_keeps_what_was_before_it() -> None:
    loop: list[Row] = [("s_mov_b64", sgpr(6, 2), 0), "loop:", USE, ("v_cmp_eq_u32_e32", V, 0, vgpr(2)),
                       ("s_or_b64", sgpr(6, 2), V, sgpr(6, 2)), ("s_andn2_b64", E, E, sgpr(6, 2)),
                       ("s_cbranch_execnz", "loop"), ("s_or_b64", E, E, sgpr(6, 2)), USE, END]
    assert at_uses(*LANE, times(4), *loop) == [(4, 0), (4, 0)]


def test_a_counter_of_a_loop_differs_behind_it() -> None:
    """In the loop all active lanes are in the same turn; they left it in different ones."""
    step: Row = ("v_add_u32_e32", vgpr(1), 64, vgpr(1))
    loop: list[Row] = [("s_mov_b64", sgpr(6, 2), 0), "loop:", USE, step, ("v_cmp_eq_u32_e32", V, 0, vgpr(2)),
                       ("s_or_b64", sgpr(6, 2), V, sgpr(6, 2)), ("s_andn2_b64", E, E, sgpr(6, 2)),
                       ("s_cbranch_execnz", "loop"), ("s_or_b64", E, E, sgpr(6, 2)), USE, END]
    assert at_uses(*LANE, *loop) == [(1, None), None]


def test_a_branch_of_the_whole_wave_leaves_one_value() -> None:
    assert at_uses(*LANE, ("s_cbranch_scc0", "end"), ("v_add_u32_e32", vgpr(1), 64, vgpr(1)), "end:", USE, END) == \
        [(1, None)]
    assert at_uses(*LANE, ("s_cbranch_scc0", "end"), times(2), "end:", USE, END) == [None]


@pytest.mark.parametrize("widen", [[("s_mov_b64", E, -1)], [("s_not_b64", E, E)], [("s_mov_b64", E, sgpr(8, 2))],
                                   [("s_mov_b32", sgpr(EXEC), -1)]])
def test_lanes_that_were_not_active_hold_something_else(widen: list[Row]) -> None:
    assert at_uses(*LANE, *widen, USE, END) == [None]


def test_all_lanes_for_a_while_and_back() -> None:
    rows: list[Row] = [*LANE, ("s_or_saveexec_b64", sgpr(6, 2), -1), USE, ("s_mov_b64", E, sgpr(6, 2)), USE, END]
    assert at_uses(*rows) == [None, (1, 0)]


def test_a_mask_that_was_overwritten_restores_nothing() -> None:
    assert at_uses(*LANE, IF, times(8), ("s_mov_b32", sgpr(4), 3), FI, USE, END) == [None]
    again: list[Row] = ["loop:", IF, times(3), USE, ("s_cbranch_scc1", "loop"), FI, USE, END]
    assert at_uses(*LANE, *again)[-1] is None


def test_where_operands_are_indexed_nothing_is_known() -> None:
    rows: list[Row] = [*LANE, ("s_set_gpr_idx_on", sgpr(8), 1), USE, ("s_set_gpr_idx_off",), USE, END]
    assert at_uses(*rows)[0] is None


@pytest.mark.parametrize(("rows", "known"), [
    ([IF, USE, FI, USE], [False, True]),
    ([IF, FI, ("s_cbranch_scc0", "end"), ("s_nop", 0), "end:", USE], [True]),
    ([("s_mov_b64", E, -1), USE], [False]),
    ([("s_or_saveexec_b64", sgpr(6, 2), -1), USE, ("s_mov_b64", E, sgpr(6, 2)), USE], [False, True]),
    ([IF, ("s_cbranch_scc0", "end"), FI, "end:", USE], [False]),
])
def test_where_the_lanes_are_those_of_the_start(rows: list[Row], known: list[bool]) -> None:
    program = lift(build({"k": [*rows, END]}))
    facts = analyse(program)
    uses = [instr for instr in program.kernel("k").function.instrs if OpFlag.LDS in instr.inst.op.flags]
    assert [facts.exec_as_at_start(instr) for instr in uses] == known


def test_addresses_of_a_transposed_tile() -> None:
    """tile[y][x] is written, tile[x][y] read: rows of 32 floats, conflicts in 32 banks."""
    program = lift(load(TRANSPOSE.read_bytes(), "transpose"))
    facts = analyse(program)
    found = []
    for instr in (instr for function in program.functions for instr in function.instrs):
        address = instr.inst.find("addr")
        if OpFlag.LDS in instr.inst.op.flags and address is not None and address.reg is not None:
            known = facts.affine_before(instr, address.reg)
            found.append(None if known is None else {what.value: factor for what, factor in known.terms})
    assert found == [{"x": 4, "y": 128}, {"x": 128, "y": 4}]


def test_a_known_size_of_work_groups_gives_strides_by_lane() -> None:
    known = Number(((Varying.X, 4), (Varying.Y, 128)), 16)
    assert by_lane(known, (64, 4, 1), 64) == Number(((Varying.LANE, 4),), None)
    assert by_lane(known, (16, 16, 1), 64) is None
    assert by_lane(Number(((Varying.X, 4),), 0), (100, 1, 1), 64) == Number(((Varying.LANE, 4),), None)
    assert by_lane(constant(7), (16, 16, 1), 64) == constant(7)


def test_the_lower_half_of_an_address_is_known_without_the_upper_one() -> None:
    """A carry is not followed, and it comes to the upper half alone."""
    low: list[Row] = [("v_mov_b32_e32", vgpr(1), vgpr(2)), USE]
    rows: list[Row] = [*LANE, ("v_add_u32_e32", vgpr(2), sgpr(6), vgpr(1)), ("v_mov_b32_e32", vgpr(3), 0),
                       ("v_lshlrev_b64", vgpr(2, 2), 4, vgpr(2, 2)), *low,
                       ("v_add_co_u32_e32", vgpr(2), V, sgpr(8), vgpr(2)), *low,
                       ("v_lshlrev_b64", vgpr(2, 2), 32, vgpr(2, 2)), *low,
                       ("v_lshrrev_b64", vgpr(2, 2), 1, vgpr(2, 2)), *low, END]
    assert at_uses(*rows) == [(16, None), (16, None), (0, None), None]


def test_what_is_made_of_a_row_is_the_same_in_the_row() -> None:
    """y times a width that is not known; that it is lost by subtracting it from itself is not believed."""
    program = lift(load(TRANSPOSE.read_bytes()))
    facts = analyse(program)
    found = {facts.affine_before(instr, instr.inst["vaddr"].reg) for function in program.functions
             for instr in function.instrs if OpFlag.FLAT in instr.op.flags}
    assert found == {Number(((Varying.ROW, 1), (Varying.X, 4)), None)}
    in_rows = linear({Varying.ROW: 1, Varying.X: 4, Varying.Y: 8}, 12, 32)
    assert in_rows == Number(((Varying.ROW, 1), (Varying.X, 4)), None)
    assert linear({Varying.ROW: 0, Varying.X: 4}, 0, 32) == in_rows
    assert by_lane(in_rows, (128, 2, 1), 64) == Number(((Varying.LANE, 4),), None)
    assert by_lane(in_rows, (32, 2, 1), 64) is None
