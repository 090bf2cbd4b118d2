"""Kernel arguments: values to the bytes of the kernarg segment.

In: a kernel's metadata, a value for each visible argument, the launch's shape. Out: the segment,
with the hidden arguments of code object version 5 filled in (AMDGPUUsage, "Code Object V5 Metadata").
Hidden arguments that only a runtime can give (printf and hostcall buffers, heap, queue) stay 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from luthier_py.base.errors import Invalid, how_many
from luthier_py.binary.loader import KernelArg, KernelRecord
from luthier_py.emulator.interface.device import Buffer, Dim3

if TYPE_CHECKING:
    import numpy as np  # takes as long to import as everything else that a tool's worker needs

Argument: TypeAlias = "Buffer | int | float | bytes | np.generic"

POINTERS = ("global_buffer", "dynamic_shared_pointer")
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_AXES = "xyz"
_MOST_ALIGNMENT = 16  # of any C type


def pack_arguments(record: KernelRecord, values: Sequence[Argument], grid: Dim3, block: Dim3,
                   lds_bytes: int = 0) -> bytes:
    """The kernarg segment. Buffers give their addresses; NumPy scalars and bytes must have the argument's size."""
    if not record.states_arguments:
        return _lay_out(record, values)
    visible = record.own_args
    if len(values) != len(visible):
        names = ", ".join(arg.name or arg.value_kind for arg in visible)
        raise Invalid(f"kernel {record.shown} takes {how_many(len(visible), 'argument')} ({names}), not {len(values)}")
    segment = bytearray(record.kernarg_bytes)
    for arg, value in zip(visible, values, strict=True):
        segment[arg.offset : arg.offset + arg.size] = _pack(record, arg, value)
    return with_hidden(record, bytes(segment), grid, block, lds_bytes)


def _lay_out(record: KernelRecord, values: Sequence[Argument]) -> bytes:
    """A segment as a C compiler lays these values out, for a kernel whose arguments are unknown."""
    segment = b""
    for number, value in enumerate(values):
        if isinstance(value, Buffer):
            content = value.address.to_bytes(8, "little")
        elif isinstance(value, bytes) or hasattr(value, "tobytes"):
            content = value if isinstance(value, bytes) else bytes(value.tobytes())
        else:
            raise Invalid(f"kernel {record.shown}, argument {number}: the object has no metadata that says how many "
                          f"bytes it takes; give a NumPy scalar, as numpy.int32({value}), or bytes")
        segment += bytes(-len(segment) % min(len(content) & -len(content) or 1, _MOST_ALIGNMENT)) + content
    return segment.ljust(record.descriptor.kernarg_size, b"\0")


def with_hidden(record: KernelRecord, segment: bytes, grid: Dim3, block: Dim3, lds_bytes: int = 0) -> bytes:
    """A kernarg segment with the hidden arguments filled in."""
    filled = bytearray(segment.ljust(max((arg.offset + arg.size for arg in record.args), default=0), b"\0"))
    for arg in record.args:
        if arg.hidden:
            number = compute_hidden_argument(arg.value_kind, grid, block, lds_bytes)
            filled[arg.offset : arg.offset + arg.size] = number.to_bytes(arg.size, "little")
    return bytes(filled)


def _pack(record: KernelRecord, arg: KernelArg, value: Argument) -> bytes:
    where = f"kernel {record.shown}, argument {arg.name or f'at offset {arg.offset}'}"
    if isinstance(value, Buffer) and arg.value_kind not in POINTERS and arg.size != 8:
        raise Invalid(f"{where}: a buffer is given, but it takes {arg.size} bytes by value")
    if hasattr(value, "tobytes"):
        value = bytes(value.tobytes())
    if isinstance(value, bytes):
        if len(value) != arg.size:
            raise Invalid(f"{where}: {len(value)} bytes are given, but it takes {arg.size}")
        return value
    if isinstance(value, float) and (arg.size not in _FLOATS or arg.value_kind in POINTERS):
        raise Invalid(f"{where}: a float is given, but it takes {arg.value_kind} of {arg.size} bytes")
    try:
        if isinstance(value, float):
            return struct.pack(_FLOATS[arg.size], value)
        number = value.address if isinstance(value, Buffer) else int(value)
        return number.to_bytes(arg.size, "little", signed=number < 0)
    except OverflowError:
        raise Invalid(f"{where}: {value} does not fit in {arg.size} bytes") from None


def compute_hidden_argument(kind: str, grid: Dim3, block: Dim3, lds_bytes: int = 0, lacking: Dim3 = (0, 0, 0)) -> int:
    """What a hidden argument of ``kind`` holds; 0 for those that this launch does not have. ``lacking``: work-items of
    the last work-groups, which count as no whole ones (AMDGPUUsage, "Kernel Argument Metadata")."""
    for axis, (groups, items, missing) in enumerate(zip(grid, block, lacking, strict=True)):
        numbers = {"block_count": groups - bool(missing), "group_size": items, "remainder": -missing % items}
        for name, number in numbers.items():
            if kind == f"hidden_{name}_{_AXES[axis]}":
                return number
    if kind == "hidden_grid_dims":
        return max(axis + 1 for axis in range(3) if axis == 0 or grid[axis] * block[axis] > 1)
    if kind == "hidden_dynamic_lds_size":
        return lds_bytes
    return 0
