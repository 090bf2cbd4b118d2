"""The command `luthier` itself, to which modules of this room add theirs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import click
from click.exceptions import Exit

from luthier_py.cli.ending import ExitCode
from luthier_py.cli.parameters import ByName, from_click, parameters
from luthier_py.storage import settle_cache
from luthier_py.worker.error_boundary import TRACEBACK

Added = TypeVar("Added", bound=Callable[..., object])


class Commands(click.Group):
    """Commands, in the order in which they were added; what one takes is read from it when it is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._added: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {}

    def command_of(self, name: str | None = None, **settings: Any) -> Callable[[Added], Added]:
        """Adds a function, by its own name or another; ``settings``: click.Command's."""

        def add(function: Added) -> Added:
            self._added[name or function.__name__] = function, settings
            return function

        return add

    def invoke(self, ctx: click.Context) -> Any:
        """As click has it, but Ctrl-C ends the command with a shell's exit code for SIGINT."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click's own end of it has another exit code
            raise Exit(ExitCode.INTERRUPTED) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As click has it: in the order in which they were added, not by name."""
        return list(self._added)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As click has it: the command is made of its function's type hints and docstring; None for a name that was not
        added."""
        if cmd_name not in self._added:
            return None
        function, settings = self._added[cmd_name]
        return click.Command(cmd_name, params=parameters(function), callback=from_click(function),
                             help=function.__doc__, **settings)


def every_command(
    version: Annotated[bool, ByName("--version", help="print the version", is_eager=True)] = False,
    traceback: Annotated[
        bool, ByName("--traceback", help="show how an error came about; LUTHIER_TRACEBACK=1 does so, too")
    ] = False,
) -> None:
    """Instrument AMD GPU code objects with Python, and run them on a GPU or on an emulator."""
    if version:
        from importlib.metadata import version as version_of

        print(f"luthier-py {version_of('luthier-py')}")
        raise Exit
    if traceback:
        os.environ[TRACEBACK] = "1"
    settle_cache()


app = Commands(name="luthier", invoke_without_command=True, no_args_is_help=True, params=parameters(every_command),
               subcommand_metavar="COMMAND [ARGS]...", callback=every_command, help=every_command.__doc__)
