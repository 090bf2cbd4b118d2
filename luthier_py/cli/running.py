"""Commands that launch: one kernel, a program, many programs; and the library that a program is launched with."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import click
from click.exceptions import Exit

from luthier_py.cli.app import app
from luthier_py.cli.console import aside, progress, show
from luthier_py.cli.ending import ExitCode
from luthier_py.cli.options import (
    NO_TOOL,
    AsJson,
    DeviceOption,
    File,
    LaunchChoice,
    LevelOption,
    LinesOption,
    LiveOption,
    ProgramDevice,
    RecordOption,
    ScriptFile,
    ScriptLines,
    ShuffleOption,
    StackOption,
    ToolChoice,
    ToolFiles,
    ToolOptions,
    TraceOption,
    check_settings,
    load_and_echo_tool,
    pairs,
    require_tool,
    tool_options,
)
from luthier_py.cli.parameters import ByName, ByPlace
from luthier_py.worker.error_boundary import say

if TYPE_CHECKING:
    from luthier_py.session.run import Done
    from luthier_py.session.run_settings import RunSettings


@app.command_of()
def run(
    file: File,
    kernel: Annotated[str, ByName("--kernel", help="name of the kernel")],
    grid: Annotated[str, ByName("--grid", help="work-groups, X[,Y,Z]")],
    block: Annotated[str, ByName("--block", help="work-items of a work-group, X[,Y,Z]")],
    choice: ToolChoice,
    how: LaunchChoice,
    files: ToolFiles,
    arguments: Annotated[list[str] | None, ByPlace(
        help="in:f32[1024]=random:1, inout:u32[512]=arange, out:f32[1024], i32=7, null", metavar="[ARG]..."
    )] = None,
    device: DeviceOption = "emulator",
    lds: Annotated[int, ByName("--lds", type=click.IntRange(min=0), metavar="BYTES",
                               help="of dynamic LDS, beside the kernel's own")] = 0,
    save: Annotated[Path | None, ByName("--save", help="folder for the out and inout buffers, as .npy")] = None,
    shuffle: ShuffleOption = 0,
    record: RecordOption = None,
    trace: TraceOption = None,
    as_json: AsJson = False,
) -> None:
    """Launch one kernel, with a tool in it or without.

    For example: luthier run saxpy.co --kernel saxpy --grid 4 --block 256 -t instr_count u32=1000 f32=0.7
    in:f32[1000]=random:1 inout:f32[1000]=random:2
    """
    from luthier_py.cli.waiting import show_progress
    from luthier_py.report.launched import launch_table
    from luthier_py.session.facts import launch_facts
    from luthier_py.session.files import symbol_of
    from luthier_py.session.launched import findings_of, launch_file, parse_dim, save_all, shuffle_file
    from luthier_py.session.run import Launch
    from luthier_py.session.run_settings import run_settings
    from luthier_py.session.specs import parse_argument
    from luthier_py.worker.findings import say_summary

    tool, option = choice.resolve_script(NO_TOOL)
    settings = run_settings(device, how.collect_settings(), shuffle=shuffle, record=record, times=trace is not None)
    launch = Launch(symbol_of(file, kernel), parse_dim(grid, "--grid"), parse_dim(block, "--block"),
                    tuple(map(parse_argument, arguments or [])), lds)
    options = tool_options(tool != NO_TOOL, option, choice.lines, **files.options())
    check_settings(settings, tool or NO_TOOL, options, how.error_exitcode)
    with aside():
        loaded = load_and_echo_tool(require_tool(tool), options) if tool != NO_TOOL else None
        with show_progress(not as_json) as bar:
            done = launch_file(file, launch, loaded, settings, bar)
        others = shuffle_file(file, launch, settings, done)
        saved = save_all(done, launch.kernel, save, record, trace)
    facts = launch_facts(done, launch, *saved, findings_of(done), others)
    show(facts if as_json else launch_table(facts), as_json)
    say_summary(settings.launch.checks, 1, len(findings_of(done)))
    found = findings_of(done) or done.found_by_tool or (others is not None and others.others)
    end_run(done, require_tool(tool), how.error_exitcode if found else ExitCode.OK)


@app.command_of("exec", context_settings={"allow_interspersed_args": False})
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
    from luthier_py.session.execute import execute as run_program
    from luthier_py.session.run_settings import run_settings
    from luthier_py.worker.findings import say_summary

    tool, option = choice.resolve_script()
    settings = run_settings(device, how.collect_settings(), stack, shuffle, times=trace is not None)
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
    from luthier_py.report.cycles import cycle_lines

    for line in cycle_lines(launches):
        say(line)


@app.command_of()
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
    from luthier_py.runtime.native.build import loads_from
    from luthier_py.session.levels import make_load_setting
    from luthier_py.session.observation import build_tool

    name, option = ToolChoice(tool, script, script_file, option).resolve_script()
    path = output or Path(f"{Path(require_tool(name)).stem}.so")
    with aside():
        build_tool(require_tool(name), pairs(option, lines), path, level)
    print(make_load_setting(level, path.resolve()))
    if not loads_from(path.resolve()):
        say("programs load it under a name without spaces, colons, semicolons and $: at these the loader splits names")


@app.command_of()
def study(
    file: Annotated[Path, ByPlace(help="what to run, as TOML: docs/studies.md", metavar="FILE.toml")],
    output: Annotated[
        Path | None, ByName("-o", "--output", help="folder of results; default: FILE.study, here")
    ] = None,
    jobs: Annotated[
        int | None, ByName("--jobs", type=click.IntRange(min=1), help="runs at a time; default: as many as CPUs")
    ] = None,
    scheduler: Annotated[str | None, ByName("--scheduler", help="tcp://...: run on a Dask cluster")] = None,
    retry: Annotated[bool, ByName("--retry", help="make runs again that failed or took too long")] = False,
    dry_run: Annotated[bool, ByName("--dry-run", help="show the runs, and make none")] = False,
    as_json: AsJson = False,
) -> None:
    """Run programs x arguments x tools x devices, repeated; goes on where it was left."""
    from luthier_py.report.study import plan_table, shortcomings, study_text
    from luthier_py.session.study import plan_study, run_study

    with aside():
        plan = plan_study(file, output or Path(f"{file.stem}.study"), retry)
    if dry_run:
        show(plan.facts() if as_json else plan_table(plan.facts()), as_json)
        return
    with progress(len(plan.waiting)) as advance:
        facts = run_study(plan, jobs, scheduler, lambda cell, outcome: advance())
    if as_json:
        show(facts, as_json)
    else:
        print("\n".join([study_text(facts), *(f"-> {name}" for name in facts["files"])]))
    missing = shortcomings(facts)
    for line in missing:
        say(line)
    if not facts["observed"]:
        say("nothing was observed in any run")
        raise Exit(ExitCode.NOTHING_OBSERVED)
    raise Exit(ExitCode.ERROR if missing else ExitCode.OK)


def tell_shuffled(command: list[str], settings: RunSettings, error_exitcode: int) -> NoReturn:
    """What the program prints in order, and what about other orders."""
    from luthier_py.session.shuffled_program import shuffle_program

    with aside():
        others = shuffle_program(command, settings)
    sys.stdout.flush()
    sys.stdout.buffer.write(others.printed)
    for line in (*others.hints, *others.lines):
        say(line)
    raise Exit(others.exit_code or (error_exitcode if others.shuffled.others or others.findings else ExitCode.OK))


def end_run(done: Done, tool: str, exit_code: int) -> NoReturn:
    """``exit_code``: unless the tool had nothing to do."""
    if done.verdict is not None and not done.observed:
        say(nothing_observed(tool, done.verdict.reasons()))
        raise Exit(ExitCode.NOTHING_OBSERVED)
    raise Exit(exit_code)


def nothing_observed(tool: str, reasons: list[str]) -> str:
    """The message that ``tool`` observed nothing, with each of the ``reasons`` once."""
    return f"tool {tool} observed nothing{': ' * bool(reasons)}{'; '.join(dict.fromkeys(reasons))}"
