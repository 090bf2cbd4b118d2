"""Kernels in which a function's address stays, over calls of it, where calls may write by convention.

Counts are the emulator's, memory is that of the kernel as it is, and the proof refuses a copy in which the callee's
clone writes over the address.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from luthier_py import Mutator, Tool, Variable, hook, ptr, u64
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.features.run.launch import Launch, run_instrumented, run_original
from luthier_py.features.run.specs import parse_argument
from luthier_py.intrinsics import atomic_add, is_first_lane
from luthier_py.isa import RegSet, sgpr
from luthier_py.program.analysis import Facts
from luthier_py.program.ir import Instr, Program, lift
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool

OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -fuse-cuid=none".split()
SOURCE = """
typedef unsigned u32;
#define DEVICE __attribute__((device, noinline)) static
#define KERNEL extern "C" __attribute__((global)) void
#define I (__builtin_amdgcn_workgroup_id_x() * 128 + __builtin_amdgcn_workitem_id_x())
DEVICE u32 mixed(u32 a, u32 b) {
    for (u32 i = 0; i < (b & 7); ++i) a = a * 1664525 + (a >> 3) + b;
    return a;
}
DEVICE u32 chain(u32 a, u32 b) { u32 x = mixed(a, b), y = mixed(b, x); return x ^ y; }
DEVICE u32 over(u32 a, u32 b) { u32 x = mixed(a, b); return mixed(x, b + 1); }
DEVICE u32 tree(u32 n) { return n < 2 ? n + 1 : tree(n - 1) * n + tree(n - 2); }
DEVICE u32 through(u32 (*f)(u32), u32 n) { return f(n) + f(n + 1); }
KERNEL two(u32 *out, u32 n) { u32 x = mixed(I, n); out[I] = x + mixed(x, I); }
KERNEL chains(u32 *out, u32 n) { u32 x = chain(I, n); out[I] = x + chain(x, I); }
KERNEL looped(u32 *out, u32 n) { u32 x = I; for (u32 k = 0; k < n; ++k) x = mixed(x, k) + mixed(k, x); out[I] = x; }
KERNEL tails(u32 *out, u32 n) { u32 x = over(I, n); out[I] = x + over(x, I); }
KERNEL trees(u32 *out, u32 n) { out[I] = tree(I & 7) + tree(n); }
KERNEL pointed(u32 *out, u32 n) { u32 (*f)(u32) = n ? tree : 0; u32 x = through(f, I & 3); out[I] = x + through(f, n); }
KERNEL shown(u32 *out, u32 n) { u32 x = mixed(I, n); out[I] = x + mixed(x, I) + ((long)&mixed != (long)out); }
KERNEL stored(u32 *out, u32 n) { u32 x = mixed(I, n); out[I] = I & 1 ? x : (u32)(long)&mixed; }
"""
KERNELS = "two", "chains", "looped", "tails", "trees", "pointed", "shown", "stored"
TARGETS = [pytest.param(where, id="/".join(map(str, where)), marks=() if always else pytest.mark.slow)
           for where, always in ((("gfx90a", 64), True), (("gfx1100", 32), True), (("gfx1100", 64), False),
                                 (("gfx1201", 32), False))]


@pytest.fixture(scope="module", params=TARGETS)
def code(request: pytest.FixtureRequest, require_tool, tmp_path_factory) -> bytes:
    name, wave_size = request.param
    folder = tmp_path_factory.mktemp("kept")
    (folder / "k.hip").write_text(SOURCE)
    size = ["-mwavefrontsize64"] * (wave_size == 64 and name.startswith("gfx1"))
    subprocess.run([require_tool("clang-22"), *OPTIONS, "-O2", f"--offload-arch={name}", *size, "k.hip", "-o", "k.co"],
                   cwd=folder, check=True)
    return (folder / "k.co").read_bytes()


class EachInstruction(Tool):
    """Counts by a hook before every instruction, which wants scalar registers there."""

    counts = Variable(u64, 8)

    @hook(lanes="all")
    def count(counts: ptr[u64], a: u64, b: u64) -> None:
        if is_first_lane():
            atomic_add(counts, u64(1))
            atomic_add(counts + (a * b & u64(3)) + u64(1), a ^ b)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function):
                m.before(instr, self.count, self.counts, instr.pc * 0x123456789, instr.at)

    def report(self, result):
        return int(result[self.counts][0])


TOOLS = {
    "instr_count": lambda tool, ran, profile: ran.report["instructions"] == profile.total,
    "opcode_histogram": lambda tool, ran, profile: ran.report["opcodes"] == profile.opcodes(),
    "each instruction": lambda tool, ran, profile: ran.report == profile.total,
}


def addresses(program: Program) -> Iterator[tuple[str, int]]:
    """By function the lower of the registers in which an address of code is."""
    for function in program.functions:
        for builder in function.pc_builders:
            yield function.name, builder.getpc.inst["sdst"].reg.index


def test_counts_and_memory(code: bytes) -> None:
    program = lift(load(code))
    low = [place for place in addresses(program) if place[1] < 32]
    assert len({name for name, _ in low} & {*KERNELS}) > 3  # or else the compiler does not what this is about
    indirect = {function.name for function in program.functions for site in program.calls(function) if site.indirect}
    assert indirect == {"shown", "stored"}  # what looks at the address otherwise must see the original's
    for name, agrees in TOOLS.items():
        tool = EachInstruction() if name == "each instruction" else load_tool(name)
        made = instrument(code, tool)
        assert {each.name for each in made.patched.report} == {*KERNELS}
        for kernel in KERNELS:
            launch = Launch(kernel, (2, 1, 1), (128, 1, 1), (parse_argument("out:u32[256]"), parse_argument("u32=5")))
            device = EmulatorDevice(load(code).target)
            outputs = run_original(device, code, launch).outputs
            profile = device.profile
            ran = run_instrumented(device, made, tool, launch)
            assert [each.tobytes() for each in ran.outputs.values()] == [each.tobytes() for each in outputs.values()]
            assert agrees(tool, ran, profile), (name, kernel)


def test_a_callee_whose_clone_writes_over_the_address_is_refused(code: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of somebody who takes the register for free in the callee, since it does not name it."""
    (low,) = {reg for name, reg in addresses(lift(load(code))) if name == "two"}
    live_before_all_lanes = Facts.live_before_all_lanes

    def without_callers(facts: Facts, instr: Instr) -> RegSet:
        live = live_before_all_lanes(facts, instr)
        return live - RegSet.of(sgpr(low, 2)) if "mixed" in facts.program.function_of(instr).name else live

    instrument(code, EachInstruction(), kernels="two")
    monkeypatch.setattr(Facts, "live_before_all_lanes", without_callers)
    with pytest.raises(CheckFailed, match=f"s{low}.* is live and not restored.*mixed"):
        instrument(code, EachInstruction(), kernels="two")
