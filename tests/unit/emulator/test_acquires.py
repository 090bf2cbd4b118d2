"""The check of races where one work-group publishes data by a flag and another one reads it: what is loaded plainly
wants an acquire of the device behind the load that saw the flag."""

from __future__ import annotations

import pytest
from published_by_flags import KERNELS, WITHOUT, compiled

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.run.launch import Launch, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import instruction_set
from luthier_py.isa.model.target import target
from luthier_py.isa.properties.coherence import acquires


@pytest.mark.parametrize("name", ["gfx90a", *(pytest.param(each, marks=pytest.mark.slow) for each in (
    "gfx906", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"))])
def test_plain_loads_want_an_acquire(name, require_tool, tmp_path):
    data = compiled(require_tool("clang-22"), name, tmp_path)
    for kernel in KERNELS:
        device = EmulatorDevice(load(data).target, options=LaunchOptions(checks=Checks.RACES))
        arguments = (parse_argument("inout:u32[16]=zeros"),) * 2
        run_original(device, data, Launch(kernel, (2, 1, 1), (256, 1, 1), arguments))
        assert bool(device.findings) == (kernel in WITHOUT), (kernel, device.findings)
        for each in device.findings:
            assert each.what.endswith("and loads it without an acquire of the device in between")
            assert "load" in each.where.text and "store" in each.other.text and each.who.group == 1
            assert each.where.lines and each.other.lines


@pytest.mark.parametrize(("name", "does", "does_not"), [
    ("gfx803", ["buffer_wbinvl1", "buffer_wbinvl1_vol"], ["s_dcache_inv", "s_waitcnt 0"]),
    ("gfx90a", ["buffer_wbinvl1", "buffer_wbinvl1_vol"], ["buffer_wbl2", "buffer_invl2"]),
    ("gfx942", ["buffer_inv sc1", "buffer_inv sc0 sc1"], ["buffer_inv sc0", "buffer_wbl2 sc1"]),
    ("gfx1030", ["buffer_gl1_inv"], ["buffer_gl0_inv"]), ("gfx1100", ["buffer_gl1_inv"], ["buffer_gl0_inv"]),
    ("gfx1201", ["global_inv scope:SCOPE_DEV", "global_inv scope:SCOPE_SYS"],
     ["global_inv", "global_inv scope:SCOPE_SE", "global_wb scope:SCOPE_DEV"]),
    ("gfx1250", ["global_inv scope:SCOPE_SE", "global_inv scope:SCOPE_DEV"],
     ["global_inv", "global_wb scope:SCOPE_SYS"]),
])
def test_what_makes_caches_forget(name, does, does_not):
    isa = instruction_set(target(name))
    assert all(acquires(isa.parse(each), isa.target) for each in does)
    assert not any(acquires(isa.parse(each), isa.target) for each in does_not)
