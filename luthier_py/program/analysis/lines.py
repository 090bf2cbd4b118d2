"""Source lines of instructions, from the line tables that compilers leave with -g or -gline-tables-only.

In: a code object. Out: a source line for each address that has one. Invariant: line tables are hints; an object without
them, or with tables that cannot be read, has no lines, and that is no error.
"""

from __future__ import annotations

import posixpath
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from luthier_py.base.records import dataclass
from luthier_py.program.analysis.debug_sections import read_debug_sections

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a source file, as text ``file:line``."""

    file: str  # as the compiler was given it, below its working directory
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines by address. ``addresses`` ascend; each one's line holds up to the next."""

    addresses: tuple[int, ...]
    lines: tuple[SourceLine | None, ...]

    def at(self, pc: int) -> SourceLine | None:
        """The line of the instruction at ``pc``; None before the first address, and where the table says that there is
        none."""
        place = bisect_right(self.addresses, pc) - 1
        return self.lines[place] if place >= 0 else None

    def first_at(self, pcs: Iterable[int]) -> SourceLine | None:
        """The line of the first of them that has one."""
        return next((line for pc in pcs if (line := self.at(pc)) is not None), None)

    def texts_at(self, pcs: Iterable[int]) -> tuple[str, ...]:
        """Those that they have, each once."""
        return tuple(dict.fromkeys(str(line) for pc in pcs if (line := self.at(pc)) is not None))

    def text_at(self, pc: int) -> str | None:
        """File and line, as reports have them; None where there is none."""
        found = self.at(pc)
        return None if found is None else str(found)

    @property
    def extents(self) -> dict[str, tuple[int, int]]:
        """For each file, by name: the first of its lines that have code, and the last."""
        found: dict[str, tuple[int, int]] = {}
        for line in filter(None, self.lines):
            first, last = found.get(line.file, (line.line, line.line))
            found[line.file] = min(first, line.line), max(last, line.line)
        return found

    def __bool__(self) -> bool:
        return bool(self.addresses)


def line_order(text: str | None) -> tuple[str, int]:
    """A key that sorts texts of lines: files by their names, their lines by number, ranges by their first."""
    file, _, lines = (text or "").rpartition(":")
    first = lines.partition("-")[0]
    return (file, int(first)) if first.isdecimal() else (text or "", 0)


def unreadable() -> tuple[type[Exception], ...]:
    """What pyelftools raises for tables that are not what they should be."""
    from elftools.common.exceptions import DWARFError, ELFError
    from elftools.construct import ConstructError

    return (
        DWARFError, ELFError, ConstructError, ArithmeticError, AssertionError, AttributeError, LookupError,
        NotImplementedError, RecursionError, TypeError, ValueError, struct.error, zlib.error,
    )  # fmt: skip


def source_lines(obj: CodeObject) -> SourceLines:
    """All lines of ``obj``; none if it has no line tables that can be read."""
    return lines_of(obj.data)


def lines_of(data: bytes) -> SourceLines:
    """The same of any ELF file, also one for the host."""
    try:
        return lines_in(read_debug_sections(data))
    except unreadable():
        return SourceLines((), ())


def lines_in(dwarf: Any | None) -> SourceLines:
    """The same of debug information that is read."""
    try:
        found = dict(_rows(dwarf)) if dwarf is not None else {}
    except unreadable():
        found = {}
    addresses = sorted(found)
    return SourceLines(tuple(addresses), tuple(found[address] for address in addresses))


def _rows(dwarf: Any) -> Iterator[tuple[int, SourceLine | None]]:
    """Addresses from which a line holds; the last row of an address wins, the end of a sequence has no line."""
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        folder = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        files = files_of(program.header, folder.value if folder is not None else b"")
        for entry in program.get_entries():
            state = entry.state
            if state is not None:
                known = state.line and not state.end_sequence and state.file in files
                yield state.address, SourceLine(files[state.file], state.line) if known else None


def files_of(header: Any, folder: bytes) -> dict[int, str]:
    """Paths by number (DWARF 5: files and folders count from 0, folder 0 is the compiler's; before: from 1)."""
    old = header["version"] < 5
    folders = [*([folder] if old else []), *header["include_directory"]]
    paths = {}
    for number, entry in enumerate(header["file_entry"], start=1 if old else 0):
        inside = folders[entry.dir_index] if entry.dir_index < len(folders) else b""
        path = posixpath.join(_text(folder), _text(inside), _text(entry.name))
        paths[number] = posixpath.normpath(path)
    return paths


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
