"""Source files that a page shows: named by a code object's line tables, which may come from anybody.

In: the folder that the user gave, names of files. Out: their lines, or why they are not shown. Invariant: nothing is
read but regular text files of bounded size that, with all links followed, lie below the folder and in no hidden one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from luthier_py.base.records import dataclass, field
from luthier_py.base.storage import read_regular

LARGEST_BYTES = 1 << 20
MOST_LINES = 20_000


@dataclass(frozen=True, slots=True)
class SourceFile:
    """``missing``: why there are no lines."""

    lines: tuple[str, ...]
    missing: str = ""

    def line(self, number: int) -> str:
        """One line, counted from 1; empty where there is none."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""


@dataclass(slots=True)
class SourceFolder:
    """Mutable: remembers what was read."""

    folder: Path
    read: dict[str, SourceFile] = field(default_factory=dict)

    def source(self, file: str) -> SourceFile:
        """The file that the line tables call so: below the folder, or by a whole path that leads there."""
        if file not in self.read:
            try:
                self.read[file] = SourceFile(tuple(_lines(self.folder, file)))
            except OSError as error:
                self.read[file] = SourceFile((), error.strerror or str(error))
            except ValueError as error:  # UnicodeError, too; and NUL in a name
                self.read[file] = SourceFile((), str(error))
        return self.read[file]

    def not_shown(self, files: Iterable[str]) -> Iterator[str]:
        """Notes of a tool's page, for those that have no lines."""
        for file in files:
            if why := self.source(file).missing:
                yield f"Source {file} is not shown: {why}; -O LUTHIER_SOURCES=FOLDER says where sources are."


def _lines(folder: Path, file: str) -> list[str]:
    """Raises OSError, and ValueError with the reason."""
    below = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(below / file))
    if not path.is_relative_to(below):
        raise ValueError(f"not below {folder}")
    if any(part.startswith(".") for part in path.relative_to(below).parts):
        raise ValueError("in a hidden folder, or hidden")
    data = read_regular(path, LARGEST_BYTES, os.O_NOFOLLOW)
    if b"\0" in data:
        raise ValueError("not a text")
    lines = data.decode("utf-8", "replace").splitlines()
    if len(lines) > MOST_LINES:
        raise ValueError(f"more than {MOST_LINES} lines")
    return lines
