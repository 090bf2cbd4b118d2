"""What tools may give to hooks: what is kept of it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from luthier_py.base.errors import HookError
from luthier_py.binary.loader import load
from luthier_py.isa import vgpr
from luthier_py.program.analysis import analyse
from luthier_py.program.ir import lift
from luthier_py.rewrite.tool import Entry, Lane, Mutator, address, hook, u32, u64, workitem_id

DATA = Path(__file__).resolve().parents[3] / "data"


@hook
def wide(x: u64) -> None:
    pass


@hook
def narrow(x: u32) -> None:
    pass


@pytest.fixture
def m() -> Mutator:
    program = lift(load((DATA / "reduce.co").read_bytes(), "reduce"))
    return Mutator(program, analyse(program))


def test_values_of_a_wave_s_birth(m: Mutator) -> None:
    at = m.instrs(m.functions()[0])[0]
    m.before(at, wide, Entry.DISPATCH_ID)
    m.before(at, narrow, Entry.WORKGROUP_ID_Y)
    assert [i.runtime_args for i in m.edits().insertions] == [(Entry.DISPATCH_ID,), (Entry.WORKGROUP_ID_Y,)]
    assert {entry.name for entry in Entry if entry.type.bits == 32} == {
        "WORKGROUP_ID_X", "WORKGROUP_ID_Y", "WORKGROUP_ID_Z", "FIRST_WORKITEM"}
    with pytest.raises(HookError, match="x: u32 cannot take Entry.KERNARG_PTR; declare it x: u64"):
        m.before(at, narrow, Entry.KERNARG_PTR)


@pytest.mark.parametrize(("type", "given"), [(u64, address), (u32, lambda instr: vgpr(4)), (u64, lambda _: vgpr(4, 2)),
                                             (u32, lambda instr: workitem_id("x"))])
def test_a_hook_in_one_lane_is_told_of_the_plain_hook(m: Mutator, type: Any, given: Any) -> None:
    """And not of Lane, which it cannot have; the plain hook takes what it could not."""
    def body(x: Any) -> None:
        pass

    place = m.instrs(m.functions()[0], "global & load")[0]
    body.__annotations__["x"] = type
    with pytest.raises(HookError, match="lanes='one' has a single lane: take a plain @hook .*is_first_lane()") as told:
        m.before(place, hook(lanes="one")(body), given(place))
    assert "declare it" not in str(told.value)
    body.__annotations__["x"] = Lane[type]
    m.before(place, hook(body), given(place))
