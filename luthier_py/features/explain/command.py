"""The command that says why a copy is what it is: explain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from luthier_py.features.commands.console import aside, print_all, show
from luthier_py.features.commands.options import (
    AsJson,
    File,
    KeepGoing,
    TargetOption,
    ToolChoice,
)
from luthier_py.features.commands.parameters import ByName
from luthier_py.features.commands.registry import declare_command

if TYPE_CHECKING:

    pass
from luthier_py.features.code.command import check_inserted


@declare_command()
def explain(
    file: File,
    choice: ToolChoice,
    target: TargetOption = None,
    kernel: Annotated[str | None, ByName("--kernel", help="only this kernel")] = None,
    keep_going: KeepGoing = False,
    html: Annotated[Path | None, ByName("--html", metavar="FILE", help="a page instead of a listing")] = None,
    as_json: AsJson = False,
) -> None:
    """Why an instrumented copy is what it is: the clones' code, where values of hooks live, what all of it costs."""
    from luthier_py.base.storage import write_file
    from luthier_py.binary.loader import read_code
    from luthier_py.features.explain import page as explaining
    from luthier_py.features.settings.files import symbol_of
    from luthier_py.isa import parse_target_id
    from luthier_py.report.html import render

    with aside():
        loaded = choice.load()[1]
        kernel = kernel and symbol_of(file, kernel)
        code = read_code(file, parse_target_id(target) if target else None, kernel)
        found = explaining.explain(code, loaded, str(file), None if kernel is None else [kernel], keep_going)
    check_inserted(loaded, found.made)
    if html is not None:
        write_file(html, render(explaining.as_page(found)).encode())
    if as_json:
        show(explaining.as_facts(found), as_json)
    elif html is None:
        print_all(explaining.as_lines(found))
    else:
        print(html)
