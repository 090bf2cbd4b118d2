"""What a run reports, stored on disk as it comes: it may be larger than memory.

In: rows of plain data, or Python objects, one after the other. Out: the same, in order, as often as they are read.
Invariant: a process holds nothing of them but where they are; the files have no name, or are removed when they are
closed.
"""

from __future__ import annotations

import json
import pickle
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, overload

from luthier_py.rewrite.tool import as_data

_UNPICKLABLE = (pickle.PicklingError, TypeError, AttributeError, RecursionError)


class SpooledRows:
    """Mutable: JSON, one row in each line.

    ``beside``: the file that the rows become part of. If this process is killed, they are found there, in
    ``.NAME.*.rows``; without it the file has no name.
    """

    def __init__(self, beside: Path | None = None) -> None:
        self._beside = beside
        self._file: IO[bytes] | None = None

    def add(self, row: Any) -> None:
        """Raises OSError."""
        if self._file is None:
            self._file = self._create()
        self._file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
        self._file.flush()

    def texts(self) -> Iterator[bytes]:
        """The JSON of each row; nothing may be added meanwhile."""
        if self._file is not None:
            self._file.seek(0)
            for line in self._file:
                yield line[:-1]

    def __iter__(self) -> Iterator[Any]:
        return map(json.loads, self.texts())

    def close(self) -> None:
        """Close the file, with which the rows are gone."""
        if self._file is not None:
            self._file.close()

    def _create(self) -> IO[bytes]:
        path = self._beside
        if path is None or (path.exists() and not path.is_file()):
            return tempfile.TemporaryFile()
        return tempfile.NamedTemporaryFile(prefix=f".{path.name[:200]}.", suffix=".rows", dir=path.parent)


class Objects(Sequence[Any]):
    """Mutable: pickled objects in a file that may hold others as well. What cannot be pickled stays in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places = array("Q")
        self._kept: dict[int, Any] = {}

    def append(self, value: Any) -> None:
        """Pickle the object to the end of the file; raises OSError."""
        end = self._file.seek(0, 2)
        try:
            self._file.write(pickle.dumps(value))
        except _UNPICKLABLE:
            self._kept[len(self._places)] = value
        self._places.append(end)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, number: int) -> Any: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Any]: ...

    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        number = range(len(self))[number]
        if number in self._kept:
            return self._kept[number]
        self._file.seek(self._places[number])
        return pickle.load(self._file)


def with_rows(facts: Mapping[str, Any], name: str, rows: SpooledRows | None) -> Iterator[bytes]:
    """A JSON object, in pieces: ``facts`` on its first line, and its last member ``name``, a list, a row in each."""
    head = json.dumps(as_data(facts), allow_nan=False)[:-1]
    yield f'{head}{"," if facts else ""}\n{json.dumps(name)}: ['.encode()
    before = b"\n"
    for text in () if rows is None else rows.texts():
        yield before + text
        before = b",\n"
    yield b"]}\n"


def facts_of(path: Path) -> dict[str, Any]:
    """The first line of such a file: ``facts``, without its rows."""
    with path.open() as file:
        found: dict[str, Any] = json.loads(file.readline().rstrip(",\n") + "}")
    return found
