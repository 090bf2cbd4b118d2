"""What memory a launch of a program may access, from what the program was given (host/preload/allocated.c).

In: rows of allocations, a kernel's code object and its copy. Out: the table for hooks, and names for reports.
Invariant: there is no table where the runtime may have given the kernel memory: then nothing is known, which is said.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass
from luthier_py.binary.loader import load
from luthier_py.program.analysis.frames import Frames, calls_text, frames_of
from luthier_py.program.analysis.lines import SourceLine
from luthier_py.rewrite.tool import Allocations, LiveAllocation
from luthier_py.rewrite.tool.arguments.allocations import collect_loaded_segments

if TYPE_CHECKING:
    from luthier_py.host.worker.instrument.patching import Copy

_PLACES = struct.Struct("<3Q")
_ROW = struct.Struct("<2Q2I")
_PLACE = re.compile(r"(.*?)((?:\+0x[0-9a-f]+)+)")
_OF_HIP = re.compile(r"/hip/(amd_detail/|nvidia_detail/)?\w+\.h$")
_AT_BASE, _IN_COPY = 1, 2  # tool.h's struct original
SECRET = {f"hidden_{name}" for name in ("hostcall_buffer", "printf_buffer", "heap_v1", "multigrid_sync_arg",
                                        "default_queue", "completion_action", "queue_ptr")}
"""Arguments that lead to memory of the runtime's, which no call reports."""


@dataclass(frozen=True, slots=True)
class AccessibleCode:
    """Of a kernel: segments of its code object; where the copy has the table's cell; names of arguments that lead to
    memory of the runtime's."""

    segments: tuple[LiveAllocation, ...]
    cell: int
    secret: tuple[str, ...]

    def locate_segments(self, cell: int, where: int, base: int) -> Iterator[LiveAllocation]:
        """``cell``: where that is now."""
        if where in (_AT_BASE, _IN_COPY):
            start = base if where == _AT_BASE else cell - self.cell
            for each in self.segments:
                yield LiveAllocation(start + each.start, start + each.end, each.name, each.writable)


@dataclass(frozen=True, slots=True)
class AccessibleMemory:
    """``live``: sorted, without overlaps; ``freed``: the last ones, the newest first."""

    live: tuple[LiveAllocation, ...] = ()
    freed: tuple[LiveAllocation, ...] = ()


def accessible_code(copy: Copy, code: bytes, kernel: str) -> AccessibleCode | None:
    """None where the tool asks for no allocations."""
    table = next((variable for variable in copy.variables if isinstance(variable, Allocations)), None)
    symbol = load(copy.made.data).symbol(table.name) if table is not None and copy.made.cloned is not None else None
    if symbol is None:
        return None
    obj = load(code)
    secret = {arg.value_kind for arg in obj.kernel(kernel).args} & SECRET
    return AccessibleCode(tuple(collect_loaded_segments(obj, 0, "the code object")), symbol.address,
                          tuple(sorted(secret)))


def accessible_memory(content: bytes, code: AccessibleCode) -> AccessibleMemory:
    """``content``: what the message ALLOCATIONS has behind the launch."""
    if code.secret:
        return AccessibleMemory()
    rows = [*_rows(content[_PLACES.size :])]
    loaded = [
        *code.locate_segments(*_PLACES.unpack_from(content))
    ]  # variables whose addresses the program has requested are in it
    given = [each for freed, each in rows
             if not freed and not any(each.start < one.end and one.start < each.end for one in loaded)]
    return AccessibleMemory(tuple(sorted([*given, *loaded])), tuple(each for freed, each in reversed(rows) if freed))


def _rows(content: bytes) -> Iterator[tuple[bool, LiveAllocation]]:
    at = 0
    while at < len(content):
        start, end, freed, size = _ROW.unpack_from(content, at)
        at += _ROW.size + size
        call, _, place = content[at - size : at].decode("utf-8", "replace").partition(" at ")
        yield bool(freed), LiveAllocation(start, end, f"{call} at {_host_line(place)}" if place else call)


@lru_cache(maxsize=1 << 16)
def _host_line(place: str) -> str:
    """Of FILE+0xOFFSET+0xOFFSET.. in the program, the innermost call first: source lines, where there are line tables,
    out to the first that is not in one of HIP's headers, whose functions stand between where nothing is inlined."""
    found = _PLACE.fullmatch(place)
    assert found is not None
    path, offsets = found[1], found[2].split("+")[1:]
    frames, first = _host_lines(path)
    lines = list[SourceLine]()
    for offset in offsets:
        lines += (around := frames.lines_at(first + int(offset, 16)))
        if not around or not _OF_HIP.search(around[-1].file):
            break
    return calls_text(lines) or f"{Path(path).name}+{offsets[0]}"


@lru_cache(maxsize=64)
def _host_lines(path: str) -> tuple[Frames, int]:
    """Of a file that the program has loaded, and the address where that begins."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        data = Path(path).read_bytes()
        starts = [each["p_vaddr"] for each in ELFFile(BytesIO(data)).iter_segments("PT_LOAD")]
    except (OSError, ELFError):
        return frames_of(b""), 0
    return frames_of(data), min(starts, default=0)
