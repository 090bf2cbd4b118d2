"""What tools may give to hooks: what is kept of it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from luthier_py.analysis import analyse
from luthier_py.errors import HookError
from luthier_py.ir import lift
from luthier_py.loader import load
from luthier_py.tool import Entry, Mutator, hook, u32, u64

DATA = Path(__file__).resolve().parents[2] / "data"


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
