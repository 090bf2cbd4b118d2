"""A study's data set, for programs: a row for each number of each launch's report, as docs/studies.md has them.

In: the folder of a study's results, or its results.parquet. Out: an Arrow table, which pandas, Polars and DuckDB take.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid, require_version
from luthier_py.features.study.store import DATA, DATA_VERSION, require_parquet

if TYPE_CHECKING:
    import pyarrow

APART = ("program", "arguments", "tool", "options", "device", "stack")
"""What distinguishes runs of a study, beside the number of the repeat."""


def study_table(path: str | PathLike[str], tool: str | None = None, metric: str | None = None) -> pyarrow.Table:
    """The data set of a study, or what is in it of one tool or one metric; ``.to_pandas()`` makes it a DataFrame.
    Invalid where there is none, Unsupported where it is of a newer version."""
    require_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = Path(path)
    file = found / DATA if found.is_dir() else found
    wanted = [(column, "==", value) for column, value in (("tool", tool), ("metric", metric)) if value is not None]
    try:
        about = pq.read_schema(file).metadata or {}
        require_version(str(file), int(about.get(b"version", 1)), DATA_VERSION)
        return pq.read_table(file, filters=wanted or None)
    except FileNotFoundError:
        raise Invalid(f"{file}: No such file or directory; give a study's folder, or its {DATA}") from None
    except (OSError, pa.ArrowException) as error:
        raise Invalid(f"{file}: {error}; give a study's folder, or its {DATA}") from None
