"""What waves do wrong under a driver: as data that it can make an event of, and in words."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from emulated import ISA, code_object
from launching import compile_hip
from packets import Host
from patience import PATIENCE

from luthier_py.base.errors import DeviceError, DeviceFault, FaultKind, TimeLimit
from luthier_py.binary.loader import load
from luthier_py.emulator import LaunchOptions
from luthier_py.emulator.devices.packet_device import CodeNames
from luthier_py.emulator.memory.device_memory import Allocation, read_bytes, write_bytes
from luthier_py.emulator.waves.launch import SHARED_BASE
from luthier_py.emulator.waves.packet import DispatchPacket
from luthier_py.isa import sgpr, vgpr

SOURCE = r"""
KERNEL void load(u32 *p, u32 *from) { p[X] = from[X]; }
KERNEL void store(u32 *p, u32 *to) { to[X] = p[X]; }
KERNEL void add(u32 *p, u32 *to) { __hip_atomic_fetch_add(to + X, p[X], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
KERNEL void lds(u32 *out, u32 n) {
  SHARED u32 a[64];
  u32 *to = a;
  asm volatile("" : "+v"(to)); // a flat access
  to[X + n] = X; BARRIER out[X] = a[X];
}
KERNEL void trap(u32 *p) { if (X == 3) __builtin_trap(); p[X] = 1; }
KERNEL void debug(u32 *p) { __builtin_debugtrap(); p[X] = 1; }
KERNEL void jump(u32 *p, u64 f) { ((void (*)(u32 *))f)(p); }
KERNEL void forever(volatile u32 *p) { while (*p == 0); }
KERNEL void announced(volatile u32 *p) { __builtin_amdgcn_s_sendmsg(1, 0); while (*p == 0); }
// The first wave sends messages until the last one, of the same work-group or of another, stops it.
KERNEL void loud(u32 *p) {
  while (I == 0 && __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0)
    __builtin_amdgcn_s_sendmsg(1, 0);
  if (I == 127) __hip_atomic_store(p, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
KERNEL void first(volatile u32 *p) { p[0] = 1; while (p[1] == 0) __builtin_amdgcn_s_sleep(1); p[2] = 1; }
KERNEL void second(volatile u32 *p) { while (p[0] == 0) __builtin_amdgcn_s_sleep(1); p[1] = 1; }
// Tells the host, and goes on; then waits for its answer.
KERNEL void tell(volatile u32 *p) {
  p[0] = 1;
  __builtin_amdgcn_s_waitcnt(0);
  __builtin_amdgcn_s_sendmsg(1, 77);
  while (p[1] == 0) __builtin_amdgcn_s_sleep(1);
  p[2] = p[1] + 1;
}
KERNEL void other_messages(u32 *p) { __builtin_amdgcn_s_sendmsg(2, 0); __builtin_amdgcn_s_sendmsg(9, 0); p[X] = 1; }
// Memory that is allocated while the kernel runs, as for malloc on the device.
KERNEL void grow(volatile u64 *p) {
  p[0] = 1;
  __builtin_amdgcn_s_sendmsg(1, 0);
  while (p[1] == 0) __builtin_amdgcn_s_sleep(1);
  *(volatile u32 *)p[1] = 42;
}
"""


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory):
    return compile_hip(require_tool("clang-22"), tmp_path_factory.mktemp("faults"), SOURCE)


def fault(data, kernel, values, host=None, **options):
    """The error of a dispatch, and where the code is."""
    host = host or Host(**options)
    base, record = host.place(data), load(data).kernel(kernel)
    with pytest.raises(DeviceError) as caught:
        host.dispatch(base, record, values)
    out = np.zeros(64, np.uint32)
    host.dispatch(base, load(data).kernel("debug"), [out])
    assert (out == 1).all(), "the device goes on"
    return caught.value, base


@pytest.mark.parametrize(("kernel", "write"), [("load", False), ("store", True), ("add", True)])
def test_bad_addresses(compiled, kernel, write):
    error, base = fault(compiled, kernel, [np.zeros(64, np.uint32), 0x1234_5678_9000])
    assert error.where is not None and error.where.pc is not None and error.where.kernel.startswith("kernel@0x")
    assert error.fault == DeviceFault(FaultKind.BAD_ADDRESS, base + error.where.pc, 0x1234_5678_9000, write)
    assert "lane 0 of wave 0 of work-group 0: bad address 0x123456789000" in str(error)


def test_read_only_memory(compiled):
    host = Host()
    place = host.memory.reserve(256)
    host.memory.register(Allocation(place, 256, "constants", writable=False))
    error, base = fault(compiled, "store", [np.zeros(64, np.uint32), place], host)
    assert error.fault == DeviceFault(FaultKind.READ_ONLY, base + error.where.pc, place, True)


def test_lds(compiled):
    error, _ = fault(compiled, "lds", [np.zeros(64, np.uint32), 3])
    assert (error.fault.kind, error.fault.address, error.fault.write) == (FaultKind.LDS, SHARED_BASE + 256, True)


def test_traps(compiled):
    error, base = fault(compiled, "trap", [np.zeros(64, np.uint32)], names=CodeNames(lambda address: "trap(u32*)"))
    assert error.where.kernel == "trap(u32*)"
    assert error.fault == DeviceFault(FaultKind.TRAP, base + error.where.pc, trap=2)


@pytest.mark.parametrize("to", [0, 0x1234_5678_9000])
def test_jumps_out_of_the_code(compiled, to):
    error, _ = fault(compiled, "jump", [np.zeros(64, np.uint32), to])
    assert error.fault == DeviceFault(FaultKind.BAD_JUMP, to)
    assert f"jump to 0x{to:x}, which is not code" in error.message and error.where.text.startswith("s_swappc_b64")


def test_no_kernel_where_the_packet_says(compiled):
    host = Host()
    packet = host.write_packet(DispatchPacket((1, 1, 1), (1, 1, 1), 0, 0, 0x4000, 0))
    with pytest.raises(DeviceError, match=r"bad address 0x4000 of the kernel descriptor; .*kernel@0x4000") as caught:
        host.device.dispatch(packet, host.queue)
    assert caught.value.fault.kind is FaultKind.BAD_ADDRESS and caught.value.fault.address == 0x4000


def test_an_entry_that_is_nowhere():
    host = Host()
    data = code_object({"k": [("s_endpgm",)]})
    record, base = load(data).kernel("k"), host.place(data)
    write_bytes(base + record.descriptor_address + 16, (1 << 40).to_bytes(8, "little"))
    with pytest.raises(DeviceError, match="kernel entry") as caught:
        host.dispatch(base, record, [0, 0, 0])
    assert caught.value.fault == DeviceFault(FaultKind.BAD_JUMP, base + record.descriptor_address + (1 << 40))


STORE = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("v_mov_b32", vgpr(2), 0),
         ("v_mov_b32", vgpr(1), 7), ISA.make("global_store_dword", vgpr(2), vgpr(1), sgpr(0, 2)).raw]
ILLEGAL = b"\xff\xff\xff\xff"


def test_illegal_instructions_where_a_wave_comes_to_one():
    """What was before it has happened."""
    host, data = Host(), code_object({"k": [*STORE, ("s_branch", "bad"), ("s_endpgm",), "bad:", ILLEGAL]})
    record, base, out = load(data).kernel("k"), host.place(data), np.zeros(1, np.uint32)
    with pytest.raises(DeviceError) as caught:
        host.dispatch(base, record, [out, 0, 0])
    assert out[0] == 7 and caught.value.fault.kind is FaultKind.ILLEGAL_INSTRUCTION
    assert read_bytes(caught.value.fault.pc, 4) == ILLEGAL
    assert caught.value.where.pc == caught.value.fault.pc - base
    assert "wave 0 of work-group 0: 0xffffffff is not an instruction" in str(caught.value)


def test_illegal_instructions_at_the_start():
    host, data = Host(), code_object({"k": [ILLEGAL]})
    record, base = load(data).kernel("k"), host.place(data)
    with pytest.raises(DeviceError) as caught:
        host.dispatch(base, record, [0, 0, 0])
    assert caught.value.fault == DeviceFault(FaultKind.ILLEGAL_INSTRUCTION, base + record.entry)


def test_illegal_instructions_that_no_wave_comes_to():
    rows = [("s_cmp_eq_u32", sgpr(0), sgpr(0)), ("s_cbranch_scc0", "bad"), *STORE, ("s_endpgm",), "bad:", ILLEGAL]
    host, data, out = Host(), code_object({"k": rows}), np.zeros(1, np.uint32)
    host.dispatch(host.place(data), load(data).kernel("k"), [out, 0, 0])
    assert out[0] == 7


@pytest.mark.parametrize("end", ["s_endpgm", "s_endpgm_saved"])
def test_ways_to_end(end):
    host, data, out = Host(), code_object({"k": [*STORE, (end,)]}), np.zeros(1, np.uint32)
    host.dispatch(host.place(data), load(data).kernel("k"), [out, 0, 0])
    assert out[0] == 7


def test_no_end(compiled):
    host = Host(options=LaunchOptions(time_limit=0.2))
    with pytest.raises(TimeLimit) as caught:
        host.dispatch(host.place(compiled), load(compiled).kernel("forever"), [np.zeros(1, np.uint32)])
    assert caught.value.fault is None


def waiting(compiled, kernel, out, answer):
    """Dispatch a kernel that interrupts the host, which answers with ``answer(address of out)``."""
    told = threading.Event()
    host = Host(interrupt=told.set, options=LaunchOptions(time_limit=PATIENCE))
    places = []
    taken = host.buffer

    def buffer(array):
        places.append(taken(array))
        return places[-1]

    host.buffer = buffer  # the address is needed while the kernel runs

    def host_thread():
        assert told.wait(PATIENCE)
        assert read_bytes(places[0], 1) == b"\1", "what the wave wrote before is there"
        answer(host, places[0])

    thread = threading.Thread(target=host_thread)
    thread.start()
    host.dispatch(host.place(compiled), load(compiled).kernel(kernel), [out], (1, 1, 1), (1, 1, 1))
    thread.join()


def test_interrupts_wake_the_host_while_the_wave_waits(compiled):
    out = np.zeros(3, np.uint32)
    waiting(compiled, "tell", out, lambda host, at: write_bytes(at + 4, (7).to_bytes(4, "little")))
    assert out.tolist() == [1, 7, 8]


def test_other_messages_do_nothing(compiled):
    told, out = [], np.zeros(64, np.uint32)
    host = Host(interrupt=lambda: told.append(1))
    host.dispatch(host.place(compiled), load(compiled).kernel("other_messages"), [out])
    assert (out == 1).all() and not told


def test_memory_that_is_allocated_while_a_kernel_runs(compiled):
    found = []

    def answer(host, at):
        found.append(host.memory.allocate(64, "new").address)
        write_bytes(at + 8, found[0].to_bytes(8, "little"))

    waiting(compiled, "grow", np.zeros(2, np.uint64), answer)
    assert read_bytes(found[0], 4) == (42).to_bytes(4, "little")


def test_a_queue_that_is_destroyed_while_its_kernel_runs(compiled):
    begun = threading.Event()
    host = Host(interrupt=begun.set)

    def destroy():
        assert begun.wait(PATIENCE)
        host.device.cancel("not this one", host.queue + 64)  # another's
        host.device.cancel("its queue was destroyed", host.queue)

    thread = threading.Thread(target=destroy)
    thread.start()
    with pytest.raises(DeviceError, match="its queue was destroyed") as caught:
        host.dispatch(host.place(compiled), load(compiled).kernel("announced"), [np.zeros(1, np.uint32)])
    thread.join()
    assert caught.value.fault is None and not isinstance(caught.value, TimeLimit)
    out = np.zeros(64, np.uint32)
    host.dispatch(host.place(compiled), load(compiled).kernel("debug"), [out])
    assert (out == 1).all()


def test_kernels_that_wait_for_each_other(compiled):
    """Dispatched at the same time, as from two queues."""
    host = Host(options=LaunchOptions(time_limit=30))
    base = host.place(compiled)
    shared = host.memory.allocate(64, "shared").address
    with ThreadPoolExecutor(2) as pool:
        packets = []
        for name in ("first", "second"):
            kernarg = host.memory.allocate(320, "arguments").address
            write_bytes(kernarg, shared.to_bytes(8, "little"))
            descriptor = base + load(compiled).kernel(name).descriptor_address
            packets.append(host.write_packet(DispatchPacket((1, 1, 1), (1, 1, 1), 0, 0, descriptor, kernarg)))
        for future in [pool.submit(host.device.dispatch, packet, host.queue) for packet in packets]:
            assert future.result().waves == 1
    assert np.frombuffer(read_bytes(shared, 12), np.uint32).tolist() == [1, 1, 1]


@pytest.mark.parametrize("block", [64, 128])
def test_a_wave_that_interrupts_all_the_time_does_not_stop_others(compiled, block):
    told, out = [], np.zeros(1, np.uint32)
    host = Host(interrupt=lambda: told.append(1), options=LaunchOptions(time_limit=PATIENCE))
    host.dispatch(host.place(compiled), load(compiled).kernel("loud"), [out], (128, 1, 1), (block, 1, 1))
    assert out[0] == 1 and told
