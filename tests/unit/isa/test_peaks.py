"""Peaks of compute units, times units and clock: what data sheets say of whole devices."""

from __future__ import annotations

import pytest

from luthier_py.isa import instruction_set, target
from luthier_py.isa.timing.peaks import peaks_of

# Units, of RDNA work-group processors, and GHz; TFLOPS by type, of AMD's data sheets.
DEVICES = {
    "gfx908": (120, 1.502, {"f32": 23.1, "f64": 11.5, "matrix f32": 46.1, "matrix f16": 184.6, "matrix bf16": 92.3}),
    "gfx90a": (220, 1.7, {"f32": 95.7, "f64": 47.9, "matrix f32": 95.7, "matrix f64": 95.7, "matrix f16": 383.0,
                          "matrix bf16": 383.0}),
    "gfx942": (304, 2.1, {"f32": 163.4, "f64": 81.7, "matrix f32": 163.4, "matrix f64": 163.4, "matrix xf32": 653.7,
                          "matrix f16": 1307.4, "matrix bf16": 1307.4, "matrix fp8": 2614.9}),
    "gfx1030": (40, 2.25, {"f32": 23.04, "f16": 46.08}),
    "gfx1100": (48, 2.5, {"f32": 61.4, "matrix f16": 122.8}),
}


@pytest.mark.parametrize("name", DEVICES)
def test_whole_devices(name: str) -> None:
    units, gigahertz, wanted = DEVICES[name]
    peaks = peaks_of(instruction_set(target(name)))
    for type, teraflops in wanted.items():
        assert peaks.flops[type] * units * gigahertz / 1000 == pytest.approx(teraflops, rel=0.005), type
    assert peaks.bytes == 64 and peaks.lds_sets == (2 if name.startswith("gfx1") else 1)
