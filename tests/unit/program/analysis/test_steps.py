"""Loops that count themselves: by how much the register moved follows how often they ran."""

from __future__ import annotations

import pytest
from synthetic import Row, build

from luthier_py.isa import sgpr
from luthier_py.program.analysis import steps_of
from luthier_py.program.ir import lift

END: Row = ("s_endpgm",)
TEST: Row = ("s_cmp_lg_u32", sgpr(4), sgpr(6))
GUARD: list[Row] = [("s_mov_b32", sgpr(4), 0), ("s_cmp_eq_u32", sgpr(6), 0), ("s_cbranch_scc1", "end")]


def turn(move: Row, test: Row = TEST) -> list[Row]:
    return ["loop:", ("s_nop", 0), move, test, ("s_cbranch_scc1", "loop")]


def found(*rows: Row) -> list[tuple[int, int]]:
    """Registers and steps, by loop."""
    program = lift(build({"k": list(rows)}))
    function = program.kernel("k").function
    return [(each.register.index, each.step) for each in steps_of(function).values()]


@pytest.mark.parametrize(("move", "step"), [
    (("s_add_i32", sgpr(4), sgpr(4), 1), 1), (("s_add_i32", sgpr(4), sgpr(4), -1), -1),
    (("s_sub_u32", sgpr(4), sgpr(4), 16), -16), (("s_addk_i32", sgpr(4), 8), 8),
])
def test_up_and_down(move: Row, step: int) -> None:
    assert found(*GUARD, *turn(move), "end:", END) == [(4, step)]


@pytest.mark.parametrize("rows", [
    turn(("s_add_i32", sgpr(4), sgpr(4), 3)),                                      # no power of two
    ["loop:", ("s_swappc_b64", sgpr(30, 2), sgpr(8, 2)), *turn(("s_add_i32", sgpr(4), sgpr(4), 1))[1:]],
    turn(("s_add_i32", sgpr(4), sgpr(4), sgpr(5))),                                # by what is not known
    turn(("s_lshl_b32", sgpr(4), sgpr(4), 1)),
    turn(("s_add_i32", sgpr(4), sgpr(4), 1), ("s_cmp_lg_u32", sgpr(5), sgpr(6))),  # the way out is another's
    [*turn(("s_add_i32", sgpr(4), sgpr(4), 1))[:-1], ("s_add_i32", sgpr(6), sgpr(6), 1), ("s_cbranch_scc1", "loop")],
    ["loop:", ("s_add_i32", sgpr(4), sgpr(4), 1), ("s_add_i32", sgpr(6), sgpr(6), 2),
     ("s_cmp_lg_u32", sgpr(4), sgpr(6)), ("s_cbranch_scc1", "loop")],              # the bound moves, too
    ["loop:", ("s_cmp_lg_u32", sgpr(4), sgpr(6)), ("s_cbranch_scc1", "loop")],     # it does not move
])
def test_others_do_not_count_themselves(rows: list[Row]) -> None:
    assert found(*GUARD, *rows, "end:", END) == []


def test_other_ways_to_what_is_behind_are_none_of_the_loop() -> None:
    """Whoever comes there without the loop finds no hook."""
    other: list[Row] = [("s_cmp_eq_u32", sgpr(7), 0), ("s_cbranch_scc1", "end")]
    rows: list[Row] = [*other, *GUARD, ("s_nop", 0), *turn(("s_add_i32", sgpr(4), sgpr(4), 1)), "end:", END]
    function = lift(build({"k": rows})).kernel("k").function
    [steps] = steps_of(function).values()
    assert len(steps.before) == 1 and (steps.out.source, steps.out.target) == (function.blocks[-2], function.blocks[-1])


def test_not_where_another_loop_ends() -> None:
    first = ["first:", ("s_cmp_eq_u32", sgpr(7), 0), ("s_cbranch_scc1", "first")]
    assert found(*GUARD, *first, *turn(("s_add_i32", sgpr(4), sgpr(4), 1)), "end:", END) == []
