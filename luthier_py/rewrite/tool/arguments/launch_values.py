"""Arguments about the launch that a wave is of: the kernel's arguments, ids, sizes.

In: names of arguments, axes. Out: arguments for hooks, at any place of a kernel and of what it calls. Invariant: they
are made of what the wave started with (`Entry`) and of the memory that it points to, so they are the same everywhere
in a wave. Sources: HSA Platform System Architecture, 2.9.6 (AQL kernel dispatch packet); LLVM's AMDGPU usage, "Kernarg
Segment" and "Initial Kernel Execution State".
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import HookError
from luthier_py.program.ir import Kernel
from luthier_py.rewrite.tool.arguments.computed import Computed
from luthier_py.rewrite.tool.arguments.entry import Entry
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.author_types import Lane, f32, f64, i32, i64, ptr, u32, u64
from luthier_py.rewrite.tool.hooks.hook import Device, device
from luthier_py.rewrite.tool.hooks.lane_masks import lane_id, wave_size
from luthier_py.rewrite.tool.hooks.types import Scalar

if TYPE_CHECKING:
    from luthier_py.binary.loader import KernelArg

_AXES = "xyz"
_GROUP_IDS = (Entry.WORKGROUP_ID_X, Entry.WORKGROUP_ID_Y, Entry.WORKGROUP_ID_Z)


@device
def _u32(arguments: ptr[u32], index: u32) -> u32:
    return arguments[index]


@device
def _i32(arguments: ptr[i32], index: u32) -> i32:
    return arguments[index]


@device
def _f32(arguments: ptr[f32], index: u32) -> f32:
    return arguments[index]


@device
def _u64(arguments: ptr[u64], index: u32) -> u64:
    return arguments[index]


@device
def _i64(arguments: ptr[i64], index: u32) -> i64:
    return arguments[index]


@device
def _f64(arguments: ptr[f64], index: u32) -> f64:
    return arguments[index]


@device
def _pointer(arguments: ptr[ptr[u32]], index: u32) -> u64:
    return u64(arguments[index])


@device
def _narrow(arguments: ptr[u32], index: u32, first: u32, mask: u32) -> u32:
    return (arguments[index] >> first) & mask


@device
def _group_size(packet: ptr[u32], axis: u32) -> u32:
    """Three numbers of 16 bits from byte 4 on."""
    return (packet[1 + (axis >> 1)] >> (16 * (axis & 1))) & 0xFFFF


@device
def _grid_size(packet: ptr[u32], axis: u32) -> u32:
    """In work-items; three numbers from byte 12 on."""
    return packet[3 + axis]


@device
def _lds_size(packet: ptr[u32]) -> u32:
    """In bytes; the number at byte 28."""
    return packet[7]


@device
def _side(packet: ptr[u32], group: u32, axis: u32) -> u32:
    """Work-items of this group on an axis: fewer at the edge of the grid."""
    size = _group_size(packet, axis)
    return min(size, _grid_size(packet, axis) - group * size)


@device
def _item_x(packet: ptr[u32], group_x: u32, first: u32) -> Lane[u32]:
    """Lanes are work-items that follow each other, x first."""
    item: Lane[u32] = (first & 1023) + lane_id()
    return item % _side(packet, group_x, u32(0))


@device
def _item_y(packet: ptr[u32], group_x: u32, group_y: u32, first: u32) -> Lane[u32]:
    item: Lane[u32] = (first & 1023) + lane_id()
    rows = item // _side(packet, group_x, u32(0))
    return (((first >> 10) & 1023) + rows) % _side(packet, group_y, u32(1))


@device
def _item_z(packet: ptr[u32], group_x: u32, group_y: u32, first: u32) -> Lane[u32]:
    item: Lane[u32] = (first & 1023) + lane_id()
    rows = item // _side(packet, group_x, u32(0))
    return ((first >> 20) & 1023) + (((first >> 10) & 1023) + rows) // _side(packet, group_y, u32(1))


@device
def _wave(packet: ptr[u32], group_x: u32, group_y: u32, first: u32) -> u32:
    row = ((first >> 10) & 1023) + ((first >> 20) & 1023) * _side(packet, group_y, u32(1))
    wave: u32 = ((first & 1023) + row * _side(packet, group_x, u32(0))) // wave_size()
    return wave


@device
def _groups(packet: ptr[u32], axis: u32) -> u32:
    """Work-groups on an axis, those at the edge included."""
    return (_grid_size(packet, axis) - 1) // _group_size(packet, axis) + 1


@device
def _workgroup(packet: ptr[u32], group_x: u32, group_y: u32, group_z: u32) -> u32:
    number = group_x
    if group_y | group_z:
        number += _groups(packet, u32(0)) * (group_y + _groups(packet, u32(1)) * group_z)
    return number


@device
def _whole_group(packet: ptr[u32]) -> u32:
    """Work-items of a group that is not at the edge."""
    return _group_size(packet, u32(0)) * _group_size(packet, u32(1)) * _group_size(packet, u32(2))


@device
def _wave_in_launch(packet: ptr[u32], group_x: u32, group_y: u32, group_z: u32, first: u32) -> u32:
    waves: u32 = (_whole_group(packet) + wave_size() - 1) // wave_size()
    return _workgroup(packet, group_x, group_y, group_z) * waves + _wave(packet, group_x, group_y, first)


@device
def _workitem_in_launch(packet: ptr[u32], group_x: u32, group_y: u32, group_z: u32, first: u32) -> Lane[u32]:
    before: u32 = _workgroup(packet, group_x, group_y, group_z) * _whole_group(packet)
    item: Lane[u32] = _wave(packet, group_x, group_y, first) * wave_size() + lane_id()
    return before + item


_LOADS: dict[str, Callable[..., Any]] = {
    "u32": _u32, "i32": _i32, "f32": _f32, "u64": _u64, "i64": _i64, "f64": _f64,
}


def kernel_argument(kernel: Kernel, which: str | int, type: Any = None, dword: int | None = None) -> Computed:
    """An argument that a kernel was launched with, by its name or its number in the code object's metadata.

    ``type``: what it is (u32, i32, f32, u64, i64, f64); without it a pointer is a ``u64`` that ``ptr[...]`` parameters
    take, too, 8 bytes are a ``u64``, and up to 4 are a ``u32``. ``dword``: that one of a wider argument (a struct), as
    a ``u32`` or what ``type`` says. Give it to hooks in code of this kernel only.

    HookError: there is no such argument, or its size is another one than the type's.
    """
    given = _argument(kernel, which)
    expect(dword, int, NoneType, name="dword")
    offset = given.offset + 4 * (dword or 0)
    name = f"argument {given.name or which} of {kernel.name}"
    size = given.size if dword is None else 4
    if dword is not None and not 0 <= 4 * dword < given.size:
        raise HookError(f"{caller()}: {name} has {given.size} bytes; dword {dword} is none of it")
    if isinstance(type, Scalar) and str(type) in _LOADS:
        if type.size_bytes != size or offset % size:
            raise HookError(f"{caller()}: {name} has {size} bytes at {offset}; it is no {type}")
        return _make_computed(name, _LOADS[str(type)], Entry.KERNARG_PTR, offset // size)
    if type is not None:
        raise HookError(f"{caller()}: {name} cannot be a {type}; choose one of {', '.join(_LOADS)}")
    if size == 8 and offset % 8 == 0:
        load = _pointer if given.address_space is not None else _u64
        return _make_computed(name, load, Entry.KERNARG_PTR, offset // 8)
    first = 8 * (offset % 4)
    if first + 8 * size > 32:
        raise HookError(f"{caller()}: {name} has {size} bytes; say which: dword=0")
    return _make_computed(name, _narrow, Entry.KERNARG_PTR, offset // 4, first, (1 << 8 * size) - 1)


def workgroup_id(axis: str) -> Entry:
    """``u32``: the number of the wave's work-group in the grid, along "x", "y" or "z"."""
    return _GROUP_IDS[_number(axis)]


def workitem_id(axis: str) -> Computed:
    """``Lane[u32]``: the number of the lane's work-item in its work-group, along "x", "y" or "z". Lanes without a
    work-item have a number, too."""
    number = _number(axis)
    name, packet, first = f"workitem_id({axis!r})", Entry.DISPATCH_PTR, Entry.FIRST_WORKITEM
    if number == 0:
        return _make_computed(name, _item_x, packet, Entry.WORKGROUP_ID_X, first)
    return _make_computed(name, _item_y if number == 1 else _item_z, packet, *_GROUP_IDS[:2], first)


def workgroup_size(axis: str) -> Computed:
    """``u32``: work-items in a work-group along "x", "y" or "z", as it was launched: at the edge of a grid there may be
    fewer."""
    return _make_computed(f"workgroup_size({axis!r})", _group_size, Entry.DISPATCH_PTR, _number(axis))


def grid_size(axis: str) -> Computed:
    """``u32``: work-items of the launch along "x", "y" or "z"."""
    return _make_computed(f"grid_size({axis!r})", _grid_size, Entry.DISPATCH_PTR, _number(axis))


def lds_size() -> Computed:
    """``u32``: bytes of LDS that a work-group of the launch has, those that the kernel declares and those that its
    launch requests. Hardware gives them in larger pieces."""
    return _make_computed("lds_size()", _lds_size, Entry.DISPATCH_PTR)


def wave_in_group() -> Computed:
    """``u32``: the number of the wave in its work-group, from 0."""
    return _make_computed("wave_in_group()", _wave, Entry.DISPATCH_PTR, *_GROUP_IDS[:2], Entry.FIRST_WORKITEM)


def workgroup_in_launch() -> Computed:
    """``u32``: the number of the wave's work-group in the launch, from 0, those along x first."""
    return _make_computed("workgroup_in_launch()", _workgroup, Entry.DISPATCH_PTR, *_GROUP_IDS)


def wave_in_launch() -> Computed:
    """``u32``: the number of the wave in the launch, from 0, those of a work-group together. At the edge of a grid,
    where work-groups may have fewer waves, numbers go on as if they had all."""
    return _make_computed("wave_in_launch()", _wave_in_launch, Entry.DISPATCH_PTR, *_GROUP_IDS, Entry.FIRST_WORKITEM)


def workitem_in_launch() -> Computed:
    """``Lane[u32]``: the number of the lane's work-item in the launch, from 0, those of a work-group together, in which
    they follow each other along x, y and z; at the edge of a grid as for waves. Lanes without a work-item have a
    number, too, which is another one's."""
    return _make_computed("workitem_in_launch()", _workitem_in_launch, Entry.DISPATCH_PTR, *_GROUP_IDS,
                          Entry.FIRST_WORKITEM)


def _make_computed(name: str, function: Callable[..., Any], *inputs: object) -> Computed:
    assert isinstance(function, Device)
    return Computed(function, inputs, name)


def _number(axis: str) -> int:
    if axis not in ("x", "y", "z"):
        raise HookError(f"{caller()}: {axis!r} is no axis; choose one of x, y, z")
    return _AXES.index(axis)


def _argument(kernel: Kernel, which: str | int) -> KernelArg:
    expect(kernel, Kernel)
    expect(which, int, str, name="which")
    arguments = kernel.record.args
    if isinstance(which, int) and 0 <= which < len(arguments):
        return arguments[which]
    for each in arguments:
        if each.name and each.name == which:
            return each
    known = ", ".join(each.name or str(number) for number, each in enumerate(arguments) if not each.hidden) or "none"
    raise HookError(f"{caller()}: {kernel.name} has no argument {which}; it has {known}")
