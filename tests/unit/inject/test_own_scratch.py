"""Kernels that have private memory of their own and set it up themselves, with hooks that have a stack in it."""

from __future__ import annotations

import struct
import subprocess

import numpy as np
import pytest
from emulated import LANES

from luthier_py import Mutator, Tool, Variable, array, hook, ptr, u32
from luthier_py.emulator import EmulatorDevice
from luthier_py.errors import CheckFailed, Unsupported
from luthier_py.inject import policies
from luthier_py.intrinsics import atomic_add, lane_id
from luthier_py.isa import instruction_set, target
from luthier_py.isa.registers import FLAT_SCRATCH
from luthier_py.loader import load
from luthier_py.pipeline import instrument

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


SET_BY_CODE = ["gfx900", "gfx906", "gfx908", "gfx90a"]


@pytest.fixture(scope="module", params=[*SET_BY_CODE, "gfx942"])
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
    found, out = run(name, made.data, "k.luthier", tool)
    assert found == run(name, data, "k") and len(set(np.frombuffer(found, np.uint32))) > 100
    assert list(out) == [2 * 192 // LANES * spread_of(lane) for lane in range(LANES)]


@pytest.fixture
def own(compiled):
    """Where the kernel sets FLAT_SCRATCH, if it is code's to do."""
    name, data = compiled
    made = instrument(data, AtExit())
    (kernel,) = made.program.kernels
    function = kernel.function
    return name, data, [i for i in function.instrs if i.inst.writes.sgpr >> FLAT_SCRATCH & 3]


def test_compilers_set_it_up_where_the_kernel_begins(own):
    name, data, found = own
    assert [i.inst.op.base for i in found] == ["S_ADD_U32", "S_ADDC_U32"] * target(name).scratch_in_sgprs


def test_a_kernel_that_sets_it_otherwise_has_no_room_for_stacks(own, monkeypatch):
    """The instruction adds something else; and the proof says so, too, when nobody else does."""
    name, data, found = own
    if name not in SET_BY_CODE:
        assert not found
        return
    isa, at = instruction_set(target(name)), load(data).elf.load_at(found[0].pc)
    first = found[0].inst
    other = isa.make("s_add_u32", first["sdst"].reg, first["src0"].reg, 64).raw
    place = at.offset + found[0].pc - at.address
    damaged = data[:place] + other + data[place + len(other):]
    with pytest.raises(Unsupported, match="sets FLAT_SCRATCH to something of its own"):
        instrument(damaged, AtExit())
    monkeypatch.setattr(policies, "_keeps_base", lambda program, component: True)
    with pytest.raises(CheckFailed, match="flat_scratch_lo, which the application writes"):
        instrument(damaged, AtExit())
