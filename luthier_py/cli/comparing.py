"""Commands that judge: what is different between two runs or two builds, and whether a program keeps to its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from click.exceptions import Exit

from luthier_py.cli.app import app
from luthier_py.cli.console import aside, print_all, show
from luthier_py.cli.ending import ExitCode
from luthier_py.cli.options import AsJson, LevelOption, ProgramDevice, StackOption, TargetOption
from luthier_py.cli.parameters import ByName, ByPlace
from luthier_py.errors import Invalid

ComparedPath = Annotated[
    Path, ByPlace(help="what --output FILE.json wrote, a code object or program, or a study's folder")
]


@app.command_of()
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
    from luthier_py.report.columns import comma_separated_lines
    from luthier_py.report.comparison import FACTS, difference_facts, difference_lines, difference_rows
    from luthier_py.session.compared import compare_files

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


@app.command_of(context_settings={"allow_interspersed_args": False})
def check(
    command: Annotated[list[str], ByPlace(help="the program and its arguments, after --", metavar="PROGRAM...")],
    budget: Annotated[Path | None, ByName("--budget", metavar="FILE.toml", help="limits that are to be kept")] = None,
    write: Annotated[
        Path | None, ByName("--write", metavar="FILE.toml", help="make this run the budget, or renew the one there")
    ] = None,
    device: ProgramDevice = None,
    stack: StackOption = None,
    level: LevelOption = None,
    as_json: AsJson = False,
) -> None:
    """Run a program under the tools that its budget needs; exit code 1 if a kernel costs more than that allows.

    For example: luthier check --budget budget.toml --device emulator:TARGET -- ./app arguments
    """
    from luthier_py.report.budget import budget_facts, budget_lines, judge
    from luthier_py.session.budget import make_measuring, read_budget, write_budget

    if (budget is None) == (write is None):
        raise Invalid("give --budget FILE.toml to hold a program to it, or --write FILE.toml to write one")
    if write is not None and as_json:
        raise Invalid("--json prints the verdict of --budget; --write has none")
    run = make_measuring(command, device, stack, level)
    if write is not None:
        print_all(write_budget(write, run))
        return
    assert budget is not None
    sections = read_budget(budget)
    with aside():
        verdict = judge(str(budget), sections, run.measure(number for each in sections for number in each.limits))
    if as_json:
        show(budget_facts(verdict), as_json)
    else:
        print_all(budget_lines(verdict))
    raise Exit(ExitCode.OK if verdict.kept else ExitCode.ERROR)
