"""The check of races where one work-group publishes data by a flag and another one reads it: what is loaded plainly
wants an acquire of the device behind the load that saw the flag."""

from __future__ import annotations

import subprocess

import pytest
from compiled_samples import OPTIONS

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.isa import instruction_set
from luthier_py.isa.coherence import acquires
from luthier_py.isa.target import target
from luthier_py.loader import load
from luthier_py.session.run import Launch, run_original
from luthier_py.session.specs import parse_argument

HEAD = """
#define X __builtin_amdgcn_workitem_id_x()
#define G __builtin_amdgcn_workgroup_id_x()
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE __HIP_MEMORY_SCOPE_AGENT
#define FENCE(order, scope) __builtin_amdgcn_fence(order, scope)
#define MEET FENCE(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE, "workgroup")
#define SEES(order) __hip_atomic_load(&a[1], order, DEVICE)
typedef unsigned u32;
"""
PUT = "a[0] = 9; __hip_atomic_store(&a[1], 1u, __ATOMIC_RELEASE, DEVICE);"
ONE = f"if (X) return; if (G == 0) {{ {PUT} return; }} "
ALL = f"__attribute__((shared)) static u32 s; if (G == 0) {{ if (X == 0) {{ {PUT} }} return; }} "
WITHOUT = {
    "relaxed": ONE + "if (SEES(__ATOMIC_RELAXED)) b[G] = a[0];",
    "volatile_flag": ONE + "if (*(volatile u32 *)&a[1]) b[G] = a[0];",
    "atomic": ONE + "if (__hip_atomic_fetch_add(&a[1], 0u, __ATOMIC_RELAXED, DEVICE)) b[G] = a[0];",
    "fence_of_a_group": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_ACQUIRE, "workgroup"); b[G] = a[0]; }',
    "release_alone": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_RELEASE, "agent"); b[G] = a[0]; }',
    "barrier_alone": ALL + "if (X == 0) s = SEES(__ATOMIC_RELAXED); MEET; if (s) b[G] = a[0];",
}  # fmt: skip
WITH = {
    "acquire": ONE + "if (SEES(__ATOMIC_ACQUIRE)) b[G] = a[0];",
    "sequential": ONE + "if (SEES(__ATOMIC_SEQ_CST)) b[G] = a[0];",
    "fence": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_ACQUIRE, "agent"); b[G] = a[0]; }',
    "fence_of_the_system": ONE + 'if (SEES(__ATOMIC_RELAXED)) { FENCE(__ATOMIC_ACQUIRE, ""); b[G] = a[0]; }',
    "threadfence": ONE + 'if (*(volatile u32 *)&a[1]) { FENCE(__ATOMIC_SEQ_CST, "agent"); b[G] = a[0]; }',
    "one_for_all": ALL + "if (X == 0) s = SEES(__ATOMIC_ACQUIRE); MEET; if (s) b[G] = a[0];",
    "each_for_itself": ALL + "if (X == 0) s = SEES(__ATOMIC_RELAXED); MEET; if (s) { FENCE(__ATOMIC_ACQUIRE, "
                             '"agent"); b[G] = a[0]; }',
    "data_are_atomic": ONE + "if (SEES(__ATOMIC_RELAXED)) b[G] = __hip_atomic_load(&a[0], __ATOMIC_RELAXED, DEVICE);",
    "stores": ONE + "if (SEES(__ATOMIC_RELAXED)) a[0] = G;",
    "in_one_group": f"if (G) return; if (X == 0) {{ {PUT} }} if (X == 128 && SEES(__ATOMIC_RELAXED)) b[G] = a[0];",
    "lock": "if (X) return; while (__hip_atomic_exchange(&a[1], 1u, __ATOMIC_ACQUIRE, DEVICE)); a[0] = a[0] + G; "
            "__hip_atomic_store(&a[1], 0u, __ATOMIC_RELEASE, DEVICE);",
}  # fmt: skip
KERNELS = {**WITHOUT, **WITH}


@pytest.mark.parametrize("name", ["gfx90a", *(pytest.param(each, marks=pytest.mark.slow) for each in (
    "gfx906", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"))])
def test_plain_loads_want_an_acquire(name, require_tool, tmp_path):
    text = [HEAD, *(f"KERNEL {kernel}(u32 *a, u32 *b) {{ {body} }}" for kernel, body in KERNELS.items())]
    (tmp_path / "k.hip").write_text("\n".join(text))
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", "-gline-tables-only", f"--offload-arch={name}", "k.hip",
                    "-o", "k.co"], cwd=tmp_path, check=True)
    data = (tmp_path / "k.co").read_bytes()
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
