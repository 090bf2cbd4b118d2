"""What may be open where a function returns: hazards of code that calls it or that it calls, not of other kernels."""

from __future__ import annotations

from pathlib import Path
from subprocess import run

import pytest

from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
SOURCE = """
#define DEVICE __attribute__((device, noinline)) static
#define KERNEL extern "C" __attribute__((global)) void
#define X __builtin_amdgcn_workitem_id_x()
DEVICE float twice(float x) { %s return x * x + 3; }
KERNEL calls(float *p, float x) { if (twice(x + X) > 2) p[X] = 0; }
KERNEL shares(float *p) {
    __attribute__((shared)) static float s[256];
    s[X] = p[X];
    __builtin_amdgcn_s_barrier();
    if (s[255 - X] > 1) p[X] = s[255 - X];
}
"""
IN_LDS = "__attribute__((shared)) static float seen[256]; seen[X] = x;"


@pytest.mark.parametrize("name", ["gfx1010", "gfx1200"])
@pytest.mark.parametrize("function", ["", IN_LDS], ids=["alone", "with LDS"])
def test_kernels_beside_functions_of_others(require_tool, tmp_path: Path, name: str, function: str) -> None:
    """LDS, a branch and an access of memory want a wait (LLVM, fixLdsBranchVmemWARHazard)."""
    (tmp_path / "k.hip").write_text(SOURCE % function)
    run([require_tool("clang-22"), *OPTIONS, f"--offload-arch={name}", "k.hip", "-o", "k.co"], cwd=tmp_path, check=True)
    made = instrument((tmp_path / "k.co").read_bytes(), load_tool("instr_count"))
    assert {each.name for each in made.patched.report} == {"calls", "shares"}
