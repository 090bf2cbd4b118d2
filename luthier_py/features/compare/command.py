"""The command that says what is different: compare."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from click.exceptions import Exit

from luthier_py.base.errors import Invalid
from luthier_py.features.commands.console import aside, print_all, show
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import AsJson, TargetOption
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command

ComparedPath = Annotated[
    Path, ByPlace(help="what --output FILE.json wrote, a code object or program, or a study's folder")
]


@declare_command()
def compare(
    before: ComparedPath,
    after: ComparedPath,
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
    from luthier_py.features.compare.report import FACTS, difference_facts, difference_lines, difference_rows
    from luthier_py.features.compare.sides import compare_files
    from luthier_py.report.columns import comma_separated_lines

    if csv and as_json:
        raise Invalid("--csv and --json are two forms of the same; give one")
    with aside():
        found = compare_files(before, after, kernels, target)
    if csv:
        print("".join(comma_separated_lines(["kernel", *FACTS], difference_rows(found))), end="")
    elif as_json:
        show(difference_facts(found), as_json)
    else:
        print_all(difference_lines(found, most))
    raise Exit(ExitCode.ERROR if fail_on_change and not found.same else ExitCode.OK)
