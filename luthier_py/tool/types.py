"""Types of device code, as hook authors write them in annotations.

At run time ``u32`` and its like are Scalar objects, ``ptr[u32]`` is a Pointer and ``Lane[u32]`` a LaneType. A
type checker sees plain ``int``, ``float`` and ``bool`` instead, so that device code checks like any Python.
Invariant: types are immutable and compare by value.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

from luthier_py.errors import HookError
from luthier_py.tool.author import caller

T = TypeVar("T")


class Kind(Enum):
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
    letter: str  # of module struct

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.UNSIGNED, Kind.SIGNED)

    @property
    def size_bytes(self) -> int:
        return struct.calcsize(self.letter)

    @property
    def align_bytes(self) -> int:
        return self.size_bytes

    @property
    def dwords(self) -> int:
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
            return struct.unpack(self.letter, struct.pack(self.letter, value))[0]
        low = -(1 << (self.bits - 1)) if self.kind is Kind.SIGNED else 0
        if isinstance(value, float):
            high = low + (1 << self.bits) - 1
            return 0 if math.isnan(value) else low if value <= low else high if value >= high else int(value)
        return (int(value) - low) % (1 << self.bits) + low

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Pointer:
    """Address of elements in global memory; 64 bits."""

    element: Scalar | Pointer

    @property
    def dwords(self) -> int:
        return 2

    @property
    def size_bytes(self) -> int:
        return 8

    def __call__(self, address: int) -> int:
        """A pointer from an integer: device code only."""
        raise HookError(f"{self}(...) is device code: write it inside a @hook or @device function")

    def __str__(self) -> str:
        return f"ptr[{self.element}]"


Type: TypeAlias = "Scalar | Pointer"


@dataclass(frozen=True, slots=True)
class LaneType:
    """A value that each lane has for itself."""

    of: Type

    @property
    def dwords(self) -> int:
        return self.of.dwords

    def __call__(self, value: Any) -> Any:
        return self.of(value)

    def __str__(self) -> str:
        return f"Lane[{self.of}]"


U32 = Scalar("u32", Kind.UNSIGNED, 32, "<I")
I32 = Scalar("i32", Kind.SIGNED, 32, "<i")
U64 = Scalar("u64", Kind.UNSIGNED, 64, "<Q")
I64 = Scalar("i64", Kind.SIGNED, 64, "<q")
F32 = Scalar("f32", Kind.FLOAT, 32, "<f")
F64 = Scalar("f64", Kind.FLOAT, 64, "<d")
BOOL = Scalar("bool_", Kind.BOOL, 1, "<?")


if TYPE_CHECKING:
    u32: TypeAlias = int
    i32: TypeAlias = int
    u64: TypeAlias = int
    i64: TypeAlias = int
    f32: TypeAlias = float
    f64: TypeAlias = float
    bool_: TypeAlias = bool
    Lane = Annotated[T, "each lane has its own"]

    class ptr(Generic[T]):
        """What a type checker knows of a pointer."""

        def __init__(self, address: int) -> None: ...
        def __getitem__(self, index: int) -> T: ...
        def __setitem__(self, index: int, value: T) -> None: ...
        def __add__(self, elements: int) -> ptr[T]: ...
        def __sub__(self, elements: int) -> ptr[T]: ...
        def __int__(self) -> int: ...

else:
    u32, i32, u64, i64, f32, f64, bool_ = U32, I32, U64, I64, F32, F64, BOOL

    class ptr:
        """``ptr[u32]``: a pointer to u32 in global memory."""

        def __class_getitem__(cls, element: object) -> Pointer:
            if not isinstance(element, (Scalar, Pointer)) or element == BOOL:
                raise HookError(f"{caller()}: ptr[{element}] is not a type; "
                                "point to one of u32 i32 u64 i64 f32 f64 or another ptr")
            return Pointer(element)

    class Lane:
        """``Lane[u32]``: one u32 in each lane."""

        def __class_getitem__(cls, of: object) -> LaneType:
            if not isinstance(of, (Scalar, Pointer)):
                raise HookError(f"{caller()}: Lane[{of}] is not a type; "
                                "a lane holds one of u32 i32 u64 i64 f32 f64 bool_ or a ptr")
            return LaneType(of)
