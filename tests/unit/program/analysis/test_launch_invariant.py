"""What a launch decides, and what it does not: rows of code, and launches whose counts follow by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from emulated import code_object
from synthetic import Row, build

from luthier_py.binary.loader import load
from luthier_py.isa import EXEC, VCC, sgpr, vgpr
from luthier_py.program.analysis import GivenLaunch, LaunchInvariants, analyse, count_statically
from luthier_py.program.analysis.post_dominance import EXIT, PostDominators
from luthier_py.program.ir import Function, lift
from luthier_py.samples import sample

END: Row = ("s_endpgm",)
E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
IF: Row = ("s_and_saveexec_b64", sgpr(4, 2), V)
FI: Row = ("s_or_b64", E, E, sgpr(4, 2))
LOAD: Row = ("ds_read_b32", vgpr(2), vgpr(0))
ON_LOADED: Row = ("v_cmp_gt_u32_e32", V, vgpr(2), vgpr(1))


def launch_invariants(*rows: Row) -> tuple[LaunchInvariants, dict[int, str]]:
    """Of a kernel, and where its marks are: moves of a number to v9, which stands for the mark's name."""
    program = lift(build({"k": list(rows)}))
    (kernel,) = program.kernels
    return analyse(program).find_launch_invariants(kernel), marks_in(kernel.function)


def marks_in(function: Function) -> dict[int, str]:
    marks = {}
    for instr in function.instrs:
        target = instr.inst.find("vdst")
        if target is not None and target.reg == vgpr(9):
            marks[instr.pc] = str(instr.inst["src0"].value)
    return marks


def mark(number: int) -> Row:
    return ("v_mov_b32_e32", vgpr(9), number)


def runs_and_lanes(*rows: Row) -> tuple[str, str]:
    """Marks whose blocks run as the launch says, and those of which it says the lanes, too."""
    found, marks = launch_invariants(*rows)
    runs = "".join(name for pc, name in marks.items() if pc in found.pcs)
    return runs, "".join(name for pc, name in marks.items() if pc in found.masks)


def test_what_is_loaded_hides_what_its_branch_leads_around():
    """Lanes come back behind it: EXEC is what it was before."""
    rows = [LOAD, ON_LOADED, IF, ("s_cbranch_execz", "end"), mark(1), "end:", FI, ("s_branch", "more"), "more:",
            mark(2), END]
    assert runs_and_lanes(*rows) == ("2", "2")


def test_both_sides_of_an_if_come_back_together():
    rows = [
        LOAD, ON_LOADED, IF, ("s_xor_b64", sgpr(4, 2), E, sgpr(4, 2)), ("s_cbranch_execz", "flow"), mark(1), "flow:",
        ("s_andn2_saveexec_b64", sgpr(4, 2), sgpr(4, 2)), ("s_cbranch_execz", "end"), mark(2), "end:", FI,
        ("s_branch", "more"), "more:", mark(3), END,
    ]
    assert runs_and_lanes(*rows) == ("3", "3")


def test_what_was_switched_off_for_good_is_not_known():
    rows = [LOAD, ON_LOADED, IF, ("s_branch", "more"), "more:", mark(1), END]
    assert runs_and_lanes(*rows) == ("1", "")


def test_what_is_written_where_nobody_knows_is_not_known_behind():
    """A loop that goes as often as a register says, which a hidden block may have changed."""
    def rows(hidden: Row) -> list[Row]:
        return [("s_mov_b32", sgpr(8), 3), LOAD, ("v_readfirstlane_b32", sgpr(9), vgpr(2)),
                ("s_cmp_eq_u32", sgpr(9), 0), ("s_cbranch_scc1", "loop"), hidden,
                "loop:", mark(1), ("s_sub_u32", sgpr(8), sgpr(8), 1), ("s_cmp_lg_u32", sgpr(8), 0),
                ("s_cbranch_scc1", "loop"), mark(2), END]

    assert runs_and_lanes(*rows(("s_mov_b32", sgpr(8), 3)))[0] == "2"
    assert runs_and_lanes(*rows(("s_mov_b32", sgpr(10), 3)))[0] == "12"


CALL: Row = ("s_call_b64", sgpr(30, 2), "f")
F = [mark(5), ("s_setpc_b64", sgpr(30, 2))]


def with_f(*rows: Row, f: Sequence[Row] = F) -> tuple[LaunchInvariants, str]:
    """Of a kernel that may call f, and the marks that are launch-invariant."""
    program = lift(build({"k": list(rows), "f": list(f)}, ["k"]))
    (kernel,) = program.kernels
    found = analyse(program).find_launch_invariants(kernel)
    return found, "".join(sorted(name for function in program.functions for pc, name in marks_in(function).items()
                                 if pc in found.pcs))


def test_a_call_is_followed_there_and_back():
    """One piece ends with each call; f runs twice, and so does the loop that it decides with what it is given."""
    loop = [("s_mov_b32", sgpr(8), 3), "turn:", mark(5), ("s_sub_u32", sgpr(8), sgpr(8), 1),
            ("s_cmp_lg_u32", sgpr(8), 0), ("s_cbranch_scc1", "turn"), ("s_setpc_b64", sgpr(30, 2))]
    found, marks = with_f(mark(1), CALL, mark(2), CALL, mark(3), END, f=loop)
    assert marks == "1235"
    told = count_statically(found, GivenLaunch(bytes(64), (1, 1, 1), (64, 1, 1)))
    assert sorted(told.executions.values()) == [1, 1, 1, 2, 2, 6]
    [calls] = found.entered.values()
    assert len(calls) == 2 and calls < found.pcs


def test_a_function_that_runs_where_nobody_knows_is_not_foreseen():
    """It is as often as its copies say, but for those calls."""
    hidden = [LOAD, ("v_readfirstlane_b32", sgpr(9), vgpr(2)), ("s_cmp_eq_u32", sgpr(9), 0),
              ("s_cbranch_scc1", "over"), CALL, "over:"]
    found, marks = with_f(mark(1), CALL, mark(2), *hidden, mark(3), END)
    assert marks == "123" and not found.entered


def test_nothing_is_known_behind_a_call_of_itself():
    """f calls f: the second time no one follows it, nor knows whether it comes back."""
    found, marks = with_f(mark(1), CALL, mark(2), END, f=[("s_mov_b64", sgpr(40, 2), sgpr(30, 2)), mark(5), CALL,
                                                       ("s_setpc_b64", sgpr(30, 2))])
    assert marks == "1" and not found.entered


def test_behind_a_pointer_control_comes_back_from_wherever_it_was():
    program = lift(load(sample("function_pointers").path.read_bytes()))
    (kernel,) = program.kernels
    found = analyse(program).find_launch_invariants(kernel)
    [call] = [site for site in program.calls(kernel.function) if len(site.targets) > 1]
    own = {block.address for block in kernel.function.blocks} | {call.instr.end}
    assert call.indirect and not call.unknown and found.pcs <= own and max(found.pcs) > call.instr.pc


def test_of_too_many_nodes_nothing_is_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("s_branch", "more"), "more:", mark(1), END]
    for most, runs in (2, "1"), (1, ""):
        monkeypatch.setattr("luthier_py.program.analysis.call_contexts.MOST_NODES", most)
        assert runs_and_lanes(*rows)[0] == runs


def test_ways_meet_again_in_long_functions_too() -> None:
    """30,000 ifs, one behind the other: each node that all ways lead through is the next one."""
    count = 30_000
    after = {2 * n: (2 * n + 1, 2 * n + 2) for n in range(count)} | {2 * n + 1: (2 * n + 2,) for n in range(count)}
    post_dominators = PostDominators({**after, 2 * count: (EXIT,)})
    assert post_dominators.all_end and post_dominators.next(2 * count) == EXIT
    assert all(post_dominators.next(2 * n) == post_dominators.next(2 * n + 1) == 2 * n + 2 for n in range(count))
    assert post_dominators.next(0, set(range(1, 11))) == 12 and post_dominators.between(0) == {1}


def test_an_argument_is_found_by_an_address_of_64_bits():
    """Of which the upper half is never known."""
    rows = [("s_or_b64", sgpr(4, 2), sgpr(4, 2), 0), ("s_load_dword", sgpr(8), sgpr(4, 2), 8),
            ("s_cmp_eq_u32", sgpr(8), 7), ("s_cbranch_scc1", "end"), mark(1), "end:", mark(2), END]
    program = lift(load(code_object({"k": rows})), ["k"])
    found = analyse(program).find_launch_invariants(program.kernel("k"))
    for number, runs in (7, 0), (6, 1):
        told = count_statically(found,
                                GivenLaunch(struct.pack("<Q2I", 0, number, 0).ljust(280, b"\0"), (1, 1, 1), (64, 1, 1)))
        first, between, last = (block.address for block in program.kernel("k").function.blocks)
        assert [told.executions.get(pc, 0) for pc in (first, between, last)] == [1, runs, 1]


def saxpy() -> tuple[LaunchInvariants, int, int]:
    """With the addresses of its entry and of the block that has the work."""
    program = lift(load(sample("saxpy").path.read_bytes()))
    (kernel,) = program.kernels
    entry, work, _ = kernel.function.blocks
    return analyse(program).find_launch_invariants(kernel), entry.address, work.address


def given(n: int, groups: int, items: int) -> GivenLaunch:
    hidden = struct.pack("<3I3H", groups, 1, 1, items, 1, 1)
    arguments = struct.pack("<If2Q", n, 0.5, 1 << 20, 1 << 21) + hidden.ljust(66, b"\0")
    return GivenLaunch(arguments, (groups, 1, 1), (items, 1, 1))


def test_a_million_work_groups_are_a_few_classes():
    """By hand: of 2^20 groups of 250 items each has three full waves, and one of 58; n ends inside of one."""
    found, entry, work = saxpy()
    groups, n = 1 << 20, 100_000_123
    told = count_statically(found, given(n, groups, 250))
    whole, rest = divmod(n, 250)  # the last group with work has 123 items: a wave of 64, and one of 59
    assert rest == 123
    assert told.executions == {entry: 4 * groups, work: 4 * whole + 2, **{pc: 4 * groups for pc in told.executions
                                                                         if pc not in (entry, work)}}
    assert told.lanes[entry] == 250 * groups and told.lanes[work] == n
    assert told.waves == 4 * groups and told.walks < 120


def test_what_was_told_holds_as_long_as_what_it_follows_from():
    found, *_ = saxpy()
    told = count_statically(found, given(1000, 4, 256))
    assert told.holds_for(given(1000, 4, 256)) and not told.holds_for(given(999, 4, 256))
    arguments = given(1000, 4, 256).arguments
    moved = arguments[:8] + struct.pack("<2Q", 5 << 20, 6 << 20) + arguments[24:]
    assert told.holds_for(GivenLaunch(moved, (4, 1, 1), (256, 1, 1)))  # no pointer decides anything
