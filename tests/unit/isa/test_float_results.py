"""What instructions are said to make of floats."""

from __future__ import annotations

import pytest
from each_target import EACH_TARGET

from luthier_py.isa import Target, instruction_set, target, vgpr
from luthier_py.isa.properties.float_results import float_results

POLES = ["v_rcp_f32 v0, v1", "v_rcp_f16 v0, v1", "v_rcp_f64 v[0:1], v[2:3]", "v_rcp_iflag_f32 v0, v1",
         "v_rsq_f32 v0, v1", "v_rsq_f64 v[0:1], v[2:3]", "v_log_f32 v0, v1", "v_log_f16 v0, v1",
         "v_div_fixup_f32 v0, v1, v2, v3", "v_div_fixup_f64 v[0:1], v[2:3], v[4:5], v[6:7]"]
OTHERS = ["v_add_f32 v0, v1, v2", "v_mul_f32 v0, v1, v2", "v_fma_f32 v0, v1, v2, v3", "v_sqrt_f32 v0, v1",
          "v_exp_f32 v0, v1", "v_sin_f32 v0, v1", "v_div_fmas_f32 v0, v1, v2, v3", "v_ldexp_f32 v0, v1, v2",
          "v_cvt_f16_f32 v0, v1", "v_fract_f32 v0, v1"]


@pytest.mark.parametrize("row", EACH_TARGET)
def test_what_is_infinite_exactly(row: Target) -> None:
    """1 / 0 and the logarithm of 0, but no overflow."""
    isa = instruction_set(row)
    for texts, pole in ((POLES, True), (OTHERS, False)):
        for text in texts:
            results = float_results(isa.parse(text))
            assert results and [each.pole for each in results] == [pole], text


@pytest.mark.parametrize(("text", "made", "taken"), [
    ("v_add_f16_e32 v1.h, v2.l, v3.h", (1, 16), [(2, 0), (3, 16)]),
    ("v_fmac_f16_e32 v1.h, v2.h, v3.l", (1, 16), [(2, 16), (3, 0), (1, 16)]),
    ("v_fmac_f16_e64 v1.h, v2.l, v3.l", (1, 16), [(2, 0), (3, 0), (1, 16)]),
    ("v_fma_f16 v1.l, v2.h, v3.l, v4.h", (1, 0), [(2, 16), (3, 0), (4, 16)]),
])
def test_halves_of_registers(text: str, made: tuple[int, int], taken: list[tuple[int, int]]) -> None:
    """Of whatever encoding, and of what a sum is added to."""
    result, = float_results(instruction_set(target("gfx1100")).parse(text)) or ()
    parts = [result.result, *(result.sources or ())]
    assert [(each.place, each.first_bit) for each in parts] == [(vgpr(reg), first) for reg, first in (made, *taken)]
