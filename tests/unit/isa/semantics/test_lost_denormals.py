"""Denormals that count as zeros on some GPUs whatever MODE says: what is said of operands is what happens."""

from __future__ import annotations

import numpy as np
import pytest
from each_target import sometimes
from waves import ISA, run

from luthier_py.isa import OpFlag, instruction_set, target
from luthier_py.isa.properties.float_results import FloatFormat
from luthier_py.isa.properties.lost_denormals import find_flushed_denormals, loses_products

DENORMAL = {FloatFormat.F16: 0x02000200, FloatFormat.BF16: 0x00400040, FloatFormat.F32: 0x00400000}
LARGE = {FloatFormat.F16: 0x78007800, FloatFormat.BF16: 0x7E007E00}


@pytest.mark.parametrize("gpu", sometimes(["gfx90a", "gfx1201"], ["gfx906", "gfx942", "gfx950", "gfx1030", "gfx1100"]))
def test_dot_products_lose_what_is_said(gpu: str) -> None:
    """Of factors and addends; of an addend of 16 bits nothing is said."""
    isa = instruction_set(target(gpu), target(gpu).wave_sizes[0])
    ops = {op.base: op for op in isa.ops if OpFlag.DOT in op.flags and op.base.startswith("V_DOT2") and "F16" in op.base
           and "F32" in op.base and op.mnemonic.endswith(("f16", "f16_e32"))}
    for op in ops.values():
        compact = "C_" in op.base
        inst = isa.parse(f"{op.mnemonic} v4, v1, v2" + ("" if compact else ", v3"))
        kind, addend = FloatFormat.BF16 if op.base.endswith("BF16") else FloatFormat.F16, "vdst" if compact else "src2"
        lost = find_flushed_denormals(inst, isa.target)
        for name, given in (("src0", (DENORMAL[kind], LARGE[kind], 0)), ("src1", (LARGE[kind], DENORMAL[kind], 0)),
                            (addend, (0, 0, DENORMAL[FloatFormat.F32]))):
            a, b, c = (np.full(64, value, np.uint32) for value in given)
            left = run([inst], isa=isa, vgprs={1: a, 2: b, 3: c, 4: c}).vgpr(4)
            assert (left[0] != 0) == (name not in lost), (op.base, name)
    assert ops


def test_matrices_lose_factors_of_sixteen_bits_on_one_target_alone() -> None:
    inst = ISA.parse("v_mfma_f32_4x4x4f16 v[8:11], v[4:5], v[6:7], 0")
    assert {gpu for gpu in ("gfx908", "gfx90a", "gfx942", "gfx950") if loses_products(target(gpu), "f16")} == {"gfx90a"}
    assert find_flushed_denormals(inst, target("gfx90a")).keys() == {"src0", "src1", "src2"}
    assert not find_flushed_denormals(inst, target("gfx942")) and not loses_products(target("gfx90a"), "f32")
