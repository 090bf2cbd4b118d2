"""Hooks and device functions: Python functions marked as device code, with typed signatures.

In: a decorated function. Out: Hook or Device, with the types of parameters and results. Invariant: the
signature is legal device code; the body is looked at only when it is compiled (room jit).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from enum import Enum
from types import FunctionType, GenericAlias
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, overload

from luthier_py.base.errors import HookError
from luthier_py.base.records import dataclass
from luthier_py.isa import Reg, RegFile, Space
from luthier_py.rewrite.tool.arguments.expected import each
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.cpp.native import Native
from luthier_py.rewrite.tool.hooks.assembly import Assembly
from luthier_py.rewrite.tool.hooks.generated import Written
from luthier_py.rewrite.tool.hooks.printing import PRINTED, PRINTING, learn, prints
from luthier_py.rewrite.tool.hooks.types import (
    BOOL,
    NUMBER_NAMES,
    U32,
    U64,
    LaneType,
    Struct,
    Type,
    device_type,
    pointer_to,
)
from luthier_py.rewrite.tool.variables import Variable

MOST_LEVELS = 1 << 16
F = TypeVar("F", bound=Callable[..., Any])


class Lanes(Enum):
    """Lanes that a hook runs in."""

    ACTIVE = "active"  # those that are active at its place; also when there are none
    ONE = "one"        # lane 0 alone, whatever EXEC is at its place
    ALL = "all"        # all lanes, whatever EXEC is at its place


PLAIN = "take a plain @hook for what differs between lanes; is_first_lane() is true in one of the active ones there"


class FloatMode(Enum):
    """How floats of a hook are rounded, and what becomes of denormals, NaN and what is too large for f16."""

    OWN = "own"                  # as compute kernels have it by default, whatever the application has
    APPLICATION = "application"  # as the application has it at the place


@dataclass(frozen=True, slots=True)
class Parameter:
    """One value that device code takes or gives."""

    name: str
    type: Type
    lane: bool  # each lane has its own value; else the value is one for the wave

    def __str__(self) -> str:
        return f"{self.name}: {LaneType(self.type) if self.lane else self.type}"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a hook or device function takes and gives. ``results``: empty for ``-> None``."""

    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]  # named "" when there is one, else "0", "1", ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """A value that is computed where a hook is called: a device function of what the call gives, by its number there,
    or of other such values."""

    function: Device
    inputs: tuple[Recipe | int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """Device code that a Mutator inserts; compared by identity."""

    function: FunctionType | Native | Assembly | Written
    lanes: Lanes
    signature: Signature
    folded: frozenset[int] | None = None
    """Parameters whose constants are compiled in; None where that depends on how many there are."""
    made: tuple[Recipe | int, ...] | None = None
    """Of a hook that is given other values than its function takes: how each of these is made of them."""
    declared: tuple[Parameter, ...] = ()
    """The parameters of the function of such a hook."""
    captured: tuple[Variable, ...] = ()
    """Tool variables that it names itself: the last parameters, which each call gets without an argument."""
    mode: FloatMode = FloatMode.OWN

    @property
    def name(self) -> str:
        """The name of its function."""
        return name_of(self.function)

    @property
    def place(self) -> str:
        """``file:line`` of its function."""
        return place_of(self.function)


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A function that device code calls; it is inlined. On the host it is plain Python, if it is Python."""

    function: FunctionType | Native
    signature: Signature
    depth: int | None = None
    """How many calls of it may be unfinished at a time, of one that calls itself."""

    @property
    def name(self) -> str:
        """The name of its function."""
        return name_of(self.function)

    @property
    def may_go_too_deep(self) -> bool:
        """Whether it calls itself, with a depth declared: hooks that call it then report where that is exceeded."""
        return self.depth is not None

    def __call__(self, *args: Any) -> Any:
        if isinstance(self.function, Native):
            raise HookError(f"{self.name} is device code: call it from a @hook or @device function")
        return self.function(*args)


@overload
def hook(function: Callable[..., Any], /) -> Hook:
    """``@hook``: with the defaults."""
@overload
def hook(
    *, lanes: str = "active", fold: bool | Collection[str] | None = None, mode: str = "own"
) -> Callable[..., Hook]:
    """``@hook(...)``: the decorator for these choices."""
def hook(
    function: Callable[..., Any] | None = None, /, *, lanes: str = "active", fold: bool | Collection[str] | None = None,
    mode: str = "own",
) -> Any:
    """Mark a function as a hook: ``@hook`` or ``@hook(lanes="one")``; see Lanes.

    ``mode``: "own" or "application", how its floats are rounded; see FloatMode.

    ``fold``: which constants are compiled into the code, all, none, or those of some parameters. The others are written
    into finished code, so that calls share it. By default a few different ones are folded, and many are not.
    """
    if function is None:
        return lambda later: _hook(later, lanes, fold, mode)
    return _hook(function, lanes, fold, mode)


if TYPE_CHECKING:

    @overload
    def device(function: F, /) -> F: ...
    @overload
    def device(*, depth: int | None = None) -> Callable[[F], F]: ...
    def device(function: Any = None, /, *, depth: int | None = None) -> Any:
        """Mark a function as callable from device code.

        ``depth``: of one that calls itself, how many of its calls may be unfinished at a time.
        """
        ...

else:

    def device(function: Callable[..., Any] | None = None, /, *, depth: int | None = None) -> Any:
        """Mark a function as callable from device code.

        ``depth``: of one that calls itself, how many of its calls may be unfinished at a time.
        """
        if function is None:
            return lambda later: device(later, depth=depth) if depth is None else _make_recursive_device(later, depth)
        plain = _plain(function, "device")
        learn(plain)
        return Device(plain, _signature(function))


def _make_recursive_device(function: Callable[..., Any], depth: int) -> Device:
    plain = _plain(function, "device")
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= MOST_LEVELS:
        raise HookError(f"{place_of(plain)}: {plain.__name__}: depth={depth!r}: give 1 to {MOST_LEVELS}")
    learn(plain)
    return Device(plain, _signature(function), depth)


def name_of(function: FunctionType | Native | Assembly | Written) -> str:
    """A function's name in messages, without its module."""
    return function.__name__ if isinstance(function, FunctionType) else function.name


def place_of(function: FunctionType | Native | Assembly | Written) -> str:
    """``file:line`` of a function."""
    if not isinstance(function, FunctionType):
        return function.place
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def namespace(function: FunctionType) -> dict[str, Any]:
    """Names that a function sees around it: globals, and variables of enclosing functions."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    enclosing = {}
    for name, cell in cells:
        try:
            enclosing[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return {**function.__globals__, **enclosing}


def _hook(function: Callable[..., Any], lanes: str, fold: bool | Collection[str] | None, mode: str) -> Hook:
    plain = _plain(function, "hook")
    signature, captured = _signature(plain), tuple[Variable, ...]()
    folded = _select_folded(plain, signature, fold)
    learn(plain)
    if prints(plain, namespace(plain)):
        captured = (PRINTED,)
        parameter = Parameter(PRINTING, PRINTED.pointer, lane=False)
        signature = Signature((*signature.parameters, parameter), signature.results)
    return make_hook(plain, lanes, signature, folded, captured, mode)


def make_hook(
    function: FunctionType | Native | Written, lanes: str, signature: Signature, folded: frozenset[int] | None,
    captured: tuple[Variable, ...] = (), mode: str = FloatMode.OWN.value,
) -> Hook:
    """A hook of which the signature is known; HookError for what no hook may have."""
    where, names = place_of(function), [lane.value for lane in Lanes]
    if lanes not in names:
        raise HookError(f"{where}: lanes={lanes!r} is unknown; choose one of {', '.join(names)}")
    if mode not in (known := [each.value for each in FloatMode]):
        raise HookError(f"{where}: mode={mode!r} is unknown; choose one of {', '.join(known)}")
    for parameter in (*signature.parameters, *signature.results):
        if isinstance(parameter.type, Struct):
            named = parameter.name or "its result"
            raise HookError(f"{where}: a hook takes and gives numbers and pointers; {named} is "
                            f"{parameter.type.described}: pass members, or a pointer to it")
        if lanes == Lanes.ONE.value and parameter.lane:
            named = parameter.name or "its result"
            raise HookError(f"{where}: a hook with lanes='one' has a single lane; {named} cannot be "
                            f"Lane[{parameter.type}]: declare {parameter.type}, or {PLAIN}")
    if any(result.type == BOOL for result in signature.results):
        raise HookError(f"{where}: a hook cannot return bool_; return u32(condition)")
    return Hook(function, Lanes(lanes), signature, folded, captured=captured, mode=FloatMode(mode))


def _select_folded(function: FunctionType, signature: Signature,
                   fold: bool | Collection[str] | None) -> frozenset[int] | None:
    if fold is None:
        return None
    names = [parameter.name for parameter in signature.parameters]
    wanted = (names if fold else []) if isinstance(fold, bool) else each(fold, str, "fold")
    if unknown := [name for name in wanted if name not in names]:
        raise HookError(f"{place_of(function)}: fold={fold!r}: the hook has no parameter {unknown[0]}")
    return frozenset(map(names.index, wanted))


def _plain(function: object, marker: str) -> FunctionType:
    if isinstance(function, staticmethod):
        function = function.__func__
    if not isinstance(function, FunctionType):
        raise HookError(f"{caller()}: @{marker} marks a function, not {type(function).__name__}")
    return function


def _signature(function: Callable[..., Any]) -> Signature:
    plain = _plain(function, "device")
    where = f"{place_of(plain)}: {plain.__name__}"
    parameters = []
    for name, parameter in inspect.signature(plain).parameters.items():
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD or parameter.default is not parameter.empty:
            raise HookError(f"{where}: parameter {name}: only plain positional parameters without defaults are allowed")
        if name not in plain.__annotations__:
            raise HookError(f"{where}: parameter {name} has no type; annotate it, as in `{name}: u32`")
        parameters.append(_parameter(where, name, _evaluate(plain, plain.__annotations__[name])))
    if "return" not in plain.__annotations__:
        raise HookError(f"{where}: the result has no type; annotate it, as in `-> u32` or `-> None`")
    return Signature(tuple(parameters), _results(where, _evaluate(plain, plain.__annotations__["return"])))


def _evaluate(function: FunctionType, annotation: object) -> object:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, namespace(function))
    except HookError as error:
        message = error.message.partition(": ")[2]
        raise HookError(f"{place_of(function)}: {function.__name__}: {message}") from error
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        message = f"annotation {annotation!r} cannot be read: {error}"
        raise HookError(f"{place_of(function)}: {function.__name__}: {message}") from error


def _parameter(where: str, name: str, type: object) -> Parameter:
    if isinstance(type, LaneType):
        return Parameter(name, type.of, lane=True)
    try:
        found = device_type(type)
    except ValueError as error:
        raise HookError(f"{where}: {error}") from None
    if found is not None:
        return Parameter(name, found, lane=False)
    shown = getattr(type, "__name__", type)
    raise HookError(f"{where}: {name or 'result'}: {shown} is not a device type; "
                    f"use {NUMBER_NAMES} bool_ ptr[T] lds[T] scratch[T] Lane[T] or a class with annotations")


def _results(where: str, type: object) -> tuple[Parameter, ...]:
    if type is None:
        return ()
    if get_origin(type) is tuple or isinstance(type, GenericAlias):
        return tuple(_parameter(where, str(i), t) for i, t in enumerate(get_args(type)))
    return (_parameter(where, "", type),)


def hook_of_text(code: Assembly) -> Hook:
    """A hook whose code is assembly: its parameters and results are the registers that it takes and gives. It computes
    as the application does."""
    def parameter(reg: Reg) -> Parameter:
        wide, points = reg.dwords == 2, reg in code.pointers
        type = pointer_to(U32, Space.GLOBAL if wide else Space.LDS) if points else U64 if wide else U32
        return Parameter(str(reg), type, reg.file is not RegFile.SGPR)

    signature = Signature(tuple(map(parameter, code.takes)), tuple(map(parameter, code.gives)))
    return Hook(code, Lanes.ACTIVE, signature, mode=FloatMode.APPLICATION)
