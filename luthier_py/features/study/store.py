"""Where outcomes are stored while a study runs, and the data set that comes of them.

In: outcomes of cells. Out: files of the study's folder. Invariant: what is not known has no value, and whole numbers
stay exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from luthier_py.base.errors import LuthierError
from luthier_py.base.storage import write_file
from luthier_py.features.campaign.store import RowKey, RowStore
from luthier_py.features.study.cells import Cell
from luthier_py.features.study.runs import RunRecord
from luthier_py.report.plain import leaves
from luthier_py.rewrite.tool.records.data import NOT_FINITE

CELLS, DATA, DATA_VERSION = "cells", "results.parquet", 1
COLUMNS = (
    "cell program arguments tool options device stack repeat status exit_code seconds output_sha256 said machine "
    "process launch launches kernel grid block metric way count value text"
).split()
CELL = "cell"
"""Of an outcome, the identity of its run."""


def open_store(folder: Path) -> RowStore:
    """The store of outcomes, by identity; it has those of version 1 as well."""
    def read_older(identity: RowKey) -> RunRecord | None:
        try:
            outcome: RunRecord = json.loads((cells / f"{identity}.json").read_bytes())
        except (OSError, ValueError):
            return None
        return outcome

    cells = folder / CELLS
    return RowStore(cells / "outcomes.ndjson", CELL, read_older)


def rows_of(cell: Cell, outcome: RunRecord) -> Iterator[dict[str, Any]]:
    """The long form: a row for each number or text of each launch's report; one row for a run without any."""
    run = {
        "cell": cell.identity,
        "program": cell.program,
        "arguments": cell.arguments,
        "tool": cell.tool,
        "options": ";".join(f"{name}={value}" for name, value in sorted(cell.run["options"].items())),
        "device": cell.device,
        "stack": cell.stack,
        "repeat": cell.repeat,
        **{name: outcome[name] for name in ("status", "exit_code", "seconds", "output_sha256", "said", "machine")},
    }
    empty = True
    for report in reports_of(outcome):
        launch = {name: report[name] for name in ("process", "launch", "launches", "kernel")}
        launch |= {name: ",".join(map(str, report[name])) for name in ("grid", "block")}
        for way, value in leaves(report["report"]):
            if value is not None:
                empty = False
                yield {**run, **launch, "metric": ".".join(way), "way": way, **_make_typed_columns(value)}
    if empty:
        yield run


def reports_of(outcome: RunRecord) -> list[dict[str, Any]]:
    """The reports of all processes of a run; these have numbers by what they report, since which ends first is
    chance."""
    processes = sorted((facts["reports"] for facts in outcome["verdicts"] or () if facts["reports"]), key=json.dumps)
    return [{**row, "process": number} for number, rows in enumerate(processes) for row in rows]


def _make_typed_columns(value: Any) -> dict[str, Any]:
    """``count``: a whole number, exact. ``value``: any number. ``text``: anything else."""
    if value in NOT_FINITE:
        return {"value": float(value)}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return {"text": str(value)}
    whole = isinstance(value, int) and -(2**63) <= value < 2**63
    return {"count": value if whole else None, "value": float(value)}


def require_parquet() -> None:
    """Said before anything runs."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise LuthierError("a study's results are Parquet: pip install luthier-py[study]") from None


def write_data(folder: Path, title: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """All rows as one Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = dict.fromkeys(("repeat", "exit_code", "process", "launch", "launches", "count"), pa.int64())
    kinds = {**whole, "seconds": pa.float64(), "value": pa.float64(), "way": pa.list_(pa.string())}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS],
                       {"title": title, "luthier_py": version("luthier-py"), "version": str(DATA_VERSION)})  # fmt: skip
    table = pa.table({name: [row.get(name) for row in rows] for name in COLUMNS}, schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    path = folder / DATA
    write_file(path, sink.getvalue().to_pybytes())
    return path
