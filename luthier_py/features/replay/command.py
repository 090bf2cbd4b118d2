"""Commands that keep launches and run them again: record, replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from click.exceptions import Exit

from luthier_py.base.errors import Invalid, LuthierError, one_line
from luthier_py.features.commands.console import aside, show
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import (
    NO_TOOL,
    AsJson,
    DeviceOption,
    LaunchChoice,
    ProgramDevice,
    StackOption,
    TimeLimitGiven,
    ToolChoice,
    ToolFiles,
    check_settings,
    load_and_echo_tool,
    require_tool,
    tool_options,
)
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command
from luthier_py.host.worker.error_boundary import say

if TYPE_CHECKING:
    from luthier_py.features.settings.run_settings import RunSettings
    from luthier_py.report.plain import Json


@declare_command(context_settings={"allow_interspersed_args": False})
def record(
    command: Annotated[list[str], ByPlace(help="the program and its arguments, after --", metavar="PROGRAM...")],
    output: Annotated[
        Path, ByName("-o", "--output", metavar="DIR|FILE.lrec", help="a folder for all, or a file for the first")
    ] = Path("recorded"),
    kernels: Annotated[
        str, ByName("--kernels", metavar="REGEX", help="only kernels with such names")
    ] = "",
    launches: Annotated[
        str, ByName("--launches", metavar="A:B", help="only launches from A up to B, without it; they count from 0")
    ] = "",
    device: ProgramDevice = None,
    stack: StackOption = None,
    *,
    limit: TimeLimitGiven,
) -> None:
    """Run a HIP program as it is, and keep its launches in files, for `luthier replay`.

    For example: luthier record --kernels saxpy --device emulator:TARGET -- ./app arguments

    The exit code is the program's own; if that is 0, then 3 if no launch was recorded, and 1 if one could not be.
    """
    from luthier_py.features.replay.recording import record_program
    from luthier_py.features.settings.run_settings import run_settings
    from luthier_py.host.worker.device.recording import (
        RecordSettings,
        describe_recorded_launch,
        parse_kernels,
        parse_launches,
    )

    chosen = RecordSettings(output, parse_kernels("--kernels", kernels), parse_launches("--launches", launches))
    done = record_program(command, run_settings(device, limit, stack, record=chosen))
    for line in (*done.executed.hints, *map(describe_recorded_launch, done.files)):
        say(line)
    if not done.launches:
        say("no launch was recorded: none was chosen, or the program launched nothing")
        raise Exit(done.executed.exit_code or ExitCode.NOTHING_OBSERVED)
    raise Exit(done.executed.exit_code or (ExitCode.OK if len(done.files) == len(done.launches) else ExitCode.ERROR))


@declare_command()
def replay(
    files: Annotated[list[Path], ByPlace(help="recorded launches", metavar="FILE...")],
    choice: ToolChoice,
    how: LaunchChoice,
    results: ToolFiles,
    device: DeviceOption = "emulator",
    kernel_from: Annotated[
        Path | None, ByName("--kernel-from", metavar="FILE", help="run the kernel of that name in another code object")
    ] = None,
    tolerance: Annotated[
        float, ByName("--tolerance", type=click.FloatRange(0, 1), metavar="REL",
                      help="how far floats may be from the recorded ones, relative to the larger of two")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Run recorded launches again, alone, with a tool or without, and compare what they write.

    For example: luthier replay recorded/00000-saxpy.lrec -t instr_count

    The exit code is 1 where memory differs from what was recorded.
    """
    from luthier_py.features.replay.report import replay_table
    from luthier_py.features.settings.run_settings import run_settings
    from luthier_py.host.worker.device.findings import say_summary

    tool, option = choice.resolve_script(NO_TOOL)
    settings = run_settings(device, how.launch)
    options = tool_options(tool != NO_TOOL, option, choice.lines, **results.options())
    check_settings(settings, tool or NO_TOOL, options, how.error_exitcode)
    if len(files) > 1 and (results.output or results.report):
        raise Invalid("--output and --report have one launch's; give one FILE with them")
    rows = [one_replay(file, require_tool(tool), options, settings, kernel_from, tolerance) for file in files]
    show({"replays": rows} if as_json else replay_table(rows), as_json)
    findings = sum(len(row.get("findings", ())) for row in rows)
    say_summary(settings.launch.checks, len(rows), findings)
    verdicts = [verdict for row in rows if (verdict := row.get("verdict")) is not None]  # none of a damaged file
    findings += sum(verdict["findings"] or 0 for verdict in verdicts)
    if not all(row.get("same") for row in rows):
        raise Exit(ExitCode.ERROR)
    if not all(verdict["observed"] for verdict in verdicts):
        say(f"tool {tool} observed nothing")
        raise Exit(ExitCode.NOTHING_OBSERVED)
    raise Exit(how.error_exitcode if findings else ExitCode.OK)


def one_replay(file: Path, tool: str, options: dict[str, str], settings: RunSettings, kernel_from: Path | None,
               tolerance: float) -> Json:
    """Facts of one replay; an error is printed and returned, so that the other replays continue."""
    from luthier_py.features.replay.facts import replay_facts
    from luthier_py.features.replay.rerun import replay_file
    from luthier_py.features.run.launched import findings_of, save_all

    try:
        with aside():
            loaded = load_and_echo_tool(tool, options) if tool != NO_TOOL else None
            done = replay_file(file, loaded, settings, kernel_from, tolerance)
            files = save_all(done.done, done.record.kernel)[1]
    except (LuthierError, OSError) as error:
        say(one_line(error))
        return {"file": str(file), "error": one_line(error)}
    return replay_facts(file, done, findings_of(done.done), files)
