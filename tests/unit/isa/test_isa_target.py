"""Target rows: names, e_flags, and occupancy as LLVM computes it."""

from __future__ import annotations

import pytest

from luthier_py.base.errors import Invalid
from luthier_py.isa import target, target_of_mach, targets

GFX90A, GFX900, GFX1030 = target("gfx90a"), target("gfx900"), target("gfx1030")


def test_names_and_machs_are_unique_and_found() -> None:
    rows = targets()
    assert len({row.name for row in rows}) == len({row.elf_mach for row in rows}) == len(rows)
    assert all(target(row.name) is row and target_of_mach(row.elf_mach) is row for row in rows)
    assert target_of_mach(0x3F) is GFX90A and target_of_mach(0) is None
    with pytest.raises(Invalid, match="unknown target 'gfx1'"):
        target("gfx1")


@pytest.mark.parametrize(("name", "version"), [
    ("gfx803", (8, 0, 3)), ("gfx810", (8, 1, 0)), ("gfx90a", (9, 0, 10)), ("gfx90c", (9, 0, 12)), ("gfx942", (9, 4, 2)),
    ("gfx1036", (10, 3, 6)), ("gfx1151", (11, 5, 1)), ("gfx1201", (12, 0, 1)), ("gfx9-generic", (9, 0, 0)),
    ("gfx9-4-generic", (9, 4, 0)), ("gfx10-3-generic", (10, 3, 0)), ("gfx11-generic", (11, 0, 3)),
])  # fmt: skip
def test_versions(name: str, version: tuple[int, int, int]) -> None:
    """LLVM's getIsaVersion (TargetParser.cpp)."""
    row = target(name)
    assert (row.generation, row.minor, row.stepping) == version


@pytest.mark.parametrize(("vgprs", "waves"), [(0, 8), (24, 8), (64, 8), (65, 7), (72, 7), (80, 6), (96, 5), (128, 4),
                                              (129, 3), (168, 3), (170, 2), (256, 2), (264, 1), (512, 1)])
def test_waves_by_vgprs(vgprs: int, waves: int) -> None:
    assert GFX90A.waves_for(vgprs) == waves  # AMDGPUBaseInfo: 512 registers in granules of 8, at most 8 waves


@pytest.mark.parametrize(("sgprs", "on_gfx900", "on_gfx90a"), [(80, 10, 8), (88, 9, 8), (96, 8, 8), (100, 8, 8),
                                                               (102, 7, 7)])
def test_waves_by_sgprs(sgprs: int, on_gfx900: int, on_gfx90a: int) -> None:
    assert GFX900.waves_for(0, sgprs) == on_gfx900
    assert GFX90A.waves_for(0, sgprs) == on_gfx90a
    assert GFX1030.waves_for(0, sgprs) == 16


def test_waves_by_lds() -> None:
    assert GFX90A.waves_for(8, 8, 65536, 256) == 1
    assert GFX90A.waves_for(8, 8, 32768, 1024) == 8
    assert GFX90A.waves_for(8, 8, 16384, 256) == 4
    assert GFX90A.waves_for(8, 8, 65536) == 8


def test_wave_sizes() -> None:
    assert GFX90A.wave_sizes == (64,) and GFX1030.wave_sizes == (32, 64)
    assert (GFX1030.wave_registers(32).granule, GFX1030.wave_registers(64).granule) == (16, 8)
    assert GFX1030.waves_for(64, wave_size=32) == 16 and GFX1030.waves_for(72, wave_size=64) == 7
    with pytest.raises(Invalid, match="no waves of 32"):
        GFX90A.wave_registers(32)
