"""The command that runs many programs: study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from click.exceptions import Exit

from luthier_py.features.commands.console import aside, progress, show
from luthier_py.features.commands.exit_codes import ExitCode
from luthier_py.features.commands.options import (
    AsJson,
)
from luthier_py.features.commands.parameters import ByName, ByPlace
from luthier_py.features.commands.registry import declare_command
from luthier_py.host.worker.error_boundary import say

if TYPE_CHECKING:
    pass


@declare_command()
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
    from luthier_py.features.study.plan import plan_study, run_study
    from luthier_py.features.study.report import plan_table, shortcomings, study_text

    with aside():
        plan = plan_study(file, output or Path(f"{file.stem}.study"), retry)
    if dry_run:
        show(plan.facts() if as_json else plan_table(plan.facts()), as_json)
        return
    with progress(len(plan.campaign.waiting)) as advance:
        facts = run_study(plan, jobs, scheduler, advance)
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
