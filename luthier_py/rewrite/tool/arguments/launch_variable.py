"""Variables that are as large as a launch: so many elements for each of its waves, work-groups or work-items.

In: a declaration in the body of a Tool; grid and block of a launch. Out: how many bytes it needs for that launch, an
argument that leads hooks there, and the decoding of what they left. Invariant: the copy has a cell with the memory's
address, which the launcher sets, so that no launch compiles anything; what all such variables of a launch need together
is known before it begins, and is refused where it is too much.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cache
from math import prod
from types import NoneType
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.base.late_modules import np
from luthier_py.rewrite.tool.arguments.computed import Computed
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.arguments.launch_values import wave_in_launch, workgroup_in_launch, workitem_in_launch
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.author_types import Lane, u32
from luthier_py.rewrite.tool.hooks.hook import device
from luthier_py.rewrite.tool.hooks.types import BF16, U64, LaneType, Pointer, Type
from luthier_py.rewrite.tool.variables import Variable, numpy_type, type_of_elements

MOST_BYTES = 1 << 31
"""Of all such variables of one launch: every element has a number that a u32 holds."""

_Sides = tuple[int, int, int]


class Per(Enum):
    """What there are elements for."""

    WAVE = "wave"
    WORKGROUP = "workgroup"
    WORKITEM = "workitem"


_NUMBERS = {Per.WAVE: wave_in_launch, Per.WORKGROUP: workgroup_in_launch, Per.WORKITEM: workitem_in_launch}


class LaunchVariable(Variable):
    """Memory for each launch, zero when it begins: a ``type``, or ``length`` of them, for each of what ``per`` says:
    "wave", "workgroup" or "workitem". ``type``: as that of a Variable.

    A hook takes it as ``ptr[type]``, the first element of all, or ``variable.own``, the first of the wave, work-group
    or work-item that asks. ``launch[variable]`` is a NumPy array by number in the launch (`wave_in_launch` and its
    kin), with a second axis where there is a ``length``; who is not there, at the edge of a grid, has zeros. Together
    those of a launch have at most 2 GiB.
    """

    __slots__ = ("element", "per", "each")

    def __init__(self, type: Any, per: str, length: int | None = None, name: str = "") -> None:
        element = type_of_elements("LaunchVariable", type)
        if element == BF16:
            raise Invalid(f"{caller()}: LaunchVariable({type}): NumPy has no bf16; take f32, or u16")
        if per not in (each.value for each in Per):
            raise Invalid(f"{caller()}: LaunchVariable({type}, {per!r}): give one of {', '.join(e.value for e in Per)}")
        expect(length, int, NoneType, name="length")
        if length is not None and not 1 <= length <= MOST_BYTES // element.size_bytes:
            raise Invalid(f"{caller()}: LaunchVariable({type}, {per!r}, {length}): there is at least one element, and "
                          "there are at most 2 GiB")
        super().__init__(U64, None, name)
        self.element, self.per, self.each = element, Per(per), length

    def __repr__(self) -> str:
        return f"LaunchVariable({self.name}: {self.element} for each {self.per.value})"

    def __getitem__(self, index: int) -> Any:
        """Refused: which elements there are is not known before the launch."""
        raise Invalid(f"{caller()}: {self} is as large as the launch: pass {self.attribute}, or {self.attribute}.own, "
                      f"to a hook that takes ptr[{self.element}]")

    @property
    def pointer(self) -> Pointer:
        """A pointer to the cell that holds the memory's address."""
        return Pointer(Pointer(self.element))

    @property
    def start(self) -> Computed:
        """What a hook gets that takes ``ptr[type]``: the address of the first element."""
        return Computed(first_element(self.element), (self,), self.name)

    @property
    def own(self) -> Computed:
        """An argument for ``ptr[type]``, with "workitem" ``Lane[ptr[type]]``: where the elements of who asks begin."""
        place = _place_of_lane if self.per is Per.WORKITEM else _place
        return Computed(place(self.element), (self, _NUMBERS[self.per](), self.each or 1), f"{self.name}.own")

    def bytes_of(self, grid: _Sides, block: _Sides, wave_size: int) -> int:
        """What a launch needs: ``grid`` work-groups of ``block`` work-items."""
        return self._count(grid, block, wave_size) * (self.each or 1) * self.element.size_bytes

    def decode(self, data: bytes) -> Any:
        """What a launch left: a NumPy array, by number in the launch."""
        values = np.frombuffer(data, numpy_type(self.element))
        return values if self.each is None else values.reshape(len(values) // self.each, self.each)

    def sum_of(self, grid: _Sides, block: _Sides, wave_size: int) -> str:
        """How `bytes_of` comes about."""
        factor = f" x {self.each}" if self.each is not None else ""
        count = self._count(grid, block, wave_size)
        return f"{self.name} {count} {self.per.value}s{factor} x {self.element.size_bytes}"

    def _count(self, grid: _Sides, block: _Sides, wave_size: int) -> int:
        groups, items = prod(grid), prod(block)
        each = {Per.WORKGROUP: 1, Per.WAVE: -(-items // wave_size), Per.WORKITEM: items}
        return groups * each[self.per]


def launch_bytes(
    variables: Iterable[Variable], grid: _Sides, block: _Sides, wave_size: int
) -> dict[LaunchVariable, int]:
    """What those of ``variables`` need for a launch that are sized by it; Invalid where that is too much."""
    sized = [variable for variable in variables if isinstance(variable, LaunchVariable)]
    found = {variable: variable.bytes_of(grid, block, wave_size) for variable in sized}
    if sum(found.values()) > MOST_BYTES:
        sums = " + ".join(variable.sum_of(grid, block, wave_size) for variable in sized)
        shape = f"{' x '.join(map(str, grid))} work-groups of {' x '.join(map(str, block))} work-items"
        raise Invalid(f"a launch of {shape} needs {sum(found.values())} bytes for what it sizes, and has at most "
                      f"{MOST_BYTES}: {sums}")
    return found


@cache
def first_element(type: Type) -> Any:
    """A device function that loads the memory's address."""
    def start(cell: Any) -> Any:
        return cell[0]

    start.__annotations__ = {"cell": Pointer(Pointer(type)), "return": Pointer(type)}
    return device(start)


@cache
def _place(type: Type) -> Any:
    """A device function that leads to the elements of a number."""
    def place(cell: Any, number: u32, length: u32) -> Any:
        return cell[0] + number * length

    place.__annotations__ = {"cell": Pointer(Pointer(type)), "number": u32, "length": u32, "return": Pointer(type)}
    return device(place)


@cache
def _place_of_lane(type: Type) -> Any:
    def place(cell: Any, number: Lane[u32], length: u32) -> Any:
        return cell[0] + number * length

    place.__annotations__ = {
        "cell": Pointer(Pointer(type)), "number": Lane[u32], "length": u32, "return": LaneType(Pointer(type)),
    }  # fmt: skip
    return device(place)
