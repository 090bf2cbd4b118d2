"""What a wave starts with, and what it can load before memory matters, as numbers over a domain of waves.

In: a kernel, and perhaps a launch of it with a domain of its waves. Out: dwords of registers and of the kernarg segment
and the dispatch packet. Invariant: without a launch it says which of these a launch decides; with one, the same have
numbers. Sources: AMDGPUUsage, "Initial Kernel Execution State", "Kernarg Segment", "Work-Item ID"; HSA Platform System
Architecture, 2.9.6 (AQL kernel dispatch packet).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.binary.loader.initial import Initial, initial_places
from luthier_py.isa import EXEC, Reg, RegFile
from luthier_py.isa.model.registers import TTMP0
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics.readers.sums import DECIDED, Axis, Depends, DomainValue, Extent, Sum

if TYPE_CHECKING:
    from luthier_py.binary.loader import KernelRecord
    from luthier_py.isa.semantics.readers.evaluate import Dword

_IDS = {Initial.WORKGROUP_ID_X: Axis.X, Initial.WORKGROUP_ID_Y: Axis.Y, Initial.WORKGROUP_ID_Z: Axis.Z}
_POINTERS = {Initial.KERNARG_SEGMENT_PTR: Axis.ARGUMENTS, Initial.DISPATCH_PTR: Axis.PACKET}
_TTMP_YZ, _TTMP_X = TTMP0 + 7, TTMP0 + 9
_PACKET_BYTES = range(4, 24)  # sizes of groups and of the grid
_HIDDEN = ("hidden_block_count_", "hidden_group_size_", "hidden_remainder_", "hidden_global_offset_",
           "hidden_grid_dims")  # what the shape of a launch decides


@dataclass(frozen=True, slots=True)
class GivenLaunch:
    """A launch: whole work-groups, and the kernarg segment with what is hidden in it."""

    arguments: bytes
    grid: tuple[int, int, int]   # work-groups
    block: tuple[int, int, int]  # work-items in one

    @property
    def items(self) -> int:
        """The work-items of a work-group."""
        return self.block[0] * self.block[1] * self.block[2]

    def dword(self, axis: Axis, at: int) -> int:
        """A dword of the kernarg segment or the dispatch packet."""
        items = [groups * side for groups, side in zip(self.grid, self.block, strict=True)]
        packet = struct.pack("<2H4H3I", 0, 0, *self.block, 0, *items)
        content = packet if axis is Axis.PACKET else self.arguments
        return int.from_bytes(content[at : at + 4].ljust(4, b"\0"), "little")


@dataclass(frozen=True, slots=True)
class IterationDomain:
    """Waves of a launch: ``sides`` from ``first`` on, along each axis of `Axis` that has an end."""

    first: tuple[int, int, int, int]
    sides: tuple[int, int, int, int]

    @property
    def waves(self) -> int:
        """Number of waves in the domain: the product of its four sides."""
        a, b, c, d = self.sides
        return a * b * c * d

    @property
    def axes(self) -> dict[Axis, Extent]:
        """Lengths of the domain's sides (waves of a work-group, then work-group ids in x, y and z), as numbers."""
        return {axis: Extent(side) for axis, side in zip(Axis, self.sides, strict=False)}

    def halve(self, axis: Axis) -> tuple[IterationDomain, IterationDomain]:
        """The domain cut in two along ``axis``: the lower part has half the side, rounded down. The side must be 2 or
        more, or else the lower part is empty."""
        at = self.sides[axis] // 2
        rest = tuple(start + at * (each == axis) for each, start in enumerate(self.first))
        sides = [tuple(length if each == axis else side for each, side in enumerate(self.sides))
                 for length in (at, self.sides[axis] - at)]
        return IterationDomain(self.first, sides[0]), IterationDomain(rest, sides[1])  # type: ignore[arg-type]


class Varies(Exception):
    """Not a number over this domain: it is to be cut along one of these axes."""

    def __init__(self, axes: frozenset[Axis]) -> None:
        super().__init__()
        self.axes = axes


class InitialState:
    """Of one kernel's waves, those of a domain where there is one. ``lanes``: of a wave."""

    def __init__(
        self, target: Target, record: KernelRecord, lanes: int, given: GivenLaunch | None = None,
        domain: IterationDomain | None = None,
    ) -> None:
        self.target, self._record, self._lanes, self._given, self._domain = target, record, lanes, given, domain
        known = [range(arg.offset, arg.offset + arg.size) for arg in record.args
                 if not arg.hidden or arg.value_kind.startswith(_HIDDEN)]
        self._known = {Axis.ARGUMENTS: frozenset(byte for each in known for byte in each),
                       Axis.PACKET: frozenset(_PACKET_BYTES)}
        self.read: dict[tuple[Axis, int], int] = {}  # bytes of what was loaded: all that the numbers depend on

    def registers(self) -> dict[Dword, DomainValue]:
        """All that is known when a wave starts."""
        found: dict[Dword, DomainValue] = {}
        for what, reg in initial_places(self.target, self._record.descriptor).items():
            found.update(self._register(what, reg))
        if self.target.architected_sgprs:
            found[RegFile.SGPR, _TTMP_X] = self._group((Axis.X, 1))
            found[RegFile.SGPR, _TTMP_YZ] = self._group((Axis.Y, 1), (Axis.Z, 1 << 16))
        found.update(((RegFile.VGPR, index), known) for index, known in enumerate(self._ids()))
        mask = self._compute_initial_exec()
        for half in range(self._lanes // 32):
            found[RegFile.SGPR, EXEC + half] = DECIDED if mask is None else Sum(mask >> 32 * half & 0xFFFFFFFF)
        return found

    def load(self, base: DomainValue, offset: int, count: int) -> list[DomainValue]:
        """Dwords from an address on."""
        if not isinstance(base, Sum) or len(base.terms) != 1 or not isinstance(base.base, int):
            return [None] * count
        axis, factor = base.terms[0]
        if axis not in self._known or factor != 1:
            return [None] * count
        start = (base.base + offset + (1 << 31)) % (1 << 32) - (1 << 31)
        if start % 4:  # devices leave bits of addresses out
            return [None] * count
        return [self._dword(axis, start + 4 * each) for each in range(count)]

    def _dword(self, axis: Axis, at: int) -> DomainValue:
        """A number where bytes are known, as far as they are; the others do not count if they are padding."""
        if not self._known[axis].issuperset(range(at, at + 4)):
            return None
        if self._given is None:
            return DECIDED
        self.read[axis, at] = self._given.dword(axis, at)
        return Sum(self.read[axis, at])

    def _register(self, what: Initial, reg: Reg) -> Mapping[Dword, DomainValue]:
        if what in _IDS:
            return {(RegFile.SGPR, reg.index): self._group((_IDS[what], 1))}
        if what in _POINTERS:
            return {(RegFile.SGPR, reg.index): Sum(0, ((_POINTERS[what], 1),))}  # the other half decides nothing
        if what is Initial.PRELOADED_KERNARGS:
            first = 4 * self._record.descriptor.kernarg_preload_offset
            return {(RegFile.SGPR, reg.index + each): self._dword(Axis.ARGUMENTS, first + 4 * each)
                    for each in range(reg.dwords)}
        return {}

    def _group(self, *parts: tuple[Axis, int]) -> DomainValue:
        if self._domain is None:
            return DECIDED
        terms = tuple(part for part in parts if self._domain.sides[part[0]] > 1)
        return Sum(sum(self._domain.first[axis] * factor for axis, factor in parts), terms)

    def _ids(self) -> list[DomainValue]:
        """The registers of work-item ids."""
        wanted = self._record.descriptor.enable_vgpr_workitem_id + 1
        packed = self.target.packed_work_item_ids
        if self._given is None or self._domain is None:
            return [DECIDED] * (1 if packed else wanted)
        x, y, _ = self._given.block
        sides: list[Callable[[int], int]] = [lambda item: item % x, lambda item: item // x % y,
                                             lambda item: item // (x * y)]
        if packed:
            return [self._by_item(lambda item: sum(of(item) << 10 * axis for axis, of in enumerate(sides[:wanted])))]
        return [self._by_item(side) for side in sides[:wanted]]

    def _by_item(self, of: Callable[[int], int]) -> DomainValue:
        """A sum if each wave adds the same to what the one before has in every lane."""
        assert self._domain is not None
        first, count = self._domain.first[Axis.WAVE], self._domain.sides[Axis.WAVE]
        rows = [[of((first + wave) * self._lanes + lane) for lane in range(self._lanes)] for wave in range(count)]
        step = rows[1][0] - rows[0][0] if count > 1 else 0
        if any(each != start + step * wave for wave, row in enumerate(rows)
               for start, each in zip(rows[0], row, strict=True)):
            return Depends(frozenset({Axis.WAVE}))
        return Sum(tuple(rows[0]), ((Axis.WAVE, step),) if step else ())

    def _compute_initial_exec(self) -> int | None:
        """EXEC at the start."""
        if self._given is None or self._domain is None:
            return None
        first, last = self._domain.first[Axis.WAVE], self._domain.first[Axis.WAVE] + self._domain.sides[Axis.WAVE] - 1
        masks = {(1 << min(self._lanes, self._given.items - wave * self._lanes)) - 1 for wave in (first, last)}
        if len(masks) > 1:
            raise Varies(frozenset({Axis.WAVE}))
        return masks.pop()
