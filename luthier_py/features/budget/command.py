"""The command that holds a program to its budget: check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from click.exceptions import Exit

from luthier_py.base.errors import Invalid
from luthier_py.features.commands.console import aside, print_all, show
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import AsJson, LevelOption, ProgramDevice, StackOption
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command


@declare_command(context_settings={"allow_interspersed_args": False})
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
    from luthier_py.features.budget.judge import make_measuring, read_budget, write_budget
    from luthier_py.features.budget.report import budget_facts, budget_lines, judge

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
