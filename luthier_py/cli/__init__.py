"""The command line: arguments in, one call, text or JSON out. No logic lives here.

Exit codes: 0 all that was asked for was done; 1 an error, or something was not delivered, a line on stderr for each;
2 wrong usage; 3 a tool was asked for and observed nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from luthier_py.cli.console import aside, progress, show
from luthier_py.cli.ending import ExitCode, run_to_an_end
from luthier_py.cli.options import (
    AsJson,
    File,
    KeepGoing,
    OutputOption,
    Report,
    TargetOption,
    TimeLimitOption,
    ToolName,
    ToolOptions,
    check_taken,
    chosen_tool,
    echoed_tool,
    pairs,
)
from luthier_py.errors import Invalid
from luthier_py.worker.edge import TRACEBACK, say

if TYPE_CHECKING:
    from luthier_py.pipeline import Instrumented
    from luthier_py.tool import Tool

app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Entry point of the `luthier` command."""
    run_to_an_end(app)


@app.callback()
def every_command(
    version: Annotated[bool, typer.Option("--version", help="print the version", is_eager=True)] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="show how an error came about; LUTHIER_TRACEBACK=1 does so, too")
    ] = False,
) -> None:
    """Instrument AMD GPU code objects with Python, and run them on a GPU or on an emulator."""
    if version:
        from importlib.metadata import version as version_of

        print(f"luthier-py {version_of('luthier-py')}")
        raise typer.Exit
    if traceback:
        os.environ[TRACEBACK] = "1"


@app.command()
def info(
    file: File,
    kernels: Annotated[bool, typer.Option("--kernels", help="list kernels, however many objects there are")] = False,
    as_json: AsJson = False,
) -> None:
    """What a code object, or a fat binary or program with several, holds: target, kernels, registers, memory."""
    from luthier_py.loader import load_each, open_code
    from luthier_py.report.info import info_json, info_lines

    with open_code(file) as data:
        parts = load_each(data, str(file))
        _print_all(info_json(parts) if as_json else info_lines(parts, kernels))


@app.command()
def disasm(
    file: File,
    kernel: Annotated[str | None, typer.Option("--kernel", help="only this kernel")] = None,
    blocks: Annotated[bool, typer.Option("--blocks", help="as basic blocks with live registers")] = False,
    host: Annotated[bool, typer.Option("--host", help="the emulator's code for this computer")] = False,
) -> None:
    """Machine code as text, in llvm-objdump's format; of a code object, or of all in a fat binary or a program."""
    from luthier_py.loader import load_each, open_code
    from luthier_py.report.disassembly import disassemble, disassemble_blocks, disassemble_host, disassemble_parts

    lines = disassemble_host if host else disassemble_blocks if blocks else disassemble
    with open_code(file) as data:
        _print_all(disassemble_parts(load_each(data, str(file)), kernel, lines))


@app.command()
def instrument(
    file: File,
    tool: ToolName,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="default: FILE with .luthier before its suffix")
    ] = None,
    option: ToolOptions = None,
    keep_going: KeepGoing = False,
    target: TargetOption = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", help="only this kernel; of a library, in the code object that has it")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a copy of FILE with instrumented clones of its kernels beside the originals."""
    from luthier_py.cli.waiting import waiting
    from luthier_py.isa import parse_target_id
    from luthier_py.loader import read_code
    from luthier_py.pipeline import instrument as run_pipeline
    from luthier_py.report.instrumented import instrumented_facts, instrumented_table
    from luthier_py.report.remedies import advising
    from luthier_py.storage import write_file
    from luthier_py.tool import LAUNCHES, OUTPUT

    with aside():
        loaded = chosen_tool(tool, option)
        if pointless := sorted(loaded.given & {*LAUNCHES, *OUTPUT}):
            what = "is about launches, and this makes none; give it to run or exec"
            raise Invalid(f"option {', '.join(pointless)}: {what}")
        code = read_code(file, parse_target_id(target) if target else None, kernel)
        with advising(code, loaded), waiting(not as_json) as bar:
            watch = bar.stage if bar is not None else None
            chosen = None if kernel is None else [kernel]
            made = run_pipeline(code, loaded, str(file), chosen, keep_going=keep_going, watch=watch)
    path = output or file.with_suffix(f".luthier{file.suffix}")
    write_file(path, made.data)
    facts = instrumented_facts(made, str(path))
    show(facts if as_json else instrumented_table(facts), as_json)
    if tool != "none":
        _check_inserted(loaded, made)


def _check_inserted(tool: Tool, made: Instrumented) -> None:
    from luthier_py.report.verdict import Verdict

    if made.data == made.obj.data:
        say(f"tool {tool.name} inserted nothing: {Verdict(tool).nothing_inserted(k.name for k in made.obj.kernels)}")
        raise typer.Exit(ExitCode.NOTHING_OBSERVED)


@app.command()
def explain(
    file: File,
    tool: ToolName,
    option: ToolOptions = None,
    target: TargetOption = None,
    kernel: Annotated[str | None, typer.Option("--kernel", help="only this kernel")] = None,
    keep_going: KeepGoing = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="a page instead of a listing")] = None,
    as_json: AsJson = False,
) -> None:
    """Why an instrumented copy is what it is: the clones' code, where values of hooks live, what all of it costs."""
    from luthier_py.isa import parse_target_id
    from luthier_py.loader import read_code
    from luthier_py.report import explain as explaining
    from luthier_py.report.html import render
    from luthier_py.session.files import symbol_of
    from luthier_py.storage import write_file

    with aside():
        loaded = chosen_tool(tool, option)
        kernel = symbol_of(file, kernel) if kernel is not None else None
        code = read_code(file, parse_target_id(target) if target else None, kernel)
        found = explaining.explain(code, loaded, str(file), None if kernel is None else [kernel], keep_going)
    _check_inserted(loaded, found.made)
    if html is not None:
        write_file(html, render(explaining.as_page(found)).encode())
    if as_json:
        show(explaining.as_facts(found), as_json)
    elif html is None:
        _print_all(explaining.as_lines(found))
    else:
        print(html)


@app.command()
def run(
    file: File,
    kernel: Annotated[str, typer.Option("--kernel", help="name of the kernel")],
    grid: Annotated[str, typer.Option("--grid", help="work-groups, X[,Y,Z]")],
    block: Annotated[str, typer.Option("--block", help="work-items of a work-group, X[,Y,Z]")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="in:f32[1024]=random:1, inout:u32[512]=arange, out:f32[1024], i32=7", metavar="ARG"),
    ] = None,
    tool: ToolName = "none",
    option: ToolOptions = None,
    device: Annotated[
        str, typer.Option("--device", help="`emulator`, `emulator:TARGET`, or `hip` for the first AMD GPU")
    ] = "emulator",
    save: Annotated[Path | None, typer.Option("--save", help="folder for the out and inout buffers, as .npy")] = None,
    time_limit: TimeLimitOption = None,
    output: OutputOption = None,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Launch one kernel, with a tool in it or without.

    For example: luthier run saxpy.co --kernel saxpy --grid 4 --block 256 -t instr_count u32=1000 f32=0.7
    in:f32[1000]=random:1 inout:f32[1000]=random:2
    """
    from luthier_py.cli.waiting import waiting
    from luthier_py.report.launched import launch_table
    from luthier_py.session.facts import launch_facts
    from luthier_py.session.launched import launch_file, parse_dim, save_counts, save_outputs, save_report
    from luthier_py.session.run import Launch
    from luthier_py.session.specs import parse_argument

    launch = Launch(
        kernel, parse_dim(grid, "--grid"), parse_dim(block, "--block"), tuple(map(parse_argument, arguments or []))
    )
    options = pairs(option, LUTHIER_OUTPUT=output, LUTHIER_REPORT=report)
    check_taken(options, tool != "none")
    with aside():
        loaded = echoed_tool(tool, options) if tool != "none" else None
        with waiting(not as_json) as bar:
            done = launch_file(file, launch, loaded, device, time_limit=time_limit, onlooker=bar)
        saved = save_outputs(done, save) if save else {}
        files = [*save_counts(done), *save_report(done)]
    facts = launch_facts(done, launch, {k: str(v) for k, v in saved.items()}, list(map(str, files)))
    show(facts if as_json else launch_table(facts), as_json)
    if done.verdict is not None and not done.observed:
        say(nothing_observed(tool, done.verdict.reasons()))
        raise typer.Exit(ExitCode.NOTHING_OBSERVED)


@app.command()
def tools(
    tool: Annotated[str | None, typer.Argument(help="only this one, or those of a file or folder")] = None,
    as_json: AsJson = False,
) -> None:
    """Installed tools and their options, or those of a .py file or a folder."""
    from luthier_py.report.toolbox import toolbox_facts, toolbox_text
    from luthier_py.tool import tools as installed
    from luthier_py.tool.discover import tools_in

    with aside():
        facts = toolbox_facts(tools_in(tool) if tool else installed())
    show(facts if as_json else toolbox_text(facts), as_json)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """What of compilers, ROCm and GPUs is found on this computer, what works with that, and what to install."""
    from luthier_py.report.doctor import doctor_tables
    from luthier_py.session.doctor import examine

    with aside():
        facts = examine()
    show(facts if as_json else doctor_tables(facts), as_json)
    if not facts["healthy"]:
        raise typer.Exit(ExitCode.ERROR)


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Instrument and run the sample kernels, and compare every count and every output."""
    from luthier_py.report.demo import demo_table
    from luthier_py.session.demo import demonstrate

    rows = demonstrate(lambda text: None if as_json else Console(stderr=True).print(text, highlight=False))
    show(rows.facts() if as_json else demo_table(rows), as_json)
    if not rows.passed:
        raise typer.Exit(ExitCode.ERROR)


@app.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def execute(
    command: Annotated[list[str], typer.Argument(help="the program and its arguments, after --", metavar="PROGRAM")],
    tool: Annotated[str | None, typer.Option("-t", "--tool", help="a tool's name, or its .py file or folder")] = None,
    option: ToolOptions = None,
    device: Annotated[
        str | None, typer.Option("--device", envvar="LUTHIER_DEVICE", help="emulator:TARGET; without it, the GPU")
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option("--stack", envvar="LUTHIER_STACK", metavar="luthier|rocm",
                     help="on the emulator: our HIP runtime (default), or ROCm as it is installed"),
    ] = None,
    kernels: Annotated[
        str | None, typer.Option("--kernels", metavar="REGEX", help="only kernels with such names")
    ] = None,
    own_kernels: Annotated[
        bool, typer.Option("--own-kernels", help="at the HSA level: the HIP runtime's own kernels, too, as for copies")
    ] = False,
    level: Annotated[
        str | None,
        typer.Option("--level", metavar="auto|hip|hsa",
                     help="where the tool stands; auto, as without it: HSA unless the program uses HIP, and with "
                          "--own-kernels; LUTHIER_LEVEL says it, too"),
    ] = None,
    time_limit: TimeLimitOption = None,
    output: OutputOption = None,
    report: Report = None,
) -> None:
    """Run a HIP or HSA program as it is, on a GPU or on the emulator, with a tool under it or without.

    For example: luthier exec -t instr_count --device emulator:TARGET -- ./app arguments

    The exit code is the program's own; if that is 0, then 3 if the tool observed nothing, and 1 if anything that was
    asked of it was not delivered.
    """
    from luthier_py.session.execute import execute as run_program

    own = "1" if own_kernels else None
    options = pairs(
        option, LUTHIER_KERNELS=kernels, LUTHIER_OWN_KERNELS=own, LUTHIER_OUTPUT=output, LUTHIER_REPORT=report
    )
    check_taken(options, tool is not None)
    with aside():
        done = run_program(command, tool, options, device, time_limit=time_limit, stack=stack, level=level)
    for line in (*done.hints, *done.undelivered):
        say(line)
    if tool is not None and not done.observed:
        say(nothing_observed(tool, done.reasons))
        raise typer.Exit(done.exit_code or ExitCode.NOTHING_OBSERVED)
    raise typer.Exit(done.exit_code or (ExitCode.ERROR if done.undelivered else ExitCode.OK))


@app.command()
def build(
    tool: Annotated[str, typer.Argument(help="a tool's name, or its .py file or folder", metavar="TOOL")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="LIB", help="default: TOOL.so")
    ] = None,
    option: ToolOptions = None,
    level: Annotated[
        str, typer.Option("--level", metavar="hip|hsa", help="hip: for LD_PRELOAD, or hsa: for HSA_TOOLS_LIB")
    ] = "hip",
) -> None:
    """Make a library of a tool for LD_PRELOAD, or at the HSA level for HSA_TOOLS_LIB.

    For example: luthier build instr_count -o count.so && LD_PRELOAD=./count.so ./app arguments
    """
    from luthier_py.session.execute import build_tool
    from luthier_py.session.levels import loading

    path = output or Path(f"{Path(tool).stem}.so")
    with aside():
        build_tool(tool, pairs(option), path, level)
    print(loading(level, path.resolve()))


@app.command()
def study(
    file: Annotated[Path, typer.Argument(help="what to run, as TOML: docs/studies.md", metavar="FILE.toml")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="folder of results; default: FILE.study, here")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="runs at a time; default: as many as CPUs")] = None,
    scheduler: Annotated[str | None, typer.Option("--scheduler", help="tcp://...: run on a Dask cluster")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="make runs again that failed or took too long")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show the runs, and make none")] = False,
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
        raise typer.Exit(ExitCode.NOTHING_OBSERVED)
    raise typer.Exit(ExitCode.ERROR if missing else ExitCode.OK)


def nothing_observed(tool: str, reasons: list[str]) -> str:
    return f"tool {tool} observed nothing{': ' * bool(reasons)}{'; '.join(dict.fromkeys(reasons))}"


def _print_all(lines: Iterator[str]) -> None:
    """Lines as they come; a million takes a second."""
    sys.stdout.writelines(f"{line}\n" for line in lines)
