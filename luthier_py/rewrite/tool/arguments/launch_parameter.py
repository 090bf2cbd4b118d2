"""Numbers that the host sets before each launch: changing one recompiles nothing.

In: a declaration in the body of a Tool, and values that the tool gives it while the program runs. Out: a variable in
the copy that the launcher writes in the launch's turn, and an argument that hooks take as a plain number. Invariant:
a launch has the values that were set when it began; those set later are the next one's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.rewrite.tool.arguments.computed import Computed
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.hook import device
from luthier_py.rewrite.tool.hooks.types import F32, F64, I32, I64, U32, U64, Kind, Pointer, Scalar
from luthier_py.rewrite.tool.variables import Variable

VALUES = "_launch_values"
"""Attribute of a tool: what was set, by name."""
VALUE_BYTES = 8


class LaunchParameter(Variable):
    """A number that the host sets before each launch, and that hooks take as a parameter of that type.

    ``tool.limit = 5``, at any time or in `Tool.launching`, holds for launches from then on.
    """

    __slots__ = ("default",)

    def __init__(self, type: Any, default: float = 0, name: str = "") -> None:
        if type not in (U32, I32, U64, I64, F32, F64):
            raise Invalid(f"{caller()}: LaunchParameter({type}): give one of u32 i32 u64 i64 f32 f64")
        super().__init__(type, None, name)
        self.default = self._check_value(default)

    def __get__(self, tool: object | None, owner: type) -> LaunchParameter:
        return self

    def __set__(self, tool: object, value: float) -> None:
        vars(tool).setdefault(VALUES, {})[self.name] = self._check_value(value)

    @property
    def loaded(self) -> Computed:
        """What a hook gets that takes the number."""
        return Computed(_loader(self.number), (self,), self.name)

    @property
    def number(self) -> Scalar:
        """Its type."""
        assert isinstance(self.type, Scalar)
        return self.type

    def value_in(self, tool: object) -> Any:
        """The number that the next launch gets."""
        return vars(tool).get(VALUES, {}).get(self.name, self.default)

    def encode_value(self, tool: object, launch: int) -> bytes:
        """The value for a launch as the device has it, with zeros up to 8 bytes."""
        value = launch if self is LAUNCH_NUMBER else self.value_in(tool)
        return self.number.pack(value).ljust(VALUE_BYTES, b"\0")

    def _check_value(self, value: Any) -> Any:
        if self.number.kind is Kind.FLOAT and isinstance(value, (int, float)):
            return self.number(float(value))
        if isinstance(value, bool) or not isinstance(value, int):
            raise Invalid(f"{caller()}: {self!r} takes a number of its type, not {value!r}")
        if not self.number.holds(value):
            raise Invalid(f"{caller()}: {self!r} cannot hold {value}")
        return self.number(value)


LAUNCH_NUMBER = LaunchParameter(U32, name="luthier.launch_number")
"""The launch's number, from 0, as reports have it; a hook takes it as u32."""


@cache
def _loader(type: Scalar) -> Any:
    """A device function that loads such a number."""
    def load(place: Any) -> Any:
        return place[0]

    load.__annotations__ = {"place": Pointer(type), "return": type}
    return device(load)
