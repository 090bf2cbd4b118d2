"""What goes wrong in a kernel or a launch: one error that names the place, and a device that goes on."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import ISA, Bench, code_object
from launching import compile_hip, device, launch, run_sample

from luthier_py.base.errors import DeviceError, Invalid, Malformed, TimeLimit, Unsupported
from luthier_py.emulator.interface import pack_arguments
from luthier_py.isa import sgpr, vgpr
from luthier_py.isa.semantics.refusals import refusal
from luthier_py.samples import SAMPLES, sample

VECTOR_ADD = sample("vector_add")
SOURCE = r"""
KERNEL void store(u32 *p, u64 offset) { *(u32 *)((char *)p + offset + X * 4) = 7; }
KERNEL void lds(u32 *out, u32 n) {
  SHARED u32 a[64];
  u32 *to = a;
  asm volatile("" : "+v"(to)); // a flat access
  to[X + n] = X; BARRIER out[X] = a[X];
}
KERNEL void stack(u32 *out, u32 n) { volatile u32 a[8]; for (u32 i = 0; i < 8; ++i) a[i] = i; out[X] = a[n]; }
KERNEL void forever(volatile u32 *p) { for (u32 i = 0; *p == 0; ++i) asm volatile("" :: "v"(i)); }
KERNEL void trap(u32 *p) { if (X == 3) __builtin_trap(); p[X] = 1; }
KERNEL void wild(u32 *p, void (*f)(u32)) { f(p[0]); }
KERNEL void jumped(u32 *p, u64 f) { ((void (*)(u32 *))f)(p); }
__attribute__((constant)) const u32 fixed[4] = {1, 2, 3, 4};
KERNEL void rounding(float *p, u32 mode) {
  asm volatile("s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), %0" :: "s"(mode));
  p[X] += 1.0f;
}
KERNEL void constant(u64 where) { *(u32 *)where = 1; }
"""


@pytest.fixture(scope="module")
def compiled(require_tool, tmp_path_factory):
    return compile_hip(require_tool("clang-22"), tmp_path_factory.mktemp("failures"), SOURCE)


def failure(data, kernel, values, **options):
    dev = device(**options)
    with pytest.raises(DeviceError) as caught:
        launch(dev, data, kernel, values)
    assert dev.profile is None
    assert run_sample(dev, VECTOR_ADD), "the device still works"
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("short", [1, 4, 5])
def test_reading_past_a_buffer(short):
    """vector_add on a buffer that is ``short`` bytes too small: the last lane is named."""
    dev = device()
    handle = dev.load(VECTOR_ADD.path.read_bytes()).kernel("vector_add")
    size = 4 * 2048
    a, b, c = dev.alloc(size), dev.alloc(size - short), dev.alloc(size)
    with pytest.raises(DeviceError) as caught:
        dev.launch(
            handle,
            VECTOR_ADD.grid,
            VECTOR_ADD.block,
            pack_arguments(handle.record, [a, b, c], VECTOR_ADD.grid, VECTOR_ADD.block),
        )
    error = caught.value
    lane = 63 if short <= 4 else 62
    element = 2047 if short <= 4 else 2046
    assert error.where.kernel == "vector_add" and error.where.pc and error.where.text.startswith("global_load_dword")
    assert f"lane {lane} of wave 3 of work-group 7" in str(error)
    assert f"0x{b.address + 4 * element:x}" in str(error) and "buffer" in str(error)


def test_writing_outside(compiled):
    for offset, words in ((1 << 20, "past the end"), (-1024 & (1 << 64) - 1, "bad address")):
        error = failure(compiled, "store", [np.zeros(64, np.uint32), offset])
        assert words in str(error) and "lane 0 " in str(error) and "store" in error.where.text


def test_null_pointer(compiled):
    assert "bad address 0x0" in str(failure(compiled, "store", [0, 0]))


def test_lds_outside(compiled):
    error = failure(compiled, "lds", [np.zeros(64, np.uint32), 1])
    assert "LDS address 0x100 is outside the work-group's 256 bytes" in str(error) and "lane 63" in str(error)


def test_scratch_outside(compiled):
    assert "scratch address" in str(failure(compiled, "stack", [np.zeros(64, np.uint32), 100000]))


def test_an_endless_loop_ends_at_the_time_limit(compiled):
    error = failure(compiled, "forever", [np.zeros(1, np.uint32)], time_limit=0.3)
    assert isinstance(error, TimeLimit) and "time limit of 0.3 s: wave 0 of work-group 0 at pc 0x" in str(error)
    assert error.where.kernel == "forever"


def test_an_endless_loop_ends_at_the_instruction_limit(compiled):
    error = failure(compiled, "forever", [np.zeros(1, np.uint32)], instruction_limit=5000)
    assert isinstance(error, TimeLimit) and "limit of 5000 instructions: wave 0 of work-group 0 at pc 0x" in str(error)


def test_who_executes_one_instruction_too_many_has_passed_the_limit(compiled):
    """Also where the launch is over before anybody looks."""
    arguments = [np.zeros(64, np.uint32), 0]
    dev = device()
    launch(dev, compiled, "stack", arguments)
    count = dev.profile.total
    launch(device(instruction_limit=count), compiled, "stack", arguments)
    with pytest.raises(TimeLimit, match=f"limit of {count - 1} instructions"):
        launch(device(instruction_limit=count - 1), compiled, "stack", arguments)


def test_trap(compiled):
    error = failure(compiled, "trap", [np.zeros(64, np.uint32)])
    assert "s_trap 2: the program gives up here (llvm.trap: abort, __builtin_trap, a failed assert)" in str(error)
    assert error.where.text.startswith("s_trap")


def test_a_trap_behind_scalar_writes_and_before_other_code():
    """The state is written before the wave stops; what never comes to the trap runs on."""
    rows = [
        ("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_cmp_eq_u32", sgpr(6), 1),
        ("v_mov_b32", vgpr(2), 0), ("s_cbranch_scc1", "bad"), "good:", ("s_mov_b32", sgpr(8), 5),
        ("v_mov_b32", vgpr(1), sgpr(8)), ISA.make("global_store_dword", vgpr(2), vgpr(1), sgpr(0, 2)).raw,
        ("s_endpgm",), "bad:", ("s_mov_b32", sgpr(9), 1), ("v_add_u32", vgpr(1), 1, vgpr(1)), ("s_trap", 2),
        "after:", ("s_mov_b32", sgpr(9), sgpr(8)), ("s_branch", "good"),
    ]
    bench = Bench(bytes(4))
    data = code_object({"k": [("s_cbranch_vccnz", "after"), *rows]})
    assert bench.run(data, "k").buffers == (b"\5\0\0\0",)
    with pytest.raises(DeviceError, match="wave 0 of work-group 1: s_trap"):
        bench.run(data, "k", groups=2)


@pytest.mark.parametrize(("number", "words"), [(1, "a breakpoint, and no debugger"), (7, "no trap handler answers")])
def test_other_traps(number, words):
    """AMDGPUUsage, "Trap Handler ABI"."""
    with pytest.raises(DeviceError, match=f"s_trap {number}: {words}"):
        Bench(bytes(4)).run(code_object({"k": [("s_trap", number), ("s_endpgm",)]}), "k")


def test_a_debug_trap_does_nothing_without_a_debugger():
    """AMDGPUUsage, "Trap Handler ABI": s_trap 3."""
    rows = [("s_load_dwordx2", sgpr(0, 2), sgpr(4, 2), 0), ("s_waitcnt", 0), ("s_trap", 3), ("v_mov_b32", vgpr(2), 0),
            ISA.make("global_store_dword", vgpr(2), vgpr(2), sgpr(0, 2)).raw, ("s_endpgm",)]
    assert Bench(b"\7\0\0\0").run(code_object({"k": rows}), "k").buffers == (bytes(4),)


@pytest.mark.parametrize("to", [0, 8, 0x7FFF_0000_0000])
def test_jump_out_of_the_code(compiled, to):
    assert "not code" in str(failure(compiled, "jumped", [np.zeros(64, np.uint32), to]))


def test_jump_into_data_or_odd_addresses(compiled):
    dev = device()
    module = dev.load(compiled)
    start = module.object.kernel("jumped").entry
    for to in (module.base + start + 2, module.base + start - (1 << 32)):
        with pytest.raises((DeviceError, Malformed, Unsupported)):
            launch_loaded(dev, module, "jumped", [dev.alloc(64), to])


def launch_loaded(dev, module, name, values):
    handle = module.kernel(name)
    dev.launch(handle, (1, 1, 1), (64, 1, 1), pack_arguments(handle.record, values, (1, 1, 1), (64, 1, 1)))


def test_writing_to_code_or_arguments(compiled):
    dev = device()
    module = dev.load(compiled)
    with pytest.raises(DeviceError, match="read-only"):
        launch_loaded(dev, module, "constant", [module.base + module.object.kernel("constant").entry])


def test_launches_that_make_no_sense():
    dev = device()
    handle = dev.load(VECTOR_ADD.path.read_bytes()).kernel("vector_add")
    for grid, block, lds in (
        ((0, 1, 1), (64, 1, 1), 0),
        ((1, 1, 1), (2048, 1, 1), 0),
        ((1, 1, 1), (64, 1, 1), 1 << 20),
        ((1, 1, 1), (64, -1, 1), 0),
        ((1 << 24, 1, 1), (256, 1, 1), 0),
        ((1, 1 << 32, 1), (64, 1, 1), 0),
        (((1 << 32) - 1,) * 3, (1, 1, 1), 0),
    ):
        with pytest.raises(Invalid, match="vector_add"):
            dev.launch(handle, grid, block, bytes(280), lds)


def test_more_private_memory_than_a_wave_can_have():
    data = code_object({"k": [("s_endpgm",)]}, scratch_bytes=1 << 20)
    dev = device()
    with pytest.raises(Invalid, match=r"kernel k: 1048576 bytes of private memory for a lane; gfx90a has 131056"):
        dev.launch(dev.load(data).kernel("k"), (1, 1, 1), (64, 1, 1), bytes(280))


def test_modules_of_another_target_or_device():
    dev = device()
    data = bytearray(VECTOR_ADD.path.read_bytes())
    handle = dev.load(bytes(data)).kernel("vector_add")
    with pytest.raises(Invalid, match="not loaded on this device"):
        device().launch(handle, (1, 1, 1), (64, 1, 1), bytes(280))
    data[0x30] = 0x30  # e_flags: another processor
    with pytest.raises((Invalid, Unsupported)):
        dev.load(bytes(data))


def test_unloaded_modules_and_unknown_names():
    dev = device()
    module = dev.load(VECTOR_ADD.path.read_bytes())
    with pytest.raises(Invalid, match="no kernel"):
        module.kernel("nobody")
    with pytest.raises(Invalid, match="no variable"):
        module.variable("nobody")
    handle = module.kernel("vector_add")
    module.unload()
    with pytest.raises(Invalid):
        dev.launch(handle, (1, 1, 1), (64, 1, 1), bytes(280))
    with pytest.raises(DeviceError, match="unloaded"):
        module.kernel("vector_add")


def test_unsupported_instructions_are_named_before_anything_runs(require_tool, tmp_path):
    source = """
    DEVICE __attribute__((noinline)) void odd(u32 *p) { asm volatile("s_setkill 0"); p[0] = 1; }
    KERNEL void k(u32 *p) { p[X] = 5; odd(p); }
    """
    data = compile_hip(require_tool("clang-22"), tmp_path, source)
    dev = device()
    out = np.zeros(64, np.uint32)
    with pytest.raises(Unsupported, match="s_setkill") as caught:
        launch(dev, data, "k", [out])
    assert caught.value.where.kernel == "k" and caught.value.where.pc and "s_setkill" in caught.value.where.text
    assert not out.any()


@pytest.mark.parametrize(("instruction", "why"), [
    (("s_rfe_b64", sgpr(8, 2)), "only a trap handler may"), (("s_sendmsghalt", 1), "graphics pipeline"),
    (("s_cbranch_cdbgsys", 0), "debugger"), (("s_cbranch_g_fork", sgpr(8, 2), sgpr(10, 2)), "no compiler uses"),
])  # fmt: skip
def test_refusals_say_why_and_what_to_do(instruction, why):
    """Before anything runs: kernel, address, instruction, reason, advice; all in one line."""
    data = code_object({"k": [("s_nop", 0), instruction, ("s_endpgm",)]})
    with pytest.raises(Unsupported) as caught:
        Bench(bytes(4)).run(data, "k")
    error = caught.value
    assert error.where.kernel == "k" and error.where.pc and error.where.text.startswith(instruction[0])
    refused = refusal(next(op for op in ISA.ops if op.mnemonic == instruction[0]), ISA.target)
    assert why in refused.reason and refused.reason in str(error) and refused.advice in str(error)
    assert "\n" not in str(error)


def test_code_that_does_not_decode():
    """A kernel whose first instruction is not one."""
    data = bytearray(VECTOR_ADD.path.read_bytes())
    start = data.index(bytes.fromhex("c20100c0") if bytes.fromhex("c20100c0") in data else data[2304:2308])
    data[start : start + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(Malformed, match="vector_add"):
        launch(device(), bytes(data), "vector_add", [np.zeros(64, np.float32)] * 3)


def test_every_sample_fails_cleanly_without_buffers():
    """All pointers null: an error, or nothing touched; never a crash."""
    for one in SAMPLES:
        dev = device(time_limit=20)
        handle = dev.load(one.path.read_bytes()).kernel(one.kernel)
        size = handle.record.descriptor.kernarg_size
        try:
            dev.launch(handle, one.grid, one.block, bytes(size))
        except DeviceError as error:
            assert error.where.kernel == one.kernel


def test_mode_from_a_register_that_it_never_was(compiled):
    values = np.full(64, 1e-10, np.float32)
    launch(device(), compiled, "rounding", [values, 0])
    assert (values == 1).all()
    error = failure(compiled, "rounding", [values, 1])
    assert error.where.kernel == "rounding" and error.where.pc and "MODE is 0x3f1 here, from a register" in str(error)
