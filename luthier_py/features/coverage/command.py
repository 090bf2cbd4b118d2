"""The command that says how far the emulator's results can be believed: of a target, or of a run."""

from __future__ import annotations

import re
from typing import Annotated

from luthier_py.base.errors import Invalid
from luthier_py.features.commands.console import show
from luthier_py.features.commands.options import AsJson, LaunchChoice, ToolChoice, ToolFiles
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command
from luthier_py.features.exec.command import execute

TOOL = "exactness"


def looks_like_a_target(what: list[str]) -> bool:
    """Whether the only word has the form of a target: one that does not exist, or has features."""
    return len(what) == 1 and re.match(r"gfx\d", what[0], re.IGNORECASE) is not None


@declare_command()
def coverage(
    what: Annotated[
        list[str],
        ByPlace(help="a target, or a program and its arguments", metavar="TARGET | -- PROGRAM [ARG]"),
    ],
    files: ToolFiles,
    device: Annotated[
        str | None, ByName("--device", envvar="LUTHIER_DEVICE", help="of a program: as `luthier exec` takes it")
    ] = None,
    stack: Annotated[
        str | None, ByName("--stack", envvar="LUTHIER_STACK", metavar="luthier|rocm", help="of a program, too")
    ] = None,
    kernels: Annotated[
        str | None, ByName("--kernels", metavar="REGEX", help="of a program: only kernels with such names")
    ] = None,
    match: Annotated[
        str, ByName("--match", metavar="REGEX", help="of a target: operations with such names, exact ones, too")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """What the emulator does exactly, where manuals leave it an implementation-defined result, and what it refuses.

    Of a target each operation that is not exact, or those that --match names. Of a program, which runs as under
    `luthier exec -t exactness`: what it executed, and whether a result that may differ decided a branch, an address or
    a mask. For example: luthier coverage --device emulator:TARGET -- ./app arguments
    """
    from luthier_py.features.coverage.report import coverage_facts, coverage_table
    from luthier_py.isa import target, targets

    if len(what) > 1 or what[0] not in {each.name for each in targets()}:
        if looks_like_a_target(what):
            raise Invalid(f"there is no target {what[0]}; there are {', '.join(each.name for each in targets())}")
        if as_json:
            raise Invalid("option --json is about a target; of a program --output FILE.json writes what it did")
        if match:
            raise Invalid("option --match is about a target; --kernels chooses those of a program")
        execute(what, ToolChoice(TOOL), LaunchChoice(), files, device=device, stack=stack, kernels=kernels)
        return
    of_programs = ("--kernels", kernels), ("--output", files.output), ("--report", files.report)
    if wrong := [name for name, value in of_programs if value]:
        raise Invalid(f"option {', '.join(wrong)} is about a program: write it after --")
    try:
        re.compile(match)
    except re.error as error:
        raise Invalid(f"--match {match}: not a regular expression: {error}") from None
    show(coverage_facts(target(what[0])) if as_json else coverage_table(what[0], match), as_json)
