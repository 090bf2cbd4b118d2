"""What emulator tests share: samples and freshly compiled kernels, launched on an EmulatorDevice."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from luthier_py.emulator import EmulatorDevice
from luthier_py.emulator.interface import pack_arguments
from luthier_py.emulator.options.launch_options import LaunchOptions
from luthier_py.features.run.specs import parse_argument
from luthier_py.isa import target
from luthier_py.samples import Sample

FLAGS = (
    "-x",
    "hip",
    "--offload-arch=gfx90a",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
    "-nogpulib",
    "-nogpuinc",
    "-O2",
)
HEADER = """
#define KERNEL extern "C" __attribute__((global))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))
typedef unsigned u32; typedef int i32; typedef unsigned long u64; typedef long i64; typedef unsigned char u8;
typedef unsigned short u16; typedef short i16; typedef signed char i8; typedef _Float16 f16;
#define X __builtin_amdgcn_workitem_id_x()
#define Y __builtin_amdgcn_workitem_id_y()
#define Z __builtin_amdgcn_workitem_id_z()
#define GX __builtin_amdgcn_workgroup_id_x()
#define GY __builtin_amdgcn_workgroup_id_y()
#define GZ __builtin_amdgcn_workgroup_id_z()
#define DIM __builtin_amdgcn_workgroup_size_x()
#define I (GX * DIM + X)
#define FENCE(order) __builtin_amdgcn_fence(order, "workgroup")
#define BARRIER FENCE(__ATOMIC_RELEASE); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE);
"""


def compile_hip(clang: str, folder: Path, source: str, *flags: str) -> bytes:
    """A code object from HIP device code."""
    (folder / "k.hip").write_text(HEADER + source)
    subprocess.run(
        [clang, *FLAGS, *flags, str(folder / "k.hip"), "-o", str(folder / "k.co")], check=True, capture_output=True
    )
    return (folder / "k.co").read_bytes()


def device(time_limit: float | None = None, instruction_limit: int | None = None, **options: Any) -> EmulatorDevice:
    limits = LaunchOptions(time_limit=time_limit, instruction_limit=instruction_limit)
    return EmulatorDevice(target("gfx90a"), options=limits, **options)


def launch(
    dev: EmulatorDevice, data: bytes, kernel: str, values: Sequence[Any], grid=(1, 1, 1), block=(64, 1, 1), lds_bytes=0
):
    """Arrays become buffers; afterwards they hold what the kernel left in them."""
    module = dev.load(data, kernel)
    handle = module.kernel(kernel)
    buffers = []
    packed: list[Any] = []
    for value in values:
        if isinstance(value, np.ndarray):
            buffer = dev.alloc(value.nbytes)
            dev.write(buffer.address, value.tobytes())
            buffers.append((value, buffer))
            packed.append(buffer)
        else:
            packed.append(value)
    try:
        dev.launch(handle, grid, block, pack_arguments(handle.record, packed, grid, block, lds_bytes), lds_bytes)
        for value, buffer in buffers:
            value[...] = np.frombuffer(dev.read(buffer.address, buffer.size), value.dtype).reshape(value.shape)
    finally:
        for _, buffer in buffers:
            dev.free(buffer)
        module.unload()


def run_sample(dev: EmulatorDevice, sample: Sample) -> bool:
    """Launch a sample; whether all its outputs are right."""
    parsed = [parse_argument(text) for text in sample.args]
    inputs = [value.data if hasattr(value, "data") else value.value for value in parsed]
    arrays = [value.copy() if isinstance(value, np.ndarray) else value for value in inputs]
    launch(dev, sample.path.read_bytes(), sample.kernel, arrays, sample.grid, sample.block)
    outputs = [array for array, value in zip(arrays, parsed, strict=True) if getattr(value, "is_output", False)]
    return all(
        sample.agrees(actual, expected) for actual, expected in zip(outputs, sample.reference(inputs), strict=True)
    )
