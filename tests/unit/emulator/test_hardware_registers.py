"""What waves read of the hardware: where they run, and how much LDS they have.

Fields: Linux, drivers/gpu/drm/amd/amdkfd/cwsr_trap_handler_gfx9.asm, _gfx10.asm and _gfx12.asm (LDS_ALLOC).
"""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from launching import FLAGS, HEADER, launch

from luthier_py.base.errors import Unsupported
from luthier_py.emulator import EmulatorDevice
from luthier_py.isa import target

SOURCE = r"""
KERNEL void lds(u32 *out, u32 n) {
  SHARED u32 words[1000];
  words[n] = n;
  u32 size;
  asm volatile("s_getreg_b32 %0, hwreg(HW_REG_LDS_ALLOC, 12, 9)" : "=s"(size));
  out[X] = size + words[n] - n;
}
KERNEL void place(u32 *out) { u32 id; asm volatile("s_getreg_b32 %0, hwreg(PLACE)" : "=s"(id)); out[X] = id + 1; }
KERNEL void violations(u32 *out) {
  u32 seen = 5;
#if LEGACY
  asm volatile("s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS, 8, 1), 0\n\ts_getreg_b32 %0, hwreg(HW_REG_TRAPSTS, 8, 1)"
               : "=s"(seen));
#endif
  out[X] = seen;
}
KERNEL void unknown(u32 *out) { u32 id; asm volatile("s_getreg_b32 %0, hwreg(5)" : "=s"(id)); out[X] = id; }
"""
PLACES = {"gfx803": "HW_REG_HW_ID", "gfx90a": "HW_REG_HW_ID", "gfx942": "HW_REG_XCC_ID", "gfx1030": "HW_REG_HW_ID1",
          "gfx1100": "HW_REG_HW_ID2", "gfx1201": "HW_REG_HW_ID1", "gfx1250": "HW_REG_HW_ID2"}
UNITS = {"gfx1201": 512, "gfx1250": 1024}


@pytest.fixture(scope="module", params=PLACES)
def compiled(request, require_tool, tmp_path_factory):
    name, folder = request.param, tmp_path_factory.mktemp("registers")
    legacy = target(name).generation < 12
    (folder / "k.hip").write_text(f"#define LEGACY {legacy:d}\n{HEADER}{SOURCE.replace('PLACE', PLACES[name])}")
    flags = [f"--offload-arch={name}" if flag.startswith("--offload-arch") else flag for flag in FLAGS]
    command = [require_tool("clang-22"), *flags, str(folder / "k.hip"), "-o", str(folder / "k.co")]
    subprocess.run(command, check=True, capture_output=True)
    return name, (folder / "k.co").read_bytes()


def run(compiled, kernel, *values, **options):
    name, data = compiled
    out = np.zeros(64, np.uint32)
    launch(EmulatorDevice(target(name)), data, kernel, [out, *values], **options)
    return set(out.tolist())


def test_the_size_of_lds(compiled):
    unit = UNITS.get(compiled[0], 256)
    assert run(compiled, "lds", 7) == {-(-4000 // unit)}
    assert run(compiled, "lds", 7, lds_bytes=5000) == {-(-9000 // unit)}


def test_no_wave_goes_on_behind_a_violation(compiled):
    assert run(compiled, "violations") == {0 if target(compiled[0]).generation < 12 else 5}


def test_the_place_of_a_wave(compiled):
    assert run(compiled, "place") == {1}


def test_others_are_refused_by_their_number(compiled):
    with pytest.raises(Unsupported, match="hardware register 5;") as caught:
        run(compiled, "unknown")
    assert caught.value.where.kernel == "unknown" and caught.value.where.text.startswith("s_getreg_b32")


NUMBERED = r"""
KERNEL void numbered(u32 *out) {
  u32 number;
  asm volatile("s_get_waveid_in_workgroup %0\n s_waitcnt lgkmcnt(0)" : "=s"(number));
  out[I] = number;
}
"""


@pytest.mark.parametrize("flag", ["-mwavefrontsize64", "-mno-wavefrontsize64"])
def test_the_number_of_a_wave_in_its_work_group(flag, require_tool, tmp_path):
    """s_get_waveid_in_workgroup, with several work-groups one after the other in the same place."""
    (tmp_path / "k.hip").write_text(HEADER + NUMBERED)
    flags = ["--offload-arch=gfx1010" if each.startswith("--offload-arch") else each for each in FLAGS]
    command = [require_tool("clang-22"), *flags, flag, str(tmp_path / "k.hip"), "-o", str(tmp_path / "k.co")]
    subprocess.run(command, check=True, capture_output=True)
    out = np.full(5 * 200, 99, np.uint32)
    launch(EmulatorDevice(target("gfx1010")), (tmp_path / "k.co").read_bytes(), "numbered", [out],
           (5, 1, 1), (200, 1, 1))
    assert out.reshape(5, 200).tolist() == [(np.arange(200) // (64 if "no" not in flag else 32)).tolist()] * 5
