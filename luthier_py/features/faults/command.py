"""The command that injects faults: faults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from click.exceptions import Exit

from luthier_py.base.errors import Invalid
from luthier_py.base.records import dataclass
from luthier_py.features.commands.console import aside, progress
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import (
    AsJson,
    LimitsGiven,
    LinesOption,
    StackOption,
    ToolOptions,
    pairs,
)
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command
from luthier_py.host.worker.device.recording import SUFFIX
from luthier_py.host.worker.error_boundary import say

if TYPE_CHECKING:
    from luthier_py.features.faults.campaign import Subject
    from luthier_py.features.faults.drawing import FaultCampaign


@dataclass(frozen=True, slots=True)
class DrawnFaults:
    """Which faults."""

    count: Annotated[int, ByName(
        "--faults", type=click.IntRange(min=1), metavar="N", help="how many faults, in each launch, or in the program"
    )] = 1000
    seed: Annotated[int, ByName("--seed", metavar="N", help="other faults for another one")] = 1
    models: Annotated[str, ByName(
        "--models", metavar="flip,...", help="each as often; once: flip, flip_two, value, zero; from then on: stuck_0, "
                                             "stuck_1; in each execution of an opcode: opcode_0, opcode_1, opcode_flip"
    )] = "flip"
    every_lane: Annotated[
        bool, ByName("--every-lane", help="permanent faults are in all lanes, and not in the drawn one")
    ] = False

    def campaign(self, options: dict[str, str]) -> FaultCampaign:
        """``options``: of the tool."""
        from luthier_py.features.faults.drawing import FaultCampaign

        named = {name.upper(): value for name, value in options.items()}
        models = tuple(dict.fromkeys(self.models.split(",")))
        return FaultCampaign(self.count, self.seed, models, named, self.every_lane)


@dataclass(frozen=True, slots=True)
class ComparedResults:
    """Options that decide whether a fault is masked."""

    results: Annotated[list[Path] | None, ByName(
        "--results", metavar="FILE", help="of a program: a file that has to be as it is without a fault, - is what it "
                                          "prints; may be repeated; default: -"
    )] = None
    check: Annotated[str, ByName(
        "--check", metavar="COMMAND", help="of a program: a command of the shell that tells whether its results are "
                                           "right, by exit code 0"
    )] = ""
    tolerance: Annotated[
        float, ByName("--tolerance", type=click.FloatRange(0, 1), metavar="REL",
                      help="of recorded launches: how far floats may be off and be masked all the same, relative to "
                           "the larger of two")
    ] = 0.0

    def subjects(self, what: list[str]) -> list[Subject]:
        """Recorded launches by their suffix, or one program."""
        from luthier_py.features.faults.campaign import read_recorded_subjects
        from luthier_py.features.faults.program import ProgramCheck, ProgramSubject

        if what[0].endswith(SUFFIX):
            if self.results or self.check:
                raise Invalid("--results and --check are of a program; of a recorded launch all memory is compared")
            return [*read_recorded_subjects([*map(Path, what)], self.tolerance)]
        if self.tolerance:
            raise Invalid("--tolerance is of recorded launches; give a program a --check that allows as much")
        if self.results and self.check:
            raise Invalid("--check tells whether results are right; leave out --results")
        compared = ProgramCheck(tuple(self.results)) if self.results else ProgramCheck(command=self.check)
        return [ProgramSubject(tuple(what), compared)]


@declare_command()
def faults(
    what: Annotated[list[str], ByPlace(
        help="recorded launches, or a program and its arguments, after --", metavar="FILE.lrec... | -- PROGRAM [ARG]"
    )],
    which: DrawnFaults,
    compared: ComparedResults,
    option: ToolOptions = None,
    lines: LinesOption = None,
    output: Annotated[
        Path, ByName("-o", "--output", metavar="FOLDER", help="what becomes of each, and tables; goes on where it was")
    ] = Path("faults"),
    device: Annotated[str | None, ByName(
        "--device", help="`emulator:TARGET`; of a recorded launch it is the emulator of its target without it, of a "
                         "program what LUTHIER_DEVICE says"
    )] = None,
    stack: StackOption = None,
    *,
    limits: LimitsGiven,
    as_json: AsJson = False,
) -> None:
    """Make one register wrong in recorded launches or in a program, thousands of times, and say what became of it:
    masked, silent data corruption, crash or hang.

    For example: luthier faults recorded/00000-saxpy.lrec --faults 1000 -O INSTRUMENT=vector_alu

    or: luthier faults --device emulator:TARGET --models stuck_1 --results out.bin -- ./app arguments

    Exit code 3: no fault was hit and judged.
    """
    from luthier_py.features.commands.console import show
    from luthier_py.features.faults.campaign import run_campaign
    from luthier_py.features.faults.report import fault_text
    from luthier_py.features.settings.run_settings import run_settings

    of_program = not what[0].endswith(SUFFIX)
    device = device or (os.environ.get("LUTHIER_DEVICE") if of_program else "emulator")
    settings = run_settings(device, limits, stack)
    subjects, campaign = compared.subjects(what), which.campaign(pairs(option, lines))
    with aside(), progress(which.count * len(subjects)) as advance:
        facts = run_campaign(subjects, campaign, output, settings, advance)
    if as_json:
        show(facts, as_json)
    else:
        print("\n".join([fault_text(facts), *(f"-> {name}" for name in facts["files"])]))
    if not facts["all"]["judged"]:
        say("no fault was hit and judged")
        raise Exit(ExitCode.NOTHING_OBSERVED)
