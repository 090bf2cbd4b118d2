"""Records in files: NDJSON, a line for each, or Parquet.

In: structured arrays as they come, and the launch that each is of. Out: a file with the record's fields as columns, and
``launch`` where the record has no field of that name. Invariant: records are written as they come, not collected in
memory.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from luthier_py.base.late_modules import np
from luthier_py.rewrite.tool.records.data import as_data

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from luthier_py.rewrite.tool.records.channel import Channel

LAUNCH = "launch"
ROWS = 1 << 17  # of a row group


class RecordFile(Protocol):
    """Mutable: a file that grows."""

    def append(self, records: NDArray[Any], launch: int) -> None:
        """Add records of one launch, given by its number; ``records``: a structured array of the channel's fields.
        Raises OSError."""

    def close(self) -> None: ...


def record_file(path: Path, channel: Channel, name: str) -> RecordFile:
    """``name``: put into the file's, where a tool has several channels. Raises OSError."""
    if name:
        path = path.with_name(f"{path.stem}.{name}{path.suffix}")
    return ParquetRecords(path, channel) if path.suffix == ".parquet" else JsonRecords(path)


class JsonRecords:
    """Mutable: a JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._file: IO[str] = path.open("w")

    def append(self, records: NDArray[Any], launch: int) -> None:
        """A line for each record, written at once. Floats that JSON lacks (NaN, infinities) are texts."""
        names = records.dtype.names or ()
        columns = [_plain(records[name]) for name in names]
        rows = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        self._file.writelines(f"{json.dumps({LAUNCH: launch, **row}, allow_nan=False)}\n" for row in rows)
        self._file.flush()

    def close(self) -> None:
        """All lines are in the file already."""
        self._file.close()


def _plain(values: NDArray[Any]) -> list[Any]:
    """What JSON's numbers lack becomes texts, which costs time, so only where there is some."""
    found: list[Any] = values.tolist()
    return found if values.dtype.kind in "ui" or np.isfinite(values).all() else as_data(found, "records")


class ParquetRecords:
    """Mutable: row groups, written when they are large enough. A field of each lane is a list of fixed length."""

    def __init__(self, path: Path, channel: Channel) -> None:
        import pyarrow  # Selection has refused such files where it is not there
        import pyarrow.parquet

        self._arrow, records = pyarrow, channel.record.records
        self._types = {name: self._type(records[name]) for name in records.names or ()}
        self._with_launch = LAUNCH not in self._types
        types = {**({LAUNCH: pyarrow.uint32()} if self._with_launch else {}), **self._types}
        self._writer = pyarrow.parquet.ParquetWriter(str(path), pyarrow.schema(list(types.items())))
        self._waiting: list[Any] = []

    def _type(self, kind: np.dtype[Any]) -> Any:
        single = self._arrow.from_numpy_dtype(kind.base)
        return self._arrow.list_(single, kind.shape[0]) if kind.shape else single

    def append(self, records: NDArray[Any], launch: int) -> None:
        """Wait in memory until there are `ROWS` records, which become a row group."""
        columns = {name: self._column(records[name], kind) for name, kind in self._types.items()}
        if self._with_launch:
            columns = {LAUNCH: self._arrow.array(np.full(len(records), launch, np.uint32)), **columns}
        self._waiting.append(self._arrow.table(columns, schema=self._writer.schema))
        if sum(table.num_rows for table in self._waiting) >= ROWS:
            self._write()

    def _column(self, values: NDArray[Any], kind: Any) -> Any:
        if values.ndim == 1:
            return self._arrow.array(np.ascontiguousarray(values))
        flat = self._arrow.array(np.ascontiguousarray(values).reshape(-1))
        return self._arrow.FixedSizeListArray.from_arrays(flat, type=kind)

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(self._arrow.concat_tables(self._waiting))
        self._waiting.clear()

    def close(self) -> None:
        """Write the last row group and the footer, without which the file cannot be read."""
        self._write()
        self._writer.close()
