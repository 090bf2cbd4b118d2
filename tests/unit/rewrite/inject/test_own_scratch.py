"""Kernels that have private memory of their own and set it up themselves, with hooks that have a stack in it."""

from __future__ import annotations

import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from each_target import sometimes
from emulated import LANES

from luthier_py import Lane, Mutator, Tool, Variable, access_bytes, address, array, hook, ptr, u32, u64
from luthier_py.base.errors import CheckFailed, HookError, Unsupported
from luthier_py.binary.loader import load
from luthier_py.emulator import EmulatorDevice
from luthier_py.intrinsics import atomic_add, is_first_lane, lane_id
from luthier_py.isa import RegSet, instruction_set, sgpr, target
from luthier_py.isa.model.registers import SCALARS
from luthier_py.rewrite.inject import policies
from luthier_py.rewrite.pipeline import instrument
from luthier_py.rewrite.tool import load_tool
from luthier_py.tools.memory_divergence import touched

SOURCE = """
typedef unsigned u32;
__attribute__((device, noinline)) u32 mixed(u32 *cells, u32 n) {
    u32 sum = 0;
    for (u32 i = 0; i < n; i++) { sum += cells[(sum + 7 * i) & 31]; cells[i & 31] ^= sum; }
    return sum;
}
extern "C" __attribute__((global)) void k(u32 *out, u32 n) {
    u32 cells[32], x = __builtin_amdgcn_workitem_id_x() + 192 * __builtin_amdgcn_workgroup_id_x();
    for (u32 i = 0; i < 32; i++) cells[i] = i * x + n;
    out[x] = mixed(cells, n) + cells[x & 31];
}
"""
OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()
ITEMS, TURNS = 2 * 192, 50


@hook
def spread(out: ptr[u32]) -> None:
    seen = array(u32, 256)
    for k in range(256):
        seen[k] = u32(k) * u32(3) + lane_id()
    at = lane_id() * u32(37)
    for k in range(9):
        at = seen[at & u32(255)] + u32(k)
    atomic_add(out + lane_id(), at)


class AtExit(Tool):
    out = Variable(u32, LANES)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_exit(kernel, spread, self.out)


def spread_of(lane: int) -> int:
    at = 37 * lane
    for k in range(9):
        at = 3 * (at & 255) + lane + k
    return at


ROOT = Path(__file__).resolve().parents[4]
RUN_HERE = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942"]


@pytest.fixture(scope="module", params=sometimes(
    ["gfx90a", "gfx942", "gfx1010", "gfx1100"], ["gfx900", "gfx906", "gfx908", "gfx1030"]))
def compiled(request, require_tool, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scratch")
    (folder / "k.hip").write_text(SOURCE)
    subprocess.run([require_tool("clang-22"), *OPTIONS, f"--offload-arch={request.param}", folder / "k.hip", "-o",
                    folder / "k.co"], check=True)
    return request.param, (folder / "k.co").read_bytes()


def run(name: str, data: bytes, kernel: str, tool: Tool | None = None):
    device = EmulatorDevice(target(name))
    buffer = device.alloc(4 * ITEMS)
    module = device.load(data, name)
    kernarg = struct.pack("<QI", buffer.address, TURNS).ljust(280, b"\0")
    device.launch(module.kernel(kernel), (2, 1, 1), (192, 1, 1), kernarg)
    found = device.read(buffer.address, buffer.size)
    if tool is None:
        return found
    return found, tool.out.decode(device.read(module.variable(tool.out.name).address, tool.out.size_bytes))


def test_its_own_and_that_of_hooks_are_beside_each_other(compiled):
    name, data = compiled
    tool = AtExit()
    made = instrument(data, tool)
    if name not in RUN_HERE:
        assert made.patched.report[0].private_bytes > 1024  # and that was proved
        return
    found, out = run(name, made.data, "k.luthier", tool)
    assert found == run(name, data, "k") and len(set(np.frombuffer(found, np.uint32))) > 100
    assert list(out) == [2 * 192 // LANES * spread_of(lane) for lane in range(LANES)]


def sets_base(name, data):
    """Where the kernel sets up private memory, if it is code's to do."""
    base = target(name).scratch_base
    (kernel,) = instrument(data, AtExit()).program.kernels
    return [] if base is None else [i for i in kernel.function.instrs if i.inst.writes.overlaps(RegSet.of(base))]


BY_CODE = {9: ["S_ADD_U32", "S_ADDC_U32"], 10: ["S_SETREG_B32", "S_SETREG_B32"]}


def test_compilers_set_it_up_where_the_kernel_begins(compiled):
    name, data = compiled
    architected = target(name).architected_flat_scratch
    found = [i.inst.op.base for i in sets_base(name, data)]
    assert found == ([] if architected else BY_CODE[target(name).generation])


@pytest.mark.parametrize("change", ["of another place", "of the other half", "into the other half"])
def test_a_kernel_that_sets_it_otherwise_has_no_room_for_stacks(compiled, monkeypatch, change):
    """And the proof says so, too, when nobody else does."""
    name, data = compiled
    found = sets_base(name, data)
    if not found:
        assert target(name).architected_flat_scratch
        return
    isa, at = instruction_set(target(name)), load(data).elf.load_at(found[0].pc)
    first, second = (each.inst for each in found)
    if first.op.base == "S_ADD_U32":
        other = {"of another place": isa.make("s_add_u32", first["sdst"].reg, first["src0"].reg, 64),
                 "of the other half": isa.make("s_add_u32", first["sdst"].reg, second["src0"].reg, first["src1"].reg),
                 "into the other half": isa.make("s_add_u32", second["sdst"].reg, first["src0"].reg, first["src1"].reg),
                 }[change].raw
    else:
        other = {"of another place": isa.make("s_setreg_b32", first["simm16"].value, sgpr(0)),
                 "of the other half": isa.make("s_setreg_b32", first["simm16"].value, second["sdst"].reg),
                 "into the other half": isa.make("s_setreg_b32", second["simm16"].value, first["sdst"].reg),
                 }[change].raw
    place = at.offset + found[0].pc - at.address
    damaged = data[:place] + other + data[place + len(other):]
    with pytest.raises(Unsupported, match="sets FLAT_SCRATCH to something of its own"):
        instrument(damaged, AtExit())
    monkeypatch.setattr(policies, "keeps_base", lambda program, component, base: True)
    with pytest.raises(CheckFailed, match="flat_scr.*, which the application writes"):
        instrument(damaged, AtExit())


def test_a_hook_of_many_masks_is_followed(compiled):
    """Recursion as loops in one another: on gfx11 there are 16 masks of 32 lanes that matter at once."""
    tool = load_tool(str(ROOT / "tools" / "compressibility"), {"INSTR_END": "40"})
    assert instrument(compiled[1], tool).patched.report[0].sites


class Lines(Tool):
    """Cache lines that accesses touch."""

    lines = Variable(u64, 129)

    @hook
    def count(histogram: ptr[u64], where: Lane[u64], more: u32) -> None:
        count = touched(where >> 7, where + more >> 7)
        if is_first_lane():
            atomic_add(histogram + count, 1)

    def instrument(self, m: Mutator) -> None:
        for function in m.functions():
            for instr in m.instrs(function, where="global"):
                with suppress(HookError):
                    m.before(instr, self.count, self.lines, address(instr), access_bytes(instr) - 1)


def test_registers_are_put_aside_where_code_sets_it_up(compiled, monkeypatch):
    """In private memory, as far as nothing else is left."""
    few = RegSet.by_file(SCALARS, (1 << 12) - 1)
    for name in ("at_no_cost", "for_fewer_waves"):
        which = getattr(policies, name)
        monkeypatch.setattr(policies, name, lambda *args, which=which: which(*args) & few)
    monkeypatch.setattr(policies, "accumulators", lambda *args: ())
    made = instrument(compiled[1], Lines())
    assert any("private memory" in policy for policy in made.patched.report[0].schemes)
