"""Types of device code, as hook authors write them in annotations.

At run time ``u32`` and its like are Scalar objects, ``ptr[u32]`` is a Pointer, ``lds[u32]`` and ``scratch[u32]`` are
NearPointers, and ``Lane[u32]`` is a LaneType. A type checker sees plain ``int``, ``float`` and ``bool`` instead, so
that device code checks like any Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeAlias, TypeVar

from luthier_py.base.errors import HookError
from luthier_py.isa import Space
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.hooks.types import (
    BOOL,
    NUMBER_NAMES,
    NUMBERS,
    LaneType,
    NearPointer,
    Pointer,
    Scalar,
    Struct,
    Type,
    device_type,
)

T = TypeVar("T")

if TYPE_CHECKING:
    u8: TypeAlias = int
    i8: TypeAlias = int
    u16: TypeAlias = int
    i16: TypeAlias = int
    u32: TypeAlias = int
    i32: TypeAlias = int
    u64: TypeAlias = int
    i64: TypeAlias = int
    f16: TypeAlias = float
    bf16: TypeAlias = float
    f32: TypeAlias = float
    f64: TypeAlias = float
    bool_: TypeAlias = bool
    Lane = Annotated[T, "each lane has its own"]

    def array(type: type[T], length: int) -> list[T]:
        """A local array of device code."""

    class ptr(Generic[T]):
        """A pointer's type, for type checkers."""

        def __init__(self, address: int) -> None: ...
        def __getitem__(self, index: int) -> T: ...
        def __setitem__(self, index: int, value: T) -> None: ...
        def __add__(self, elements: int) -> ptr[T]: ...
        def __sub__(self, elements: int) -> ptr[T]: ...
        def __int__(self) -> int: ...

    class _Near(Generic[T]):
        """The type of an address in the application's own memory, for type checkers."""

        def __init__(self, address: int) -> None: ...
        def __getitem__(self, index: int) -> T: ...
        def __add__(self: N, elements: int) -> N: ...
        def __sub__(self: N, elements: int) -> N: ...
        def __int__(self) -> int: ...

    N = TypeVar("N", bound=_Near[Any])

    class lds(_Near[T]): ...

    class scratch(_Near[T]): ...

else:
    u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 = NUMBERS
    bool_ = BOOL

    def array(type: Scalar, length: int) -> list[Any]:
        """A local array of device code: ``array(u32, 8)``, zeros at first."""
        return [type(0)] * length

    class ptr:
        """``ptr[u32]``: a pointer to u32 in global memory."""

        def __class_getitem__(cls, element: object) -> Pointer:
            found = _find_type(element)
            if found is None or found == BOOL or isinstance(found, NearPointer):
                raise HookError(f"{caller()}: ptr[{element}] is not a type; "
                                f"point to one of {NUMBER_NAMES}, another ptr or a class with annotations")
            return Pointer(found)

    class lds:
        """``lds[u32]``: where a u32 is in the application's LDS, of its work-group; hooks read it."""

        def __class_getitem__(cls, element: object) -> NearPointer:
            return _near("lds", element, Space.LDS)

    class scratch:
        """``scratch[u32]``: where a u32 is in the application's private memory, of a lane; hooks read it."""

        def __class_getitem__(cls, element: object) -> NearPointer:
            return _near("scratch", element, Space.SCRATCH)

    def _near(name: str, element: object, space: Space) -> NearPointer:
        found = _find_type(element)
        if not isinstance(found, (Scalar, Struct)) or found == BOOL:
            raise HookError(f"{caller()}: {name}[{element}] is not a type; point to one of {NUMBER_NAMES}, or to a "
                            "class with annotations")
        return NearPointer(found, space)

    class Lane:
        """``Lane[u32]``: one u32 in each lane."""

        def __class_getitem__(cls, of: object) -> LaneType:
            found = _find_type(of)
            if found is None:
                raise HookError(f"{caller()}: Lane[{of}] is not a type; "
                                f"a lane holds one of {NUMBER_NAMES} bool_, a pointer or a class with annotations")
            return LaneType(found)

    def _find_type(given: object) -> Type | None:
        try:
            return device_type(given)
        except ValueError as error:
            raise HookError(f"{caller()}: {error}") from None
