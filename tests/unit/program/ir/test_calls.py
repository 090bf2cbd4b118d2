"""Addresses made of the PC, and the calls and jumps that take them."""

from __future__ import annotations

import pytest
from synthetic import Row, build

from luthier_py.isa import sgpr, vgpr
from luthier_py.program.ir import CallSite, Ending, Function, Program, lift, verify

END: Row = ("s_endpgm",)
NOP: Row = ("s_nop", 0)
RETURN: Row = ("s_setpc_b64", sgpr(30, 2))
CALL: Row = ("s_swappc_b64", sgpr(30, 2), sgpr(4, 2))


def address(of: str, pair: int = 4) -> list[Row]:
    """A chain that puts an address into a pair."""
    return [("s_getpc_b64", sgpr(pair, 2)), ("s_add_u32", sgpr(pair), sgpr(pair), of),
            ("s_addc_u32", sgpr(pair + 1), sgpr(pair + 1), of)]


def lifted(k: list[Row], pointers: tuple[str, ...] = (), **functions: list[Row]) -> Program:
    program = lift(build({"k": k, **functions}, pointers=pointers))
    verify(program)
    return program


def site(program: Program, name: str = "k") -> CallSite:
    (found,) = program.calls(function(program, name))
    return found


def function(program: Program, name: str) -> Function:
    return next(f for f in program.functions if f.name == name)


def names(call: CallSite) -> list[str]:
    return [target.name for target in call.targets]


def test_a_direct_call() -> None:
    program = lifted([*address("f"), CALL, END], f=[NOP, RETURN])
    call = site(program)
    assert names(call) == ["f"] and not call.indirect and not call.unknown and not call.tail
    (builder,) = function(program, "k").pc_builders
    assert builder.value == function(program, "f").address and builder.call == call.instr and not builder.escapes
    assert builder.lo.inst["src1"].value == builder.value - builder.getpc.end
    assert not function(program, "f").kernel and function(program, "f").blocks[0].ending is Ending.RETURN
    assert len(function(program, "k").blocks) == 1  # a call does not end a block
    assert program.address_taken == frozenset()


def test_callees_of_callees_are_lifted_and_recursion_ends() -> None:
    f, g = [*address("g"), CALL, RETURN], [*address("f"), CALL, RETURN]
    program = lifted([*address("f"), CALL, END], f=f, g=g, h=[END])
    assert [f.name for f in program.functions] == ["k", "f", "g"]
    assert [f.name for f in program.reachable(function(program, "g"))] == ["f", "g"]
    assert len(program.reachable(function(program, "k"))) == 3


def test_an_address_kept_across_calls_in_a_loop_is_still_direct() -> None:
    call: Row = ("s_swappc_b64", sgpr(30, 2), sgpr(36, 2))
    rows = [*address("f", 36), "again:", call, call, ("s_cbranch_scc0", "again"), END]
    program = lifted(rows, f=[RETURN])
    assert [(names(c), c.indirect) for c in program.calls(function(program, "k"))] == [(["f"], False)] * 2
    assert function(program, "k").pc_builders[0].call is not None


TWICE: list[Row] = [*address("f"), CALL, CALL, END]
TOUCH: Row = ("s_mov_b32", sgpr(5), 0)
ELSEWHERE: Row = ("s_swappc_b64", sgpr(30, 2), sgpr(8, 2))
LOAD: Row = ("s_load_dwordx2", sgpr(8, 2), sgpr(0, 2), 0)


def both_are_direct(program: Program, name: str = "k") -> bool:
    sites = program.calls(function(program, name))
    assert len(sites) == 2 and all(names(each) == ["f"] for each in sites)  # in any case it may be f
    assert len({each.indirect for each in sites}) == 1
    assert program.address_taken == ({function(program, "f").address} if sites[0].indirect else set())
    return not sites[0].indirect


@pytest.mark.parametrize(("functions", "kept"), [
    ({"f": [NOP, RETURN]}, True),
    ({"f": [TOUCH, RETURN]}, False),
    ({"f": [("v_mov_b32", vgpr(0), sgpr(4)), RETURN]}, False),  # an argument for all that is known
    ({"f": [*address("g", 8), ELSEWHERE, RETURN], "g": [RETURN]}, True),
    ({"f": [*address("g", 8), ELSEWHERE, RETURN], "g": [TOUCH, RETURN]}, False),
    ({"f": [*address("g", 8), ("s_setpc_b64", sgpr(8, 2))], "g": [RETURN]}, True),
    ({"f": [*address("g", 8), ("s_setpc_b64", sgpr(8, 2))], "g": [TOUCH, RETURN]}, False),
    ({"f": [LOAD, ELSEWHERE, RETURN]}, False),
    ({"f": [LOAD, ("s_setpc_b64", sgpr(8, 2))]}, False),
    ({"f": [("s_movreld_b32", sgpr(8), 0), RETURN]}, False),
    ({"f": [b"\xff" * 8, RETURN]}, False),
    ({"f": [*address("g", 8), ELSEWHERE, RETURN], "g": [*address("f", 10), ("s_swappc_b64", sgpr(30, 2), sgpr(10, 2)),
                                                        RETURN]}, True),
    ({"f": [*address("g", 8), ELSEWHERE, RETURN], "g": [*address("f", 10), ("s_swappc_b64", sgpr(30, 2), sgpr(10, 2)),
                                                        TOUCH, RETURN]}, False),
])
def test_an_address_that_the_callee_leaves_alone_is_still_there(functions: dict[str, list[Row]], kept: bool) -> None:
    assert both_are_direct(lifted(TWICE, **functions)) is kept


def test_a_function_that_calls_itself_twice_by_one_address() -> None:
    program = lifted([*address("f"), CALL, END], f=[*address("f", 8), ELSEWHERE, ELSEWHERE, RETURN])
    assert [each.indirect for each in program.calls(function(program, "f"))] == [True, True]  # it writes the pair
    skipped: list[Row] = [("s_cbranch_scc0", "again"), *address("f"), "again:", CALL, CALL, RETURN]
    program = lifted([*address("f"), CALL, END], f=skipped)
    assert all(each.indirect for each in program.calls(function(program, "f")))


def test_what_a_callee_calls_after_a_call_counts() -> None:
    """That g calls h is known only once it is known that h leaves the address of h alone."""
    g: list[Row] = [*address("h", 8), ELSEWHERE, ELSEWHERE, RETURN]
    program = lifted([*address("g"), *address("f", 10), CALL, ("s_swappc_b64", sgpr(30, 2), sgpr(10, 2)), END],
                     pointers=("p",), f=[RETURN], g=g, h=[NOP, RETURN], p=[TOUCH, RETURN])
    assert [names(each) for each in program.calls(function(program, "k"))] == [["g"], ["f"]]
    assert not any(each.indirect for f in program.functions for each in program.calls(f))
    assert "p" not in [f.name for f in program.functions]


def test_an_address_that_is_kept_and_stored_is_taken() -> None:
    store: Row = ("v_mov_b32", vgpr(0), sgpr(4))
    program = lifted([*address("f"), CALL, store, END], f=[RETURN])
    assert function(program, "k").pc_builders[0].escapes and program.address_taken
    program = lifted([*address("f"), CALL, store, END], f=[TOUCH, RETURN])  # it may have been left as it was
    assert function(program, "k").pc_builders[0].escapes and program.address_taken


def test_an_address_may_be_moved() -> None:
    rows = [*address("f", 8), ("s_mov_b64", sgpr(10, 2), sgpr(8, 2)), ("s_mov_b32", sgpr(4), sgpr(10)),
            ("s_mov_b32", sgpr(5), sgpr(11)), CALL, END]
    assert names(site(lifted(rows, f=[RETURN]))) == ["f"]


def test_an_immediate_takes_the_place_of_an_address() -> None:
    program = lifted([*address("f"), ("s_movk_i32", sgpr(5), 1), CALL, END], f=[RETURN])
    assert site(program).indirect and function(program, "k").pc_builders[0].escapes


def test_halves_of_two_addresses_make_no_call() -> None:
    rows = [*address("f", 8), *address("g", 4), ("s_mov_b32", sgpr(4), sgpr(8)), CALL, END]
    call = site(lifted(rows, f=[RETURN], g=[RETURN]))
    assert call.indirect and {"f", "g"} <= set(names(call))  # both are taken, as the call may reach anything


def test_one_of_two_addresses_is_an_indirect_call_to_both() -> None:
    rows = [*address("f"), ("s_cbranch_scc0", "call"), *address("g"), "call:", CALL, END]
    program = lifted(rows, f=[RETURN], g=[RETURN], h=[RETURN])
    call = site(program)
    assert names(call) == ["f", "g"] and call.indirect and not call.unknown
    assert {function(program, "f").address, function(program, "g").address} == program.address_taken


def test_an_address_that_is_also_stored_is_taken() -> None:
    store: Row = ("v_mov_b32", vgpr(0), sgpr(4))
    program = lifted([*address("f"), store, CALL, END], f=[RETURN])
    call = site(program)
    assert names(call) == ["f"] and call.indirect and not call.unknown
    assert function(program, "k").pc_builders[0].escapes
    assert program.address_taken == {function(program, "f").address}


def test_an_indirect_call_reaches_every_function_whose_address_is_in_data() -> None:
    rows: list[Row] = [("s_load_dwordx2", sgpr(4, 2), sgpr(0, 2), 0), CALL, END]
    program = lifted(rows, pointers=("f", "g", "k"), f=[RETURN], g=[RETURN], h=[RETURN])
    call = site(program)
    assert names(call) == ["f", "g"] and call.indirect and not call.unknown
    assert call.targets == tuple(f for f in program.functions if f.address in program.address_taken)


def test_an_indirect_call_without_such_functions_reaches_the_unknown() -> None:
    call = site(lifted([("s_load_dwordx2", sgpr(4, 2), sgpr(0, 2), 0), CALL, END]))
    assert call.targets == () and call.unknown and call.indirect


def test_pointers_alone_do_not_make_functions_reachable() -> None:
    program = lifted([END], pointers=("f",), f=[RETURN])
    assert [f.name for f in program.functions] == ["k"] and len(program.address_taken) == 1


def test_an_address_of_data_changes_nothing() -> None:
    rows = [*address("far"), ("s_load_dword", sgpr(6), sgpr(4, 2), 0), END, *[NOP] * 8, "far:", NOP]
    program = lifted(rows)
    (builder,) = function(program, "k").pc_builders
    assert builder.escapes and function(program, "k").incomplete is None and program.address_taken == frozenset()


def test_s_call() -> None:
    program = lifted([("s_call_b64", sgpr(30, 2), "f"), END], f=[RETURN])
    call = site(program)
    assert names(call) == ["f"] and not call.indirect and not call.tail


@pytest.mark.parametrize("forward", [True, False])
def test_a_long_branch(forward: bool) -> None:
    jump: Row = ("s_setpc_b64", sgpr(30, 2))
    there: list[Row] = ["there:", NOP, END]
    start: list[Row] = [NOP] if forward else [("s_branch", "jump"), *there]
    program = lifted([*start, "jump:", *address("there", 30), jump, *(there if forward else [])])
    block = next(b for b in function(program, "k").blocks if b.instrs[-1].inst.op.base == "S_SETPC_B64")
    (builder,) = function(program, "k").pc_builders
    assert block.ending is Ending.BRANCH and block.successors == (builder.value,)
    assert builder.branch == block.instrs[-1] and builder.call is None and not builder.escapes
    assert program.calls(function(program, "k")) == ()


def test_a_tail_call() -> None:
    program = lifted([*address("f"), CALL, END], f=[*address("g"), ("s_setpc_b64", sgpr(4, 2))], g=[RETURN])
    call = site(program, "f")
    assert call.tail and names(call) == ["g"] and not call.indirect
    assert function(program, "f").blocks[0].ending is Ending.TAIL_CALL
    assert function(program, "f").pc_builders[0].call == call.instr


@pytest.mark.parametrize("kept", [True, False])
def test_a_tail_call_by_an_address_from_before_a_call(kept: bool) -> None:
    f = [*address("g", 8), ELSEWHERE, ("s_setpc_b64", sgpr(8, 2))]
    program = lifted([*address("f"), CALL, END], f=f, g=[*[("s_mov_b32", sgpr(8), 0)] * (not kept), RETURN])
    calls = program.calls(function(program, "f"))
    assert [(names(each), each.tail, each.indirect) for each in calls] == [
        (["g"], False, not kept), (["g"], True, not kept)]
    assert (function(program, "f").incomplete is None) is kept


def test_a_return_through_another_pair() -> None:
    f: list[Row] = [("s_mov_b64", sgpr(8, 2), sgpr(30, 2)), ("s_setpc_b64", sgpr(8, 2))]
    program = lifted([*address("f"), CALL, END], f=f)
    assert function(program, "f").blocks[0].ending is Ending.RETURN and program.calls(function(program, "f")) == ()


def test_a_jump_that_is_no_known_return_may_be_a_tail_call_to_anything() -> None:
    load: Row = ("s_load_dwordx2", sgpr(8, 2), sgpr(0, 2), 0)
    program = lifted([*address("f"), CALL, END], pointers=("g",), f=[load, ("s_setpc_b64", sgpr(8, 2))], g=[RETURN])
    call = site(program, "f")
    assert call.tail and call.indirect and names(call) == ["g"]
    assert function(program, "f").incomplete is None


def test_what_follows_a_call_that_does_not_come_back() -> None:
    program = lifted([*address("f"), CALL], f=[END])
    assert function(program, "k").blocks[0].ending is Ending.NO_RETURN
    program = lifted([NOP, ("s_trap", 2)])
    assert function(program, "k").blocks[0].ending is Ending.NO_RETURN


@pytest.mark.parametrize("rows", [
    [("s_getpc_b64", sgpr(4, 2)), ("s_load_dword", sgpr(6), sgpr(4, 2), 0), END],
    [("s_getpc_b64", sgpr(4, 2)), END],
    [("s_getpc_b64", sgpr(4, 2)), ("s_add_u32", sgpr(4), sgpr(4), 0x70000000), ("s_cmp_lg_u32", sgpr(0), 0),
     ("s_addc_u32", sgpr(5), sgpr(5), 0), END],
    [("s_getpc_b64", sgpr(4, 2)), ("s_add_u32", sgpr(4), sgpr(4), 0x70000000), ("v_mov_b32", vgpr(0), sgpr(4)),
     ("s_addc_u32", sgpr(5), sgpr(5), 0), END],
    [("s_getpc_b64", sgpr(4, 2)), ("s_add_u32", sgpr(4), sgpr(4), sgpr(6)), ("s_addc_u32", sgpr(5), sgpr(5), 0), END],
    [("s_getpc_b64", sgpr(4, 2)), ("s_cbranch_scc0", 0), ("s_add_u32", sgpr(4), sgpr(4), 0x70000000),
     ("s_addc_u32", sgpr(5), sgpr(5), 0), END],
])
def test_other_uses_of_the_pc_are_refused(rows: list[Row]) -> None:
    reason = function(lifted(rows), "k").incomplete
    assert reason is not None and "s_getpc_b64 at 0x1000" in reason


def test_a_long_branch_that_control_can_enter_halfway_is_refused() -> None:
    chain = address("there", 8)
    rows = [("s_cbranch_scc0", "late"), *chain, "late:", ("s_setpc_b64", sgpr(8, 2)), "there:", END]
    reason = function(lifted(rows), "k").incomplete
    assert reason is not None and "not the same on all paths" in reason


def test_a_call_into_nowhere_is_an_incomplete_callee() -> None:
    program = lifted([("s_call_b64", sgpr(30, 2), 0x4000), END])
    (call,) = program.calls(function(program, "k"))
    assert call.targets[0].incomplete is not None and call.targets[0].blocks == ()
