"""Studies: programs, arguments, tools and devices, every combination, repeated; run where it was left, then summed up.

In: a TOML file and a folder for results. Out: the folder's data set, tables, plots and page, and the facts behind them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from luthier_py.base.records import dataclass
from luthier_py.features.campaign.engine import Campaign, Variation
from luthier_py.features.campaign.workers import on_cluster, side_by_side
from luthier_py.features.settings.files import write_results
from luthier_py.features.study.cells import Cell, cells_of
from luthier_py.features.study.report import study_files
from luthier_py.features.study.runs import RunRecord, make_lost_record, needs_no_run, run_cell
from luthier_py.features.study.spec import Study, read_study
from luthier_py.features.study.store import CELL, open_store, require_parquet, rows_of, write_data
from luthier_py.features.study.summary import summarise
from luthier_py.report.plain import Json


@dataclass(frozen=True, slots=True)
class Plan:
    """A study's runs, and which of them have been made. ``folder``: of its results."""

    study: Study
    cells: Sequence[Cell]
    folder: Path
    campaign: Campaign[Cell, RunRecord]

    def facts(self) -> list[dict[str, Any]]:
        """A row for each cell: its columns, and its status, which is ``to run`` where it has no outcome."""
        columns = ("program", "arguments", "tool", "device", "stack", "repeat")
        rows = self.campaign.rows
        return [
            {
                **{name: getattr(cell, name) for name in columns},
                "status": rows[cell.identity]["status"] if cell.identity in rows else "to run",
            }
            for cell in self.cells
        ]


def plan_study(path: Path, folder: Path, retry: bool = False) -> Plan:
    """What a study would run; writes nothing. ``retry``: failures are run again, too."""
    study = read_study(path)
    cells = cells_of(study)
    runs = [Variation(cell.identity, cell, partial(dict, **{CELL: cell.identity})) for cell in cells]
    return Plan(study, cells, folder, Campaign(runs, open_store(folder), partial(needs_no_run, retry=retry)))


def run_study(plan: Plan, jobs: int | None, scheduler: str | None, ended: Callable[[], object]) -> Json:
    """Make the runs that wait, and write what all of them say; the summary's facts, with the files' names."""
    require_parquet()
    jobs = jobs or plan.study.jobs or os.cpu_count() or 1
    workers = on_cluster(run_cell, scheduler, make_lost_record) if scheduler else side_by_side(run_cell, jobs)
    runs = [*zip(plan.cells, plan.campaign.run(workers, ended), strict=True)]
    data = write_data(plan.folder, plan.study.title, [row for cell, outcome in runs for row in rows_of(cell, outcome)])
    facts = summarise(plan.study, runs)
    files = {plan.folder / name: content for name, content in study_files(facts).items()}
    facts = write_results(facts, plan.folder / "summary.json", files)
    return {**facts, "files": [str(data), *facts["files"]]}
