"""What a command takes, read from its function's type hints.

In: a function whose parameters are ``Annotated[TYPE, ByName(...)]`` or ``Annotated[TYPE, ByPlace(...)]``, TYPE one of
:data:`TYPES`, a list of them or one of them or None; or a dataclass of such fields, where several commands share them.
Several options may be one parameter, :class:`Together`. Out: click's parameters, and what gives the function such
values. Invariant: what has no default must be given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeGuard, get_args, get_origin, get_type_hints

import click

TYPES: dict[type, click.ParamType[Any]] = {
    str: click.STRING, int: click.INT, float: click.FLOAT, bool: click.BOOL, Path: click.Path(path_type=Path),
}  # fmt: skip


class ByName:
    """``names`` on the command line; ``settings``: click.Option's."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names = names
        self.settings = settings

    def parameter(self, name: str, kind: type, many: bool, settings: dict[str, Any]) -> click.Parameter:
        """The parameter of click for a function's parameter ``name`` of type ``kind``; ``many``: the option may be
        given several times. ``settings`` (type, default, whether it is required) yield to its own."""
        shown = {"show_default": True, "show_envvar": True}
        flag = {"is_flag": True} if kind is bool else {}
        return click.Option([*self.names, name], multiple=many, **{**shown, **flag, **settings, **self.settings})


class ByPlace:
    """Something without a name on the command line; ``settings``: click.Argument's."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def parameter(self, name: str, kind: type, many: bool, settings: dict[str, Any]) -> click.Parameter:
        """The parameter of click for a function's parameter ``name``; ``many``: it takes any number of words.
        ``settings`` (type, default, whether it is required) yield to its own."""
        return click.Argument([name], nargs=-1 if many else 1, **{**settings, **self.settings})


class Together:
    """Options by their names on the command line, each with its type and the settings of click.Option: the function
    gets one dictionary of what was given, None for the others."""

    def __init__(self, options: Mapping[str, tuple[type, dict[str, Any]]]) -> None:
        self.options = {option: inspect.Parameter(
            option.lstrip("-").replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=None,
            annotation=Annotated[kind | None, ByName(option, **settings)])
            for option, (kind, settings) in options.items()}  # fmt: skip


def parameters(function: Callable[..., object]) -> list[click.Parameter]:
    """Parameters in the order in which the function has them."""
    return [_parameter(each) for each in _flat(function)]


def from_click(function: Callable[..., object]) -> Callable[..., object]:
    """The function, as click calls it: with tuples for lists, and one by one with the fields of its dataclasses and
    with options that it takes together."""
    return lambda **given: _collect(function, given)


def _collect(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    return function(**{name: _value(each, given) for name, each in _signature(function).items()})


def _value(parameter: inspect.Parameter, given: Mapping[str, Any]) -> Any:
    if _is_group(parameter.annotation):
        return _collect(parameter.annotation, given)
    if together := _together(parameter):
        return {option: _value(each, given) for option, each in together.options.items()}
    value = given[parameter.name]
    return list(value) if isinstance(value, tuple) else value


def _is_group(hint: Any) -> TypeGuard[type[Any]]:
    return isinstance(hint, type) and is_dataclass(hint)


def _together(parameter: inspect.Parameter) -> Together | None:
    return next((each for each in get_args(parameter.annotation) if isinstance(each, Together)), None)


def _signature(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    if _is_group(function):
        hints = get_type_hints(function, include_extras=True)
        return {each.name: _parameter_of(each, hints[each.name]) for each in fields(function)}
    return dict(inspect.signature(function, eval_str=True).parameters)


def _parameter_of(field: Field[Any], hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _flat(function: Callable[..., object]) -> Iterator[inspect.Parameter]:
    for each in _signature(function).values():
        if _is_group(each.annotation):
            yield from _flat(each.annotation)
        elif together := _together(each):
            yield from together.options.values()
        else:
            yield each


def _parameter(parameter: inspect.Parameter) -> click.Parameter:
    hint, how = get_args(parameter.annotation)
    if get_origin(hint) is UnionType:
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    many = get_origin(hint) is list
    kind = get_args(hint)[0] if many else hint
    required = parameter.default is inspect.Parameter.empty
    settings = {"type": TYPES[kind], "required": required}
    if not required and parameter.default is not None:
        settings["default"] = parameter.default
    made: click.Parameter = how.parameter(parameter.name, kind, many, settings)
    return made
