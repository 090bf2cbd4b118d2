"""Commands as features declare them: a function, whose type hints say what the command takes, and whose docstring is
its help.

In: functions under `declare_command`. Out: `DECLARED`, from which cli makes click's commands. Invariant: a module that
declares a command imports nothing that only running it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from luthier_py.base.records import dataclass
from luthier_py.features.commands.parameters import from_click, parameters

Decorated = TypeVar("Decorated", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Command:
    """``settings``: of click.Command."""

    name: str
    function: Callable[..., object]
    settings: Mapping[str, Any]

    def make_click_command(self) -> click.Command:
        """What click parses arguments with, and calls."""
        return click.Command(self.name, params=parameters(self.function), callback=from_click(self.function),
                             help=self.function.__doc__, **self.settings)


DECLARED: dict[str, Command] = {}
"""By name, of the features that were imported. Mutable: `declare_command` adds to it."""


def declare_command(name: str | None = None, **settings: Any) -> Callable[[Decorated], Decorated]:
    """Declare a command by the function's own name or another; the function stays what it is."""

    def declare(function: Decorated) -> Decorated:
        called = name or function.__name__
        DECLARED[called] = Command(called, function, settings)
        return function

    return declare
