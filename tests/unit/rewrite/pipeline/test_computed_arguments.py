"""Arguments that are computed where a hook is called, and values of the wave that each lane is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated import LANES
from given import given

from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.isa import EXEC, M0, SCC, VCC, agpr, sgpr, vgpr
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import lift
from luthier_py.rewrite.tool import Lane, Mutator, Place, Variable, WaveVariable, computed, device, hook, ptr, u32, u64

DATA = Path(__file__).resolve().parents[3] / "data"


@device
def mixed(a: Lane[u32], b: u32, c: u32) -> Lane[u64]:
    return u64(a) * b + c


@device
def twice(x: u32) -> u32:
    return x * 2


@device
def nothing(x: u32) -> None:
    pass


def test_values_of_all_kinds() -> None:
    rows = [
        ("v_accvgpr_write_b32", agpr(3), vgpr(0)), ("s_mov_b32", sgpr(20), 7), ("s_mov_b32", sgpr(21), 9),
        ("s_mov_b32", sgpr(M0), 77), ("v_cmp_gt_u32_e64", sgpr(VCC, 2), 5, vgpr(0)), ("s_cmp_eq_u32", sgpr(20), 7),
        ("s_nop", 0),
    ]
    asked = [
        (agpr(3), 32), (computed(mixed, vgpr(0), sgpr(20), 11), 64), (computed(mixed, vgpr(0), sgpr(20), 12), 64),
        (computed(mixed, vgpr(0), computed(twice, sgpr(21)), computed(twice, 4)), 64), (sgpr(20), 32),
        (sgpr(VCC, 2), 64), (sgpr(M0), 32), (sgpr(SCC), 32), (sgpr(EXEC, 2), 64), (sgpr(20, 2), 64),
    ]
    seen, _ = given(rows, lambda m, instrs: [(instrs[-1], Place.BEFORE, each, bits) for each, bits in asked], agprs=8)
    lanes = range(LANES)
    assert seen == [
        tuple(lanes), tuple(7 * x + 11 for x in lanes), tuple(7 * x + 12 for x in lanes),
        tuple(18 * x + 8 for x in lanes), (7,) * LANES, (31,) * LANES, (77,) * LANES, (1,) * LANES,
        ((1 << 64) - 1,) * LANES, (9 << 32 | 7,) * LANES,
    ]


@hook
def take(out: ptr[u32], x: u32, y: Lane[u32]) -> None:
    out[0] = x


@hook
def take_mask(x: u64) -> None:
    pass


OUT, COUNT = Variable(u32, name="out"), WaveVariable(u32, name="count")


@pytest.fixture
def m() -> Mutator:
    program = lift(load((DATA / "reduce.co").read_bytes(), "reduce"))
    return Mutator(program, analyse(program))


def test_equal_calls_have_one_hook_and_what_is_shared_is_given_once(m: Mutator) -> None:
    first, second = m.instrs(m.functions()[0])[:2]
    for instr, number in ((first, 1), (second, 2)):
        m.before(instr, take, OUT, computed(twice, sgpr(4)), computed(twice, computed(twice, number)))
    m.before(first, take, OUT, computed(twice, sgpr(4)), computed(twice, sgpr(4)))
    one, other, third = m.edits().insertions
    assert one.hook is other.hook and one.hook is not third.hook and one.hook is not take
    assert [i.args for i in (one, other, third)] == [(OUT, sgpr(4), 1), (OUT, sgpr(4), 2), (OUT, sgpr(4))]


def test_what_is_refused(m: Mutator) -> None:
    instr = m.instrs(m.functions()[0])[0]
    with pytest.raises(HookError, match=r"x: u32 cannot take mixed; declare it x: Lane\[u64\]"):
        m.before(instr, take, OUT, computed(mixed, vgpr(0), 1, 2), 3)
    with pytest.raises(HookError, match=r"x: u64 cannot take twice; declare it x: u32"):
        m.before(instr, take_mask, computed(twice, 1))
    with pytest.raises(HookError, match=r"x: u32: s\[2:3\] is 2 dwords wide"):
        m.before(instr, take, OUT, computed(twice, sgpr(2, 2)), 1)
    with pytest.raises(HookError, match="test_computed_arguments.py:.*twice takes 1 inputs, 2 given"):
        computed(twice, 1, 2)
    with pytest.raises(HookError, match="computed needs a function marked with @device"):
        computed(len, 1)
    with pytest.raises(HookError, match="nothing has 0 results"):
        computed(nothing, 1)
    with pytest.raises(HookError, match=r"anywhere=True leaves the place open, but the value of s4 depends on it"):
        m.at_block(m.blocks(m.functions()[0])[0], take, OUT, computed(twice, sgpr(4)), 1, anywhere=True)
    assert m.edits().insertions == ()
