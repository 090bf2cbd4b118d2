"""Source lines of findings are those that LLVM's symbolizer tells, with the calls around code that was inlined."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
from launching import compile_hip, launch

from luthier_py.base.errors import DeviceError
from luthier_py.emulator import EmulatorDevice, LaunchOptions
from luthier_py.emulator.options.checks import Checks
from luthier_py.isa import target

SOURCE = """
DEVICE static inline void put(u32 *p, u32 value) {
  *p = value;
}
DEVICE static inline void far(u32 *p) {
  put(p + (1 << 20), 2 * p[0]);
}
KERNEL void k(u32 *p) {
  p[X] = X;
  if (p[1])
    far(p + X);
}
"""
WAITING = """
DEVICE static inline u32 look(volatile u32 *p) {
  return *p;
}
KERNEL void k(u32 *p) {
  while (!look(p))
    ;
}
"""


@pytest.fixture(scope="module", params=["-g", "-gline-tables-only"])
def code(request, require_tool, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lines")
    compile_hip(require_tool("clang-22"), folder, SOURCE, request.param)
    return folder / "k.co"


def symbolized(require_tool, code, pc):
    """The innermost first."""
    command = [require_tool("llvm-symbolizer-22"), f"--obj={code}", "--inlines", "--functions=none", hex(pc)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [line.rsplit(":", 1)[0] for line in lines]


def test_of_a_finding(code, require_tool):
    device = EmulatorDevice(target("gfx90a"), options=LaunchOptions(checks=Checks.BOUNDS))
    launch(device, code.read_bytes(), "k", [np.zeros(64, np.uint32)])
    (found,) = device.findings
    wanted = symbolized(require_tool, code, found.where.pc)
    assert len(wanted) == 3 and list(found.where.lines) == wanted
    assert f"({wanted[0]} inlined at {wanted[1]} inlined at {wanted[2]}), lane" in found.text()
    facts = found.facts()["at"]
    assert (facts["line"], facts["inlined_at"]) == (wanted[0], wanted[1:])


def test_of_code_that_was_not_inlined(require_tool, tmp_path):
    compile_hip(require_tool("clang-22"), tmp_path, "KERNEL void k(u32 *p) {\n  p[X + (1 << 20)] = 1;\n}\n", "-g")
    device = EmulatorDevice(target("gfx90a"), options=LaunchOptions(checks=Checks.BOUNDS))
    launch(device, (tmp_path / "k.co").read_bytes(), "k", [np.zeros(64, np.uint32)])
    where = device.findings[0].where
    assert list(where.lines) == symbolized(require_tool, tmp_path / "k.co", where.pc) and "inlined" not in str(where)


def test_of_waves_that_stand(require_tool, tmp_path):
    data = compile_hip(require_tool("clang-22"), tmp_path, WAITING, "-gline-tables-only")
    with pytest.raises(DeviceError, match=r"deadlock.*k\.hip:\d+ inlined at .*k\.hip:\d+\)"):
        launch(EmulatorDevice(target("gfx90a")), data, "k", [np.zeros(1, np.uint32)])
