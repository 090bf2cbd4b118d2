"""racecheck in memory beside the emulator's check of races: the same pairs of instructions of kernels that race,
nothing of others; and the application's memory stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from assembled import assembled
from compiled_samples import OPTIONS

from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.options.checks import Checks, FindingKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

HEAD = """
#define X __builtin_amdgcn_workitem_id_x()
#define G __builtin_amdgcn_workgroup_id_x()
#define KERNEL extern "C" __attribute__((global)) void
#define MEET __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \\
             __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")
#define DEVICE __HIP_MEMORY_SCOPE_AGENT
#define ADD(p, n, order) __hip_atomic_fetch_add(p, n, order, DEVICE)
typedef unsigned u32;
"""
RACING = {
    "stores": "a[X] = G;",
    "one_place": "a[0] = G * 256 + X;",
    "neighbour": "a[G * 256 + X] = b[X]; b[X] = a[(G * 256 + X + 256) % 1024];",
    "no_barrier": "a[G * 256 + X] = X; b[G * 256 + X] = a[G * 256 + 255 - X];",
    "counter": "if (X == 0) a[0] = a[0] + 1;",
    "plain_read": "if (X == 0) b[G] = a[0]; ADD(&a[0], 1u, __ATOMIC_RELAXED);",
    "atomic_after_store": "if (X == 0 && G == 0) a[0] = 7; if (G) ADD(&a[0], 1u, __ATOMIC_RELAXED);",
    "bytes": "((unsigned char *)a)[X] = G;",
    "wide": "typedef u32 four __attribute__((ext_vector_type(4))); ((four *)a)[X % 16] = four{G, X, G, X};",
    "no_flag": "if (X) return; if (G == 0) a[0] = 9; else b[G] = a[0];",
    "flag_too_early": "if (X) return; if (G == 0) { ADD(&a[1], 1u, __ATOMIC_RELEASE); a[0] = 9; } else if "
                      "(ADD(&a[1], 0u, __ATOMIC_ACQUIRE)) b[G] = a[0];",
    "second_phase": "a[G * 256 + X] = X; MEET; b[G * 256 + X] = a[(G * 256 + X + 64) % 1024];",
}
RIGHT = {
    "own": "a[G * 256 + X] = b[G * 256 + X] + 1;",
    "barrier": "a[G * 256 + X] = X; MEET; b[G * 256 + X] = a[G * 256 + 255 - X];",
    "atomics": "ADD(&a[X % 7], G, __ATOMIC_RELAXED); b[G * 256 + X] = ADD(&a[9], 1u, __ATOMIC_RELAXED);",
    "same_value": "a[X] = 5;",
    "own_bytes": "((unsigned char *)a)[G * 256 + X] = X;",
    "last_group": "a[G * 256 + X] = X; MEET; __attribute__((shared)) static u32 last; if (X == 0) last = "
                  "ADD(&b[0], 1u, __ATOMIC_ACQ_REL) == 3; MEET; if (last) b[1 + X] = a[1023 - X];",
    "flag": "if (X) return; if (G == 0) { a[0] = 9; __hip_atomic_store(&a[1], 1u, __ATOMIC_RELEASE, DEVICE); } else if "
            "(__hip_atomic_load(&a[1], __ATOMIC_ACQUIRE, DEVICE)) b[G] = a[0];",
    "lock": "if (X) return; while (__hip_atomic_exchange(&a[0], 1u, __ATOMIC_ACQUIRE, DEVICE)); a[1] = a[1] + G; "
            "__hip_atomic_store(&a[0], 0u, __ATOMIC_RELEASE, DEVICE);",
}
TARGETS = ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201")
KERNELS = {**RACING, **RIGHT}
FEW = ("stores", "no_barrier", "counter", "plain_read", "bytes", "flag_too_early", "second_phase", "barrier", "atomics",
       "own_bytes", "last_group", "flag")
CASES = [pytest.param("gfx90a", FEW, id="gfx90a"),
         *(pytest.param(target, KERNELS, id=f"{target}, all", marks=pytest.mark.slow) for target in TARGETS)]


ROOT = Path(__file__).resolve().parents[2]
WORDS = {8: "eight", 12: "twelve", 5: "five"}


def test_pages_say_how_many_kernels_there_are():
    racing, right = WORDS[len(RACING)], WORDS[len(RIGHT)]
    page, readme = (ROOT / each for each in ("docs/sanitizers.md", "tools/racecheck/README.md"))
    of_each = len(TARGETS) * len(RACING), len(TARGETS) * len(RIGHT)
    on = f"{', '.join(TARGETS[:-1])} and {TARGETS[-1]}"
    assert (f"{racing} that race and {right} that do not, on {on}. In all {of_each[0]} that race" in page.read_text()
            and f"in the {of_each[1]} others neither reports any" in page.read_text())
    assert (f"for {racing} kernels that race in memory and {right} that do not, on {WORDS[len(TARGETS)]} targets"
            in readme.read_text())


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory):
    def make(target):
        folder = tmp_path_factory.mktemp(target)
        text = [HEAD, *(f"KERNEL {name}(u32 *a, u32 *b) {{ {body} }}" for name, body in KERNELS.items())]
        (folder / "k.hip").write_text("\n".join(text))
        subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                       cwd=folder, check=True)
        return (folder / "k.co").read_bytes()

    return make


def told_apart(data, tool, made, kernel):
    launch = Launch(kernel, (4, 1, 1), (256, 1, 1), (parse_argument("inout:u32[1024]=zeros"),) * 2)
    checked = EmulatorDevice(load(data).target, options=LaunchOptions(60, checks=Checks.RACES))
    before = run_original(checked, data, launch)
    emulators = {frozenset((each.where.pc, each.other.pc)) for each in checked.findings
                 if each.kind is FindingKind.RACE}
    after = run_instrumented(EmulatorDevice(load(data).target), made, tool, launch)
    if kernel in RIGHT and kernel != "atomics":  # which lets each wave have another number
        assert {n: each.tobytes() for n, each in after.outputs.items()} == {
            n: each.tobytes() for n, each in before.outputs.items()}
    rows = after.report["races"]
    assert not rows or all(each["space"] == "memory" for each in rows)
    return emulators, {frozenset((each["pc"], each["other_pc"])) for each in rows}, after.report


@pytest.mark.parametrize(("target", "kernels"), CASES)
def test_beside_the_emulators_check(target, kernels, compiled):
    data, tool = compiled(target), load_tool("racecheck")
    made = instrument(data, tool)
    for kernel in kernels:
        emulators, tools, report = told_apart(data, tool, made, kernel)
        assert bool(emulators) == bool(tools) == (kernel in RACING), (kernel, emulators, tools)
        assert emulators <= tools, (kernel, emulators, tools)
        assert not report["left_out"] and not report["cut_off"], report["left_out"][:2]


def test_scalar_stores_are_followed(require_tool, tmp_path):
    """Of gfx8 and gfx9: two work-groups store to one place."""
    body = "\n".join(["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_mov_b32 s6, 1",
                      "s_store_dword s6, s[4:5], 0x0", "s_dcache_wb", "s_endpgm"])  # fmt: skip
    data, tool = assembled(require_tool("clang-22"), tmp_path, "gfx900", body), load_tool("racecheck")
    launch = Launch("k", (2, 1, 1), (64, 1, 1), (parse_argument("inout:u32[16]=zeros"),))
    report = run_instrumented(EmulatorDevice(load(data).target), instrument(data, tool), tool, launch).report
    assert not report["left_out"], report["left_out"]


GRID = '__builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); __builtin_amdgcn_s_barrier(); ' \
       "if (X == 0) __builtin_amdgcn_ds_gws_barrier(3, 0); __builtin_amdgcn_s_barrier(); "
OWN, NEXT = "a[G * 256 + X]", "a[(G * 256 + X + 256) % 1024]"
MEETING = {  # and how many pairs of instructions race
    "meets": (f"{OWN} = X; {GRID} b[G * 256 + X] = {NEXT};", 0),
    "meets_twice": (f"{OWN} = X; {GRID} u32 n = {NEXT}; {GRID} {OWN} = n;", 0),
    "meets_once": (f"{OWN} = X; {GRID} {OWN} = {NEXT} + 1;", 1),
    "one_writes": (f"if (G) {{ if (X == 0) __builtin_amdgcn_ds_gws_barrier(3, 0); return; }} {OWN} = X; {GRID}", 0),
}


@pytest.mark.parametrize("target", ["gfx90a", pytest.param("gfx942", marks=pytest.mark.slow)])
def test_work_groups_that_meet(target, require_tool, tmp_path):
    """By global wave sync, as ROCm's device library lets a cooperative grid meet."""
    text = [HEAD, *(f"KERNEL {name}(u32 *a, u32 *b) {{ {body} }}" for name, (body, _) in MEETING.items())]
    (tmp_path / "k.hip").write_text("\n".join(text))
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                   cwd=tmp_path, check=True)
    data, tool = (tmp_path / "k.co").read_bytes(), load_tool("racecheck")
    made = instrument(data, tool)
    for kernel, (_, racing) in MEETING.items():
        emulators, tools, _ = told_apart(data, tool, made, kernel)
        assert emulators == tools and len(tools) == racing, (kernel, emulators, tools)
