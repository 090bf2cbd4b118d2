"""Arguments about memory accesses: effective addresses, range checks, widths, kinds.

In: a memory instruction. Out: an argument for a hook before it. Invariant: an address is what the hardware makes of the
operands in each active lane (AMD Instinct MI200 ISA, 8.2, 9.1, 10.3, 11.2), before any range check; what is not known
of an instruction is refused, with the tool's file and line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from luthier_py.base.errors import HookError
from luthier_py.isa import AccessKind, AddressForm, MemoryAccess, Operand, Reg, RegFile, Space, Target, semantics
from luthier_py.isa.encoding.instruction import SRC_NULL
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool.arguments.computed import Computed, about
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.author_types import Lane, bool_, u32, u64
from luthier_py.rewrite.tool.hooks.buffers import (
    buffer_address,
    buffer_holds,
    scalar_buffer_address,
    scalar_buffer_holds,
)
from luthier_py.rewrite.tool.hooks.hook import device
from luthier_py.rewrite.tool.hooks.lane_masks import lane_id

_NEAR = {AddressForm.LDS: Space.LDS, AddressForm.SCRATCH: Space.SCRATCH}


@device
def _far(address: Lane[u64], offset: u64) -> Lane[u64]:
    return address + offset


@device
def _near(base: u64, address: Lane[u32], offset: u64, unit: u64) -> Lane[u64]:
    return (base + offset) + u64(address) * unit


@device
def _near_signed(base: u64, address: Lane[u32], offset: u64, unit: u64) -> Lane[u64]:
    return (base + offset) + (u64(address) - (u64(address >> 31) << 32)) * unit


@device
def _local(address: Lane[u32], offset: u32) -> Lane[u64]:
    return u64(address + offset)


@device
def _private(address: Lane[u32], base: u32, offset: u32, unit: u32) -> Lane[u64]:
    return u64(address * unit + (base + offset))


@device
def _scalar(base: u64, register: u32, offset: u64, unit: u64, whole: u64) -> u64:
    return (base + u64(register) * unit + offset) & ~(whole - 1)


@device
def _buffer(
    low: u64, high: u64, index: Lane[u32], offset: Lane[u32], register: u32, constant: u32, generation: u32,
    wide: bool_, converts: bool_,
) -> Lane[u64]:
    return buffer_address(low, high, index, offset, register, constant, lane_id(), generation, wide, converts)


@device
def _in_buffer(
    low: u64, high: u64, index: Lane[u32], offset: Lane[u32], register: u32, constant: u32, generation: u32,
    wide: bool_, converts: bool_, size: u32, indexed: bool_,
) -> Lane[bool_]:
    return buffer_holds(
        low, high, index, offset, register, constant, lane_id(), generation, wide, converts, size, indexed)


def address(instr: Instr, element: int = 0) -> Computed:
    """The effective address of a memory instruction, for a hook before it.

    ``Lane[u64]`` (one ``u64`` for scalar loads and stores): of global, flat and buffer instructions an address in
    memory; of LDS instructions a byte of the work-group's LDS, and of scratch instructions one of the lane's private
    memory. A pointer takes it, too: ``Lane[ptr[T]]``, of LDS ``Lane[lds[T]]``, of scratch ``Lane[scratch[T]]``.
    ``element``: 1 for the second of two that an instruction accesses (ds_read2). A lane whose access the range check of
    a buffer refuses has an address nevertheless; see ``bounds``. In swizzled buffers with addresses of 57 bits, of
    which it is not known where they have what, it is 0.

    HookError: the instruction accesses no memory, or its address is made in other ways (images).
    """
    access = _access(instr)
    expect(element, int, name="element")
    if not 0 <= element < len(access.offsets):
        raise HookError(f"{caller()}: {instr.op.mnemonic} accesses {len(access.offsets)} elements; {element} is none")
    offset = access.offsets[element]
    narrow, wide = offset % (1 << 32), offset % (1 << 64)
    vector, base, scalar = _replace_null(access.vector), _replace_null(access.base), _replace_null(access.scalar)
    near = _near_signed if _target(instr).signed_lane_offsets else _near
    forms: dict[AddressForm, tuple[Callable[..., Any], tuple[object, ...]]] = {
        AddressForm.FAR: (_far, (vector, wide)),
        AddressForm.NEAR: (near, (base, vector, wide, access.unit)),
        AddressForm.LDS: (_local, (vector, narrow)),
        AddressForm.SCRATCH: (_private, (vector, scalar, narrow, access.unit)),
        AddressForm.SCALAR: (_scalar, (base, scalar, wide, access.unit, _whole(access))),
        AddressForm.SCALAR_BUFFER: (scalar_buffer_address, (
            *_resource(access)[:1], scalar, wide, _whole(access), _target(instr).wide_resources)),
        AddressForm.BUFFER: (_buffer, (*_resource(access), scalar, narrow, *_kind_of_resource(instr))),
    }
    if access.form not in forms:
        raise HookError(f"{caller()}: the address of {instr.op.mnemonic} is made in a way that is not known here")
    function, inputs = forms[access.form]
    return about(instr, "the address", function, *inputs, space=_NEAR.get(access.form, Space.GLOBAL))


def bounds(instr: Instr) -> Computed | bool:
    """Whether the range check of its buffer lets an access pass, for a hook before it: ``Lane[bool_]``, of scalar loads
    one ``bool_``; a constant True where there is no such check. What is in range in part only is not.

    HookError as for ``address``, and where the width of the access is not known.
    """
    access = _access(instr)
    if access.form not in (AddressForm.BUFFER, AddressForm.SCALAR_BUFFER):
        return True
    size, offset, scalar = access_bytes(instr), access.offsets[0], _replace_null(access.scalar)
    if access.form is AddressForm.SCALAR_BUFFER:
        generation, wide, _ = _kind_of_resource(instr)
        inputs: tuple[object, ...] = (
            *_resource(access)[:2], scalar, offset % (1 << 64), _whole(access), generation, wide, size)
        return about(instr, "the range check", scalar_buffer_holds, *inputs)
    inputs = (*_resource(access), scalar, offset % (1 << 32), *_kind_of_resource(instr), size, access.indexed)
    return about(instr, "the range check", _in_buffer, *inputs)


def access_bytes(instr: Instr) -> int:
    """Bytes that a memory instruction accesses in each lane, or in all where it is scalar; of two elements the sum.

    HookError: it accesses no memory, or its width is not known (formats, images).
    """
    found = _access(instr).total_bytes
    if found is None:
        raise HookError(f"{caller()}: how many bytes {instr.op.mnemonic} accesses is not known")
    return found


def access_kind(instr: Instr) -> AccessKind:
    """What a memory instruction does: LOAD (1), STORE (2) or ATOMIC (3). HookError: it accesses no memory."""
    return _access(instr).kind


def _access(instr: Instr) -> MemoryAccess:
    expect(instr, Instr)
    found = instr.memory
    if found is None:
        raise HookError(f"{caller()}: {instr.op.mnemonic} accesses no memory")
    return found


def _replace_null(operand: Operand | None) -> Any:
    return 0 if operand is None or operand.reg is None and operand.value in SRC_NULL else operand


def _whole(access: MemoryAccess) -> int:
    """Of what a scalar access takes whole ones: dwords, or bytes where it is of less."""
    return 1 if access.bytes is not None and access.bytes < 4 else 4


def _target(instr: Instr) -> Target:
    return instr.code.distinct.isa.target


def _kind_of_resource(instr: Instr) -> tuple[int, bool, bool]:
    """The target's generation, whether it has wide ones, and whether the instruction converts."""
    from luthier_py.isa.semantics.elements import FormatLoad, FormatStore  # meanings take long to import

    row = semantics.find_meaning(instr.op)
    return _target(instr).generation, _target(instr).wide_resources, isinstance(row, (FormatLoad, FormatStore))


def _resource(access: MemoryAccess) -> tuple[object, ...]:
    """The resource's halves, and index and offset of a lane; of an access without a resource nothing."""
    if access.form not in (AddressForm.BUFFER, AddressForm.SCALAR_BUFFER) or access.base is None:
        return ()
    resource, vector = access.base.reg, None if access.vector is None else access.vector.reg
    assert resource is not None
    parts: list[object] = [Reg(RegFile.SGPR, resource.index + first, 2) for first in (0, 2)]
    used = 0
    for enabled in (access.indexed, access.offset_enabled):
        parts.append(Reg(vector.file, vector.index + used) if enabled and vector is not None else 0)
        used += enabled
    return tuple(parts)
