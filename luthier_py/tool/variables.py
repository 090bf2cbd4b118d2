"""State of a tool: device globals and per-wave scalars.

In: declarations in the body of a Tool. Out: names (from the class attribute) and the decoding of what the
device holds. Invariant: one object is one variable, compared by identity.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any

from luthier_py.errors import Invalid
from luthier_py.storage import cache_key
from luthier_py.tool.author import caller
from luthier_py.tool.expected import expect
from luthier_py.tool.types import BOOL, F32, I32, I64, NUMBER_NAMES, U8, U32, U64, Kind, Pointer, Scalar

INITIAL = ".initial"
"""Behind a variable's name: the table of what it is set to before each launch."""
WAVE_TYPES = (U32, I32, U64, I64, F32)


class _Declared:
    """A class attribute that knows its owner and name (set once, by Python)."""

    __slots__ = ("name", "attribute", "type")

    def __init__(self, type: Scalar, name: str) -> None:
        self.type = type
        self.name = self.attribute = expect(name, str, name="name")

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name
        self.name = f"{owner.__name__}.{name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.type})"


class Variable(_Declared):
    """A global on the device, zero or ``initial`` before each launch: one ``type``, or an array of ``length``.

    A hook takes it as a ``ptr[type]`` parameter. ``name`` is its symbol in the code object. ``initial``: a number, or
    those of an array, of which the length follows.
    """

    __slots__ = ("length", "initial")

    def __init__(self, type: Any, length: int | None = None, name: str = "", *, initial: Any = None) -> None:
        """``name`` is for variables that are no class attributes, since their length is known only from the program."""
        if not isinstance(type, Scalar) or type == BOOL:
            raise Invalid(f"{caller()}: Variable({type}): give one of {NUMBER_NAMES}")
        expect(length, int, NoneType, name="length")
        if length is not None and length < 1:
            raise Invalid(f"{caller()}: Variable({type}, {length}): an array has at least one element")
        super().__init__(type, name)
        numbers = [] if initial is None else list(_numbers(initial))
        if length is None and initial is not None and _is_array(initial):
            length = len(numbers)
        if length == 0:
            raise Invalid(f"{caller()}: Variable({type}): an array has at least one element")
        if initial is not None and len(numbers) != (length or 1):
            raise Invalid(f"{caller()}: Variable({type}, {length}): its initial value has {len(numbers)} numbers")
        self.length = length
        data = _packed(self, numbers)
        self.initial = data if any(data) else None

    @property
    def initial_table(self) -> LookupTable | None:
        """What it is set to before each launch, where that is not zero."""
        return None if self.initial is None else LookupTable(U8, self.initial, f"{self.name}{INITIAL}")

    @property
    def pointer(self) -> Pointer:
        """Type of the parameter that takes this variable."""
        return Pointer(self.type)

    def __getitem__(self, index: int) -> Element:
        """One element of an array, to be passed to a hook by its address."""
        have = "one value, no array" if self.length is None else f"elements 0 to {self.length - 1}"
        try:
            number = operator.index(index)
        except TypeError:
            raise Invalid(f"{caller()}: {self} has {have}; {index!r} is no integer") from None
        if self.length is None or not 0 <= number < self.length:
            raise Invalid(f"{caller()}: {self} has no element {number}; it has {have}")
        return Element(self, number)

    @property
    def size_bytes(self) -> int:
        return self.type.size_bytes * (self.length or 1)

    def decode(self, data: bytes) -> Any:
        """Its value from device memory: a number, or a tuple of numbers."""
        size = self.type.size_bytes
        values = tuple(self.type.unpack(data[at : at + size]) for at in range(0, self.size_bytes, size))
        return values if self.length is not None else values[0]


class LookupTable(Variable):
    """Numbers that hooks read and nobody changes: they are in the copy itself, where it cannot be written.

    ``values``: the numbers, also as an array of NumPy's. A hook takes it as a ``ptr[type]`` parameter.
    """

    __slots__ = ("data",)

    def __init__(self, type: Any, values: Iterable[Any], name: str = "") -> None:
        if not hasattr(values, "__iter__"):
            raise Invalid(f"{caller()}: LookupTable({type}, {values!r}): give the values of a table, or an array")
        numbers = [number for each in values for number in _numbers(each)]
        super().__init__(type, len(numbers), name)
        self.data = _packed(self, numbers)
        self.name = name or f"luthier.table.{cache_key(str(type), self.data)[:16]}"

    def __repr__(self) -> str:
        return f"LookupTable({self.name}: {self.length} {self.type})"


def tables_of(variables: Iterable[Variable]) -> tuple[LookupTable, ...]:
    """Those among them, and those of what others begin as; equal ones once."""
    found = [v if isinstance(v, LookupTable) else v.initial_table for v in variables]
    return tuple({(table.name, table.data): table for table in found if table is not None}.values())


def _is_array(value: Any) -> bool:
    return isinstance(value, (list, tuple, range)) or bool(getattr(value, "shape", ()))


def _numbers(value: Any) -> Iterator[Any]:
    """Of rows of an array, one after the other."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple, range)):
        yield value
        return
    for each in value:
        yield from _numbers(each)


def _packed(variable: Variable, numbers: Iterable[Any]) -> bytes:
    """As they are in memory."""
    return b"".join(_bytes_of(variable, number) for number in numbers)


def _bytes_of(variable: Variable, number: Any) -> bytes:
    type = variable.type
    is_number = isinstance(number, (int, float) if type.kind is Kind.FLOAT else int) and not isinstance(number, bool)
    try:
        if is_number and (type.kind is Kind.FLOAT or type.holds(number)):
            return type.pack(number)
    except OverflowError:
        pass
    raise Invalid(f"{caller()}: {variable.__class__.__name__}({type}) cannot hold {number!r}")


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an array on the device."""

    variable: Variable
    index: int

    @property
    def pointer(self) -> Pointer:
        return self.variable.pointer

    @property
    def offset_bytes(self) -> int:
        return self.index * self.variable.type.size_bytes


class WaveVariable(_Declared):
    """A scalar that each wave has for itself, zero at kernel entry; lives in scalar registers."""

    __slots__ = ()

    def __init__(self, type: Any, name: str = "") -> None:
        """``name`` is for variables that are no class attributes, since the program says how many there are."""
        if type not in WAVE_TYPES:
            raise Invalid(f"{caller()}: WaveVariable({type}): give one of {' '.join(map(str, WAVE_TYPES))}")
        super().__init__(type, name)
