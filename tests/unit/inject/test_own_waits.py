"""Kernels that end hardware's waits for operands are left alone: what is inserted relies on them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled_samples import OPTIONS

from luthier_py.errors import Unsupported
from luthier_py.isa import instruction_set, target
from luthier_py.isa.columns import read_columns
from luthier_py.isa.own_waits import ends_of_hardware_waits
from luthier_py.pipeline import instrument
from luthier_py.tool import load_tool

SOURCE = """
#define KERNEL extern "C" __attribute__((global)) void
KERNEL waits(int *p) { *p += 1; }
KERNEL alone(int *p) { asm volatile("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2"); *p += 1; }
"""


@pytest.mark.parametrize(("text", "ends"), [
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2", True),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 1, 1), 1", True),
    ("s_setreg_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), s4", True),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 0", False),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 2, 1), 1", False),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 2), 2", False),
])
@pytest.mark.parametrize("gpu", ["gfx1201", "gfx1250"])
def test_what_ends_them(gpu: str, text: str, ends: bool) -> None:
    isa = instruction_set(target(gpu), 32)
    (code,) = read_columns(isa, [(0, isa.parse("s_nop 0").raw + isa.parse(text).raw)])
    assert ends_of_hardware_waits(code, isa.target) == ([1] if ends else [])


def test_their_kernels_are_refused(require_tool: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text(SOURCE)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", "--offload-arch=gfx1250", tmp_path / "k.hip",
                    "-o", tmp_path / "k.co"], check=True)
    code, tool = (tmp_path / "k.co").read_bytes(), load_tool("instr_count")
    assert instrument(code, tool, kernels=["waits"]).data != code
    with pytest.raises(Unsupported, match=r"WAVE_SCHED_MODE.*alone.*s_setreg_imm32_b32"):
        instrument(code, tool, kernels=["alone"])
