"""Many turns of loops are counted at once: what follows by hand, from few pieces that are walked."""

from __future__ import annotations

import struct
from itertools import product

import pytest
from emulated import code_object
from synthetic import Row

from luthier_py.binary.loader import load
from luthier_py.isa import EXEC, VCC, sgpr, vgpr
from luthier_py.isa.semantics.readers.sums import Axis, Extent
from luthier_py.program.analysis import GivenLaunch, StaticCounts, analyse, count_statically
from luthier_py.program.analysis.point_counts import count_points
from luthier_py.program.analysis.symbolic_execution import greatest
from luthier_py.program.ir import lift

GROUP, N, OUTER, INNER = sgpr(6), sgpr(8), sgpr(9), sgpr(10)
E, V = sgpr(EXEC, 2), sgpr(VCC, 2)
GROUPS, TURNS = 65_536, 10_000


def up_to(counter, bound, label: str, *body: Row | str) -> list[Row | str]:
    """for (counter = 0; counter < bound; counter++)"""
    return [("s_mov_b32", counter, 0), ("s_cmp_eq_u32", bound, 0), ("s_cbranch_scc1", f"{label}_end"), f"{label}:",
            *body, ("s_add_u32", counter, counter, 1), ("s_cmp_lt_u32", counter, bound), ("s_cbranch_scc1", label),
            f"{label}_end:"]


def told(*rows: Row | str, groups: int = GROUPS, n: int = TURNS) -> tuple[StaticCounts, int]:
    """Of a launch with one wave in a group, and how often the mark was executed, a move to v9."""
    program = lift(load(code_object({"k": [("s_load_dword", N, sgpr(4, 2), 0), *rows, ("s_endpgm",)]})), ["k"])
    kernel = program.kernel("k")
    found = count_statically(analyse(program).find_launch_invariants(kernel),
                     GivenLaunch(struct.pack("<I", n).ljust(280, b"\0"), (groups, 1, 1), (64, 1, 1)))
    [mark] = [block for block in kernel.function.blocks for instr in block.instrs
              if (target := instr.inst.find("vdst")) is not None and target.reg == vgpr(9)]
    return found, found.executions.get(mark.address, 0)


MARK: Row = ("v_mov_b32_e32", vgpr(9), 1)


@pytest.mark.parametrize(("rows", "marks", "most"), [
    (up_to(OUTER, N, "a", MARK), GROUPS * TURNS, 50),
    (up_to(OUTER, GROUP, "a", MARK), GROUPS * (GROUPS - 1) // 2, 600),
    (up_to(OUTER, N, "a", *up_to(INNER, N, "b", MARK)), GROUPS * TURNS**2, 2_000),
    (up_to(OUTER, N, "a", *up_to(INNER, OUTER, "b", MARK)), GROUPS * TURNS * (TURNS - 1) // 2, 4_000),
    (up_to(OUTER, N, "a", ("s_lshl_b32", OUTER, OUTER, 1), MARK), GROUPS * 14, 60),  # 1, 3, 7, ... no steps
], ids=["argument", "group", "nest", "triangle", "doubling"])
def test_turns_of_large_launches_follow_from_few_pieces(rows, marks, most):
    found, executed = told(*rows)
    assert executed == marks and found.stops < most


def test_a_pyramid_of_groups_and_two_loops():
    found, executed = told(*up_to(OUTER, GROUP, "a", *up_to(INNER, OUTER, "b", MARK)), groups=128)
    assert executed == 128 * 127 * 126 // 6 and found.stops < 20_000


def test_lanes_that_leave_one_after_the_other_are_counted():
    """Each lane turns as often as its number in the launch, at least once."""
    counter, number = vgpr(1), vgpr(2)
    loop = [("v_and_b32", number, 1023, vgpr(0)), ("v_lshl_add_u32", number, GROUP, 6, number),
            ("v_mov_b32_e32", counter, 0), "loop:", MARK, ("v_add_u32_e32", counter, 1, counter),
            ("v_cmp_lt_u32_e32", V, counter, number), ("s_and_b64", E, E, V), ("s_cbranch_execnz", "loop")]
    found, executed = told(*loop, groups=1 << 12)
    lanes = 1 << 18
    assert executed == sum(64 * group + 63 for group in range(1 << 12))
    assert max(found.lanes.values()) == lanes * (lanes - 1) // 2 + 1 and found.stops < 20_000


def test_a_volume_is_what_is_found_by_counting():
    sides = {Axis.WAVE: Extent(3), Axis.X: Extent(5), Axis.TURN: Extent(2, ((Axis.X, 3), (Axis.WAVE, 1))),
             Axis.TURN_2: Extent(1, ((Axis.TURN, 2), (Axis.X, 1)))}
    assert count_points(sides) == sum(1 + 2 * turn + x for wave, x in product(range(3), range(5))
                                for turn in range(2 + 3 * x + wave))


@pytest.mark.parametrize("wanted", [0, 1, 2, 7, 8, 1000, 1 << 33])
def test_the_greatest_number_is_found_from_anywhere_in_few_tries(wanted):
    for near in (1, 4, wanted, wanted + 1, 2 * wanted + 5):
        tries: list[int] = []

        def holds(number: int, tries: list[int] = tries) -> bool:
            tries.append(number)
            return number <= wanted

        assert greatest(holds, near) == wanted and len(tries) < 75 and min(tries) >= 0
