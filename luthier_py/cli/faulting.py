"""The command that injects faults: faults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
from click.exceptions import Exit

from luthier_py.cli.app import app
from luthier_py.cli.console import aside, progress
from luthier_py.cli.ending import ExitCode
from luthier_py.cli.options import AsJson, LinesOption, TimeLimitOption, ToolOptions, pairs
from luthier_py.cli.parameters import ByName, ByPlace
from luthier_py.worker.edge import say


@app.command_of()
def faults(
    files: Annotated[list[Path], ByPlace(help="recorded launches", metavar="FILE...")],
    count: Annotated[
        int, ByName("--faults", type=click.IntRange(min=1), metavar="N", help="how many faults, in each launch")
    ] = 1000,
    seed: Annotated[int, ByName("--seed", metavar="N", help="other faults for another one")] = 1,
    models: Annotated[
        str, ByName("--models", metavar="flip,...", help="some of flip, flip_two, value, zero: each as often")
    ] = "flip",
    option: ToolOptions = None,
    lines: LinesOption = None,
    output: Annotated[
        Path, ByName("-o", "--output", metavar="FOLDER", help="what becomes of each, and tables; goes on where it was")
    ] = Path("faults"),
    tolerance: Annotated[
        float, ByName("--tolerance", type=click.FloatRange(0, 1), metavar="REL",
                      help="how far floats may be off and be masked all the same, relative to the larger of two")
    ] = 0.0,
    device: Annotated[str, ByName("--device", help="`emulator` or `emulator:TARGET`")] = "emulator",
    time_limit: TimeLimitOption = None,
    as_json: AsJson = False,
) -> None:
    """Make one register wrong in recorded launches, thousands of times, and say what became of it: masked, silent data
    corruption, crash or hang.

    For example: luthier faults recorded/00000-saxpy.lrec --faults 1000 -O INSTRUMENT=vector_alu

    Exit code 3: no fault was hit and judged.
    """
    from luthier_py.cli.console import show
    from luthier_py.report.faults import fault_text
    from luthier_py.session.faults import Campaign, parse_models, run_campaign
    from luthier_py.session.run_settings import run_settings

    settings = run_settings(device, {"--time-limit": time_limit})
    campaign = Campaign(count, seed, parse_models(models), pairs(option, lines), tolerance)
    with aside(), progress(count * len(files)) as advance:
        facts = run_campaign(files, campaign, output, settings, advance)
    if as_json:
        show(facts, as_json)
    else:
        print("\n".join([fault_text(facts), *(f"-> {name}" for name in facts["files"])]))
    if not facts["all"]["judged"]:
        say("no fault was hit and judged")
        raise Exit(ExitCode.NOTHING_OBSERVED)
