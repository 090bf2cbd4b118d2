"""Types of device code: numbers, pointers, structures, and values of lanes.

What authors write for them is in author_types. Invariant: types are immutable and compare by value.
"""

from __future__ import annotations

import inspect
import math
import struct
from collections.abc import Iterable
from contextvars import ContextVar
from enum import Enum, auto
from functools import cache
from typing import Any, TypeAlias, TypeVar

from luthier_py.base.errors import HookError
from luthier_py.base.records import dataclass
from luthier_py.isa import Space

T = TypeVar("T")


class Kind(Enum):
    """What a number is."""

    UNSIGNED = auto()
    SIGNED = auto()
    FLOAT = auto()
    BOOL = auto()


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of fixed width. Calling it converts a Python number, as device code would."""

    name: str
    kind: Kind
    bits: int
    letter: str  # of module struct, and of NumPy; bf16 has none there, and its bits' one here

    @property
    def is_integer(self) -> bool:
        """Whether it is one, with a sign or without."""
        return self.kind in (Kind.UNSIGNED, Kind.SIGNED)

    @property
    def size_bytes(self) -> int:
        """The size in memory."""
        return struct.calcsize(self.letter)

    @property
    def align_bytes(self) -> int:
        """What its address in memory is a multiple of."""
        return self.size_bytes

    @property
    def dwords(self) -> int:
        """Registers of 32 bits that a value takes: a narrower one has a whole register."""
        return max(1, self.bits // 32)

    def holds(self, value: int) -> bool:
        """Whether an integer type can represent ``value``."""
        low = -(1 << (self.bits - 1)) if self.kind is Kind.SIGNED else 0
        return low <= value < low + (1 << self.bits)

    def __call__(self, value: Any) -> Any:
        """Integers wrap. A float becomes an integer by cutting towards zero, at most at the ends of the range."""
        if self.kind is Kind.BOOL:
            return bool(value)
        if self.kind is Kind.FLOAT:
            return self.unpack(self.pack(value))
        low = -(1 << (self.bits - 1)) if self.kind is Kind.SIGNED else 0
        if isinstance(value, float):
            high = low + (1 << self.bits) - 1
            return 0 if math.isnan(value) else low if value <= low else high if value >= high else int(value)
        return (int(value) - low) % (1 << self.bits) + low

    def pack(self, value: int | float | bool) -> bytes:
        """The bytes of a value in memory; a float is rounded, and OverflowError says that it is too large."""
        if self.name == "bf16":
            return struct.pack("<f", _round_to_bf16(float(value)))[2:]
        return struct.pack(self.letter, float(value) if self.kind is Kind.FLOAT else value)

    def unpack(self, data: bytes) -> Any:
        """The value of bytes in memory."""
        return self.unpack_all(data)[0]

    def unpack_all(self, data: bytes) -> tuple[Any, ...]:
        """The same of numbers that lie one behind the other."""
        if self.name == "bf16":
            return tuple(struct.unpack("<f", b"\0\0" + data[at : at + 2])[0] for at in range(0, len(data), 2))
        return struct.unpack(f"<{len(data) // self.size_bytes}{self.letter[-1]}", data)

    def __str__(self) -> str:
        return self.name


def _round_to_bf16(value: float) -> float:
    """To the eight bits that a bf16 has, the nearest even."""
    if not math.isfinite(value) or value == 0:
        return value
    unit = max(math.frexp(value)[1] - 8, -133)
    return math.copysign(math.ldexp(round(math.ldexp(value, -unit)), unit), value)


@dataclass(frozen=True, slots=True)
class Pointer:
    """Address of elements in global memory; 64 bits."""

    element: Type

    @property
    def space(self) -> Space:
        """The memory that it is an address in."""
        return Space.GLOBAL

    @property
    def dwords(self) -> int:
        """Registers of 32 bits that an address takes: those in LDS and scratch have one."""
        return 2 if self.space is Space.GLOBAL else 1

    @property
    def size_bytes(self) -> int:
        """The size in memory."""
        return 4 * self.dwords

    @property
    def align_bytes(self) -> int:
        """What its own address in memory is a multiple of."""
        return self.size_bytes

    def __call__(self, address: int) -> int:
        """A pointer from an integer: device code only."""
        raise HookError(f"{self}(...) is device code: write it inside a @hook or @device function")

    def __str__(self) -> str:
        return f"ptr[{self.element}]"


@dataclass(frozen=True, slots=True)
class NearPointer(Pointer):
    """Address of elements that hooks may read in the application's LDS, or in each lane's private memory; 32 bits."""

    memory: Space

    @property
    def space(self) -> Space:
        return self.memory

    def __str__(self) -> str:
        return f"{self.memory.name}".lower() + f"[{self.element}]"


@dataclass(frozen=True, slots=True)
class StructMember:
    """One field of a structure."""

    name: str
    type: Type
    offset_bytes: int

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True, slots=True)
class Struct:
    """Several values, one behind the other, each aligned to its own size: as C has them."""

    name: str
    members: tuple[StructMember, ...]

    @property
    def align_bytes(self) -> int:
        """The largest alignment of a member."""
        return max(member.type.align_bytes for member in self.members)

    @property
    def size_bytes(self) -> int:
        """The size in memory, with what fills it up behind the last member."""
        return _align_up(self.members[-1].offset_bytes + self.members[-1].type.size_bytes, self.align_bytes)

    @property
    def dwords(self) -> int:
        """The dwords of its bytes in memory; the last one may be filled up."""
        return -(-self.size_bytes // 4)

    @property
    def numbers(self) -> frozenset[Scalar | Pointer]:
        """What its members are made of."""
        inner = [each.type.numbers if isinstance(each.type, Struct) else {each.type} for each in self.members]
        return frozenset[Scalar | Pointer]().union(*inner)

    def index(self, name: str) -> int | None:
        """The number of the member that is called so."""
        return next((at for at, member in enumerate(self.members) if member.name == name), None)

    @property
    def described(self) -> str:
        """Its name and members."""
        return f"{self.name} ({', '.join(map(str, self.members))})"

    def __str__(self) -> str:
        return self.name


Type: TypeAlias = "Scalar | Pointer | Struct"


def _align_up(offset_bytes: int, align_bytes: int) -> int:
    return -(-offset_bytes // align_bytes) * align_bytes


def struct_of(name: str, types: Iterable[tuple[str, object]]) -> Struct:
    """Members of these types, in their order; ValueError where one cannot be in memory."""
    members, at = list[StructMember](), 0
    for member, given in types:
        type = device_type(given)
        if isinstance(type, Pointer) and type.__class__ is not Pointer:
            raise ValueError(f"struct {name}: {member}: {type} cannot be in memory; keep a number, as in u32(pointer)")
        if type is None or type == BOOL:
            shown = getattr(given, "__name__", given)
            raise ValueError(f"struct {name}: {member}: {shown} cannot be in memory; give one of {NUMBER_NAMES}, a "
                             "ptr or another struct")
        at = _align_up(at, type.align_bytes)
        members.append(StructMember(member, type, at))
        at += type.size_bytes
    return Struct(name, tuple(members))


def device_type(given: object) -> Type | None:
    """The type that an annotation names; a class with annotations is a structure. None where it names none, ValueError
    where such a class cannot be one."""
    if isinstance(given, (Scalar, Pointer, Struct)):
        return given
    return _struct_of_class(given) if isinstance(given, type) and _has_annotations(given) else None


def _has_annotations(given: type) -> bool:
    try:
        return bool(inspect.get_annotations(given))
    except NameError:  # of Python 3.14, which reads them here
        return True


_being_read: ContextVar[tuple[type, ...]] = ContextVar("_being_read", default=())


@cache
def _struct_of_class(given: type) -> Struct:
    if given in _being_read.get():
        raise ValueError(f"struct {given.__name__}: it leads to itself; write u64, and convert it where it is used, as "
                         f"in ptr[{given.__name__}](n)")
    if bases := [base.__name__ for base in given.__mro__[1:] if _has_annotations(base)]:
        raise ValueError(f"struct {given.__name__}: it has the members of {bases[0]}, too; give a class without a base")
    outer = _being_read.set((*_being_read.get(), given))
    try:
        return struct_of(given.__name__, inspect.get_annotations(given, eval_str=True).items())
    except (NameError, TypeError, SyntaxError) as error:
        raise ValueError(f"struct {given.__name__}: an annotation cannot be read: {error}") from None
    except HookError as error:  # of ptr[...] in it, with a place
        raise ValueError(error.message.partition(": ")[2]) from None
    finally:
        _being_read.reset(outer)


def pointer_to(element: Type, space: Space) -> Pointer:
    """The pointer to such elements there."""
    return Pointer(element) if space is Space.GLOBAL else NearPointer(element, space)


def is_of_lanes(type: Type) -> bool:
    """Whether it points to what each lane has for itself, at the same address."""
    return isinstance(type, NearPointer) and type.space is Space.SCRATCH


@dataclass(frozen=True, slots=True)
class LaneType:
    """A value that each lane has for itself."""

    of: Type

    @property
    def dwords(self) -> int:
        """Registers of 32 bits that it takes, of each lane."""
        return self.of.dwords

    def __call__(self, value: Any) -> Any:
        return value if isinstance(self.of, Struct) else self.of(value)

    def __str__(self) -> str:
        return f"Lane[{self.of}]"


U8 = Scalar("u8", Kind.UNSIGNED, 8, "<B")
I8 = Scalar("i8", Kind.SIGNED, 8, "<b")
U16 = Scalar("u16", Kind.UNSIGNED, 16, "<H")
I16 = Scalar("i16", Kind.SIGNED, 16, "<h")
U32 = Scalar("u32", Kind.UNSIGNED, 32, "<I")
I32 = Scalar("i32", Kind.SIGNED, 32, "<i")
U64 = Scalar("u64", Kind.UNSIGNED, 64, "<Q")
I64 = Scalar("i64", Kind.SIGNED, 64, "<q")
F16 = Scalar("f16", Kind.FLOAT, 16, "<e")
BF16 = Scalar("bf16", Kind.FLOAT, 16, "<H")
F32 = Scalar("f32", Kind.FLOAT, 32, "<f")
F64 = Scalar("f64", Kind.FLOAT, 64, "<d")
BOOL = Scalar("bool_", Kind.BOOL, 1, "<?")
NUMBERS = (U8, I8, U16, I16, U32, I32, U64, I64, F16, BF16, F32, F64)
NUMBER_NAMES = " ".join(map(str, NUMBERS))
