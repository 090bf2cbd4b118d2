"""Where a campaign's rows are stored while it runs: a file with a line of JSON for each.

In: rows, one after the other. Out: those of some keys, later. Invariant: a row is in the file, whole, when `add`
returns, and is never taken away; a line that was not finished is none; of several rows of one key the last one counts.
So a campaign may be killed at any time, and two that share a file only do some work twice.

The first line says the version. Version 1 had none: its faults are read as they are, and `older` finds its runs of
studies, which were files of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from luthier_py.base.errors import require_version
from luthier_py.report.plain import Json

VERSION = 2
RowKey = str | int


class RowStore:
    """A file of rows. ``key``: the field by which a row is known. ``older``: finds a row where version 1 stored it."""

    def __init__(self, path: Path, key: str, older: Callable[[RowKey], Json | None] = lambda key: None) -> None:
        self.path, self._key, self._older = path, key, older

    def read(self, keys: Iterable[RowKey]) -> dict[RowKey, Json]:
        """The rows of those keys that have one; Unsupported where the file is of a newer version, OSError where it
        cannot be read."""
        kept = {row[self._key]: row for row in self._lines() if self._key in row}
        found = ((key, kept.get(key) or self._older(key)) for key in keys)
        return {key: row for key, row in found if row is not None}

    def _lines(self) -> Iterator[Json]:
        """All that are whole."""
        data = self.path.read_bytes() if self.path.exists() else b""
        for line in data.split(b"\n")[:-1]:
            try:
                row: Json = json.loads(line)
            except ValueError:  # it was not finished, and others came behind it
                continue
            require_version(str(self.path), 1 if self._key in row else row["version"], VERSION)
            yield row

    def make_folder(self) -> None:
        """Make the file's folder, where it is not there; raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, row: Json) -> None:
        """Keep a row; raises OSError."""
        with self.path.open("a+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            before = b"" if file.read(1) == b"\n" else b"\n" if size else _line({"version": VERSION})
            file.write(before + _line(row))


def _line(row: Json) -> bytes:
    return f"{json.dumps(row)}\n".encode()
