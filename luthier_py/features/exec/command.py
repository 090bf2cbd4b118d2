"""The commands about a program under a tool: exec, build, attach, detach."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import click
from click.exceptions import Exit

from luthier_py.features.commands.console import aside
from luthier_py.features.commands.exit_codes import ExitCode, nothing_observed
from luthier_py.features.commands.options import (
    NO_TOOL,
    LaunchChoice,
    LevelOption,
    LinesOption,
    LiveOption,
    ProgramDevice,
    ScriptFile,
    ScriptLines,
    ShuffleOption,
    StackOption,
    ToolChoice,
    ToolFiles,
    ToolOptions,
    TraceOption,
    check_settings,
    pairs,
    require_tool,
    tool_options,
)
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command
from luthier_py.host.worker.error_boundary import say

if TYPE_CHECKING:
    from luthier_py.features.settings.run_settings import RunSettings


Process = Annotated[int, ByPlace(
    help="of a program that was started with LUTHIER_SIGNAL, or of its `luthier exec`", metavar="PID",
    type=click.IntRange(min=1)
)]


@declare_command("exec", context_settings={"allow_interspersed_args": False})
def execute(
    command: Annotated[list[str], ByPlace(help="the program and its arguments, after --", metavar="PROGRAM...")],
    choice: ToolChoice,
    how: LaunchChoice,
    files: ToolFiles,
    device: ProgramDevice = None,
    stack: StackOption = None,
    kernels: Annotated[str | None, ByName("--kernels", metavar="REGEX", help="only kernels with such names")] = None,
    in_range: Annotated[
        str | None, ByName("--range", metavar="REGEX", help="only launches in roctx ranges with such names")
    ] = None,
    own_kernels: Annotated[
        bool, ByName("--own-kernels", help="at the HSA level: the HIP runtime's own kernels, too, as for copies")
    ] = False,
    level: LevelOption = None,
    shuffle: ShuffleOption = 0,
    trace: TraceOption = None,
    live: LiveOption = None,
) -> None:
    """Run a HIP or HSA program as it is, on a GPU or on the emulator, with a tool under it or without.

    For example: luthier exec -t instr_count --device emulator:TARGET -- ./app arguments

    The exit code is the program's own; if that is 0, then 3 if the tool observed nothing, 1 if anything that was
    asked of it was not delivered, and --error-exitcode's if a check or a tool found something.
    """
    from luthier_py.features.exec.execute import execute as run_program
    from luthier_py.features.settings.run_settings import run_settings
    from luthier_py.host.worker.device.findings import say_summary

    tool, option = choice.resolve_script()
    settings = run_settings(device, how.launch, stack, shuffle, times=trace is not None)
    options = tool_options(tool is not None, option, choice.lines, LUTHIER_KERNELS=kernels, LUTHIER_RANGE=in_range,
                           LUTHIER_OWN_KERNELS="1" if own_kernels else None, LUTHIER_LIVE=str(live or ""),
                           **files.options())
    check_settings(settings, tool or NO_TOOL, options, how.error_exitcode)
    if shuffle:
        tell_shuffled(command, settings, how.error_exitcode)
    with aside():
        done = run_program(command, settings, tool, options, level, trace=trace)
    for line in (*done.hints, *done.undelivered):
        say(line)
    if settings.launch.models_cycles:
        tell_cycles(done.launches)
    say_summary(settings.launch.checks, len(done.launches), len(done.findings))
    if tool is not None and not done.observed:
        say(nothing_observed(tool, done.reasons))
        raise Exit(done.exit_code or ExitCode.NOTHING_OBSERVED)
    found = how.error_exitcode if done.findings or done.found_by_tool else ExitCode.OK
    raise Exit(done.exit_code or (ExitCode.ERROR if done.undelivered else found))


def tell_cycles(launches: Iterable[Mapping[str, Any]]) -> None:
    """Print on stderr what the cycle model says of facts of launches: a line for each kernel, and one for all. Launches
    without cycles are left out."""
    from luthier_py.features.run.cycles import cycle_lines

    for line in cycle_lines(launches):
        say(line)


def tell_shuffled(command: list[str], settings: RunSettings, error_exitcode: int) -> NoReturn:
    """What the program prints in order, and what about other orders."""
    from luthier_py.features.exec.shuffled_program import shuffle_program

    with aside():
        others = shuffle_program(command, settings)
    sys.stdout.flush()
    sys.stdout.buffer.write(others.printed)
    for line in (*others.hints, *others.lines):
        say(line)
    raise Exit(others.exit_code or (error_exitcode if others.shuffled.others or others.findings else ExitCode.OK))


@declare_command()
def build(
    tool: Annotated[
        str | None, ByPlace(help="a tool's name, or its .py file or folder; `a,b` is both", metavar="[TOOL]")
    ] = None,
    script: ScriptLines = None,
    script_file: ScriptFile = None,
    output: Annotated[
        Path | None, ByName("-o", "--output", metavar="LIB", help="default: TOOL.so")
    ] = None,
    option: ToolOptions = None,
    lines: LinesOption = None,
    level: Annotated[
        str, ByName("--level", metavar="hip|hsa", help="hip: for LD_PRELOAD, or hsa: for HSA_TOOLS_LIB")
    ] = "hip",
) -> None:
    """Make a library of a tool for LD_PRELOAD, or at the HSA level for HSA_TOOLS_LIB.

    For example: luthier build instr_count -o count.so && LD_PRELOAD=./count.so ./app arguments
    """
    from luthier_py.base.c_libraries import loads_from
    from luthier_py.features.exec.observation import build_tool
    from luthier_py.features.settings.levels import make_load_setting

    name, option = ToolChoice(tool, script, script_file, option).resolve_script()
    path = output or Path(f"{Path(require_tool(name)).stem}.so")
    with aside():
        build_tool(require_tool(name), pairs(option, lines), path, level)
    print(make_load_setting(level, path.resolve()))
    if not loads_from(path.resolve()):
        say("programs load it under a name without spaces, colons, semicolons and $: at these the loader splits names")


@declare_command()
def attach(process: Process) -> None:
    """From here on a running program's launches are instrumented by its tool."""
    _switch(process, True)


@declare_command()
def detach(process: Process) -> None:
    """From here on a running program's launches are its own; its tool stays, and can be attached again."""
    _switch(process, False)


def _switch(process: int, on: bool) -> None:
    from luthier_py.features.exec.attach_command import switch

    told = ", ".join(map(str, switch(process, on)))
    print(f"luthier: process {told}: the tool is {'attached' if on else 'detached'}", file=sys.stderr)
