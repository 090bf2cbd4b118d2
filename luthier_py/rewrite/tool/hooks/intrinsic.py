"""Intrinsics: device functions that are not Python but an instruction or two; and the door they come in by.

An intrinsic is a function from operands to LLVM IR, written against `Ir`, with its effects as data. Hooks import it
from where it is. A package that registers its module in the entry point group ``luthier_py.intrinsics``, as the
built-in ones do, has them named to authors who look for one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import Enum, auto
from functools import cache
from inspect import CO_VARARGS
from typing import Any, NoReturn, Protocol, TypeAlias

from luthier_py.base.errors import HookError
from luthier_py.base.records import dataclass
from luthier_py.rewrite.tool.hooks.hook import Device
from luthier_py.rewrite.tool.hooks.types import Type

GROUP = "luthier_py.intrinsics"


@dataclass(frozen=True, slots=True)
class Value:
    """A value of device code: an LLVM operand with its type."""

    type: Type
    text: str    # "%7", "12"
    lane: bool   # may differ between the active lanes


Operand: TypeAlias = "Value | int | float | bool"  # Python numbers are literals: they take the type of their use


class Result(Enum):
    """Whether the result may differ between the active lanes."""

    UNIFORM = auto()
    LANE = auto()
    ARGUMENTS = auto()  # it may when an argument may


@dataclass(frozen=True, slots=True)
class Effects:
    """What callers of an intrinsic must know."""

    result: Result
    uniform: tuple[int, ...] = ()  # positions of arguments that must be the same in every lane


class Ir(Protocol):
    """What an intrinsic is lowered with. Every method returns or takes values of the hook being compiled."""

    @property
    def wave_size(self) -> int: ...

    def value(self, operand: Operand, type: Type) -> Value:
        """``operand`` as ``type``: literals adapt, small integers widen; anything else is refused."""

    def typed(self, operand: Operand) -> Value:
        """``operand`` as it is; literals become i32, f32 or bool_."""

    def integer(self, operand: Operand) -> Value:
        """``operand`` if it is an integer; refused otherwise."""

    def convert(self, operand: Operand, type: Type) -> Value:
        """``operand`` turned into ``type``, as by calling the type."""

    def condition(self, operand: Operand) -> Value:
        """``operand`` as bool_: numbers are true when not zero."""

    def emit(self, type: Type, instruction: str) -> Value:
        """One LLVM instruction that yields a ``type``."""

    def raw(self, instruction: str) -> str:
        """One LLVM instruction whose result has no type in device code; its name."""

    def call(self, function: str, result: Type, *args: Value) -> Value:
        """A call of an LLVM intrinsic."""

    def effect(self, function: str, *args: Value) -> None:
        """A call of an LLVM intrinsic that yields nothing."""

    def line(self, instruction: str) -> None:
        """One LLVM instruction that yields nothing."""

    def inline(self, function: Device | Callable[..., Any], *args: Operand) -> tuple[Value, ...]:
        """The code of a device function, in place; its results."""

    def where(self, condition: Value) -> AbstractContextManager[None]:
        """What is written inside runs in the lanes in which the condition holds."""

    def llvm(self, type: Type) -> str:
        """LLVM's name of a type: i32, float, ptr addrspace(1)."""

    def mangled(self, type: Type) -> str:
        """A type in the name of an LLVM intrinsic: i32, f32, p1."""

    def refuse(self, message: str) -> NoReturn:
        """Raise HookError at the call."""


class Intrinsic:
    """Callable from device code only. ``lower(ir, *operands)`` yields the result, or None."""

    def __init__(self, lower: Callable[..., Value | None], effects: Effects) -> None:
        self.name, self.lower, self.effects = lower.__name__, lower, effects
        self.arity = lower.__code__.co_argcount - 1
        self.takes_more = bool(lower.__code__.co_flags & CO_VARARGS)
        self.__doc__ = lower.__doc__

    def __call__(self, *args: Any) -> Any:
        raise HookError(f"{self.name} is device code: call it from a @hook or @device function")

    def __repr__(self) -> str:
        return f"<intrinsic {self.name}>"


def intrinsic(
    result: Result, uniform: tuple[int, ...] = ()
) -> Callable[[Callable[..., Value | None]], Intrinsic]:
    """Make an Intrinsic of a lowering function; the arguments are its Effects."""
    return lambda lower: Intrinsic(lower, Effects(result, uniform))


@cache
def intrinsics() -> dict[str, tuple[str, ...]]:
    """All registered intrinsics: the modules that each is imported from, by its name there."""
    found: dict[str, tuple[str, ...]] = {}
    from importlib.metadata import entry_points  # longer to import than all of this house

    for entry in entry_points(group=GROUP):
        try:
            names = vars(entry.load())
        except ImportError:  # a package that cannot be imported offers nothing
            continue
        for name, value in names.items():
            if isinstance(value, Intrinsic):
                found[name] = (*found.get(name, ()), entry.value)
    return found
