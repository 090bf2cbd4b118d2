"""Studies: programs, arguments, tools and devices, every combination, repeated; run where it was left, then summed up.

In: a TOML file and a folder for results. Out: the folder's data set, tables, plots and page, and the facts behind them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luthier_py.base.storage import write_file
from luthier_py.features.study.cells import Cell, cells_of
from luthier_py.features.study.report import study_files
from luthier_py.features.study.runs import RunRecord, run_here, run_on_cluster
from luthier_py.features.study.spec import Study, read_study
from luthier_py.features.study.store import ResultStore, require_parquet, rows_of, write_data
from luthier_py.features.study.summary import summarise

__all__ = ["Plan", "plan_study", "run_study"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A study's runs, and which of them have been made."""

    study: Study
    cells: Sequence[Cell]
    store: ResultStore
    finished: dict[str, RunRecord]

    @property
    def waiting(self) -> list[Cell]:
        """Runs to make; what is the same run under two names is made once."""
        distinct = {cell.identity: cell for cell in self.cells}
        return [cell for name, cell in distinct.items() if name not in self.finished]

    def facts(self) -> list[dict[str, Any]]:
        """A row for each cell: its columns, and its status, which is ``to run`` where it has no outcome."""
        columns = ("program", "arguments", "tool", "device", "stack", "repeat")
        return [
            {
                **{name: getattr(cell, name) for name in columns},
                "status": self.finished[cell.identity]["status"] if cell.identity in self.finished else "to run",
            }
            for cell in self.cells
        ]


def plan_study(path: Path, folder: Path, retry: bool = False) -> Plan:
    """What a study would run; writes nothing."""
    study = read_study(path)
    cells = cells_of(study)
    store = ResultStore(folder)
    return Plan(study, cells, store, store.find_finished(cells, retry))


def run_study(
    plan: Plan, jobs: int | None, scheduler: str | None, ended: Callable[[Cell, RunRecord], object]
) -> dict[str, Any]:
    """Make the runs that wait, and write what all of them say; the summary's facts, with the files' names."""
    require_parquet()
    plan.store.open()
    outcomes = dict(plan.finished)
    jobs = jobs or plan.study.jobs or os.cpu_count() or 1
    running = run_on_cluster(plan.waiting, scheduler) if scheduler else run_here(plan.waiting, jobs)
    for cell, outcome in running:
        plan.store.write(cell, outcome)
        outcomes[cell.identity] = outcome
        ended(cell, outcome)
    runs = [(cell, outcomes[cell.identity]) for cell in plan.cells]
    rows = [row for cell, outcome in runs for row in rows_of(cell, outcome)]
    paths = [write_data(plan.store.folder, plan.study.title, rows)]
    facts = summarise(plan.study, runs)
    for name, content in {**study_files(facts), "summary.json": json.dumps(facts, indent=2).encode()}.items():
        paths.append(plan.store.folder / name)
        write_file(paths[-1], content)
    return {**facts, "files": [str(path) for path in paths]}
