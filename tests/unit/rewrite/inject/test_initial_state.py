"""Values of a wave's initial state reach hooks at its end, on every target that runs, and the kernel finds what it
expects."""

from __future__ import annotations

import struct
import subprocess
from itertools import product

import pytest
from assembled import assembled, left_by
from each_target import sometimes
from emulated import code_object

from luthier_py import Entry, Mutator, Tool, Variable, hook, ptr, u32, u64
from luthier_py.base.errors import CheckFailed, OutOfRegisters
from luthier_py.binary.loader import KernelDescriptor, load
from luthier_py.binary.loader.initial import Initial, initial_places, with_initial
from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface.device import Module
from luthier_py.intrinsics import atomic_add
from luthier_py.isa import target
from luthier_py.rewrite.inject import initial_state, prologue
from luthier_py.rewrite.pipeline import instrument
from luthier_py.samples import sample

ROWS = 64
SOURCE = """
extern "C" __attribute__((global)) void k(unsigned *out, unsigned n) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), g = __builtin_amdgcn_workgroup_id_x();
    out[(g * 256 + x) % n] = x ^ g;
}
extern "C" __attribute__((global)) void wide(unsigned *out, unsigned n) {
    unsigned x = __builtin_amdgcn_workitem_id_x() + 100 * __builtin_amdgcn_workitem_id_y();
    unsigned g = __builtin_amdgcn_workgroup_id_z();
    out[(g * 256 + x) % n] = x ^ g;
}
"""
OPTIONS = "-x hip --cuda-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 -fuse-cuid=none".split()


@hook(lanes="one")
def note(
    row: ptr[u32], wide: ptr[u64], cursor: ptr[u32], x: u32, y: u32, z: u32, first: u32, kernarg: ptr[u64],
    packet: ptr[u32],
) -> None:
    at = atomic_add(cursor, u32(1))
    row[4 * at] = x
    row[4 * at + 1] = y
    row[4 * at + 2] = z
    row[4 * at + 3] = first
    wide[2 * at] = kernarg[0]
    wide[2 * at + 1] = u64(packet[3])  # grid_size_x


class Births(Tool):
    row = Variable(u32, 4 * ROWS)
    wide = Variable(u64, 2 * ROWS)
    cursor = Variable(u32)

    def instrument(self, m: Mutator) -> None:
        for kernel in m.kernels:
            m.at_exit(kernel, note, self.row, self.wide, self.cursor, Entry.WORKGROUP_ID_X, Entry.WORKGROUP_ID_Y,
                      Entry.WORKGROUP_ID_Z, Entry.FIRST_WORKITEM, Entry.KERNARG_PTR, Entry.DISPATCH_PTR)


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory):
    clang, folder = require_tool("clang-22"), tmp_path_factory.mktemp("births")

    def compile_for(name: str) -> bytes:
        source, out = folder / "k.hip", folder / f"{name}.co"
        source.write_text(SOURCE)
        if not out.exists():
            subprocess.run([clang, *OPTIONS, f"--offload-arch={name}", source, "-o", out], check=True)
        return out.read_bytes()

    return compile_for


def run(device, data, kernel, grid, block, count):
    buffer = device.alloc(4 * count)
    device.write(buffer.address, bytes(4 * count))
    module = device.load(data, kernel)
    kernarg = struct.pack("<QI", buffer.address, count).ljust(280, b"\0")
    device.launch(module.kernel(kernel), grid, block, kernarg)
    return buffer.address, device.read(buffer.address, buffer.size), module


def values(device, module, variable):
    return variable.decode(device.read(module.variable(variable.name).address, variable.size_bytes))


@pytest.mark.parametrize("name", sometimes(["gfx90a", "gfx942"], ["gfx900", "gfx906", "gfx908", "gfx950"]))
@pytest.mark.parametrize(("kernel", "grid", "block"), [("k", (3, 2, 2), (192, 1, 1)), ("wide", (1, 2, 3), (16, 4, 4))])
def test_hooks_get_them_and_the_kernel_computes_the_same(compiled, name, kernel, grid, block):
    device, tool, count = EmulatorDevice(target(name)), Births(), 777
    original = compiled(name)
    made = instrument(original, tool)
    _, expected, _ = run(device, original, kernel, grid, block, count)
    address, found, module = run(device, made.data, f"{kernel}.luthier", grid, block, count)
    assert found == expected and any(found)
    rows, wide = (values(device, module, each) for each in (tool.row, tool.wide))
    waves = grid[0] * grid[1] * grid[2] * (block[0] * block[1] * block[2] // 64)
    assert values(device, module, tool.cursor) == waves
    items = [64 * wave for wave in range(block[0] * block[1] * block[2] // 64)]
    firsts = [i % block[0] | i // block[0] % block[1] << 10 | i // (block[0] * block[1]) << 20 for i in items]
    wanted = sorted((x, y, z, first) for x, y, z in product(*map(range, grid)) for first in firsts)
    assert sorted(zip(*[iter(rows[: 4 * waves])] * 4, strict=True)) == wanted
    assert set(wide[: 2 * waves : 2]) == {address} and set(wide[1 : 2 * waves : 2]) == {grid[0] * block[0]}


@pytest.mark.parametrize("name", sometimes(["gfx803", "gfx1030", "gfx1201"], ["gfx1010", "gfx1100", "gfx1250"]))
def test_other_targets_are_proved(compiled, name):
    made = instrument(compiled(name), Births())
    assert len(made.patched.report) == 2


def test_what_is_enabled_beside_the_kernels_own_moves_it_up(compiled):
    for record in load(compiled("gfx906")).kernels:
        before = initial_places(target("gfx906"), record.descriptor)
        after = with_initial(target("gfx906"), record.descriptor, [Initial.DISPATCH_PTR])
        places = initial_places(target("gfx906"), after)
        assert places.keys() == before.keys() | {Initial.DISPATCH_PTR}
        assert after.user_sgpr_count == record.descriptor.user_sgpr_count + 2
        assert places[Initial.KERNARG_SEGMENT_PTR].index == before[Initial.KERNARG_SEGMENT_PTR].index + 2


WRONG = {"moves are left out": lambda begins, locations: begins[:-1], "nothing is moved": lambda begins,
         locations: begins[:locations], "homes are not filled": lambda begins, locations: begins[locations:],
         "one is filled twice": lambda begins, locations: [begins[0], *begins], "the first comes last": lambda begins,
         locations: [*begins[1:], begins[0]]}


@pytest.mark.parametrize("how", [how for how in WRONG if how != "one is filled twice"])
def test_the_proof_refuses_other_beginnings(compiled, monkeypatch, how):
    begun = prologue.begun

    def other(isa, *given):
        begins, (before, after, *_) = begun(isa, *given), given
        moved = len(begins) - sum(initial_moves(isa.target, before, after))
        return WRONG[how](begins, moved)

    monkeypatch.setattr(prologue, "begun", other)
    with pytest.raises(CheckFailed):
        instrument(compiled("gfx906"), Births(), kernels="k")


def initial_moves(known, before, after):
    old, new = initial_places(known, before), initial_places(known, after)
    return [place.dwords for value, place in old.items() if new[value] != place]


READS_VCC = """{load} s[2:3], s[0:1], 0x0
v_mov_b32 v4, vcc_lo
v_mov_b32 v5, vcc_hi
v_lshlrev_b32 v3, 3, v0
s_waitcnt lgkmcnt(0)
{store} v3, v[4:5], s[2:3]
s_endpgm"""


@pytest.mark.parametrize("gpu", ["gfx906", "gfx90a", "gfx1030", "gfx1100"])
def test_what_nobody_has_written_is_left_alone(require_tool, tmp_path, gpu):
    """VCC is where values of initial state are put together, unless the kernel looks what is in it."""
    load, store = ("s_load_b64", "global_store_b64") if gpu == "gfx1100" else ("s_load_dwordx2", "global_store_dwordx2")
    data = assembled(require_tool("clang-22"), tmp_path, gpu, READS_VCC.format(load=load, store=store))
    made = instrument(data, Births())
    assert left_by(made.data, gpu, "k.luthier") == left_by(data, gpu)


def test_a_sample_of_every_kind_keeps_its_results():
    """They come with user SGPRs of their own, and with a prologue that other kernels share."""
    for name in ("transpose", "histogram", "function_pointers", "scratch"):
        assert instrument(sample(name).path, Births()).patched.report


SUMS = """
extern "C" __attribute__((global)) void k(unsigned *out, unsigned n, unsigned a, unsigned b, unsigned c, unsigned d,
        unsigned e, unsigned f, unsigned g, unsigned h, unsigned i, unsigned j, unsigned l) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workgroup_id_x();
    out[(y * 256 + x) % n] = x + a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f + 17 * g + 19 * h + 23 * i + 29 * j + l;
}
__attribute__((device, noinline)) unsigned rest(unsigned a) { return (a + 5) % 3; }
extern "C" __attribute__((global)) void calls(unsigned *out, unsigned n, unsigned a, unsigned b, unsigned c, unsigned d,
        unsigned e, unsigned f, unsigned g, unsigned h, unsigned i, unsigned j, unsigned l) {
    unsigned x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workgroup_id_x();
    out[(y * 256 + x) % n] = rest(x + a) + b + c + d + e + f + g + h + i + j + l;
}
"""


@pytest.fixture(scope="module")
def preloading(require_tool, tmp_path_factory):
    """A kernel as many of whose arguments are preloaded as there is room for."""
    clang, folder = require_tool("clang-22"), tmp_path_factory.mktemp("preloading")

    def compile_for(name: str) -> bytes:
        (folder / "k.hip").write_text(SUMS)
        subprocess.run([clang, *OPTIONS, f"--offload-arch={name}", folder / "k.hip", "-o", folder / "k.co", "-mllvm",
                        "-amdgpu-kernarg-preload-count=16"], check=True)
        return (folder / "k.co").read_bytes()

    return compile_for


def launch_sums(device: EmulatorDevice, data: bytes, kernel: str) -> tuple[int, bytes, Module]:
    buffer = device.alloc(4 * 777)
    module = device.load(data, kernel)
    device.launch(module.kernel(kernel), (3, 1, 1), (128, 1, 1), struct.pack("<Q12I", buffer.address, 777, *range(11)))
    return buffer.address, device.read(buffer.address, buffer.size), module


@pytest.mark.parametrize("kernel", ["k", "calls"])
@pytest.mark.parametrize("name", sometimes(["gfx90a", "gfx942"], ["gfx950"]))
def test_arguments_are_loaded_where_preloading_leaves_no_room(preloading, name, kernel):
    data, device, tool = preloading(name), EmulatorDevice(target(name)), Births()
    made = instrument(data, tool)
    before, after = load(data).kernel(kernel).descriptor, load(made.data).kernel(f"{kernel}.luthier").descriptor
    assert before.kernarg_preload_length >= 10 and before.user_sgpr_count == 16
    assert (after.kernarg_preload_length, after.user_sgpr_count) == (0, 16)
    _, expected, _ = launch_sums(device, data, kernel)
    address, found, module = launch_sums(device, made.data, f"{kernel}.luthier")
    assert found == expected and any(found)
    assert values(device, module, tool.cursor) == 6
    assert set(values(device, module, tool.wide)[:12:2]) == {address}


def test_kernels_that_are_the_same_code_load_the_same():
    data = code_object({"body": [*[("s_nop", 0)] * 65, ("s_endpgm",)]}, {"one": "body", "two": "body"}, preload=10)
    assert load(data).kernel("two").descriptor.user_sgpr_count == 16
    assert len(instrument(data, Births(), kernels=["one", "two"]).patched.report) == 2


OTHERWISE = {
    "another offset": lambda isa, loads: [*loads[:-2], isa.make(
        loads[-2].op.mnemonic, loads[-2]["sdst"].reg, loads[-2]["sbase"].reg, 8), loads[-1]],
    "one is left out": lambda isa, loads: loads[1:],
    "no wait": lambda isa, loads: loads[:-1],
    "the wait comes first": lambda isa, loads: [loads[-1], *loads[:-1]],
}


@pytest.mark.parametrize("how", OTHERWISE)
def test_the_proof_looks_what_is_loaded(preloading, monkeypatch, how):
    of = initial_state.loads_of
    monkeypatch.setattr(initial_state, "loads_of", lambda isa, descriptor: OTHERWISE[how](isa, of(isa, descriptor)))
    with pytest.raises(CheckFailed):
        instrument(preloading("gfx942"), Births())


def test_what_preloaded_arguments_leave_no_room_for() -> None:
    """Work-groups' ids are no user SGPRs, and are not to blame."""
    descriptor = KernelDescriptor(bytes(64)).replace(
        enable_sgpr_kernarg_segment_ptr=1, user_sgpr_count=16, kernarg_preload_length=14)
    with pytest.raises(OutOfRegisters, match="be given dispatch_ptr here: 14 hold preloaded arguments; compile"):
        with_initial(target("gfx90a"), descriptor, [Initial.DISPATCH_PTR, Initial.WORKGROUP_ID_Y])
