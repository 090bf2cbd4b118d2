"""Kernels that lie in memory, dispatched by packets: what is there is executed, and counted as in a launch."""

from __future__ import annotations

import itertools
import re
import struct

import numpy as np
import pytest
from emulated import ISA, code_object
from launching import compile_hip, device, launch
from packets import Host

from luthier_py.base.errors import DeviceError, FaultKind, Invalid, TimeLimit, Unsupported
from luthier_py.binary.loader import load
from luthier_py.emulator.devices.packet_device import CodeNames
from luthier_py.emulator.memory.device_memory import Memory, write_bytes
from luthier_py.emulator.options.checks import ALL, FindingKind
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.emulator.options.schedule import Schedule
from luthier_py.emulator.reading.text import MemoryText
from luthier_py.emulator.watching.findings import Finding
from luthier_py.emulator.waves.packet import DispatchPacket
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import sgpr, target, vgpr
from luthier_py.samples import SAMPLES, sample

VECTOR_ADD = sample("vector_add")
SELF_CONTAINED = [one for one in SAMPLES if not load(one.path.read_bytes()).relocations]


@pytest.fixture(scope="module")
def clang(require_tool):
    return require_tool("clang-22")


@pytest.mark.parametrize("one", SELF_CONTAINED, ids=lambda one: one.name)
def test_samples_as_in_a_launch(one):
    """Results by NumPy; counts equal those of a launch of the code object."""
    parsed = [parse_argument(text) for text in one.args]
    inputs = [value.data if hasattr(value, "data") else value.value for value in parsed]
    copies = [[value.copy() if isinstance(value, np.ndarray) else value for value in inputs] for _ in range(2)]
    data = one.path.read_bytes()
    record = load(data).kernel(one.kernel)
    host, dev = Host(), device()
    items = tuple(groups * size for groups, size in zip(one.grid, one.block, strict=True))
    scratch = max(record.descriptor.private_segment_fixed_size, 16384 if record.descriptor.uses_dynamic_stack else 0)
    profile = host.dispatch(host.place(data), record, copies[0], items, one.block, private_bytes=scratch)
    outputs = [array for array, value in zip(copies[0], parsed, strict=True) if getattr(value, "is_output", False)]
    expected = one.reference(inputs)
    assert outputs and all(one.agrees(a, b) for a, b in zip(outputs, expected, strict=True))
    launch(dev, data, one.kernel, copies[1], one.grid, one.block)
    assert (profile.counts, profile.lanes, profile.active) == (
        dev.profile.counts, dev.profile.lanes, dev.profile.active)
    assert (profile.groups, profile.waves) == (dev.profile.groups, dev.profile.waves)


def test_most_samples_are_among_them():
    assert len(SELF_CONTAINED) > len(SAMPLES) // 2


@pytest.mark.parametrize("length", [1024, 1023])
def test_watched_and_by_lot(length):
    """Buffers of one element too few are told, and nothing happens there; all else is right."""
    found: list[Finding] = []
    host = Host(options=LaunchOptions(schedule=Schedule(2), checks=ALL),
                report=lambda checked: found.extend(checked.findings))
    data = VECTOR_ADD.path.read_bytes()
    a, b = (np.random.default_rng(seed).random(length).astype(np.float32) for seed in (1, 2))
    total = np.zeros(length, np.float32)
    record = load(data).kernel(VECTOR_ADD.kernel)
    host.dispatch(host.place(data), record, [a, b, total], (1024, 1, 1), (256, 1, 1))
    np.testing.assert_array_equal(total, a + b)
    assert {finding.kind for finding in found} == ({FindingKind.BOUNDS} if length < 1024 else set())


def kernels(clang, tmp_path, source):
    data = compile_hip(clang, tmp_path, source)
    return data, load(data)


FIRST = "KERNEL void k(u32 *out) { out[X] = X * 3 + 1; }"
SECOND = "KERNEL void k(u32 *out) { out[X] = X * 5 + 2; }"


def test_what_lies_in_memory_is_executed(clang, tmp_path):
    """Other code at the same place: what was translated before is not used again, and is when it comes back."""
    (first, obj), (second, _) = (kernels(clang, tmp_path, source) for source in (FIRST, SECOND))
    host, lanes = Host(), np.arange(64, dtype=np.uint32)
    base = host.place(first)
    for data in (first, second, second, first):
        expected = lanes * 3 + 1 if data is first else lanes * 5 + 2
        host.place(data, base)
        out = np.zeros(64, np.uint32)
        host.dispatch(base, load(data).kernel("k"), [out])
        np.testing.assert_array_equal(out, expected)
    assert len(obj.kernels) == 1


def test_one_changed_dword_of_many(clang, tmp_path):
    """Any instruction of what was translated counts: each in turn becomes s_endpgm."""
    data, obj = kernels(clang, tmp_path, FIRST)
    record, host = obj.kernel("k"), Host()
    base = host.place(data)
    whole = np.zeros(64, np.uint32)
    pcs = sorted(host.dispatch(base, record, [whole]).counts)
    for pc in pcs[:-1]:
        host.place(data, base)
        write_bytes(base + pc, (0xBF810000).to_bytes(4, "little"))
        out = np.zeros(64, np.uint32)
        profile = host.dispatch(base, record, [out])
        assert sorted(profile.counts) == [*[p for p in pcs if p < pc], pc]
        assert not out.any()


STATE = r"""
DEVICE u64 dispatch_id() __asm("llvm.amdgcn.dispatch.id");
typedef __attribute__((address_space(4))) const u64 *longs;
KERNEL void k(u64 *out) {
  out[0] = (u64)__builtin_amdgcn_dispatch_ptr();
  out[1] = (u64)__builtin_amdgcn_queue_ptr();
  out[2] = (u64)__builtin_amdgcn_kernarg_segment_ptr();
  out[3] = dispatch_id();
  out[4] = ((longs)__builtin_amdgcn_dispatch_ptr())[4];
}
"""


def test_registers_point_to_the_real_things(clang, tmp_path):
    """Packet in the ring, amd_queue_t, kernarg segment; the dispatch id goes on when the ring begins again."""
    data, obj = kernels(clang, tmp_path, STATE)
    record, host = obj.kernel("k"), Host()
    assert record.descriptor.enable_sgpr_dispatch_id
    base = host.place(data)
    for number in range(20):
        out = np.zeros(5, np.uint64)
        host.dispatch(base, record, [out], (1, 1, 1), (1, 1, 1))
        packet, queue, kernarg, index, kernel_object = out.tolist()
        assert packet == host.ring + 64 * (number % 16) and queue == host.queue
        assert index == number
        assert kernel_object == base + record.descriptor_address
        assert host.memory.find(kernarg) is None, "the segment that the packet named, which is freed by now"


def test_the_packet_says_how_much_private_memory(clang, tmp_path):
    source = """
    KERNEL void k(u32 *out, u32 n) { volatile u32 a[8]; for (u32 i = 0; i < 8; ++i) a[i] = i; out[X] = a[n]; }
    """
    data, obj = kernels(clang, tmp_path, source)
    record, host = obj.kernel("k"), Host()
    base, out = host.place(data), np.zeros(64, np.uint32)
    host.dispatch(base, record, [out, 5])
    assert (out == 5).all()
    with pytest.raises(DeviceError, match="outside the lane's 8 bytes") as caught:
        host.dispatch(base, record, [out, 5], private_bytes=8)
    assert caught.value.fault is not None and caught.value.fault.kind is FaultKind.SCRATCH


def test_dynamic_lds(clang, tmp_path):
    source = """
    extern SHARED u32 dynamic[];
    KERNEL void k(u32 *out) { dynamic[X] = X; BARRIER out[X] = dynamic[63 - X]; }
    """
    data, obj = kernels(clang, tmp_path, source)
    record, host = obj.kernel("k"), Host()
    base, out = host.place(data), np.zeros(64, np.uint32)
    host.dispatch(base, record, [out], group_bytes=256)
    np.testing.assert_array_equal(out, np.arange(64)[::-1])
    host.dispatch(base, record, [out], group_bytes=128)  # what is outside reads 0
    np.testing.assert_array_equal(out, [*[0] * 32, *range(31, -1, -1)])


def test_names_and_bases(clang, tmp_path):
    """A kernel is called as the driver says; addresses count from where it says that the code object is."""
    data, obj = kernels(clang, tmp_path, FIRST)
    record = obj.kernel("k")
    host = Host(names=CodeNames(lambda address: f"K{address:x}", lambda pc: pc - 0x1000))
    base = host.place(data)
    profile = host.dispatch(base, record, [np.zeros(64, np.uint32)])
    assert profile.kernel == f"K{base + record.descriptor_address:x}"
    assert min(profile.counts) == 0x1000 and profile.base == base + record.entry - 0x1000
    plain = Host()
    base = plain.place(data)
    assert plain.dispatch(base, record, [np.zeros(64, np.uint32)]).kernel == (
        f"kernel@0x{base + record.descriptor_address:x}")


def test_freed_code_is_forgotten():
    host = Host()
    data = VECTOR_ADD.path.read_bytes()
    record = load(data).kernel("vector_add")
    base = host.place(data)
    arrays = [np.ones(64, np.float32) for _ in range(3)]
    host.dispatch(base, record, arrays)
    assert host.device._resident
    size = host.memory.find(base).size
    host.memory.free(base)
    host.device.forget(base, size)
    assert not host.device._resident
    with pytest.raises(DeviceError, match="kernel descriptor") as caught:
        host.dispatch(base, record, arrays)
    assert caught.value.fault.kind is FaultKind.BAD_ADDRESS
    assert caught.value.fault.address == base + record.descriptor_address


@pytest.mark.parametrize(
    ("items", "block", "words"),
    [((0, 1, 1), (64, 1, 1), "must be positive"), ((64, 1, 1), (0, 1, 1), "must be positive"),
     ((64, 64, 64), (64, 64, 1), "exceeds its limit")],
)
def test_packets_that_make_no_sense(items, block, words):
    host = Host()
    data = VECTOR_ADD.path.read_bytes()
    with pytest.raises(Invalid, match=words):
        record = load(data).kernel("vector_add")
        packet = DispatchPacket(items, block, 0, 0, host.place(data) + record.descriptor_address, 0)
        host.device.dispatch(host.write_packet(packet), host.queue)


def test_what_the_emulator_lacks_is_unsupported(clang, tmp_path):
    data, obj = kernels(clang, tmp_path, 'KERNEL void k(u32 *p) { asm volatile("s_setkill 0"); p[0] = 1; }')
    host = Host()
    with pytest.raises(Unsupported, match="s_setkill"):
        host.dispatch(host.place(data), obj.kernel("k"), [np.zeros(1, np.uint32)])


CALLS = r"""
extern "C" DEVICE __attribute__((used, noinline)) void leaf(u32 *p) { p[I] += 5; }
extern "C" DEVICE __attribute__((used, noinline)) void wait(u32 *p) {
  while (__hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0);
}
KERNEL void call(u32 *p, u64 f) { if (X < 192) ((void (*)(u32 *))f)(p); else p[I] += 7; BARRIER p[I] *= 2; }
// The first wave stays here and waits for the second one, which goes back and forth.
KERNEL void back_and_forth(u32 *p, u64 f) {
  if (X >= 64) {
    for (u32 i = 0; i < 5; ++i) ((void (*)(u32 *))f)(p);
    if (X == 64) __hip_atomic_store(p, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  } else while (__hip_atomic_load(p, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0);
}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_functions_in_other_allocations(clang, tmp_path, threads):
    """As of another executable: waves go there and come back, and all of it is counted."""
    data, obj = kernels(clang, tmp_path, CALLS)
    host, record = Host(threads=threads), obj.kernel("call")
    bases = host.place(data), host.place(data)
    totals = []
    for base in bases:
        out = np.arange(256 * 40, dtype=np.uint32)
        expected = (out + np.where(out % 256 < 192, 5, 7)) * 2
        function = base + obj.symbol("leaf").address
        profile = host.dispatch(bases[0], record, [out, function], (256 * 40, 1, 1), (256, 1, 1), private_bytes=1024)
        np.testing.assert_array_equal(out, expected)
        totals.append((profile.total, profile.total_lanes, profile.opcodes()))
    assert totals[0] == totals[1]
    assert any(pc > 1 << 12 and pc + bases[0] >= bases[1] for pc in profile.counts), "at addresses of the other one"


def test_waves_in_two_allocations_take_turns(clang, tmp_path):
    data, obj = kernels(clang, tmp_path, CALLS)
    host = Host(options=LaunchOptions(time_limit=20))
    base, other = host.place(data), host.place(data)
    out = np.zeros(192, np.uint32)
    function = other + obj.symbol("leaf").address
    host.dispatch(base, obj.kernel("back_and_forth"), [out, function], (128, 1, 1), (128, 1, 1), private_bytes=1024)
    assert (out[65:128] == 25).all() and out[0] == 1


def test_where_waves_stand_in_another_allocation(clang, tmp_path):
    data, obj = kernels(clang, tmp_path, CALLS)
    host = Host(options=LaunchOptions(time_limit=0.3))
    base, other = host.place(data), host.place(data)
    function, record = obj.symbol("wait"), obj.kernel("call")
    with pytest.raises(TimeLimit) as caught:
        host.dispatch(base, record, [np.zeros(256, np.uint32), other + function.address], private_bytes=1024)
    places = [int(text, 16) for text in re.findall(r"at pc 0x(\w+)", str(caught.value))]
    assert any(function.address <= pc < function.address + function.size for pc in places)


def test_headers_of_code_object_version_2(clang, tmp_path):
    """ROCr's own kernels have an amd_kernel_code_t (AMDKernelCodeT.h of LLVM): what a dispatch needs lies where kernel
    descriptors have it, and sizes come from the packet."""
    data, obj = kernels(clang, tmp_path, FIRST)
    record, host, out = obj.kernel("k"), Host(), np.zeros(64, np.uint32)
    base = host.place(data)
    version = struct.pack("<IIHHHH", 1, 2, 1, 9, 0, 10)  # where LDS, private and kernarg sizes are otherwise
    write_bytes(base + record.descriptor_address, version)
    host.dispatch(base, record, [out])
    np.testing.assert_array_equal(out, np.arange(64) * 3 + 1)


def test_preloaded_arguments_come_from_the_packets_segment():
    """Only as many bytes are read as the descriptor asks for."""
    rows = [*[("s_endpgm",)] * 64,  # the first entry, for firmware that does not preload
            ("v_mov_b32", vgpr(2), 0), ("v_mov_b32", vgpr(1), sgpr(8)), ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0),
            ("s_waitcnt", 0), ISA.make("global_store_dword", vgpr(2), vgpr(1), sgpr(0, 2)).raw, ("s_endpgm",)]
    data = code_object({"k": rows}, preload=4)
    record, host, out = load(data).kernel("k"), Host(), np.zeros(1, np.uint32)
    first = record.descriptor.user_sgpr_count - 4
    assert first == 6
    host.dispatch(host.place(data), record, [out, 0x1234_5678_9ABC, 0])
    assert out[0] == 0x5678_9ABC, "the third dword of the arguments"


def test_only_what_was_translated_is_compared():
    """Bytes of functions, and none of what lies between them."""
    memory = Memory()
    place = memory.allocate(1 << 16, "code").address
    text = MemoryText(target("gfx90a"), place, place, 1 << 16)
    assert text.is_unchanged(), "nothing was used"
    functions = [range(256, 512), range(600, 640), range(20000, 20100), range(40000, 40004)]
    for pc in itertools.chain(*functions):
        if pc % 4 == 0:
            text.note_decoded(pc, bytes(text.at(pc)[:4]))
    assert text.is_unchanged()
    used = {pc for function in functions for pc in function}
    for pc in (0, 255, 256, 257, 511, 512, 599, 600, 639, 640, 19999, 20000, 20099, 20100, 40003, 40004, 65535):
        write_bytes(place + pc, b"\1")
        assert text.is_unchanged() == (pc not in used)
        write_bytes(place + pc, b"\0")
        assert text.is_unchanged()
    write_bytes(place + 700, b"\1\1\1\1")
    text.note_decoded(700, text.at(700)[:4])
    assert text.is_unchanged()
    write_bytes(place + 700, b"\2")
    assert not text.is_unchanged()
