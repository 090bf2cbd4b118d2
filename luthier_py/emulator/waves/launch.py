"""The state in which a kernel's waves begin.

In: a kernel descriptor and a launch's shape. Out: images of a work-group's waves: scalar registers,
EXEC, MODE, work-item ids. Source: AMDGPUUsage, "Initial Kernel Execution State", "Kernel Prolog",
"Kernel Dispatch". Invariant: registers that nothing sets are 0.
"""

from __future__ import annotations

import struct
from array import array

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.binary.loader import KernelDescriptor
from luthier_py.binary.loader.initial import user_sgpr_count
from luthier_py.emulator.interface.device import Dim3
from luthier_py.emulator.records.layout import (
    AGPR_ROW,
    COPIED_BYTES,
    EVERYTHING,
    LAUNCH,
    NAMED_SCALARS,
    WAVE,
    Status,
    row_offset,
    sgpr_offset,
)
from luthier_py.emulator.records.words import Words, zero_words
from luthier_py.emulator.waves.shape import Shape, with_shape
from luthier_py.isa.model.registers import EXEC, MODE, TTMP0
from luthier_py.isa.model.target import Target

SHARED_BASE, PRIVATE_BASE = 1 << 48, 2 << 48  # apertures: above every host address
_GLOBAL_SCRATCH_BASE = 1 << 58
# Scratch buffer resource, dwords 1 to 3: swizzled, no limit, thread id added, stride of 64 lanes, elements of 4 bytes.
SWIZZLE = 1 << 31
ADD_TID = 1 << 23
_TTMP_YZ, _TTMP_X = 7, 9  # where work-group ids are on targets with architected SGPRs (AMDGPUUsage)
_TTMP_WAVE, _WAVE_BIT = 8, 25  # the wave's number in its work-group, in five bits (the same; LLVM, legalizeWaveID)
_RESOURCE_3 = ADD_TID | 3 << 21 | 1 << 19


def private_base(target: Target) -> int:
    """Where private memory begins for flat instructions. Where sources can name that, addresses say the lane in bits
    56:52, and all above is one number of private memory (LLVM, hasGloballyAddressableScratch)."""
    return _GLOBAL_SCRATCH_BASE if target.scratch_base_sources else PRIVATE_BASE


@dataclass(frozen=True, slots=True)
class LaunchMemory:
    """Device addresses that initial registers hold."""

    kernarg: int
    packet: int
    queue: int
    dispatch_id: int = 0
    preloaded: bytes = b""  # arguments that the kernel has preloaded to registers


def compute_preloaded_range(descriptor: KernelDescriptor) -> range:
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
        raise Invalid(f"kernel {shape.record.shown}: {len(words)} user SGPRs are enabled, but only {user} counted")
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


def id_rows(shape: Shape) -> int:
    """How many VGPRs have work-item ids."""
    return 1 if shape.target.packed_work_item_ids else shape.record.descriptor.enable_vgpr_workitem_id + 1


@with_shape
def work_item_rows(shape: Shape, block: Dim3) -> list[bytes]:
    """The first VGPRs of every wave of a work-group of ``block`` work-items, one behind the other."""
    (x, y, _), lanes = block, shape.wave_size
    numbers = range(shape.waves * lanes)
    ids = [array("I", [number % x for number in numbers]), array("I", [number // x % y for number in numbers]),
           array("I", [number // (x * y) for number in numbers])]
    ids = ids[: shape.record.descriptor.enable_vgpr_workitem_id + 1]  # others are 0, as clang expects
    if shape.target.packed_work_item_ids:
        ids = [array("I", [sum(each << 10 * place for place, each in enumerate(of)) & 0xFFFFFFFF
                           for of in zip(*ids, strict=True)])]
    return [b"".join(row[first : first + lanes].tobytes() for row in ids) for first in numbers[::lanes]]


@dataclass(frozen=True, slots=True)
class Residence:
    """Where a resident work-group's waves find their things: addresses, and the same for all waves unless said."""

    worker: int
    lds: int
    scratch: int           # of the first wave; the others follow
    scratch_wave_bytes: int
    group: int             # its record
    barriers: int


def wave_images(shape: Shape, places: LaunchMemory, entry: int, home: Residence) -> bytes:
    """Header and first rows of every wave of a work-group, for each set of edges, one behind the other."""
    images, stride = bytearray(_images_anywhere(shape)), image_stride(shape)
    words, longs = memoryview(images).cast("I"), memoryview(images).cast("Q")
    user = array("I", user_sgprs(shape, places, home.scratch))
    has_offset = shape.record.descriptor.enable_private_segment and not shape.target.architected_flat_scratch
    offset_place = group_id_places(shape.target, shape.record.descriptor)[3]
    fields = {"pc": entry, "worker": home.worker, "lds": home.lds, "group": home.group, "barriers": home.barriers}
    for number in range(shape.waves * (shape.edges + 1)):
        offset = number % shape.waves * home.scratch_wave_bytes
        first = number * stride
        words[first // 4 : first // 4 + len(user)] = memoryview(user)
        if has_offset:
            words[first // 4 + offset_place] = offset & 0xFFFFFFFF
        for name, value in fields.items():
            longs[(first + WAVE[name]) // 8] = value
        longs[(first + WAVE["scratch"]) // 8] = home.scratch + offset
    return bytes(images)


@with_shape
def _images_anywhere(shape: Shape) -> bytes:
    """The same without what depends on addresses. Waves that have no work-item have ended."""
    stride, first_row = image_stride(shape), row_offset(0, shape.wave_size)
    images = bytearray((shape.edges + 1) * shape.waves * stride)
    words, longs = memoryview(images).cast("I"), memoryview(images).cast("Q")
    mode = shape.record.descriptor.mode(shape.target)
    for edge in shape.edge_sets():
        x, y, z = block = shape.block_at(edge)
        for wave, rows in enumerate(work_item_rows(shape, block)):
            image = (edge * shape.waves + wave) * stride
            lanes = min(max(x * y * z - wave * shape.wave_size, 0), shape.wave_size)
            named = {EXEC: ((1 << lanes) - 1) & 0xFFFFFFFF, EXEC + 1: ((1 << lanes) - 1) >> 32, MODE: mode}
            if shape.target.architected_sgprs:
                named[TTMP0 + _TTMP_WAVE] = wave << _WAVE_BIT
            for index, value in named.items():
                words[image // 4 + index] = value
            fields = {"status": Status.JUMP if lanes else Status.DONE, "members": shape.waves_of(block),
                      "lds_bytes": shape.lds_bytes, "scratch_bytes": shape.scratch_bytes, "number": wave}
            for name, value in fields.items():
                longs[(image + WAVE[name]) // 8] = value
            images[image + first_row : image + first_row + len(rows)] = rows
    return bytes(images)


@with_shape
def launch_record(shape: Shape) -> Words:
    """Of layout's, for the scheduler, before anything has started; not to be changed."""
    descriptor = shape.record.descriptor
    x, y, z, _ = group_id_places(shape.target, descriptor)
    edges = {f"waves_{edge}": shape.waves_of(shape.block_at(edge)) for edge in shape.edge_sets()}
    return record(
        LAUNCH, total=shape.groups, count_x=shape.grid[0], count_y=shape.grid[1], sgpr_x=x, sgpr_y=y, sgpr_z=z,
        ids_share=int(shape.target.architected_sgprs),
        waves=shape.waves, image_stride=image_stride(shape),
        scalar_bytes=scalar_bytes(NAMED_SCALARS), id_bytes=4 * shape.wave_size * id_rows(shape),
        lds_bytes=shape.lds_bytes, edges=shape.edges,
        edge_stride=image_stride(shape) * shape.waves, **edges, **count_cleared_bytes(shape, EVERYTHING))


def scalar_bytes(named: int) -> int:
    """Of a wave's image, for the launch's record: at least the first ``named`` SGPRs."""
    return max(-(-sgpr_offset(named) // COPIED_BYTES), 1) * COPIED_BYTES


def count_cleared_bytes(shape: Shape, rows: int) -> dict[str, int]:
    """Of VGPRs behind a wave's image, and of AGPRs, for the launch's record: as far as ``rows`` go."""
    descriptor, agprs = shape.record.descriptor, AGPR_ROW
    if shape.target.unified_agprs:
        agprs = descriptor.agpr_count(shape.target)
    vectors, accumulators = ((1 << descriptor.arch_vgpr_count(shape.target)) - 1) & rows, (1 << agprs) - 1
    accumulators &= rows >> AGPR_ROW
    row_bytes = 4 * shape.wave_size
    return {"vector_bytes": max(vectors.bit_length() - id_rows(shape), 0) * row_bytes,
            "agpr_bytes": accumulators.bit_length() * row_bytes}


def image_stride(shape: Shape) -> int:
    """Bytes of a wave's image: the header, and up to three rows of work-item ids."""
    return row_offset(3, shape.wave_size)


def record(fields: dict[str, int], **values: int) -> Words:
    """One of layout's."""
    found = zero_words(len(fields))
    for name, value in values.items():
        found[fields[name] // 8] = value
    return found
