"""What render nodes answer: enough for libdrm_amdgpu to know the device.

Source: drm.h and amdgpu_drm.h of libdrm. Invariant: what is not here fails with EINVAL, as it does in a driver that
does not know it.
"""

from __future__ import annotations

import errno
import struct
from types import SimpleNamespace

from luthier_py.emulator.waves.residency import COMPUTE_UNITS
from luthier_py.host.kfd.layout import StructLayout
from luthier_py.isa import Target
from luthier_py.isa.model.cards import drm_family, pci_device

VERSION, INFO = 0x00, 0x45
_VERSION = StructLayout("major:i minor:i patch:i pad:i name_bytes:Q name:Q date_bytes:Q date:Q text_bytes:Q text:Q")
_INFO = StructLayout("to:Q bytes:I query:I")
_TEXTS = b"amdgpu", b"20150101", b"AMD GPU (emulated)"
_ACCEL_WORKING, _VRAM_GTT, _REGISTERS, _DEV_INFO, _MEMORY = 0x00, 0x14, 0x15, 0x16, 0x19
_DEVICE = StructLayout(
    "device:I chip_revision:I external_revision:I pci_revision:I family:I engines:I arrays_per_engine:I "
    "counter_khz:I engine_khz:Q memory_khz:Q compute_units:I always_on:I bitmap:64s backends_mask:I backends:I "
    "contexts:I pcie_generation:I flags:Q address_offset:Q address_max:Q address_alignment:I fragment_bytes:I "
    "page_bytes:I pad:I"
)


def answer(number: int, args: bytes, arrays: bytes, target: Target, memory: int, used: int) -> bytes:
    """Arguments and what they point to, after the call; raises OSError."""
    if number == VERSION:
        fields = _VERSION.read(args)
        room = fields.name_bytes, fields.date_bytes, fields.text_bytes
        fields.major, fields.minor, fields.patch = 3, 48, 0
        fields.name_bytes, fields.date_bytes, fields.text_bytes = map(len, _TEXTS)
        texts = b"".join(cut(text, size) for text, size in zip(_TEXTS, room, strict=True))
        return _VERSION.write(fields, args) + texts[: len(arrays)]
    if number == INFO:
        return args + cut(_info(_INFO.read(args).query, target, memory, used), len(arrays))
    raise OSError(errno.EINVAL, "ioctl")


def cut(data: bytes, size: int) -> bytes:
    """As much as there is room for."""
    return data[:size].ljust(size, b"\0")


def _info(query: int, target: Target, memory: int, used: int) -> bytes:
    if query == _ACCEL_WORKING:
        return struct.pack("<I", 1)
    if query == _VRAM_GTT:
        return struct.pack("<3Q", memory, memory, memory)
    if query == _MEMORY:
        heap = struct.pack("<4Q", memory, memory, used, memory - used)
        return heap * 3
    if query == _DEV_INFO:
        return _device(target)
    if query == _REGISTERS:
        return b""  # of the display's and tiling's configuration: zeros
    raise OSError(errno.EINVAL, "query")


def _device(target: Target) -> bytes:
    """The start of struct drm_amdgpu_info_device."""
    fields = SimpleNamespace(**dict.fromkeys(_DEVICE.names, 0))
    fields.device, fields.external_revision, fields.family = pci_device(target), 1, drm_family(target)
    fields.engines = fields.arrays_per_engine = 1
    fields.counter_khz = fields.engine_khz = fields.memory_khz = 1_000_000
    fields.compute_units, fields.bitmap = COMPUTE_UNITS, struct.pack("<I", (1 << COMPUTE_UNITS) - 1).ljust(64, b"\0")
    fields.address_offset, fields.address_max = 1 << 21, 1 << 47
    fields.address_alignment = fields.fragment_bytes = fields.page_bytes = 4096
    return _DEVICE.write(fields)
