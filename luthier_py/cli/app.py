"""The command `luthier` itself, to which modules of this room add theirs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from luthier_py.worker.edge import TRACEBACK

app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def every_command(
    version: Annotated[bool, typer.Option("--version", help="print the version", is_eager=True)] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="show how an error came about; LUTHIER_TRACEBACK=1 does so, too")
    ] = False,
) -> None:
    """Instrument AMD GPU code objects with Python, and run them on a GPU or on an emulator."""
    if version:
        from importlib.metadata import version as version_of

        print(f"luthier-py {version_of('luthier-py')}")
        raise typer.Exit
    if traceback:
        os.environ[TRACEBACK] = "1"
