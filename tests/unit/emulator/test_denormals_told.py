"""Denormals that this GPU takes as zeros and others keep are told where they occur."""

from __future__ import annotations

from typing import Any

import pytest
from test_checks import END, ISA, run

from luthier_py.emulator.options.checks import Checks, FindingKind
from luthier_py.isa import EXEC, sgpr, vgpr


def dot(a: int, b: int, c: int = 0) -> list[Any]:
    return [("v_mov_b32", vgpr(5), a), ("v_mov_b32", vgpr(6), b), ("v_mov_b32", vgpr(7), c),
            ISA.parse("v_dot2_f32_f16 v4, v5, v6, v7").raw]


MATRIX = ISA.parse("v_mfma_f32_4x4x4f16 v[8:11], v[4:5], v[6:7], 0").raw
FACTORS = [("v_mov_b32", vgpr(4), 0x3C003C00), *[("v_mov_b32", vgpr(each), 0) for each in (5, 6)]]
FLUSH_ALL = ISA.parse("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0").raw
NO_LANE_HAS_IT = ("v_mov_b32", vgpr(7), 0x80000000)


@pytest.mark.parametrize("rows, told", [
    (dot(0x32, 0x3C00), "0x32, a denormal of f16"), (dot(0x3C00, 0x83FF0000), "0x83ff, a denormal of f16"),
    (dot(0x3C00, 0x3C00, 0x7FFFFF), "0x7fffff, a denormal of f32"),
    ([ISA.parse("v_dot2c_f32_f16 v1, 0x10001, v1").raw], "0x1, a denormal of f16"),
    ([*FACTORS, ("v_mov_b32", vgpr(7), 0x10000), MATRIX], "0x1, a denormal of f16"),
    (dot(0x3C00, 0x4000), None), (dot(0, 0x80008000), None), ([*FACTORS, NO_LANE_HAS_IT, MATRIX], None),
    ([FLUSH_ALL, *dot(0x32, 0x3C00)], None), ([("s_mov_b64", sgpr(EXEC, 2), 0), *dot(0x32, 0x3C00)], None),
])
def test_what_is_lost_is_told(rows: list[Any], told: str | None) -> None:
    found = run([*rows, END], Checks.HARDWARE).findings
    assert [(each.kind, each.what.partition(", counts")[0]) for each in found] == (
        [(FindingKind.HARDWARE, told)] if told else [])
