"""The command `luthier` itself: which commands there are, and where each is declared.

Invariant: of the features only those are imported whose command is run, or whose help is shown.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated, Any

import click
from click.exceptions import Exit

from luthier_py.base.storage import settle_cache
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.parameters import ByName, parameters
from luthier_py.features.commands.registry import DECLARED
from luthier_py.host.worker.error_boundary import TRACEBACK

FEATURES = {
    "info": "code", "disasm": "code", "instrument": "code", "explain": "explain", "compare": "compare",
    "check": "budget", "run": "run", "exec": "exec", "build": "exec", "study": "study",
    "record": "replay", "replay": "replay", "faults": "faults", "causal": "causal",
    "tools": "tools", "attach": "exec", "detach": "exec", "doctor": "doctor", "demo": "demo",
    "coverage": "coverage", "fetch": "fetch",
}  # fmt: skip
"""The feature whose module `command` declares each, in the order in which help lists them."""


class Commands(click.Group):
    """The commands of `FEATURES`."""

    def invoke(self, ctx: click.Context) -> Any:
        """As click has it, but Ctrl-C ends the command with a shell's exit code for SIGINT."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click's own end of it has another exit code
            raise Exit(ExitCode.INTERRUPTED) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As click has it, but in the order of `FEATURES`."""
        return list(FEATURES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As click has it: the command is made of its function's type hints and docstring; None for another name."""
        if cmd_name not in FEATURES:
            return None
        import_module(f"luthier_py.features.{FEATURES[cmd_name]}.command")
        return DECLARED[cmd_name].make_click_command()


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
