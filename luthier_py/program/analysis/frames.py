"""Inlined functions around instructions: which function's line an instruction is of, and where that was called.

In: a code object. Out: for each address its frames, the innermost first. Invariant: debug information is a hint; an
object without it, or with what cannot be read, has no frames, and that is no error.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luthier_py.base.records import dataclass
from luthier_py.program.analysis.debug_sections import read_debug_sections
from luthier_py.program.analysis.lines import SourceLine, SourceLines, files_of, lines_in, lines_of, unreadable

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject

_FUNCTIONS = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine")


@dataclass(frozen=True, slots=True)
class Frame:
    """One function, by its name in the source (mangled where it is), and the line that runs there."""

    function: str
    line: SourceLine | None

    def __str__(self) -> str:
        return f"{self.function} at {self.line}" if self.line else self.function


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a function's code lies, and the line that it was called from, if it was inlined."""

    start: int
    end: int
    depth: int
    function: str
    call: SourceLine | None


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames by address. ``addresses`` ascend; each one's scopes, the innermost first, hold up to the next."""

    lines: SourceLines
    addresses: tuple[int, ...]
    scopes: tuple[tuple[_Scope, ...], ...]

    def at(self, pc: int) -> tuple[Frame, ...]:
        """The function whose code this is, then those that it was inlined into, each with its line."""
        place = bisect_right(self.addresses, pc) - 1
        line, found = self.lines.at(pc), []
        for scope in self.scopes[place] if place >= 0 else ():
            found.append(Frame(scope.function, line))
            line = scope.call
        return tuple(found)

    def lines_at(self, pc: int) -> tuple[SourceLine, ...]:
        """The lines of these frames that are known; that of the instruction alone where no function is known."""
        around = self.at(pc)
        lines = [frame.line for frame in around] if around else [self.lines.at(pc)]
        return tuple(line for line in lines if line is not None)

    def text_at(self, pc: int) -> str | None:
        """The same in a line of text, the outermost first: where in the kernel, and of what was inlined there names of
        files alone."""
        return calls_text(self.lines_at(pc))


def calls_text(lines: Sequence[SourceLine]) -> str | None:
    """Lines that call each other, the innermost first, as text that begins with the outermost: where in the kernel, and
    of the others names of files alone. None where there is no line."""
    if not lines:
        return None
    *inside, outermost = lines
    return " > ".join([str(outermost), *(f"{Path(line.file).name}:{line.line}" for line in reversed(inside))])


def source_frames(obj: CodeObject) -> Frames:
    """All frames of ``obj``; none if it has no debug information that can be read."""
    return frames_of(obj.data)


def frames_of(data: bytes) -> Frames:
    """The same of any ELF file, also one for the host."""
    try:
        dwarf = read_debug_sections(data)
        around = _around(list(_scopes(dwarf))) if dwarf is not None else {}
    except unreadable():
        return Frames(lines_of(data), (), ())
    return Frames(lines_in(dwarf), tuple(around), tuple(around.values()))


def _around(scopes: list[_Scope]) -> dict[int, tuple[_Scope, ...]]:
    """By each address where one begins or ends: those that hold from there on."""
    coming = sorted(scopes, key=lambda scope: -scope.start)
    active: list[_Scope] = []
    found = {}
    for address in sorted({bound for scope in scopes for bound in (scope.start, scope.end)}):
        while coming and coming[-1].start <= address:
            active.append(coming.pop())
        active = [scope for scope in active if scope.end > address]
        found[address] = tuple(sorted(active, key=lambda scope: -scope.depth))
    return found


def _scopes(dwarf: Any) -> Iterator[_Scope]:
    for unit in dwarf.iter_CUs():
        program, top = dwarf.line_program_for_CU(unit), unit.get_top_DIE()
        folder = top.attributes.get("DW_AT_comp_dir")
        files = files_of(program.header, folder.value if folder is not None else b"") if program is not None else {}
        base = top.attributes.get("DW_AT_low_pc")
        yield from _below(dwarf, top, 0, files, base.value if base is not None else 0)


def _below(dwarf: Any, entry: Any, depth: int, files: dict[int, str], base: int) -> Iterator[_Scope]:
    for child in entry.iter_children():
        own = depth + (child.tag in _FUNCTIONS)
        if child.tag in _FUNCTIONS:
            number, file = (child.attributes.get(f"DW_AT_call_{what}") for what in ("line", "file"))
            call = SourceLine(files[file.value], number.value) if number and file and file.value in files else None
            name = _name(child)
            for start, end in _ranges(dwarf, child, base):
                yield _Scope(start, end, own, name, call)
        yield from _below(dwarf, child, own, files, base)


def _name(entry: Any) -> str:
    """Its own, or that of what it is an instance of."""
    for attribute in ("DW_AT_linkage_name", "DW_AT_name"):
        if attribute in entry.attributes:
            return str(entry.attributes[attribute].value.decode("utf-8", "replace"))
    for reference in ("DW_AT_abstract_origin", "DW_AT_specification"):
        if reference in entry.attributes:
            return _name(entry.get_DIE_from_attribute(reference))
    return "?"


def _ranges(dwarf: Any, entry: Any, base: int) -> Iterator[tuple[int, int]]:
    low, high = (entry.attributes.get(f"DW_AT_{which}_pc") for which in ("low", "high"))
    if low is not None and high is not None:
        yield low.value, high.value + (low.value if high.form != "DW_FORM_addr" else 0)
    elif "DW_AT_ranges" in entry.attributes:
        lists = dwarf.range_lists()
        for each in lists.get_range_list_at_offset(entry.attributes["DW_AT_ranges"].value, cu=entry.cu):
            if hasattr(each, "begin_offset"):
                from_ = 0 if getattr(each, "is_absolute", False) else base
                yield each.begin_offset + from_, each.end_offset + from_
