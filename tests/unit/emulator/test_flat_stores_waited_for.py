"""The check of races where flat stores end in LDS or in memory: each place has its own counter."""

from __future__ import annotations

import pytest
from emulated import ISA
from test_checks import BARRIER, END, LDS_READ, NEXT_WAVES, WAIT, made, passing, run, store_at

from luthier_py.emulator.options.checks import Checks
from luthier_py.isa.model.registers import sgpr, vgpr


@pytest.mark.parametrize(("wait", "enough"), [
    ("s_waitcnt lgkmcnt(0)", "LDS"), ("s_waitcnt vmcnt(0)", "memory"), ("s_waitcnt 0", "LDS memory"), ("s_nop 0", "")])
def test_flat_stores_are_waited_for_where_they_end(wait, enough):
    """A barrier orders what has reached LDS, a flag what has reached memory, as compilers wait for them."""
    in_lds = [ISA.parse("s_mov_b64 s[14:15], src_shared_base").raw, ("v_mov_b32", vgpr(6), vgpr(2)),
              ("v_mov_b32", vgpr(7), sgpr(15)), NEXT_WAVES]
    store = [made("flat_store_dword", vgpr(6, 2), vgpr(3)), ISA.parse(wait).raw]
    found = run([*in_lds, *store, BARRIER, LDS_READ, WAIT, END], Checks.RACES, waves=2).kinds
    assert bool(found) == ("LDS" not in enough)
    flat = [("v_mov_b32", vgpr(6), sgpr(8)), ("v_mov_b32", vgpr(7), sgpr(9)), *store]
    rows = [each for row in passing(False) for each in (flat if row == store_at() else [row])]
    assert bool(run(rows, Checks.RACES, groups=2).kinds) == ("memory" not in enough)
