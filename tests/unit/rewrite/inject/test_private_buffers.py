"""Hooks with a stack, and registers put aside, where private memory is in buffers, against NumPy; and what is no such
hook."""

from __future__ import annotations

import struct
import subprocess

import numpy as np
import pytest
from stack_hooks import stack_hooks, sums

from luthier_py import Mutator, Tool
from luthier_py.base.errors import CheckFailed
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import LaneOf, Reg, instruction_set, sgpr, target, vgpr
from luthier_py.proof.claim import Payload
from luthier_py.proof.payloads import summary
from luthier_py.rewrite.clang.search import CLANG
from luthier_py.rewrite.inject import apply, call, initial_state
from luthier_py.rewrite.inject.items import Own
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import Hooks, Variable, hook, ptr, u32, u64

LANES, GROUPS = 128, 2
OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
MARKED = """
extern "C" __attribute__((global, amdgpu_flat_work_group_size(128, 128))) void k(unsigned *out, unsigned n) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), g = __builtin_amdgcn_workgroup_id_x();
    %s
    if (x %% 3) { asm volatile("s_nop 7\\n\\tv_mov_b32 %%0, %%0" : "+v"(x) :: "memory"); }
    asm volatile("%s");
    out[g * 128 + __builtin_amdgcn_workitem_id_x()] = x %s;
}
"""
OWN = """volatile unsigned seen[20];
    for (unsigned i = 0; i < 20; ++i) seen[(i + x) % 20] = i * n + x;"""
ALL_SCALARS = "".join(f"s_mov_b32 s{k}, s{k}\\n" for k in range(102))
KINDS = {
    "without private memory": MARKED % ("", "", ""),
    "with its own": MARKED % (OWN, "", "+ seen[(n + x) % 20]"),
    "with every scalar in use": MARKED % (OWN, ALL_SCALARS, "+ seen[(n + x) % 20]"),
}
FULL = """
extern "C" __attribute__((global, amdgpu_flat_work_group_size(1024, 1024))) void k(unsigned *out, unsigned n) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), g = __builtin_amdgcn_workgroup_id_x();
    unsigned t = x, kept[60];
    for (int i = 0; i < 60; ++i) kept[i] = *(volatile unsigned *)(out + (x * 7 + i * n) % 256);
    asm volatile("s_nop 7\\n\\tv_mov_b32 %0, %0" : "+v"(t));
    for (int i = 0; i < 60; ++i) t = t * 31 + kept[i];
    out[g * 128 + x] = t;
}
"""


@pytest.fixture(scope="module", params=["gfx801", "gfx803"])
def compiled(request, require_tool, tmp_path_factory):
    """Code of a text, for targets without scratch instructions."""
    def code(text):
        folder = tmp_path_factory.mktemp("buffers")
        (folder / "k.hip").write_text(text)
        subprocess.run([require_tool("clang-22"), *OPTIONS, f"--offload-arch={request.param}", folder / "k.hip", "-o",
                        folder / "k.co"], check=True)
        return (folder / "k.co").read_bytes()
    return code


@pytest.fixture(scope="module")
def hooks(require_tool):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CLANG, require_tool("clang++-22"))
        yield Hooks.from_hip(stack_hooks("x & 127"))


class Marked(Tool):
    """Calls at the marker; ``visit`` says which, of it and the register that it is about."""

    out = Variable(u32, LANES)
    total = Variable(u64)

    def __init__(self, visit):
        super().__init__()
        self.visit = visit

    def instrument(self, m: Mutator) -> None:
        (function,) = m.functions()
        instrs = m.instrs(function)
        (at,) = (k for k, i in enumerate(instrs) if i.inst.op.base == "S_NOP" and i.inst["simm16"].value == 7)
        self.visit(self, m, instrs[at], instrs[at + 1].inst["vdst"].reg)


def ran(code, kernel, tool=None):
    """What a launch leaves, and the tool's variables."""
    device = EmulatorDevice(load(code).target)
    module = device.load(code, kernel)
    out = device.alloc(4 * 256)
    device.write(out.address, np.arange(256, dtype=np.uint32).tobytes())
    arguments = struct.pack("<QI", out.address, 3).ljust(280, b"\0")
    device.launch(module.kernel(kernel), (GROUPS, 1, 1), (LANES, 1, 1), arguments)
    left = np.frombuffer(device.read(out.address, 4 * 256), np.uint32)
    found = {} if tool is None else {
        v: v.decode(device.read(module.variable(v.name).address, v.size_bytes)) for v in (tool.out, tool.total)}
    return left, found


def home_of(made):
    (function,) = made.patched.claim.functions
    return function.locations[Own.PRIVATE_RESOURCE.value]


@pytest.mark.parametrize("kind", KINDS)
def test_a_local_array_of_4_kb(compiled, hooks, kind):
    code = compiled(KINDS[kind])
    tool = Marked(lambda tool, m, at, reg: m.before(at, hooks.sorted, tool.out, reg))
    made = instrument(code, tool)
    assert isinstance(home_of(made), LaneOf if "every" in kind else Reg)
    (old, new), (function,) = load(made.data).kernels, made.patched.claim.functions
    assert function.private.start >= old.private_bytes and new.private_bytes == function.private.stop
    before, _ = ran(code, "k")
    after, found = ran(made.data, "k.luthier", tool)
    x = np.arange(LANES, dtype=np.uint64)
    assert before.tolist() == after.tolist() and len(set(before.tolist())) > 60
    assert list(found[tool.out]) == (GROUPS * sums(x) * (x % 3 > 0) & 0xFFFFFFFF).tolist()


def test_results_of_lanes_come_back(compiled, hooks):
    code = compiled(KINDS["without private memory"])
    tool = Marked(lambda tool, m, at, reg: m.before(at, hooks.last, reg, 5, into=reg))
    after, _ = ran(instrument(code, tool).data, "k.luthier", tool)
    x = np.arange(LANES)
    assert after.tolist() == np.tile(np.where(x % 3, x * (x * 5 & 31) + 5, x), GROUPS).tolist()


@hook(lanes="all")
def counted(total: ptr[u64], a: u32) -> None:
    atomic_add(total + u64(0), u64(a))


def test_registers_are_put_aside_in_it(compiled):
    """Vector registers of a kernel that has room for no more."""
    code = compiled(FULL)
    tool = Marked(lambda tool, m, at, reg: m.before(at, counted, tool.total, 7))
    made = instrument(code, tool)
    (row,) = made.patched.report
    assert any("kept in private memory" in scheme for scheme in row.schemes) and row.private_bytes
    after, found = ran(made.data, "k.luthier", tool)
    assert after.tolist() == ran(code, "k")[0].tolist()
    assert found[tool.total] == 7 * LANES * GROUPS


# -- what is refused ------------------------------------------------------------------------------

def refused(monkeypatch, code, hooks, why, *changes):
    tool = Marked(lambda tool, m, at, reg: m.before(at, hooks.sorted, tool.out, reg))
    with monkeypatch.context() as patch, pytest.raises(CheckFailed, match=why):
        for change in changes:
            patch.setattr(*change)
        instrument(code, tool)


def test_a_resource_that_is_none_is_refused(compiled, hooks, monkeypatch):
    code, made, taken = compiled(KINDS["with its own"]), initial_state._private_resource, call.Caller.location
    for number in range(6):
        refused(monkeypatch, code, hooks, "not restored|nowhere|other", (
            initial_state, "_private_resource", lambda *given, k=number: made(*given)[:k] + made(*given)[k + 1:]))

    def elsewhere(self, value):
        return sgpr(4, 4) if value is Own.PRIVATE_RESOURCE else taken(self, value)

    refused(monkeypatch, code, hooks, "does not get the resource of private memory",
            (call.Caller, "location", elsewhere))


def test_a_stack_that_is_not_the_tools_is_refused(compiled, hooks, monkeypatch):
    placed = apply.Calls
    for by in (-2000, 16):
        refused(monkeypatch, compiled(KINDS["with its own"]), hooks, "stack in private memory that is not the tool's", (
            apply, "Calls", lambda isa, sites, locations, fragments, frame, by=by: placed(
                isa, sites, locations, fragments, frame + by)))
    refused(monkeypatch, compiled(KINDS["with its own"]), hooks, "stack in private memory that is not the tool's", (
        call, "offset_for_wave", lambda isa, offset_bytes: offset_bytes * isa.wave_size + 4))


ISA = instruction_set(target("gfx803"), 64)
ON_STACK = ("buffer_store_dword v0, off, s[0:3], s32", "buffer_load_dword v0, off, s[0:3], s32 offset:8",
            "v_lshrrev_b32_e64 v1, 6, s32; buffer_store_byte v0, v1, s[0:3], 0 offen",
            "v_mov_b32_e32 v1, 4; buffer_load_dword v0, v1, s[0:3], s32 offen")
ELSEWHERE = ("buffer_store_dword v0, off, s[0:3], 0", "buffer_store_dword v0, off, s[8:11], s32",
             "buffer_store_dword v0, v1, s[0:3], s32 idxen", "buffer_atomic_add v0, off, s[0:3], s32",
             "buffer_load_dword v0, v1, s[0:3], 0 offen")


def payload(text):
    code = b"".join(ISA.parse(each.strip()).raw for each in text.split(";"))
    return Payload("hook", code, (vgpr(0),), (), (0,), (4,), None, stack=sgpr(32), frame_bytes=16, resource=sgpr(0, 4))


@pytest.mark.parametrize("text", ON_STACK)
def test_a_hook_may_touch_its_stack(text):
    assert summary(ISA, payload(f"{text}; s_waitcnt vmcnt(0)")).private


@pytest.mark.parametrize("text", ELSEWHERE)
def test_and_nothing_else(text):
    with pytest.raises(CheckFailed, match="pointer"):
        summary(ISA, payload(f"{text}; s_waitcnt vmcnt(0)"))


def test_nor_may_it_change_the_resource():
    with pytest.raises(CheckFailed, match="changes by what it reaches private memory"):
        summary(ISA, payload("s_mov_b32 s1, 0; buffer_store_dword v0, off, s[0:3], s32"))
