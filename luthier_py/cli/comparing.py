"""Commands that judge: what is different between two runs or two builds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from click.exceptions import Exit

from luthier_py.cli.app import app
from luthier_py.cli.console import aside, print_all, show
from luthier_py.cli.ending import ExitCode
from luthier_py.cli.options import AsJson, TargetOption
from luthier_py.cli.parameters import ByName, ByPlace
from luthier_py.errors import Invalid

Compared = Annotated[Path, ByPlace(help="what --output FILE.json wrote, a code object or program, or a study's folder")]


@app.command_of()
def compare(
    before: Compared,
    after: Compared,
    kernels: Annotated[str | None, ByName("--kernels", metavar="REGEX", help="only kernels with such names")] = None,
    target: TargetOption = None,
    most: Annotated[
        int, ByName("--most", type=click.IntRange(min=0), help="differences shown of each kind; 0: all")
    ] = 20,
    csv: Annotated[bool, ByName("--csv", help="print a row for each difference")] = False,
    as_json: AsJson = False,
    fail_on_change: Annotated[bool, ByName("--fail-on-change", help="exit code 1 if anything is different")] = False,
) -> None:
    """What is different between two runs of a tool, two builds, or two studies: by kernel, source line and opcode.

    For example: luthier compare before.json after.json
    """
    from luthier_py.report.columns import comma_separated_lines
    from luthier_py.report.comparison import FACTS, as_facts, as_lines, as_rows
    from luthier_py.session.compared import compare_files

    if csv and as_json:
        raise Invalid("--csv and --json are two forms of the same; give one")
    with aside():
        found = compare_files(before, after, kernels, target)
    if csv:
        print("".join(comma_separated_lines(["kernel", *FACTS], as_rows(found))), end="")
    elif as_json:
        show(as_facts(found), as_json)
    else:
        print_all(as_lines(found, most))
    raise Exit(ExitCode.ERROR if fail_on_change and not found.same else ExitCode.OK)
