"""The state a kernel begins in (AMDGPUUsage, "Initial Kernel Execution State"), read back by kernels."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from launching import compile_hip, device, launch

from luthier_py.base.errors import DeviceError, Invalid
from luthier_py.binary.loader import load
from luthier_py.emulator.records.layout import WAVE
from luthier_py.emulator.waves.launch import (
    LaunchMemory,
    Residence,
    compute_preloaded_range,
    group_id_places,
    image_stride,
    user_sgprs,
    wave_images,
    work_item_rows,
)
from luthier_py.emulator.waves.segments import dispatch_packet
from luthier_py.emulator.waves.shape import shape_of
from luthier_py.isa import target
from luthier_py.samples import sample

TARGET = target("gfx90a")
RECORD = load(sample("function_pointers").path.read_bytes()).kernel("function_pointers")


def shape(grid=(2, 3, 4), block=(8, 4, 2), record=RECORD, lds=0):
    return shape_of(record, TARGET, grid, block, lds)


def test_user_sgprs_in_order():
    """All that function_pointers asks for: V#, dispatch, queue, kernarg, dispatch id, flat scratch."""
    sgprs = user_sgprs(
        shape(), LaunchMemory(0x1111_2222_3333, 0x4444_5555_6666, 0x7777_8888_9999, 0x1_0000_0002), 0xABCD_0000_1000
    )
    assert sgprs == [
        0x1000,
        0xABCD | 1 << 31,
        0xFFFFFFFF,
        0x00E80000,
        0x5555_6666,
        0x4444,
        0x8888_9999,
        0x7777,
        0x2222_3333,
        0x1111,
        2,
        1,
        0x1000,
        0xABCD,
    ]
    assert group_id_places(TARGET, RECORD.descriptor) == (4 * 14, 4 * 15, 4 * 16, 17)


def test_group_ids_where_they_are_architected():
    """In TTMP9, and in the halves of TTMP7 (AMDGPUUsage, "Initial Kernel Execution State")."""
    ttmp0 = 108
    x, y, z, _ = group_id_places(target("gfx1201"), RECORD.descriptor)
    assert (x, y, z) == (4 * (ttmp0 + 9), 4 * (ttmp0 + 7), WAVE["ignored"])


def test_waves_know_their_number_where_it_is_architected():
    """In TTMP8[29:25] (AMDGPUUsage, the same section), where kernels of Triton look for it."""
    ttmp8 = 108 + 8
    for name, numbers in (("gfx1201", [0, 1, 2, 3]), ("gfx90a", [0, 0, 0, 0])):
        gpu = target(name)
        own = shape_of(RECORD, gpu, (1, 1, 1), (4 * 64, 1, 1), 0)
        images = wave_images(own, LaunchMemory(0, 0, 0), 0, Residence(0, 0, 0, 0, 0, 0))
        words = np.frombuffer(images, np.uint32).reshape(-1, image_stride(own) // 4)
        assert [int(word) >> 25 for word in words[:, ttmp8]][:4] == numbers


def test_preloaded_arguments():
    record = load(sample("vector_add").path.read_bytes()).kernel("vector_add")
    descriptor = record.descriptor.replace(
        kernarg_preload_length=3, kernarg_preload_offset=1, user_sgpr_count=record.descriptor.user_sgpr_count + 3
    )
    changed = type(record)(
        record.name, record.symbol, record.descriptor_address, descriptor, record.entry, record.metadata, record.args
    )
    asked = compute_preloaded_range(descriptor)
    arguments = struct.pack("<6I", 1, 2, 3, 4, 5, 6)[asked.start : asked.stop]
    sgprs = user_sgprs(shape(record=changed), LaunchMemory(0, 0, 0, preloaded=arguments), 0)
    assert sgprs[-3:] == [2, 3, 4]
    short = descriptor.replace(user_sgpr_count=2)
    broken = type(record)(
        record.name, record.symbol, record.descriptor_address, short, record.entry, record.metadata, record.args
    )
    with pytest.raises(Invalid, match="user SGPRs"):
        user_sgprs(shape(record=broken), LaunchMemory(0, 0, 0), 0)


def test_work_item_ids_are_packed():
    rows = work_item_rows(shape(block=(8, 4, 3)), (8, 4, 3))
    assert [len(row) for row in rows] == [4 * 64, 4 * 64]
    flat = np.frombuffer(b"".join(rows), np.uint32)
    for item in range(96):
        assert flat[item] == item % 8 | (item // 8 % 4) << 10 | (item // 32) << 20


def test_dispatch_packet():
    packet = dispatch_packet(shape(grid=(2, 3, 1), block=(16, 2, 1)), 0x1234, 0x5678).pack()
    header, setup, x, y, z, _, gx, gy, gz, private, group, kernel, kernarg = struct.unpack_from("<6H5I2Q", packet)
    assert (header, setup, x, y, z, gx, gy, gz) == (2, 2, 16, 2, 1, 32, 6, 1)
    assert (kernel, kernarg, group) == (0x1234, 0x5678, 0) and private == shape().scratch_bytes


def test_mode():
    descriptor = RECORD.descriptor
    assert descriptor.mode(TARGET) == 0x3F0
    assert descriptor.replace(float_denorm_mode_32=0).mode(TARGET) == 0x3C0
    assert descriptor.replace(float_round_mode_32=1, float_round_mode_16_64=3).mode(TARGET) == 0x3FD
    assert descriptor.replace(fp16_ovfl=1, enable_dx10_clamp=0).mode(TARGET) == 0x8002F0
    assert descriptor.replace(enable_dx10_clamp=0, enable_ieee_mode=1, fp16_ovfl=1).mode(target("gfx1201")) == 0x8000F0
    assert descriptor.replace(fp16_ovfl=1).mode(target("gfx803")) == 0x3F0


SOURCE = r"""
typedef __attribute__((address_space(4))) const u8 *args;
KERNEL void implicit(u32 *out) {
  args a = (args)__builtin_amdgcn_implicitarg_ptr();
  for (u32 i = 0; i < 3; ++i) out[i] = ((__attribute__((address_space(4))) const u32 *)a)[i];
  for (u32 i = 0; i < 6; ++i) out[3 + i] = ((__attribute__((address_space(4))) const u16 *)(a + 12))[i];
  out[9] = *(__attribute__((address_space(4))) const u16 *)(a + 64);
  args p = (args)__builtin_amdgcn_dispatch_ptr();
  out[10] = *(__attribute__((address_space(4))) const u16 *)(p + 4);
  out[11] = *(__attribute__((address_space(4))) const u32 *)(p + 12);
}
KERNEL void uninitialised(u32 *out) {
  SHARED u32 a[64];
  u32 v;
  asm volatile("v_mov_b32 %0, v40" : "=v"(v) :: "v40");
  out[X] = a[X] | v;
  a[X] = 7;
}
KERNEL void behind(u32 *out, u32 word) {
  out[X] = ((__attribute__((address_space(4))) const u32 *)__builtin_amdgcn_kernarg_segment_ptr())[word];
}
"""


def test_hidden_arguments(require_tool, tmp_path):
    out = np.zeros(16, np.uint32)
    launch(device(), compile_hip(require_tool("clang-22"), tmp_path, SOURCE), "implicit", [out], (5, 6, 7), (8, 4, 2))
    assert list(out[:12]) == [5, 6, 7, 8, 4, 2, 0, 0, 0, 3, 8, 40]


def test_registers_and_lds_begin_as_zeros(require_tool, tmp_path):
    """Reused memory included: results do not depend on what ran before."""
    data = compile_hip(require_tool("clang-22"), tmp_path, SOURCE)
    dev = device()
    for _ in range(2):
        out = np.ones(64, np.uint32)
        launch(dev, data, "uninitialised", [out], (4, 1, 1))
        assert not out.any()


def test_arguments_end_with_their_cache_line(require_tool, tmp_path):
    """Compilers join loads of arguments to wider ones, of which the end is behind the last argument."""
    data = compile_hip(require_tool("clang-22"), tmp_path, SOURCE)
    used = load(data).kernel("behind").descriptor.kernarg_size
    words = -(-used // 64) * 16
    assert used < 4 * words
    out = np.ones(64, np.uint32)
    launch(device(), data, "behind", [out, words - 1])
    assert not out.any()
    with pytest.raises(DeviceError, match="just past the end of kernel arguments"):
        launch(device(), data, "behind", [out, words])


def test_unused_work_item_ids_are_zero(require_tool, tmp_path):
    """Also where all share v0: clang masks none that it did not ask for (SIISelLowering, allocateSpecialInputVGPRs)."""
    data = compile_hip(require_tool("clang-22"), tmp_path, "KERNEL void k(u32 *out) { out[X] = 5; }")
    out = np.zeros(16, np.uint32)
    launch(device(), data, "k", [out], block=(8, 2, 1))
    assert out.tolist() == [5] * 8 + [0] * 8
