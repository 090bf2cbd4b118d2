"""State of a tool: device globals and per-wave scalars.

In: declarations in the body of a Tool. Out: names (from the class attribute) and the decoding of what the
device holds. Invariant: one object is one variable, compared by identity.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from copy import copy
from types import NoneType
from typing import Any

from luthier_py.base.errors import Invalid
from luthier_py.base.late_modules import np
from luthier_py.base.records import dataclass
from luthier_py.base.storage import cache_key
from luthier_py.rewrite.tool.arguments.expected import expect
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.types import (
    BF16,
    BOOL,
    F32,
    I32,
    I64,
    NUMBER_NAMES,
    U8,
    U32,
    U64,
    Kind,
    Pointer,
    Scalar,
    Struct,
    Type,
    device_type,
)

INITIAL = ".initial"
"""Behind a variable's name: the table of what it is set to before each launch."""
WAVE_TYPES = (U32, I32, U64, I64, F32)


class _Declared:
    """A class attribute with its owner and name (set once, by Python)."""

    __slots__ = ("name", "attribute", "type")

    def __init__(self, type: Scalar | Struct, name: str) -> None:
        self.type = type
        self.name = self.attribute = expect(name, str, name="name")

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name
        self.name = f"{owner.__name__}.{name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}: {self.type})"


class Variable(_Declared):
    """A global on the device, zero or ``initial`` before each launch: one ``type``, or an array of ``length``.

    A hook takes it as a ``ptr[type]`` parameter. ``type`` may be a class whose annotations are such types: then it is
    read as NumPy's structured arrays. ``name`` is its symbol in the code object. ``initial``: a number, or those of an
    array, of which the length follows; of a class tuples, or a structured array.
    """

    __slots__ = ("length", "initial")

    def __init__(self, type: Any, length: int | None = None, name: str = "", *, initial: Any = None) -> None:
        """``name`` is for variables that are no class attributes, since their length is known only from the program."""
        found = type_of_elements("Variable", type)
        expect(length, int, NoneType, name="length")
        if length is not None and length < 1:
            raise Invalid(f"{caller()}: Variable({type}, {length}): an array has at least one element")
        super().__init__(found, name)
        data, count = _initial(self, initial)
        if length is None and initial is not None and _is_array(found, initial):
            length = count
        if length == 0:
            raise Invalid(f"{caller()}: Variable({type}): an array has at least one element")
        if initial is not None and count != (length or 1):
            raise Invalid(f"{caller()}: Variable({type}, {length}): its initial value has {count} numbers")
        self.length = length
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
    def align_bytes(self) -> int:
        """The alignment of its elements, one behind the other."""
        return min(self.type.size_bytes & -self.type.size_bytes, 8)

    @property
    def described(self) -> str:
        """Its type, with all that it is made of."""
        return self.type.described if isinstance(self.type, Struct) else str(self.type)

    @property
    def size_bytes(self) -> int:
        return self.type.size_bytes * (self.length or 1)

    def decode(self, data: bytes) -> Any:
        """Its value from device memory: a number, or a tuple of numbers; structures as NumPy has them."""
        if isinstance(self.type, Struct):
            rows = np.frombuffer(data, numpy_type(self.type), self.length or 1).copy()
            return rows if self.length is not None else rows[0]
        values = self.type.unpack_all(data)
        return values if self.length is not None else values[0]


def numpy_type(type: Type) -> np.dtype[Any]:
    """A value in memory, as NumPy has it."""
    if isinstance(type, Struct):
        names, offsets = [m.name for m in type.members], [m.offset_bytes for m in type.members]
        return np.dtype({"names": names, "formats": [numpy_type(m.type) for m in type.members], "offsets": offsets,
                         "itemsize": type.size_bytes})
    return np.dtype("<u8" if isinstance(type, Pointer) else type.letter)


class LookupTable(Variable):
    """Constant numbers that hooks read: they are in the copy itself, where it cannot be written.

    ``values``: the numbers, also as an array of NumPy's. A hook takes it as a ``ptr[type]`` parameter.
    """

    __slots__ = ("data",)

    def __init__(self, type: Any, values: Iterable[Any], name: str = "") -> None:
        if not hasattr(values, "__iter__"):
            raise Invalid(f"{caller()}: LookupTable({type}, {values!r}): give the values of a table, or an array")
        numbers = _elements(type_of_elements("LookupTable", type), values if hasattr(values, "shape") else list(values))
        super().__init__(type, len(numbers), name)
        self.data = b"".join(_bytes_of(self, self.type, number) for number in numbers)
        self.name = name or f"luthier.table.{cache_key(self.described, self.data)[:16]}"

    def __repr__(self) -> str:
        return f"LookupTable({self.name}: {self.length} {self.type})"


def tables_of(variables: Iterable[Variable]) -> tuple[LookupTable, ...]:
    """Those among them, and those of what others begin as; equal ones once."""
    found = [v if isinstance(v, LookupTable) else v.initial_table for v in variables]
    return tuple({(table.name, table.data): table for table in found if table is not None}.values())


def type_of_elements(where: str, given: object) -> Scalar | Struct:
    """What a variable may hold that NumPy can have, too; ``where`` is the declaration's name."""
    try:
        type = device_type(given)
    except ValueError as error:
        raise Invalid(f"{caller()}: {error}") from None
    if type is None or isinstance(type, Pointer) or type == BOOL:
        raise Invalid(f"{caller()}: {where}({given}): give one of {NUMBER_NAMES}, or a class with annotations")
    if isinstance(type, Struct) and BF16 in type.numbers:
        raise Invalid(f"{caller()}: {where}({type}): NumPy has no bf16; make that member an f32, or a u16")
    return type


def _is_array(type: Type, value: Any) -> bool:
    return isinstance(value, list if isinstance(type, Struct) else (list, tuple, range)) or bool(
        getattr(value, "shape", ()))


def _initial(variable: Variable, initial: Any) -> tuple[bytes, int]:
    """As it is in memory, and of how many elements."""
    if initial is None:
        return b"", 0
    parts = [_bytes_of(variable, variable.type, value) for value in _elements(variable.type, initial)]
    return b"".join(parts), len(parts)


def _elements(type: Scalar | Struct, value: Any) -> list[Any]:
    """Numbers, or a tuple for each structure."""
    if not isinstance(type, Struct):
        return list(_numbers(value))
    if isinstance(value, (np.ndarray, np.void)):
        if not _has_names_of(value.dtype, type):
            raise Invalid(f"{caller()}: a NumPy array of {value.dtype} has not the members of {type.described}")
        value = np.ravel(value).tolist()
    return list(value) if isinstance(value, list) else [value]


def _has_names_of(found: np.dtype[Any], type: Type) -> bool:
    if not isinstance(type, Struct):
        return found.names is None
    return found.names == tuple(member.name for member in type.members) and all(
        _has_names_of(found[member.name], member.type) for member in type.members)


def _numbers(value: Any) -> Iterator[Any]:
    """Of rows of an array, one after the other."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, (list, tuple, range)):
        yield value
        return
    for each in value:
        yield from _numbers(each)


def _bytes_of(variable: Variable, type: Type, value: Any) -> bytes:
    """As it is in memory; between members are zeros."""
    if isinstance(type, Struct):
        return _bytes_of_structure(variable, type, value)
    number = U64 if isinstance(type, Pointer) else type
    is_number = isinstance(value, (int, float) if number.kind is Kind.FLOAT else int) and not isinstance(value, bool)
    try:
        if is_number and (number.kind is Kind.FLOAT or number.holds(value)):
            return number.pack(value)
    except OverflowError:
        pass
    raise Invalid(f"{caller()}: {variable.__class__.__name__}({variable.type}) cannot hold {value!r}")


def _bytes_of_structure(variable: Variable, type: Struct, value: Any) -> bytes:
    value = value.tolist() if isinstance(value, np.void) else value
    if not isinstance(value, tuple) or len(value) != len(type.members):
        raise Invalid(f"{caller()}: {variable}: give a tuple for each {type.described}, or a structured array")
    data = bytearray(type.size_bytes)
    for member, part in zip(type.members, value, strict=True):
        found = _bytes_of(variable, member.type, part)
        data[member.offset_bytes : member.offset_bytes + len(found)] = found
    return bytes(data)


@dataclass(frozen=True, slots=True)
class Element:
    """One element of an array on the device."""

    variable: Variable
    index: int

    @property
    def pointer(self) -> Pointer:
        """Type of the parameter that takes it: a pointer, as for the whole array."""
        return self.variable.pointer

    @property
    def offset_bytes(self) -> int:
        """Bytes from the variable's address to the element's."""
        return self.index * self.variable.type.size_bytes


class WaveVariable(_Declared):
    """A scalar that each wave has for itself, zero at kernel entry; lives in scalar registers."""

    __slots__ = ()

    def __init__(self, type: Any, name: str = "") -> None:
        """``name`` is for variables that are no class attributes, since the program says how many there are."""
        if type not in WAVE_TYPES:
            raise Invalid(f"{caller()}: WaveVariable({type}): give one of {' '.join(map(str, WAVE_TYPES))}")
        super().__init__(type, name)


def copy_inherited_variables(cls: type) -> list[_Declared]:
    """Give a class separate variables for those that it inherits, so that two classes that inherit the same ones fit
    into one copy."""
    found = [(name, value) for base in reversed(cls.__mro__[1:]) for name, value in vars(base).items()
             if isinstance(value, _Declared)]
    own = {name: copy(value) for name, value in found if name not in vars(cls)}
    for name, value in own.items():
        value.__set_name__(cls, name)
        setattr(cls, name, value)
    return list(own.values())
