"""gfx1250's MODE[19:12], which chooses among four banks of vector registers: the emulator has the first alone, and
refuses whatever leaves it (LLVM, AMDGPULowerVGPREncoding)."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from assembled import assembled, left_by

from luthier_py.base.errors import DeviceError, FaultKind, Unsupported
from luthier_py.emulator.instructions.modes import mode_after
from luthier_py.isa import instruction_set, target
from luthier_py.isa.properties.vector_modes import mode_field

GPU = "gfx1250"
ISA = instruction_set(target(GPU))
BEGIN = """
s_load_b64 s[2:3], s[0:1], 0x0
v_lshlrev_b32 v1, 2, v0
v_mov_b32 v2, 7
s_wait_kmcnt 0x0
"""
END = """
v_mov_b32 v2, 8
s_nop 0
{back}
global_store_b32 v1, v2, s[2:3]
s_endpgm
"""


@pytest.fixture
def kernel(require_tool: Callable[[str], str], tmp_path: Path) -> Callable[[str, str], bytes]:
    return lambda switch, back="": assembled(
        require_tool("clang-22"), tmp_path, GPU, BEGIN + switch + END.format(back=back), vgprs=300
    )


@pytest.mark.parametrize(
    "switch",
    [
        "s_set_vgpr_msb 0x40",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), 0x10f0",  # beside the field: v2 means v258 from here on
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 0x1001",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 12, 2), 1",  # in the field
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 12, 8), 0x1000",
    ],
)
def test_other_banks_are_refused_by_name(kernel: Callable[..., bytes], switch: str) -> None:
    """What comes back at the end would have been stored: 7, not 8."""
    with pytest.raises(Unsupported, match="keep to the first 256 vector registers") as caught:
        left_by(kernel(switch, "s_set_vgpr_msb 0" if "vgpr" in switch else ""), GPU)
    assert caught.value.where.kernel == "k" and caught.value.where.text.startswith(switch.split()[0])


@pytest.mark.parametrize(
    "switch",
    [
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), 0xf0",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 12, 8), 0",
        "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 0x1002",
        "s_getreg_b32 s4, hwreg(HW_REG_WAVE_MODE, 0, 8)\ns_setreg_b32 hwreg(HW_REG_WAVE_MODE, 0, 8), s4",
        "s_getreg_b32 s4, hwreg(HW_REG_WAVE_MODE)\ns_setreg_b32 hwreg(HW_REG_WAVE_MODE), s4",
    ],
)
def test_the_first_bank_is_kept(kernel: Callable[..., bytes], switch: str) -> None:
    assert struct.unpack("<32I", left_by(kernel(switch), GPU)[:128]) == (8,) * 32


@pytest.mark.parametrize("field", ["0, 8", "4, 2", "23, 1", "12, 8"])
def test_a_register_chooses_them_when_it_runs(kernel: Callable[..., bytes], field: str) -> None:
    register = "s_getreg_b32 s4, hwreg(HW_REG_WAVE_MODE, {0})\n{1}\ns_setreg_b32 hwreg(HW_REG_WAVE_MODE, {0}), s4"
    data = kernel(register.format(field, "s_nop 0"))
    assert struct.unpack("<32I", left_by(data, GPU)[:128]) == (8,) * 32
    bit = 0 if field == "12, 8" else 12
    with pytest.raises(DeviceError, match="keep to the first 256 vector registers") as caught:
        left_by(kernel(register.format(field, f"s_bitset1_b32 s4, {bit}")), GPU)
    assert caught.value.where.kernel == "k" and caught.value.fault.kind is FaultKind.MODE


def test_every_immediate_that_may_choose_another_is_refused() -> None:
    """In any field, whether hardware takes the immediate's own bits 19:12, or those that the field puts there; and on
    other targets none for that."""
    draw = random.Random(1250)
    for _ in range(300):
        first = draw.randrange(24)
        count, value = draw.randint(1, 24 - first), 1 << draw.randrange(32)
        inst = ISA.make("s_setreg_imm32_b32", mode_field(first, count), value)
        there = value << first & (1 << first + count) - 1
        outcomes = {}
        for name in (GPU, "gfx1201"):
            try:
                outcomes[name] = mode_after(inst, 0, target(name))
            except Unsupported as error:
                outcomes[name] = error.message
        banks = (value | there) & 0xFF000
        assert ("first 256" in str(outcomes[GPU])) == bool(banks), (first, count, value)
        assert "first 256" not in str(outcomes["gfx1201"])
