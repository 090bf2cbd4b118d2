"""Copies of kernels that end hardware's waits for operands do not: what is inserted relies on them."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable

import pytest
from compiled_samples import OPTIONS

from luthier_py.base.errors import CheckFailed, Unsupported
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.isa import instruction_set, target
from luthier_py.isa.columns import read_columns
from luthier_py.isa.hazards.own_waits import ends_of_hardware_waits, with_hardware_waits
from luthier_py.program.ir import lift
from luthier_py.proof.hardware_waits import may_end_waits, waits_instead
from luthier_py.rewrite.inject import clone
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

SOURCE = r"""
#define KERNEL extern "C" __attribute__((global)) void
KERNEL waits(int *p) { *p += 1; }
KERNEL by_register(int *p) { asm volatile("s_setreg_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), %0" :: "s"(*p)); *p += 1; }
KERNEL reads(int *p) {
  asm volatile("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2\n"
               "s_getreg_b32 %0, hwreg(HW_REG_WAVE_SCHED_MODE)" : "=s"(*p));
}
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


@pytest.mark.parametrize(("text", "instead"), [
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2", 0),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 5), 0x1f", 0x1C),
    ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 1, 2), 3", 2),
])
def test_what_stands_for_them(text: str, instead: int) -> None:
    isa = instruction_set(target("gfx1250"), 32)
    old = isa.parse(text)
    new = with_hardware_waits(isa, old)
    assert new is not None and new["imm"].value == instead and new.raw[:4] == old.raw[:4]
    assert may_end_waits(old, isa.target) and not may_end_waits(new, isa.target)
    assert waits_instead(old, new, isa.target) and not waits_instead(old, old, isa.target)
    assert not waits_instead(old, isa.parse(text.replace("SCHED_MODE", "MODE")), isa.target)


@pytest.fixture(scope="module")
def code(require_tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("waits")
    (folder / "k.hip").write_text(SOURCE)
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", "--offload-arch=gfx1250", folder / "k.hip",
                    "-o", folder / "k.co"], check=True)
    return (folder / "k.co").read_bytes()


def test_their_copies_leave_hardware_its_waits(code: bytes) -> None:
    made = instrument(code, load_tool("instr_count"), kernels=["alone"]).data
    isa = instruction_set(target("gfx1250"), 32)
    for data, name, ends in (code, "alone", 1), (made, "alone.luthier", 0):
        function = lift(load(data)).kernel(name).function
        assert len(ends_of_hardware_waits(function.code, isa.target)) == ends
    assert ran(made, "alone.luthier") == ran(code, "alone") == 8


def ran(data: bytes, kernel: str) -> int:
    device = EmulatorDevice(target("gfx1250"))
    buffer = device.alloc(4)
    device.write(buffer.address, struct.pack("<I", 7))
    device.launch(device.load(data).kernel(kernel), (1, 1, 1), (1, 1, 1), struct.pack("<Q", buffer.address))
    return struct.unpack("<I", device.read(buffer.address, 4))[0]


def test_the_proof_sees_that_hardware_does_not_wait(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clone, "with_hardware_waits", lambda isa, inst: inst)
    with pytest.raises(CheckFailed, match="hardware may not wait.*s_setreg_imm32_b32"):
        instrument(code, load_tool("instr_count"), kernels=["alone"])


def test_kernels_where_a_register_says_so_are_refused(code: bytes) -> None:
    with pytest.raises(Unsupported, match=r"WAVE_SCHED_MODE.*by_register.*s_setreg_b32"):
        instrument(code, load_tool("instr_count"), kernels=["by_register"])


def test_kernels_that_read_it_are_refused(code: bytes) -> None:
    with pytest.raises(Unsupported, match="it reads whether hardware waits for operands.*s_getreg_b32"):
        instrument(code, load_tool("instr_count"), kernels=["reads"])
