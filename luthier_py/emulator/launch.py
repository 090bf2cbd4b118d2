"""The state in which a kernel's waves begin.

In: a kernel descriptor and a launch's shape. Out: images of a work-group's waves: scalar registers,
EXEC, MODE, work-item ids. Source: AMDGPUUsage, "Initial Kernel Execution State", "Kernel Prolog",
"Kernel Dispatch". Invariant: registers that nothing sets are 0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luthier_py.emulator.layout import AGPR_ROW, LAUNCH, WAVE, WAVE_HEADER_BYTES, Status, row_offset
from luthier_py.emulator.shape import Shape, with_shape
from luthier_py.errors import Invalid
from luthier_py.isa.registers import EXEC, MODE, TTMP0
from luthier_py.isa.target import Target
from luthier_py.loader import KernelDescriptor
from luthier_py.loader.initial import user_sgpr_count
from luthier_py.runtime.device import Dim3

SHARED_BASE, PRIVATE_BASE = 1 << 48, 2 << 48  # apertures: above every host address
_GLOBAL_SCRATCH_BASE = 1 << 58
# Scratch buffer resource, dwords 1 to 3: swizzled, no limit, thread id added, stride of 64 lanes, elements of 4 bytes.
SWIZZLE = 1 << 31
ADD_TID = 1 << 23
_TTMP_YZ, _TTMP_X = 7, 9  # where work-group ids are on targets with architected SGPRs (AMDGPUUsage)
_TTMP_WAVE, _WAVE_BIT = 8, 25  # the wave's number in its work-group, in five bits (the same; LLVM, legalizeWaveID)
_RESOURCE_3 = ADD_TID | 3 << 21 | 1 << 19

Words = NDArray[np.uint64]


def private_base(target: Target) -> int:
    """Where private memory begins for flat instructions. Where sources can name that, addresses say the lane in bits
    56:52, and all above is one number of private memory (LLVM, hasGloballyAddressableScratch)."""
    return _GLOBAL_SCRATCH_BASE if target.scratch_base_sources else PRIVATE_BASE


def mode_of(target: Target, descriptor: KernelDescriptor) -> int:
    """MODE as the hardware loads it: rounding, denormals, DX10_CLAMP, IEEE, FP16_OVFL. Where MODE has no such bits, NaN
    is clamped and IEEE mode is off."""
    clamp, ieee = descriptor.enable_dx10_clamp, descriptor.enable_ieee_mode
    if not target.clamps_by_mode:
        clamp, ieee = True, False
    return (descriptor.float_round_mode_32 | descriptor.float_round_mode_16_64 << 2
            | descriptor.float_denorm_mode_32 << 4 | descriptor.float_denorm_mode_16_64 << 6
            | int(clamp) << 8 | int(ieee) << 9
            | int(descriptor.fp16_ovfl) << 23)


@dataclass(frozen=True, slots=True)
class LaunchMemory:
    """Device addresses that initial registers hold."""

    kernarg: int
    packet: int
    queue: int
    dispatch_id: int = 0
    preloaded: bytes = b""  # what the kernel asks to have of its arguments in registers


def preloaded_range(descriptor: KernelDescriptor) -> range:
    """Bytes of the kernarg segment that come in user SGPRs."""
    start = 4 * descriptor.kernarg_preload_offset
    return range(start, start + 4 * descriptor.kernarg_preload_length)


def user_sgprs(shape: Shape, places: LaunchMemory, scratch: int) -> list[int]:
    """User SGPRs from s0 on; ``scratch`` is where the launch's scratch memory begins."""
    count = shape.record.descriptor.kernarg_preload_length
    words = _words_before_arguments(shape, places, scratch)
    words += struct.unpack(f"<{count}I", places.preloaded.ljust(4 * count, b"\0"))
    user = user_sgpr_count(shape.target, shape.record.descriptor)
    if len(words) > user:
        raise Invalid(f"kernel {shape.record.name}: {len(words)} user SGPRs are enabled, but only {user} counted")
    return words + [0] * (user - len(words))


def preload_place(shape: Shape) -> int:
    """The first SGPR that has what is preloaded."""
    return len(_words_before_arguments(shape, LaunchMemory(0, 0, 0), 0))


def _words_before_arguments(shape: Shape, places: LaunchMemory, scratch: int) -> list[int]:
    descriptor = shape.record.descriptor
    words: list[int] = []

    def pair(value: int) -> list[int]:
        return [value & 0xFFFFFFFF, value >> 32]

    if descriptor.enable_sgpr_private_segment_buffer:
        words += [scratch & 0xFFFFFFFF, (scratch >> 32 & 0xFFFF) | SWIZZLE, 0xFFFFFFFF, _RESOURCE_3]
    for enabled, value in (
        (descriptor.enable_sgpr_dispatch_ptr, places.packet),
        (descriptor.enable_sgpr_queue_ptr, places.queue),
        (descriptor.enable_sgpr_kernarg_segment_ptr, places.kernarg),
        (descriptor.enable_sgpr_dispatch_id, places.dispatch_id),
        (descriptor.enable_sgpr_flat_scratch_init, scratch),
    ):
        words += pair(value) if enabled else []
    if descriptor.enable_sgpr_private_segment_size:
        words.append(shape.scratch_bytes)
    return words


def group_id_places(target: Target, descriptor: KernelDescriptor) -> tuple[int, int, int, int]:
    """Byte offsets in the wave of the work-group ids x, y, z; and the index of the next system SGPR."""
    index = user_sgpr_count(target, descriptor)
    if target.architected_sgprs:  # of y in the lower half of its register, where z is in the upper one
        return 4 * (TTMP0 + _TTMP_X), 4 * (TTMP0 + _TTMP_YZ), WAVE["ignored"], index
    places = []
    for enabled in (descriptor.enable_sgpr_workgroup_id_x, descriptor.enable_sgpr_workgroup_id_y,
                    descriptor.enable_sgpr_workgroup_id_z):
        places.append(4 * index if enabled else WAVE["ignored"])
        index += int(enabled)
    return places[0], places[1], places[2], index + int(descriptor.enable_sgpr_workgroup_info)


@with_shape
def work_item_rows(shape: Shape, block: Dim3) -> NDArray[np.uint32]:
    """The first VGPRs of every wave of a work-group of ``block`` work-items: (waves, rows, lanes)."""
    x, y, _ = block
    number = np.arange(shape.waves * shape.wave_size, dtype=np.uint32).reshape(shape.waves, shape.wave_size)
    ids = number % x, number // x % y, number // (x * y)
    wanted = shape.record.descriptor.enable_vgpr_workitem_id + 1
    if shape.target.packed_work_item_ids:
        packed = sum(each << 10 * place for place, each in enumerate(ids[:wanted]))  # others: 0, as clang expects
        return np.asarray(packed, np.uint32)[:, None, :]
    return np.stack(ids[:wanted], axis=1).astype(np.uint32)


@dataclass(frozen=True, slots=True)
class Residence:
    """Where a resident work-group's waves find their things: addresses, and the same for all waves unless said."""

    worker: int
    lds: int
    scratch: int           # of the first wave; the others follow
    scratch_wave_bytes: int
    group: int             # its record
    barriers: int


def wave_images(shape: Shape, places: LaunchMemory, entry: int, home: Residence) -> NDArray[np.uint8]:
    """Header and first rows of every wave of a work-group, for each set of edges: (sets, waves, bytes)."""
    images: NDArray[np.uint8] = _images_anywhere(shape).copy()
    words = images.view(np.uint32)
    numbers = np.arange(shape.waves, dtype=np.uint64)
    offsets = numbers * np.uint64(home.scratch_wave_bytes)
    user = user_sgprs(shape, places, home.scratch)
    words[..., : len(user)] = user
    if shape.record.descriptor.enable_private_segment and not shape.target.architected_flat_scratch:
        words[..., group_id_places(shape.target, shape.record.descriptor)[3]] = offsets
    longs = images.view(np.uint64)
    fields = {"pc": entry, "worker": home.worker, "lds": home.lds, "group": home.group,
              "barriers": home.barriers, "scratch": offsets + np.uint64(home.scratch)}
    for name, value in fields.items():
        longs[..., WAVE[name] // 8] = value
    return images


@with_shape
def _images_anywhere(shape: Shape) -> NDArray[np.uint8]:
    """The same without what depends on addresses. Waves that have no work-item have ended."""
    images = np.zeros((shape.edges + 1, shape.waves, image_stride(shape)), dtype=np.uint8)
    first = row_offset(0, shape.wave_size)
    for edge in shape.edge_sets():
        x, y, z = block = shape.block_at(edge)
        rows = work_item_rows(shape, block)
        words, longs = images[edge].view(np.uint32), images[edge].view(np.uint64)
        active = np.clip(x * y * z - np.arange(shape.waves) * shape.wave_size, 0, shape.wave_size)
        for lanes, image in zip(active.tolist(), words, strict=True):
            image[EXEC], image[EXEC + 1] = ((1 << lanes) - 1) & 0xFFFFFFFF, ((1 << lanes) - 1) >> 32
        longs[:, WAVE["number"] // 8] = np.arange(shape.waves)
        words[:, MODE] = mode_of(shape.target, shape.record.descriptor)
        if shape.target.architected_sgprs:
            words[:, TTMP0 + _TTMP_WAVE] = np.arange(shape.waves) << _WAVE_BIT
        status = np.where(active > 0, Status.JUMP, Status.DONE)
        fields = {"status": status, "members": shape.waves_of(block), "lds_bytes": shape.lds_bytes,
                  "scratch_bytes": shape.scratch_bytes}
        for name, value in fields.items():
            longs[:, WAVE[name] // 8] = value
        images[edge, :, first : first + rows[0].nbytes] = rows.reshape(shape.waves, -1).view(np.uint8)
    return images


@with_shape
def launch_record(shape: Shape) -> Words:
    """Of layout's, for the scheduler, before anything has started; not to be changed."""
    descriptor = shape.record.descriptor
    x, y, z, _ = group_id_places(shape.target, descriptor)
    row_bytes = 4 * shape.wave_size
    vgprs = descriptor.arch_vgpr_count(shape.target)
    agprs = descriptor.agpr_count(shape.target) if shape.target.unified_agprs else AGPR_ROW
    image_rows = work_item_rows(shape, shape.block).shape[1]
    edges = {f"waves_{edge}": shape.waves_of(shape.block_at(edge)) for edge in shape.edge_sets()}
    return record(
        LAUNCH, total=shape.groups, count_x=shape.grid[0], count_y=shape.grid[1], sgpr_x=x, sgpr_y=y, sgpr_z=z,
        ids_share=int(shape.target.architected_sgprs),
        waves=shape.waves, image_stride=image_stride(shape),
        image_bytes=WAVE_HEADER_BYTES + image_rows * row_bytes, vector_bytes=max(vgprs - image_rows, 0) * row_bytes,
        agpr_bytes=agprs * row_bytes, lds_bytes=shape.lds_bytes, edges=shape.edges,
        edge_stride=image_stride(shape) * shape.waves, **edges)


def image_stride(shape: Shape) -> int:
    """Bytes of a wave's image: the header, and up to three rows of work-item ids."""
    return row_offset(3, shape.wave_size)


def record(fields: dict[str, int], **values: int) -> Words:
    """One of layout's."""
    found: Words = np.zeros(len(fields), dtype=np.uint64)
    for name, value in values.items():
        found[fields[name] // 8] = value
    return found
