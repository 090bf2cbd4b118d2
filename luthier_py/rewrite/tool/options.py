"""Options of a tool: declared in the class body, read as attributes of the tool.

In: text from the command line or the environment, or Python values. Out: values of the default's type.
Invariant: a tool that was made has only valid option values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

from luthier_py.base.errors import Invalid
from luthier_py.rewrite.tool.arguments.expected import each, expect
from luthier_py.rewrite.tool.author import caller

T = TypeVar("T")  # bool, int, float or str

BOOLEANS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Option(Generic[T]):
    """``limit = Option(10, bounds=(0, 99), help="...")``; ``self.limit`` is its value.

    The default decides the type. ``several``: texts of which a value names some, with commas between. ``env`` names an
    environment variable that is used when nothing is given. ``name`` is how users spell it, without regard to case; by
    default as the attribute is called.
    """

    __slots__ = ("default", "choices", "several", "bounds", "help", "env", "name")

    def __init__(
        self,
        default: T,
        *,
        choices: Sequence[T] = (),
        several: Sequence[str] = (),
        bounds: tuple[T, T] | None = None,
        help: str = "",
        env: str = "",
        name: str = "",
    ) -> None:
        self.default, self.bounds = default, bounds
        self.choices, self.several = each(choices, type(default), "choices"), each(several, str, "several")
        self.help, self.env, self.name = help, env, name
        self._check_declared()

    def _check_declared(self) -> None:
        kind: type = type(expect(self.default, bool, int, float, str, name="default"))
        for name in ("help", "env", "name"):
            expect(getattr(self, name), str, name=name)
        if self.bounds is not None and len(each(self.bounds, kind, "bounds")) != 2:
            raise Invalid(f"{caller()}: bounds={self.bounds}: give the least value and the largest one")
        try:
            self.parse(self.default)
        except Invalid as error:
            raise Invalid(f"{caller()}: the default: {error.message}") from None

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, tool: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, tool: object, owner: type) -> T: ...
    def __get__(self, tool: object | None, owner: type) -> Option[T] | T:
        if tool is None:
            return self
        value: T = getattr(tool, "_options", {}).get(self.name, self.default)
        return value

    def only(self, *choices: T) -> Option[T]:
        """The same option for a tool that can do just these; the first is the default."""
        return Option(choices[0], choices=choices, help=self.help, env=self.env, name=self.name)

    def environment(self) -> str | None:
        """What the environment says, if it does."""
        return os.environ.get(self.env) if self.env else None

    def parse(self, given: Any) -> T:
        """A value of the default's type; Invalid says what would do."""
        value: T | None = self._convert(given)
        low, high = self.bounds or (None, None)
        if value is None or (self.bounds and not low <= value <= high):  # type: ignore[operator]
            raise Invalid(f"option {self.name}={given}: give {self.describe_values()}")
        if self.choices and value not in self.choices or self.several and not self._names_some(str(value)):
            raise Invalid(f"option {self.name}={given}: choose {self.describe_values()}")
        return value

    def _names_some(self, value: str) -> bool:
        return set(value.split(",")) <= set(self.several)

    def _convert(self, given: Any) -> Any:
        wanted: Any = type(self.default)
        if wanted is bool:
            return BOOLEANS.get(str(given).lower()) if isinstance(given, (str, bool, int)) else None
        given = os.fspath(given) if isinstance(given, os.PathLike) else given
        if not isinstance(given, str):
            fits = isinstance(given, (int, float) if wanted is float else wanted) and not isinstance(given, bool)
            return wanted(given) if fits else None
        try:
            return int(given, 0) if wanted is int else wanted(given)
        except ValueError:
            return None

    def describe_values(self) -> str:
        """What the option takes, for help texts."""
        if self.choices:
            return f"{'only ' * (len(self.choices) == 1)}{' or '.join(map(self.show, self.choices))}"
        if self.several:
            return f"some of {','.join(self.several)}"
        if self.bounds:
            return f"a number from {self.bounds[0]} to {self.bounds[1]}"
        return {bool: "0 or 1", int: "an integer", float: "a number", str: "text"}[type(self.default)]

    @staticmethod
    def show(value: Any) -> str:
        """A value as it could be given."""
        return str(int(value)) if isinstance(value, bool) else str(value)
