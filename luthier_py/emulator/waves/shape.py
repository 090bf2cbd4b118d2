"""What a launch is made of: work-groups, waves, lanes; LDS and private memory.

In: a kernel, and a grid in work-groups or a packet with one in work-items. Out: a checked Shape. A grid that is no
multiple of the work-group has partial work-groups at its far sides: fewer work-items in that dimension, packed into
waves as if the work-group were that small, and no waves without a work-item. Source: AMDGPUUsage, "Kernel Dispatch";
HSA Programmer's Reference Manual 1.2, 2.2 (partial work-groups, flattened ids). Invariant: whatever no device would
start is Invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from luthier_py.base.errors import Invalid, Unsupported
from luthier_py.base.records import dataclass, field
from luthier_py.binary.loader import KernelRecord
from luthier_py.binary.loader.initial import start_of
from luthier_py.binary.loader.origins import original_name
from luthier_py.emulator.interface.device import Dim3
from luthier_py.emulator.waves.packet import DispatchPacket
from luthier_py.isa.model.target import Target

MAX_ITEMS = (1 << 32) - 1  # along x, y or z
MAX_GROUPS = 1 << 63


@dataclass(frozen=True, eq=False)
class Shape:
    """One launch of one kernel, checked. What depends on nothing else is worked out once."""

    record: KernelRecord
    target: Target
    items: Dim3          # of the grid
    block: Dim3          # work-items of a complete work-group
    lds_bytes: int       # of a work-group, static and dynamic
    scratch_bytes: int   # of a lane
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # see with_shape

    @property
    def kernel(self) -> str:
        """The program's name of it, also where a tool put a copy in its place."""
        return original_name(self.record.name)

    @cached_property
    def start(self) -> int:
        """Where waves start, as `KernelRecord.entry` counts."""
        return start_of(self.target, self.record)

    @cached_property
    def wave_size(self) -> int:
        """Lanes of a wave, as the kernel descriptor says: 32 or 64."""
        return self.record.descriptor.wave_size

    @cached_property
    def grid(self) -> Dim3:
        """Work-groups, partial ones included."""
        x, y, z = (-(-all_ // one) for all_, one in zip(self.items, self.block, strict=True))
        return x, y, z

    @cached_property
    def groups(self) -> int:
        """Work-groups of the grid, partial ones included."""
        x, y, z = self.grid
        return x * y * z

    @cached_property
    def waves(self) -> int:
        """Of a complete work-group."""
        return self.waves_of(self.block)

    def waves_of(self, block: Dim3) -> int:
        """Waves that a work-group of so many work-items has; the last of them may not be full."""
        x, y, z = block
        return -(-x * y * z // self.wave_size)

    def block_of(self, group: int) -> Dim3:
        """Work-items of the work-group with this number."""
        x, y, z = self.grid
        place = group % x, group // x % y, group // (x * y)
        last = sum(1 << axis for axis in range(3) if place[axis] + 1 == self.grid[axis])
        return self.block_at(last & self.edges)

    def waves_in(self, group: int) -> int:
        """Of the work-group with this number."""
        return self.waves_of(self.block_of(group))

    def lanes_in(self, group: int, wave: int) -> int:
        """The mask of those with a work-item."""
        x, y, z = self.block_of(group)
        return (1 << min(x * y * z - wave * self.wave_size, self.wave_size)) - 1

    @property
    def all_waves(self) -> int:
        """Of the launch."""
        return sum(self.groups_at(edge) * self.waves_of(self.block_at(edge)) for edge in self.edge_sets())

    # Edges: a set of dimensions, as bits, in which a work-group is the last one and has fewer work-items than others.

    @cached_property
    def edges(self) -> int:
        """All dimensions that have such work-groups."""
        pairs = zip(self.items, self.block, strict=True)
        return sum(1 << axis for axis, (all_, one) in enumerate(pairs) if all_ % one)

    def edge_sets(self) -> Iterator[int]:
        """All subsets of ``edges``, as bits and ascending: places where work-groups may be, 0 for complete ones."""
        return (edge for edge in range(self.edges + 1) if edge & ~self.edges == 0)

    def block_at(self, edge: int) -> Dim3:
        """Work-items of the work-groups at ``edge``."""
        pairs = zip(self.items, self.block, strict=True)
        x, y, z = (all_ % one if edge >> axis & 1 else one for axis, (all_, one) in enumerate(pairs))
        return x, y, z

    def groups_at(self, edge: int) -> int:
        """How many there are."""
        count = 1
        for axis, groups in enumerate(self.grid):
            if self.edges >> axis & 1:
                count *= 1 if edge >> axis & 1 else groups - 1
            else:
                count *= groups
        return count


_More = ParamSpec("_More")
_Result = TypeVar("_Result")


def with_shape(function: Callable[Concatenate[Shape, _More], _Result]) -> Callable[Concatenate[Shape, _More], _Result]:
    """Decorates a function of a shape, and of little else: its result is cached as long as the shape is, and must not
    be changed."""

    @wraps(function)
    def of(shape: Shape, /, *args: _More.args, **kwargs: _More.kwargs) -> _Result:
        key = function, *args
        if key not in shape.kept:
            shape.kept[key] = function(shape, *args, **kwargs)
        result: _Result = shape.kept[key]
        return result

    return of


def shape_of(record: KernelRecord, target: Target, grid: Dim3, block: Dim3, dynamic_lds: int,
             lacking: Dim3 = (0, 0, 0)) -> Shape:
    """Of a launch of ``grid`` work-groups; ``lacking``: work-items that those at the ends do not have."""
    descriptor = record.descriptor
    if min(*grid, *block) < 1:
        raise Invalid(f"kernel {record.shown}: grid {grid} and block {block} must be positive")
    _check_block(record, block)
    x, y, z = (groups * size - less for groups, size, less in zip(grid, block, lacking, strict=True))
    for axis, groups, size, all_ in zip("xyz", grid, block, (x, y, z), strict=True):
        if all_ > MAX_ITEMS:  # the packet counts them in 32 bits (HSA, 2.9.6)
            many = f"{groups} work-groups of {size} are {all_} work-items"
            raise Invalid(f"kernel {record.shown}: {many} along {axis}; a dispatch packet can say at most {MAX_ITEMS}")
    if dynamic_lds < 0:
        raise Invalid(f"kernel {record.shown}: {dynamic_lds} bytes of dynamic LDS")
    lds = descriptor.group_segment_fixed_size + dynamic_lds
    return _check_shape(Shape(record, target, (x, y, z), block, lds, -(-record.private_bytes // 4) * 4))


def shape_of_packet(record: KernelRecord, target: Target, packet: DispatchPacket) -> Shape:
    """Of a dispatch. The packet alone says how much LDS and private memory there is, as for the command processor."""
    if min(*packet.items, *packet.block) < 1:
        sizes = f"grid {packet.items} and work-group {packet.block}"
        raise Invalid(f"kernel {record.shown}: {sizes} of the dispatch packet must be positive")
    _check_block(record, packet.block)
    private = -(-packet.private_bytes // 4) * 4
    return _check_shape(Shape(record, target, packet.items, packet.block, packet.group_bytes, private))


def _check_block(record: KernelRecord, block: Dim3) -> None:
    items = block[0] * block[1] * block[2]
    if items > record.max_workitems:
        limit = f"its limit of {record.max_workitems}"
        raise Invalid(f"kernel {record.shown}: a work-group of {items} work-items exceeds {limit}")


def _check_shape(shape: Shape) -> Shape:
    name, target = shape.record.shown, shape.target
    if shape.groups >= MAX_GROUPS:
        raise Invalid(f"kernel {name}: grid {shape.grid} has more work-groups than can be counted")
    if shape.lds_bytes > target.lds_bytes:
        raise Invalid(f"kernel {name}: {shape.lds_bytes} bytes of LDS, but a work-group can have {target.lds_bytes}")
    if shared := shape.record.descriptor.count_shared_vgprs(target):
        raise Unsupported(f"kernel {name}: {shared} vector registers that both halves of a wave share "
                          "(.amdhsa_shared_vgpr_count); the emulator has none")
    if shape.scratch_bytes * shape.wave_size > target.wave_scratch_bytes:
        most = target.wave_scratch_bytes // shape.wave_size
        what = f"{shape.scratch_bytes} bytes of private memory for a lane; {target.name} has {most}"
        raise Invalid(f"kernel {name}: {what}")
    return shape
