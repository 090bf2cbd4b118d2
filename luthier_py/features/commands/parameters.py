"""What a command takes, read from its function's type hints.

In: a function whose parameters are ``Annotated[TYPE, ByName(...)]`` or ``Annotated[TYPE, ByPlace(...)]``, TYPE one of
:data:`TYPES`, a list of them or one of them or None; or a dataclass of such fields, where several commands share them.
Out: click's parameters, and what gives the function such values. Invariant: what has no default must be given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

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


def parameters(function: Callable[..., object]) -> list[click.Parameter]:
    """In the order in which the function has them."""
    return [_parameter(each) for each in _flat(function)]


def from_click(function: Callable[..., object]) -> Callable[..., object]:
    """The function, as click calls it: with tuples for lists, and with the fields of its dataclasses one by one."""
    groups = {name: each.annotation for name, each in _signature(function).items() if _is_group(each.annotation)}

    def call(**given: Any) -> object:
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        for name, group in groups.items():
            values[name] = group(**{each.name: values.pop(each.name) for each in fields(group)})
        return function(**values)

    return call


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _signature(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function, eval_str=True).parameters)


def _flat(function: Callable[..., object]) -> Iterator[inspect.Parameter]:
    for each in _signature(function).values():
        if _is_group(each.annotation):
            yield from _signature(each.annotation).values()
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
