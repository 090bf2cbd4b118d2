"""Options that several commands have, and what becomes of those that a tool takes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass, field
from luthier_py.emulator.options.launch_options import LAUNCH_OPTIONS, LaunchOption
from luthier_py.features.commands.parameters import ByName, ByPlace, Together

if TYPE_CHECKING:
    from luthier_py.features.settings.run_settings import RunSettings
    from luthier_py.rewrite.tool import Tool

File = Annotated[
    Path, ByPlace(help="a code object (ELF for AMDGPU), or a fat binary or program with some", metavar="FILE")
]
AsJson = Annotated[bool, ByName("--json", help="print JSON for programs")]
ToolName = Annotated[str | None, ByName(
    "-t", "--tool", help="a tool's name, or its .py file or folder; `a,b`: both in one copy; `none` inserts nothing"
)]
ScriptLines = Annotated[list[str] | None, ByName(
    "-e", "--script", metavar="TEXT", help="instead of a tool what to do, as in 'on(\"memory\"): count(by=line)'; "
                                            "may be repeated"
)]
ScriptFile = Annotated[Path | None, ByName("-f", "--file", metavar="FILE", help="the same from a file")]
ToolOptions = Annotated[
    list[str] | None,
    ByName("-O", "--option", metavar="NAME=VALUE", help="of the tool: see `luthier tools`; may be repeated"),
]
LinesOption = Annotated[
    list[str] | None,
    ByName("--lines", metavar="FILE:FIRST-LAST",
           help="instrument only code of these source lines, or inlined from them; may be repeated; as "
                "-O INSTRUMENT='lines = FILE:FIRST-LAST' says it")
]
DeviceOption = Annotated[
    str, ByName("--device", help="`emulator`, `emulator:TARGET`, or `hip` for the first AMD GPU")
]
ProgramDevice = Annotated[
    str | None, ByName("--device", envvar="LUTHIER_DEVICE", help="emulator:TARGET; without it, the GPU")
]
LevelOption = Annotated[str | None, ByName(
    "--level", metavar="auto|hip|hsa",
    help="where the tool stands; auto, as without it: HSA unless the program uses HIP, and with --own-kernels; "
         "LUTHIER_LEVEL says it, too"
)]
OutputOption = Annotated[
    Path | None, ByName("--output", metavar="FILE", help="what each launch counted, as .txt, .csv or .json")
]
LiveOption = Annotated[float | None, ByName(
    "--live", metavar="[SECONDS]", is_flag=False, flag_value=1.0, type=click.FloatRange(min=0.01),
    help="show what was counted so far, anew after so many seconds (1), in the place of each launch"
)]

def of_launches(only: Callable[[LaunchOption], object]) -> Together:
    """Options of launches on the emulator."""
    return Together({row.option: (row.kind, {"metavar": row.metavar, "help": row.help})
                     for row in LAUNCH_OPTIONS.values() if only(row)})


LaunchGiven = Annotated[dict[str, object], of_launches(lambda row: True)]
"""As `run_settings` takes them, all of these three."""
LimitsGiven = Annotated[dict[str, object], of_launches(lambda row: row.limits)]
TimeLimitGiven = Annotated[dict[str, object], of_launches(lambda row: row is LAUNCH_OPTIONS["time_limit"])]

ShuffleOption = Annotated[int, ByName(
    "--shuffle", type=click.IntRange(min=0), metavar="COUNT",
    help="run by seeds 0 to COUNT-1, too, and tell which end otherwise"
)]
ErrorExitCode = Annotated[int, ByName(
    "--error-exitcode", type=click.IntRange(0, 255), metavar="N",
    help="exit code if --check, --shuffle or a tool that looks for mistakes found something"
)]
TraceOption = Annotated[Path | None, ByName(
    "--trace", metavar="FILE", help="when launches and work-groups ran, by the cycle model, and what streams "
                                    "and ranges of a program did, as JSON (.json.gz) for Perfetto"
)]
StackOption = Annotated[str | None, ByName(
    "--stack", envvar="LUTHIER_STACK", metavar="luthier|rocm|rocm-7.2...",
    help="on the emulator: our HIP runtime (default), ROCm as it is installed, or one that `luthier fetch` brought; "
         "luthier-7.2: our HIP runtime with the libraries of that one"
)]
RecordOption = Annotated[Path | None, ByName(
    "--record", metavar="FILE.lrec", help="on the emulator: keep the launch in a file, for `luthier replay`"
)]
Report = Annotated[Path | None, ByName("--report", metavar="DIR", help="folder for the tool's own files")]
KeepGoing = Annotated[bool, ByName("--keep-going", help="leave kernels alone that cannot be instrumented")]
TargetOption = Annotated[
    str | None, ByName("--target", help="of a library with code for several: its target ID, as `info` has it")
]

SCRIPT, NO_TOOL = "script", "none"
"""The tools that scripts are given to, and that inserts nothing."""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Of a command that takes a tool: which, or a script instead of one, with what options, for which lines."""

    tool: ToolName = None
    script: ScriptLines = None
    script_file: ScriptFile = None
    option: ToolOptions = None
    lines: LinesOption = None

    def resolve_script(self, otherwise: str | None = None) -> tuple[str | None, list[str] | None]:
        """The tool and its options, where a script may stand for them (docs/one-liners.md)."""
        choices = ("-t", self.tool), ("-e", self.script), ("-f", self.script_file)
        if len(given := [name for name, value in choices if value]) > 1:
            raise Invalid(f"{' and '.join(given)}: give one of them")
        options = self.option or []
        if self.script:
            text = "\n".join(self.script).replace("\n", r"\n")  # options are one line each
            return SCRIPT, [f"text={text}", *options]
        return (SCRIPT, [f"file={self.script_file.absolute()}", *options]) if self.script_file else (
            self.tool or otherwise, options)

    def load(self) -> tuple[str, Tool]:
        """Its name, and the tool; Invalid without one."""
        from luthier_py.rewrite.tool import load_tool

        tool, options = self.resolve_script()
        return require_tool(tool), load_tool(require_tool(tool), pairs(options, self.lines))


@dataclass(frozen=True, slots=True)
class LaunchChoice:
    """Of a command that launches: how launches run on the emulator, and what is checked there."""

    launch: LaunchGiven = field(default_factory=dict)
    error_exitcode: ErrorExitCode = 0


@dataclass(frozen=True, slots=True)
class ToolFiles:
    """Of a command that launches: where the tool's results go."""

    output: OutputOption = None
    report: Report = None

    def options(self) -> dict[str, Path | None]:
        """The tool's options that say so."""
        return {"LUTHIER_OUTPUT": self.output, "LUTHIER_REPORT": self.report}


def require_tool(tool: str | None) -> str:
    """The tool of a command that makes no sense without one."""
    if not tool:
        raise Invalid("there is no tool; give one with -t, or say what to do with -e (docs/one-liners.md)")
    return tool


def load_and_echo_tool(name: str, options: dict[str, str]) -> Tool:
    """The tool; its options are printed on stderr."""
    from luthier_py.rewrite.tool import load_tool

    loaded = load_tool(name, options)
    if echo := loaded.echo():
        print(echo, file=sys.stderr)
    return loaded


def check_settings(settings: RunSettings, tool: str, options: Mapping[str, str], error_exitcode: int) -> None:
    """Invalid for options that exclude each other, and for --error-exitcode where nothing looks for errors."""
    if settings.record is not None and (tool != NO_TOOL or settings.shuffle):
        raise Invalid("--record keeps a launch as it is; leave out -t and --shuffle, which `luthier replay` takes")
    if settings.shuffle and tool != NO_TOOL:
        raise Invalid("--shuffle compares what the program itself writes; leave out -t")
    if not error_exitcode or settings.shuffle or settings.launch.checks:
        return
    from luthier_py.rewrite.tool import load_tool

    if not load_tool(tool, options).finds:
        raise Invalid("--error-exitcode tells what --check, --shuffle or a tool that looks for mistakes found; give "
                      "one of them")


def tool_options(
    there_is_a_tool: bool, options: list[str] | None, lines: list[str] | None = None, **more: Path | str | None
) -> dict[str, str]:
    """What :func:`pairs` gives, for a tool that is there."""
    found = pairs(options, lines, **more)
    if found and not there_is_a_tool:
        raise Invalid(f"option {', '.join(found)}: there is no tool that could take it; give one with -t")
    return found


def pairs(
    options: list[str] | None, lines: list[str] | None = None, **more: Path | str | None
) -> dict[str, str]:
    """NAME=VALUE texts as a dictionary, with those of ``more`` that were given, and INSTRUMENT narrowed to ``lines``.
    """
    given = {name: str(value) for name, value in more.items() if value}
    for text in options or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise Invalid(f"option `{text}`: write NAME=VALUE")
        if key in given:
            raise Invalid(f"option {key} is given twice")
        given[key] = value
    if lines:
        from luthier_py.rewrite.tool.chosen.filters import narrow_filter

        key = next((key for key in given if key.upper() == "INSTRUMENT"), "INSTRUMENT")
        wanted = " | ".join(f"lines = {each}" for each in lines)
        given[key] = narrow_filter(given.get(key, ""), wanted)
    return given
