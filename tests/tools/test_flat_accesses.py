"""racecheck and initcheck beside the emulator's checks where flat accesses lead to LDS, to memory, or each lane's
elsewhere: the same instructions, and nothing of right kernels."""

from __future__ import annotations

import subprocess

import pytest
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
typedef unsigned u32;
#define X __builtin_amdgcn_workitem_id_x()
#define G __builtin_amdgcn_workgroup_id_x()
#define KERNEL extern "C" __attribute__((global)) void
#define FENCE(order, scope) __builtin_amdgcn_fence(order, scope)
#define MEET FENCE(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE, "workgroup")
#define FLAT(name, place) u32 *name = place; asm volatile("" : "+v"(name))
#define ADD(p, scope) __hip_atomic_fetch_add(p, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_##scope)
"""
SHARED = "__attribute__((shared)) static u32 s[256]; "
LDS, MEMORY = SHARED + "FLAT(p, s); ", SHARED + "FLAT(p, a); "
EACH = SHARED + "FLAT(p, X & 1 ? s : a + 256 * G); "
ONE = "if (X) return; FLAT(p, a); if (G == 0) { p[0] = 9; __hip_atomic_store(&p[1], 1u, __ATOMIC_RELEASE, " \
      "__HIP_MEMORY_SCOPE_AGENT); return; } if (__hip_atomic_load(&p[1], %s, __HIP_MEMORY_SCOPE_AGENT)) b[G] = p[0];"
RACING = {
    "in_lds": LDS + "p[X] = X; b[256 * G + X] = p[255 - X];",
    "beside_lds_instructions": LDS + "s[X] = X; b[256 * G + X] = p[255 - X];",
    "stores": LDS + "p[X & 7] = X; MEET; b[256 * G + X] = s[X & 7];",
    "bytes": LDS + "((unsigned char *)p)[X] = X; b[256 * G + X] = ((unsigned char *)p)[255 - X];",
    "atomics": LDS + "if (X == 0) p[0] = 0; if (X > 63) ADD(p, WORKGROUP);",
    "in_memory": MEMORY + "p[X] = G;",
    "beside_global_instructions": MEMORY + "p[256 * G + X] = X; b[256 * G + X] = a[256 * G + 255 - X];",
    "each_lane_in_lds": EACH + "p[X] = X; b[256 * G + X] = s[255 - (X & 254)];",
    "each_lane_in_memory": EACH + "p[X] = X; b[256 * G + X] = a[256 * G + (254 - (X & 254))];",
    "without_an_acquire": ONE % "__ATOMIC_RELAXED",
}
RIGHT = {
    "barrier": LDS + "p[X] = X; MEET; b[256 * G + X] = p[255 - X];",
    "barrier_in_memory": MEMORY + "p += 256 * G; p[X] = X; MEET; b[256 * G + X] = p[255 - X];",
    "each_lane": EACH + "p[X] = X; MEET; b[256 * G + X] = (X & 1 ? p[X ^ 2] : p[254 - X]);",
    "equal_offsets": SHARED + "FLAT(p, s); FLAT(q, a + 256 * G); if (X < 64) p[X] = X; "
                     "else if (X < 128) q[X - 64] = X;",
    "all_atomics": LDS + "ADD(&p[X & 3], WORKGROUP); FLAT(q, a); ADD(&q[X & 3], AGENT);",
    "own_memory": SHARED + "u32 own[8] = {1, 2, 3, X, 5, G, 7, 8}; FLAT(p, b ? own : s); p[X & 7] = 4; "
               "b[256 * G + X] = own[(G + X) & 7];",
    "acquire": ONE % "__ATOMIC_ACQUIRE",
}
UNWRITTEN = {
    "loads": LDS + "b[256 * G + X] = p[X];",
    "half": LDS + "if (X < 128) p[X] = X; MEET; b[256 * G + X] = p[X];",
    "beside": LDS + "if (X < 128) s[X] = X; MEET; b[256 * G + X] = p[X];",
    "adds": LDS + "ADD(&p[X], WORKGROUP);",
    "lanes": EACH + "b[256 * G + X] = p[X];",
}
WRITTEN = {
    "stored": LDS + "p[X] = X; MEET; b[256 * G + X] = s[255 - X];",
    "loaded": LDS + "s[X] = X; MEET; b[256 * G + X] = p[255 - X];",
    "elsewhere": MEMORY + "b[256 * G + X] = p[X];",
    "lanes_stored": EACH + "p[X] = X; MEET; b[256 * G + X] = p[X];",
}
TARGETS = [pytest.param(target, marks=() if target == "gfx90a" else pytest.mark.slow)
           for target in ("gfx90a", "gfx906", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250")]


@pytest.fixture
def judged(require_tool, tmp_path):
    """Of a target's kernels: the findings of the emulator, and the tool's report; memory stays as it was."""

    def judge(target, kernels, name, check):
        text = [HEAD, *(f"KERNEL {kernel}(u32 *a, u32 *b) {{ {body} }}" for kernel, body in kernels.items())]
        (tmp_path / "k.hip").write_text("\n".join(text))
        subprocess.run([require_tool("clang-22"), *OPTIONS, "-O1", f"--offload-arch={target}", "k.hip", "-o", "k.co"],
                       cwd=tmp_path, check=True)
        data, tool = (tmp_path / "k.co").read_bytes(), load_tool(name)
        made = instrument(data, tool)
        for function in made.program.functions:
            assert any(instr.op.mnemonic.startswith("flat_") for instr in function.instrs), function.name
        for kernel in kernels:
            launch = Launch(kernel, (2, 1, 1), (256, 1, 1), (parse_argument("inout:u32[512]=zeros"),) * 2)
            device = EmulatorDevice(load(data).target, options=LaunchOptions(checks=check))
            before = run_original(device, data, launch)
            after = run_instrumented(EmulatorDevice(load(data).target), made, tool, launch)
            assert [each.tobytes() for each in after.outputs.values()] == [
                each.tobytes() for each in before.outputs.values()], kernel
            assert not [row for row in after.report["left_out"] if "flat" in row["instruction"]]
            yield kernel, device.findings, after.report

    return judge


@pytest.mark.parametrize("target", TARGETS)
def test_races_by_flat_accesses(target, judged):
    for kernel, findings, report in judged(target, {**RACING, **RIGHT}, "racecheck", Checks.RACES):
        found = {frozenset((row["pc"], row["other_pc"])) for row in report["races"]}
        told = {frozenset((each.where.pc, each.other.pc)) for each in findings}
        assert bool(told) == bool(found) == (kernel in RACING), (kernel, told, report["races"])
        assert told <= found, (kernel, told, report["races"])


@pytest.mark.parametrize("target", TARGETS)
def test_flat_reads_of_what_nobody_wrote(target, judged):
    for kernel, findings, report in judged(target, {**UNWRITTEN, **WRITTEN}, "initcheck", Checks.INIT):
        found = {row["pc"]: row["count"] for row in report["unwritten"]}
        told = {each.where.pc: each.count for each in findings if each.kind is FindingKind.MEMORY}
        assert told == found and bool(found) == (kernel in UNWRITTEN), (kernel, told, found)
