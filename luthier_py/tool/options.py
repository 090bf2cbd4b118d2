"""Options of a tool: declared in the class body, read as attributes of the tool.

In: text from the command line or the environment, or Python values. Out: values of the default's type.
Invariant: a tool that was made has only valid option values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

from luthier_py.errors import Invalid

T = TypeVar("T")  # bool, int, float or str

BOOLEANS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Option(Generic[T]):
    """``level = Option("wave", choices=("wave", "thread"), help="...")``; ``self.level`` is its value.

    The default decides the type. ``env`` names an environment variable that is used when nothing is given.
    """

    __slots__ = ("default", "choices", "help", "env", "name")

    def __init__(self, default: T, *, choices: Sequence[T] = (), help: str = "", env: str = "") -> None:
        self.default, self.choices, self.help, self.env = default, tuple(choices), help, env
        self.name = ""
        if choices and default not in choices:
            raise Invalid(f"option default {default!r} is not one of its choices {self.choices}")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, tool: None, owner: type) -> Option[T]: ...
    @overload
    def __get__(self, tool: object, owner: type) -> T: ...
    def __get__(self, tool: object | None, owner: type) -> Option[T] | T:
        if tool is None:
            return self
        value: T = getattr(tool, "_options", {}).get(self.name, self.default)
        return value

    def initial(self) -> T:
        """The value when nothing is given: from the environment, else the default."""
        text = os.environ.get(self.env) if self.env else None
        return self.default if text is None else self.parse(text)

    def parse(self, given: Any) -> T:
        """A value of the default's type; Invalid says what would do."""
        value: T | None = self._convert(given)
        if value is None:
            raise Invalid(f"option {self.name}={given}: give {self.expected()}")
        if self.choices and value not in self.choices:
            raise Invalid(f"option {self.name}={given}: choose one of {', '.join(map(str, self.choices))}")
        return value

    def _convert(self, given: Any) -> Any:
        wanted: Any = type(self.default)
        if not isinstance(given, str):
            fits = isinstance(given, (int, float) if wanted is float else wanted)
            return wanted(given) if fits and isinstance(given, bool) == (wanted is bool) else None
        if wanted is bool:
            return BOOLEANS.get(given.lower())
        try:
            return int(given, 0) if wanted is int else wanted(given)
        except ValueError:
            return None

    def expected(self) -> str:
        """What the option takes, for help texts."""
        if self.choices:
            return "|".join(map(str, self.choices))
        return {bool: "yes or no", int: "an integer", float: "a number", str: "text"}[type(self.default)]
