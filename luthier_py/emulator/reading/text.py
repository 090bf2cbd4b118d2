"""Where instructions come from: a code object's file, or device memory as it is.

In: a code object, or a range of memory. Out: bytes at an address, and whether those that were used are still the same.
Addresses are the code object's own, or offsets in a load of it: ``base`` is where address 0 is on the device.
Invariant: what is read of memory is read when it is decoded, not before. Code that writes code that the same launch
executes is not followed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from luthier_py.binary.loader import CodeObject
from luthier_py.binary.loader.elf import Elf
from luthier_py.binary.loader.origins import HERE, Origins, read_origins
from luthier_py.emulator.memory.device_memory import read_bytes
from luthier_py.emulator.reading.known_code import MOST_BYTES
from luthier_py.isa.model.target import Target

if TYPE_CHECKING:
    from luthier_py.program.analysis.frames import Frames
    from luthier_py.program.analysis.lines import SourceLine

CLOSE = 4096  # bytes between functions that are cheaper to compare than another run


class Text(Protocol):
    """Code. ``extent``: addresses that may hold some."""

    base: int
    target: Target
    extent: range

    def at(self, pc: int) -> bytes | memoryview:
        """What an instruction at ``pc`` is decoded from; empty if that is not code."""
        ...

    def read(self, pc: int, size: int) -> bytes:
        """Bytes as they are; fewer where the text ends."""
        ...

    def note_decoded(self, pc: int, raw: bytes) -> None:
        """One instruction was decoded, or several that follow each other."""
        ...

    def lines(self, pc: int) -> tuple[SourceLine, ...]:
        """Of the source: the innermost function's, then those that it was inlined at; none where none is known."""
        ...

    @property
    def origins(self) -> Origins | None:
        """Where its instructions come from, if it is a tool's copy of something."""
        ...

    @property
    def original(self) -> Text | None:
        """What it is a copy of, if that is there."""
        ...


class ImageText:
    """What a file says of the code in it: its lines, and what it is a copy of. ``find`` gives a code object by its
    :func:`object_name`."""

    def __init__(self, elf: Elf, find: Callable[[bytes], CodeObject | None]) -> None:
        self._elf, self._find = elf, find

    def lines(self, pc: int) -> tuple[SourceLine, ...]:
        """As Text's, out of the file's line tables and what they say of inlined functions; ``pc`` is the object's own
        address."""
        return self._frames.lines_at(pc)

    @cached_property
    def origins(self) -> Origins | None:
        """Out of the file's section of origins; None if the file is no tool's copy."""
        return read_origins(self._elf)

    @cached_property
    def original(self) -> ObjectText | None:
        """None, too, where the copy is in the original itself."""
        found = None if self.origins is None else self._find(self.origins.original)
        return None if found is None else ObjectText(found, 0, self._find)

    @cached_property
    def _frames(self) -> Frames:
        from luthier_py.program.analysis.frames import frames_of  # takes a while to import, and few ask

        return frames_of(self._elf.data)


class _FromImage:
    """What a text knows by the file that it comes from; ``_image``: None where nothing is known of one."""

    _image: ImageText | None

    def lines(self, pc: int) -> tuple[SourceLine, ...]:
        return () if self._image is None else self._image.lines(pc)

    @property
    def origins(self) -> Origins | None:
        return None if self._image is None else self._image.origins

    @property
    def original(self) -> Text | None:
        """Itself, if it is no copy, or in its original."""
        if self._image is None or self.origins is None or self.origins.original == HERE:
            return cast(Text, self)
        return self._image.original


class ObjectText(_FromImage):
    """A code object's executable segments. ``find`` gives another one by its :func:`object_name`."""

    def __init__(self, code_object: CodeObject, base: int, find: Callable[[bytes], CodeObject | None]) -> None:
        self.base, self.target = base, code_object.target
        self._image = ImageText(code_object.elf, find)
        ranges = code_object.text_ranges
        self.extent = range(min((r.start for r in ranges), default=0), max((r.stop for r in ranges), default=0))
        self._parts = [(r, memoryview(code_object.read(r.start, len(r)))) for r in ranges]

    def at(self, pc: int) -> bytes | memoryview:
        return next((data[pc - r.start : pc - r.start + MOST_BYTES] for r, data in self._parts if pc in r), b"")

    def read(self, pc: int, size: int) -> bytes:
        return next((bytes(data[pc - r.start : pc - r.start + size]) for r, data in self._parts if pc in r), b"")

    def note_decoded(self, pc: int, raw: bytes) -> None:
        """A file does not change."""


class MemoryText(_FromImage):
    """Mutable: ``size`` bytes of memory at ``start``, read as they are needed; remembers what was. ``image``: of the
    file that was loaded there, if it says more than names."""

    def __init__(self, target: Target, base: int, start: int, size: int, image: ImageText | None = None) -> None:
        self.base, self.target, self._image = base, target, image
        self.extent = range(start - base, start - base + size)
        self._used: dict[int, bytes] = {}
        self._joined = 0
        """Instructions that were known when the following was made of them."""
        self._runs: list[tuple[int, bytes]] = []
        """The same as runs of bytes that follow each other, by device address."""
        self._spans: list[tuple[int, bytes]] = []
        """Memory around runs that lie close together, as it was when they were compared one by one."""

    def at(self, pc: int) -> bytes | memoryview:
        if pc not in self.extent:
            return b""
        return read_bytes(self.base + pc, min(MOST_BYTES, self.extent.stop - pc))

    def read(self, pc: int, size: int) -> bytes:
        return read_bytes(self.base + pc, min(size, self.extent.stop - pc)) if pc in self.extent else b""

    def note_decoded(self, pc: int, raw: bytes) -> None:
        self._used[pc] = raw

    def is_unchanged(self) -> bool:
        """Whether memory holds everything that was decoded as it was then."""
        compare = _memcmp()
        if len(self._used) == self._joined and not any(compare(at, data, len(data)) for at, data in self._spans):
            return True  # and what lies between them is, too
        self._join()
        self._spans = [(start, read_bytes(start, size)) for start, size in self._around()]
        spans, (start, span) = iter(self._spans), (0, b"")
        for address, data in self._runs:
            if address >= start + len(span):
                start, span = next(spans)
            if span[address - start : address - start + len(data)] != data:
                self._joined = -1
                return False
        return True

    def _around(self) -> list[tuple[int, int]]:
        """Where spans are, and how long."""
        found: list[tuple[int, int]] = []
        for address, data in self._runs:
            if found and address - sum(found[-1]) < CLOSE:
                found[-1] = found[-1][0], max(found[-1][1], address + len(data) - found[-1][0])
            else:
                found.append((address, len(data)))
        return found

    def _join(self) -> None:
        used = dict(self._used)
        runs: list[tuple[int, bytearray]] = []
        for pc in sorted(used):
            if runs and runs[-1][0] + len(runs[-1][1]) == pc:
                runs[-1][1].extend(used[pc])
            else:
                runs.append((pc, bytearray(used[pc])))
        self._runs = [(self.base + pc, bytes(data)) for pc, data in runs]
        self._joined = len(used)


@cache
def _memcmp() -> Any:
    function = ctypes.CDLL(None).memcmp
    function.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    return function
