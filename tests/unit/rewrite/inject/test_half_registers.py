"""Hooks with floats of 16 bits, whose short instructions name the first 128 vector registers alone (gfx11 and later),
in kernels that keep something in all of these."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from assembled import assembled, left_by
from each_target import sometimes

from luthier_py import Lane, Mutator, Tool, Variable, f16, f32, hook, ptr, u32, vgpr
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.rewrite.pipeline import instrument


class Halves(Tool):
    rows = Variable(u32, 64)

    @hook
    def add(rows: ptr[u32], x: Lane[u32], y: Lane[f32]) -> None:
        half = f16(x & u32(7))
        atomic_add(rows + lane_id(), u32(half * half + f16(y) * half))

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            marker = next(instr for instr in m.instrs(function) if m.program.isa.text(instr.inst) == "s_nop 7")
            m.before(marker, self.add, self.rows, vgpr(0), vgpr(5))


@pytest.mark.parametrize("used", [127, 250])
@pytest.mark.parametrize("gpu", sometimes(["gfx1100"], ["gfx1151", "gfx1201"]))
def test_they_get_registers_that_they_can_name(
    require_tool: Callable[[str], str], tmp_path: Path, gpu: str, used: int
) -> None:
    wait = "s_wait_kmcnt 0x0" if gpu == "gfx1201" else "s_waitcnt lgkmcnt(0)"
    body = ["s_load_b64 s[2:3], s[0:1], 0x0", wait, *(f"v_add_nc_u32 v{reg}, {reg}, v0" for reg in range(1, used)),
            "s_nop 7", *(f"v_mad_u32_u24 v1, v1, 3, v{reg}" for reg in range(2, used)), "v_lshlrev_b32 v0, 2, v0",
            "global_store_b32 v0, v1, s[2:3]", "s_endpgm"]
    data = assembled(require_tool("clang-22"), tmp_path, gpu, "\n".join(body), vgprs=used)
    assert left_by(instrument(data, Halves()).data, gpu, "k.luthier") == left_by(data, gpu)
