"""Commands about what is here: tools, programs that run under one, compilers and GPUs, and whether all of it works."""

from __future__ import annotations

import sys
from typing import Annotated

import click
from click.exceptions import Exit

from luthier_py.cli.app import app
from luthier_py.cli.console import aside, show
from luthier_py.cli.ending import ExitCode
from luthier_py.cli.options import AsJson
from luthier_py.cli.parameters import ByPlace

Process = Annotated[int, ByPlace(
    help="of a program that was started with LUTHIER_SIGNAL, or of its `luthier exec`", metavar="PID",
    type=click.IntRange(min=1)
)]


@app.command_of()
def tools(
    tool: Annotated[str | None, ByPlace(help="only this one, or those of a file or folder")] = None,
    as_json: AsJson = False,
) -> None:
    """Installed tools and their options, or those of a .py file or a folder."""
    from luthier_py.report.toolbox import toolbox_facts, toolbox_text
    from luthier_py.tool import tools as installed
    from luthier_py.tool.discover import tools_in

    with aside():
        facts = toolbox_facts(tools_in(tool) if tool else installed())
    show(facts if as_json else toolbox_text(facts), as_json)


@app.command_of()
def attach(process: Process) -> None:
    """From here on a running program's launches are instrumented by its tool."""
    _switch(process, True)


@app.command_of()
def detach(process: Process) -> None:
    """From here on a running program's launches are its own; its tool stays, and can be attached again."""
    _switch(process, False)


def _switch(process: int, on: bool) -> None:
    from luthier_py.session.switching import switch

    told = ", ".join(map(str, switch(process, on)))
    print(f"luthier: process {told}: the tool is {'attached' if on else 'detached'}", file=sys.stderr)


@app.command_of()
def doctor(as_json: AsJson = False) -> None:
    """What of compilers, ROCm and GPUs is found on this computer, what works with that, and what to install."""
    from luthier_py.report.doctor import doctor_tables
    from luthier_py.session.doctor import examine

    with aside():
        facts = examine()
    show(facts if as_json else doctor_tables(facts), as_json)
    if not facts["healthy"]:
        raise Exit(ExitCode.ERROR)


@app.command_of()
def demo(as_json: AsJson = False) -> None:
    """Instrument and run the sample kernels, and compare every count and every output."""
    from rich.console import Console

    from luthier_py.report.demo import demo_table
    from luthier_py.session.demo import demonstrate

    rows = demonstrate(lambda text: None if as_json else Console(stderr=True).print(text, highlight=False))
    show(rows.facts() if as_json else demo_table(rows), as_json)
    if not rows.passed:
        raise Exit(ExitCode.ERROR)
