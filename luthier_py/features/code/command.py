"""The commands about what is in a file, and a copy of it with a tool: info, disasm, instrument."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from luthier_py.base.errors import Invalid
from luthier_py.base.late_modules import limit_threads
from luthier_py.features.commands.console import aside, print_all, show
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import (
    NO_TOOL,
    AsJson,
    File,
    KeepGoing,
    TargetOption,
    ToolChoice,
)
from luthier_py.features.commands.parameters import ByName
from luthier_py.features.commands.registry import declare_command
from luthier_py.host.worker.error_boundary import say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

    from luthier_py.binary.loader import Broken, CodeObject
    from luthier_py.rewrite.pipeline import Instrumented
    from luthier_py.rewrite.tool import Tool


@declare_command()
def info(
    file: File,
    kernels: Annotated[bool, ByName("--kernels", help="list kernels, however many objects there are")] = False,
    calls: Annotated[bool, ByName("--calls", help="functions that kernels reach, and the calls between them")] = False,
    cfg: Annotated[str | None, ByName("--cfg", metavar="KERNEL", help="its control flow, as SVG")] = None,
    counts: Annotated[
        Path | None, ByName("--counts", metavar="FILE.json", help="for --cfg: what hot_blocks or branch_edges counted")
    ] = None,
    target: TargetOption = None,
    output: Annotated[Path | None, ByName("-o", "--output", metavar="FILE.svg", help="for --cfg")] = None,
    as_json: AsJson = False,
) -> None:
    """What a code object, or a fat binary or program with several, holds: target, kernels, registers, memory."""
    from luthier_py.binary.loader import open_code
    from luthier_py.features.code.calls import calls_lines, calls_of
    from luthier_py.features.code.info import describe, info_json, info_lines

    if cfg is not None and (kernels or calls or as_json):
        raise Invalid("--cfg draws one kernel; leave out --kernels, --calls and --json")
    if cfg is not None:
        _draw(file, cfg, counts, target, output)
        return
    if given := [name for name, value in (("--counts", counts), ("-o", output)) if value]:
        raise Invalid(f"{given[0]} is for --cfg KERNEL, which is missing")
    with open_code(file) as data:
        parts = _parts(data, file, target)
        if as_json:
            print_all(info_json(parts, calls_of if calls else describe))
        else:
            print_all(calls_lines(parts) if calls else info_lines(parts, kernels))


def _parts(data: bytes | mmap, file: Path, target: str | None) -> Iterator[CodeObject | Broken]:
    """All code objects of a file, or those that run on ``target``."""
    from luthier_py.binary.loader import load_each, that_run_on
    from luthier_py.isa import parse_target_id

    device = parse_target_id(target) if target else None
    parts = load_each(data, str(file))
    return parts if device is None else that_run_on(device, parts, str(file))


def _draw(file: Path, kernel: str, counts: Path | None, target: str | None, output: Path | None) -> None:
    from luthier_py.base.storage import write_file
    from luthier_py.binary.loader import load, read_code
    from luthier_py.features.settings.files import read_reports, symbol_of
    from luthier_py.isa import parse_target_id
    from luthier_py.report.cfg import has_flow, kernel_svg

    name = symbol_of(file, kernel)
    obj = load(read_code(file, parse_target_id(target) if target else None, name), str(file))
    obj.kernel(name)
    reports = [] if counts is None else read_reports(counts, name)
    if counts is not None and not has_flow(reports):
        raise Invalid(f"{counts} has no counts of blocks or of the ways between them; -t hot_blocks and "
                      "-t branch_edges write some")
    svg = kernel_svg(obj, name, reports)
    if output is None:
        print(svg)
    else:
        write_file(output, svg.encode())
        print(output)


@declare_command()
def disasm(
    file: File,
    kernel: Annotated[str | None, ByName("--kernel", help="only this kernel")] = None,
    blocks: Annotated[bool, ByName("--blocks", help="as basic blocks with live registers")] = False,
    host: Annotated[bool, ByName("--host", help="the emulator's code for this computer")] = False,
    target: TargetOption = None,
) -> None:
    """Machine code as text, in llvm-objdump's format; of a code object, or of all in a fat binary or a program."""
    limit_threads()
    from luthier_py.binary.loader import open_code
    from luthier_py.features.code.disassembly import (
        disassemble,
        disassemble_blocks,
        disassemble_host,
        disassemble_parts,
    )
    from luthier_py.features.settings.files import symbol_of

    kernel = kernel and symbol_of(file, kernel)
    lines = disassemble_host if host else disassemble_blocks if blocks else disassemble
    with open_code(file) as data:
        print_all(disassemble_parts(_parts(data, file, target), kernel, lines))


@declare_command()
def instrument(
    file: File,
    choice: ToolChoice,
    output: Annotated[
        Path | None, ByName("-o", "--output", help="default: FILE with .luthier before its suffix")
    ] = None,
    keep_going: KeepGoing = False,
    target: TargetOption = None,
    kernel: Annotated[
        str | None, ByName("--kernel", help="only this kernel; of a library, in the code object that has it")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a copy of FILE with instrumented clones of its kernels beside the originals."""
    from luthier_py.base.storage import write_file
    from luthier_py.binary.loader import read_code
    from luthier_py.features.code.instrumented import build_instrumented_table, collect_instrumented_facts
    from luthier_py.features.commands.progress_bar import show_progress
    from luthier_py.features.settings.files import symbol_of
    from luthier_py.isa import parse_target_id
    from luthier_py.report.remedies import suggest_remedies
    from luthier_py.rewrite.pipeline import instrument as run_pipeline
    from luthier_py.rewrite.tool import LAUNCHES, OUTPUT

    with aside():
        tool, loaded = choice.load()
        if pointless := sorted(loaded.given & {*LAUNCHES, *OUTPUT}):
            what = "is about launches, and this makes none; give it to run or exec"
            raise Invalid(f"option {', '.join(pointless)}: {what}")
        kernel = kernel and symbol_of(file, kernel)
        code = read_code(file, parse_target_id(target) if target else None, kernel)
        with suggest_remedies(code, loaded), show_progress(not as_json) as bar:
            watch = bar.stage if bar is not None else None
            chosen = None if kernel is None else [kernel]
            made = run_pipeline(code, loaded, str(file), chosen, keep_going=keep_going, watch=watch)
    path = output or file.with_suffix(f".luthier{file.suffix}")
    write_file(path, made.data)
    facts = collect_instrumented_facts(made, str(path))
    show(facts if as_json else build_instrumented_table(facts), as_json)
    if tool != NO_TOOL:
        check_inserted(loaded, made)


def check_inserted(tool: Tool, made: Instrumented) -> None:
    """End the command with `ExitCode.NOTHING_OBSERVED` where the tool inserted nothing, and say why."""
    from luthier_py.report.verdict import Verdict

    if made.data == made.obj.data:
        say(f"tool {tool.name} inserted nothing: {Verdict(tool).nothing_inserted(made.obj, made.edits.notes)}")
        raise Exit(ExitCode.NOTHING_OBSERVED)
