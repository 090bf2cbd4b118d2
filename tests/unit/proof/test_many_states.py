"""Lanes that may be in many masks: what whoever made a copy knows to be free, the proof knows, too."""

from __future__ import annotations

import pytest
from emulated import code_object
from synthetic import Row

from luthier_py import Lane, Mutator, Tool, hook, u32
from luthier_py.base.errors import CheckFailed
from luthier_py.isa import EXEC, sgpr, vgpr
from luthier_py.proof import insertions, lanes
from luthier_py.rewrite.pipeline import instrument

ACTIVE, KEPT, CHOSEN, MASKS = sgpr(EXEC, 2), sgpr(10, 2), sgpr(12, 2), (sgpr(20, 2), sgpr(22, 2), sgpr(24, 2))


def perhaps_zero(number: int, *zero: Row) -> list[Row]:
    """On one of two ways."""
    return [("s_cmp_eq_u32", sgpr(6), number), ("s_cbranch_scc0", f"not{number}"), *zero, f"not{number}:"]


KERNEL: list[Row] = [
    *perhaps_zero(0, ("s_mov_b64", MASKS[0], 0)), *perhaps_zero(1, ("s_mov_b64", MASKS[1], 0)),
    *perhaps_zero(2, ("s_mov_b32", sgpr(24), 0), ("s_mov_b32", sgpr(25), 0)),
    ("s_nop", 7), ("s_and_saveexec_b64", KEPT, CHOSEN), ("v_mov_b32", vgpr(3), 0), ("s_or_b64", ACTIVE, ACTIVE, KEPT),
    ("v_mov_b32", vgpr(4), 0), ("v_mov_b32", vgpr(5), 0), *(("s_or_b64", ACTIVE, ACTIVE, mask) for mask in MASKS),
    *(("v_add_u32", vgpr(0), vgpr(0), vgpr(k)) for k in range(1, 6)), ("v_mov_b32", vgpr(6), 0),
    ("global_store_dword", vgpr(6), vgpr(0), sgpr(2, 2)), ("s_endpgm",)]


class Doubles(Tool):
    """Needs a pair of vector registers at the marker: the lowest that is free."""

    @hook
    def twice(x: Lane[u32]) -> Lane[u32]:
        return (x * x + u32(3)) * (x + u32(5))

    def instrument(self, m: Mutator) -> None:
        (marker,) = (i for f in m.functions() for i in m.instrs(f) if i.inst.op.base == "S_NOP")
        m.before(marker, self.twice, vgpr(2), into=vgpr(2))


@pytest.mark.parametrize("bounds", [lanes.MOST, (64,), (16, 64), (16, 8)])
def test_states_that_halves_of_masks_tell_apart(bounds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """What one bound cannot show, another one does."""
    monkeypatch.setattr(insertions, "MOST", bounds)
    assert instrument(code_object({"k": KERNEL}), Doubles()).patched.report


def test_lanes_that_may_be_in_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insertions, "MOST", (16,))
    with pytest.raises(CheckFailed, match="v4 is live and not restored"):
        instrument(code_object({"k": KERNEL}), Doubles())
