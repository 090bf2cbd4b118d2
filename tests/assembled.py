"""Kernels written in assembly for any target, assembled by clang, and what they leave in memory.

In: lines of a kernel `k` whose argument, a pointer, is in s[0:1] (kernel arguments) and whose lane is v0. Out: bytes of
a code object; what a launch of one wave leaves where the pointer points.
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from luthier_py.emulator import EmulatorDevice
from luthier_py.isa import target

BUFFER_BYTES = 4096
_TEXT = """
.amdgcn_target "amdgcn-amd-amdhsa--{gpu}"
.text
.globl k
.p2align 8
.type k,@function
k:
{body}
.size k, .-k
.rodata
.p2align 6
.amdhsa_kernel k
 .amdhsa_user_sgpr_kernarg_segment_ptr 1
 .amdhsa_kernarg_size 8
 .amdhsa_next_free_vgpr {vgprs}
 .amdhsa_next_free_sgpr 40
 .amdhsa_private_segment_fixed_size {private}
 .amdhsa_group_segment_fixed_size {lds}
 {more}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: {private}
    .kernarg_segment_align: 8
    .wavefront_size: {wave}
    .sgpr_count: 40
    .vgpr_count: {vgprs}
    .max_flat_workgroup_size: 64
    .args: [{{.size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}]
...
.end_amdgpu_metadata
"""


def assembled(clang: str, folder: Path, gpu: str, body: str, vgprs: int = 32, private: int = 0,
              wave: int | None = None, lds: int = 0) -> bytes:
    """Waves of 32 lanes from gfx10 on, where nothing else is said."""
    wave = wave or min(target(gpu).wave_sizes)
    more = [f".amdhsa_wavefront_size32 {int(wave == 32)}"] * (target(gpu).generation >= 10)
    more += [f".amdhsa_accum_offset {-(-vgprs // 4) * 4}"] * target(gpu).has_agprs * (gpu != "gfx908")
    (folder / "k.s").write_text(
        _TEXT.format(gpu=gpu, body=body, vgprs=vgprs, private=private, wave=wave, lds=lds, more="\n ".join(more)))
    subprocess.run([clang, "-x", "assembler", "-target", "amdgcn-amd-amdhsa", f"-mcpu={gpu}", folder / "k.s",
                    "-o", folder / "k.co", *["-mwavefrontsize64"] * (wave > min(target(gpu).wave_sizes))], check=True)
    return (folder / "k.co").read_bytes()


def left_by(data: bytes, gpu: str, kernel: str = "k", lanes: int = 32) -> bytes:
    """The buffer, which holds its own dwords' numbers before; and with what the launch counted."""
    device = EmulatorDevice(target(gpu))
    buffer = device.alloc(BUFFER_BYTES)
    device.write(buffer.address, struct.pack(f"<{BUFFER_BYTES // 4}I", *range(BUFFER_BYTES // 4)))
    device.launch(device.load(data, "k").kernel(kernel), (1, 1, 1), (lanes, 1, 1), struct.pack("<Q", buffer.address))
    return device.read(buffer.address, BUFFER_BYTES)
