"""The command that launches one kernel: run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import click
from click.exceptions import Exit

from luthier_py.base.late_modules import limit_threads
from luthier_py.features.commands.console import aside, show
from luthier_py.features.commands.exit_codes import ExitCode, nothing_observed
from luthier_py.features.commands.options import (
    NO_TOOL,
    AsJson,
    DeviceOption,
    File,
    LaunchChoice,
    RecordOption,
    ShuffleOption,
    ToolChoice,
    ToolFiles,
    TraceOption,
    check_settings,
    load_and_echo_tool,
    require_tool,
    tool_options,
)
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command
from luthier_py.host.worker.error_boundary import say

if TYPE_CHECKING:
    from luthier_py.features.run.launch import Done


@declare_command()
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
    limit_threads()
    from luthier_py.features.commands.progress_bar import show_progress
    from luthier_py.features.run.facts import launch_facts
    from luthier_py.features.run.launch import Launch
    from luthier_py.features.run.launched import findings_of, launch_file, parse_dim, save_all, shuffle_file
    from luthier_py.features.run.report import launch_table
    from luthier_py.features.run.specs import parse_argument
    from luthier_py.features.settings.files import symbol_of
    from luthier_py.features.settings.run_settings import run_settings
    from luthier_py.host.worker.device.findings import say_summary

    tool, option = choice.resolve_script(NO_TOOL)
    settings = run_settings(device, how.launch, shuffle=shuffle, record=record, times=trace is not None)
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


def end_run(done: Done, tool: str, exit_code: int) -> NoReturn:
    """``exit_code``: unless the tool had nothing to do."""
    if done.verdict is not None and not done.observed:
        say(nothing_observed(tool, done.verdict.reasons()))
        raise Exit(ExitCode.NOTHING_OBSERVED)
    raise Exit(exit_code)
