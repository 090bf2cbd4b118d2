"""Waves of a SIMD are as many as registers and LDS let there be, and every report says the same number."""

from __future__ import annotations

from typing import Any

import pytest
from emulated import code_object

from luthier_py.binary.loader import load
from luthier_py.features.code.info import kernel_facts
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

ROWS: list[Any] = [("s_nop", 0), ("s_endpgm",)]

@pytest.mark.parametrize(("workitems", "vgprs", "lds_bytes", "waves"), [
    (256, 96, 65536, 1),  # of 8, measured on MI250 (ROCm Compute Profiler, limits of occupancy)
    (256, 96, 32768, 2), (256, 96, 16384, 4), (256, 96, 0, 5), (64, 32, 65536, 1), (1024, 32, 65536, 4),
])  # fmt: skip
def test_registers_and_lds_limit_waves(workitems: int, vgprs: int, lds_bytes: int, waves: int) -> None:
    obj = load(code_object({"k": ROWS}, vgprs=vgprs, lds_bytes=lds_bytes))
    kernel = obj.kernel("k")
    kernel.metadata[".max_flat_workgroup_size"] = workitems
    assert kernel_facts(obj, kernel)["waves_per_simd"] == waves


@pytest.mark.parametrize(("vgprs", "lds_bytes", "waves"), [(96, 65536, 4), (96, 0, 5), (256, 65536, 2)])
def test_the_verdict_says_the_same(vgprs: int, lds_bytes: int, waves: int) -> None:
    """Of work-groups of 1024 work-items at most, which are 16 waves on four SIMDs."""
    code = code_object({"k": ROWS}, vgprs=vgprs, lds_bytes=lds_bytes)
    [cloned] = instrument(code, load_tool("instr_count", {}), kernels="k").patched.report
    assert (cloned.before.waves, cloned.after.waves) == (waves, waves)
    assert kernel_facts(load(code), load(code).kernel("k"))["waves_per_simd"] == waves
