"""Lanes that read a lane of their group (gfx1250): which one, and what is refused since no source says it."""

from __future__ import annotations

import numpy as np
import pytest
from waves import run

from luthier_py.emulator.records.layout import Fault, Status, SurfaceRefusal
from luthier_py.isa import instruction_set, sgpr, target, vgpr

GFX1250 = instruction_set(target("gfx1250"), 32)
LANES = np.arange(32)
DATA = (LANES * 2654435761 + 12345).astype(np.uint32)
OLD = np.full(32, 0xAAAAAAAA, np.uint32)


def held(*rows: np.ndarray) -> dict[int, np.ndarray]:
    """Registers from v1 on; the bench has room for 64 lanes."""
    return {1 + number: np.resize(row, 64).astype(np.uint32) for number, row in enumerate(rows)}


def shuffled(name: str, away: int, width: int) -> np.ndarray:
    """Which lane each reads, as HIP's shuffles say it of lanes and widths."""
    first = LANES & ~(width - 1)
    if name == "bcast":
        return first + (away & (width - 1))
    index = {"up": LANES - away, "down": LANES + away, "xor": LANES ^ away}[name]
    mine = index < first if name == "up" else index >= first + width
    return np.where(mine, LANES, index)


@pytest.mark.parametrize("name", ["bcast", "up", "down", "xor"])
@pytest.mark.parametrize("away, width", [(5, 32), (3, 16), (2, 8), (1, 4), (40, 8), (0, 1), (31, 32), (8, 8)])
def test_which_lane(name: str, away: int, width: int) -> None:
    inst = GFX1250.make(f"v_permlane_{name}_b32", vgpr(2), vgpr(1), sgpr(4), sgpr(5))
    state = run([inst], isa=GFX1250, vgprs=held(DATA, OLD), sgprs={4: away, 5: width}, exec_mask=0xFFFFFFFF)
    np.testing.assert_array_equal(state.vgpr(2), DATA[shuffled(name, away, width)])


def test_groups_that_are_not_active_keep_what_they_have() -> None:
    inst = GFX1250.make("v_permlane_xor_b32", vgpr(1), vgpr(1), 3, 8)
    state = run([inst], isa=GFX1250, vgprs=held(DATA), exec_mask=0x00FF00FF)
    on = np.array([0x00FF00FF >> lane & 1 for lane in range(32)], bool)
    np.testing.assert_array_equal(state.vgpr(1), np.where(on, DATA[LANES ^ 3], DATA))


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x1248FFF1])
def test_addresses_of_lanes(mask: int) -> None:
    inst = GFX1250.make("v_permlane_idx_gen_b32", vgpr(2), vgpr(1), 8)
    state = run([inst], isa=GFX1250, vgprs=held(3 * LANES + 1, OLD), exec_mask=mask)
    wanted = 4 * ((3 * LANES + 1 & 7) + (LANES & ~7))
    on = np.array([mask >> lane & 1 for lane in range(32)], bool)
    np.testing.assert_array_equal(state.vgpr(2), np.where(on, wanted, OLD))


@pytest.mark.parametrize("name, away, width, mask, why", [
    ("up", 1, 8, 0xFFFFFFFE, SurfaceRefusal.OTHER_LANE), ("bcast", 3, 8, 0xF7F7F7F7, SurfaceRefusal.OTHER_LANE),
    ("down", 1, 12, 0xFFFFFFFF, SurfaceRefusal.LANE_GROUP), ("xor", 1, 64, 0xFFFFFFFF, SurfaceRefusal.LANE_GROUP),
    ("bcast", 1, 0, 0xFFFFFFFF, SurfaceRefusal.LANE_GROUP), ("up", 64, 32, 0xFFFFFFFF, SurfaceRefusal.LANE_GROUP),
])
def test_what_no_source_says_is_refused(name: str, away: int, width: int, mask: int, why: SurfaceRefusal) -> None:
    inst = GFX1250.make(f"v_permlane_{name}_b32", vgpr(2), vgpr(1), sgpr(4), sgpr(5))
    state = run([inst], isa=GFX1250, vgprs=held(DATA, OLD), sgprs={4: away, 5: width}, exec_mask=mask)
    assert state.status is Status.FAULT and state.fault() == (Fault.SURFACE, 0, why)
    np.testing.assert_array_equal(state.vgpr(2), OLD)
    nobody = run([inst], isa=GFX1250, vgprs=held(DATA, OLD), sgprs={4: away, 5: width}, exec_mask=0)
    assert nobody.status is not Status.FAULT
