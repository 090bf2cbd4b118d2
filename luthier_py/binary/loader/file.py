"""Files that may hold code objects, looked at before they are read.

In: a path. Out: the file's bytes, mapped and not read, or one code object of it. Invariant: what is no regular file,
or begins as nothing that holds code does, is refused after its first bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TypeAlias

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.base.storage import NotRegular, cache_key, open_regular
from luthier_py.binary.loader import compressed, elf
from luthier_py.binary.loader.bundle import MAGIC, Broken, Member, closest, members, not_for
from luthier_py.binary.loader.codeobject import MEMORY, CodeObject, read_object, take
from luthier_py.isa.model.target_id import TargetId

Given: TypeAlias = "bytes | bytearray | memoryview | mmap | str | os.PathLike[str]"
"""A code object: its bytes, or the path of its file."""
_HOLD_BUNDLES = (elf.MAGIC, MAGIC, compressed.MAGIC, b"!<arch>\n", b"MZ")  # what such files begin with


def load(data: Given, name: str = MEMORY) -> CodeObject:
    """Read a code object from bytes or a file. Malformed: it is broken. Unsupported: its version is not 3 to 6, or its
    GPU is unknown. Invalid: there is no such file, or more than one object in it."""
    if isinstance(data, (bytes, bytearray, memoryview, mmap)):
        return read_object(data if isinstance(data, mmap) else bytes(data), name)
    if not isinstance(data, (str, os.PathLike)):
        raise Invalid(f"a code object is given as bytes or as the path of a file, not as {type(data).__name__}")
    path = Path(data)
    try:
        return read_object(read_code(path), str(path) if name == MEMORY else name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Invalid(f"{path}: {reason}; give the path of a code object, or its bytes") from error


class LastObject:
    """Mutable: the code object that was read last, which is given again for the very same bytes: who works on a
    library's kernels one after the other reads the library once."""

    def __init__(self) -> None:
        self._last: CodeObject | None = None

    def load(self, data: Given, name: str = MEMORY) -> CodeObject:
        """As `load`."""
        last = self._last
        if last is None or last.data is not data or last.name != name:
            last = self._last = load(data, name)
        return last


@contextmanager
def open_code(path: Path) -> Iterator[mmap]:
    """A file's bytes while it is open. Invalid for what is no file, Malformed for one that cannot hold code."""
    try:
        file = open_regular(path)
    except NotRegular as error:
        raise Invalid(f"{path} is {error.strerror}; give a file with code") from None
    with file:
        first = file.read(len(MAGIC))
        if not first.startswith(_HOLD_BUNDLES):
            elf.check_header(first, str(path))
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            yield data


def read_code(path: Path, device: TargetId | None = None, kernel: str | None = None) -> bytes:
    """The code object that a file is, or of those in it one that was made most for ``device``; without one, the only
    one. Where a ``kernel`` is named, one that has it is taken.

    Invalid, with what is there, where none fits, or where several do.
    """
    with open_code(path) as data:
        parts = [] if elf.is_code_object(data) else list(members(data, str(path)))
        if not parts:
            return take(data, str(path))
        found = [part for part in parts if isinstance(part, Member)]
        broken = [part.error for part in parts if isinstance(part, Broken)]
        if not found:
            raise broken[0]
        fitting = _distinct(closest(found, device) if device is not None else found)
        named = [part for part in fitting if _has(part, kernel)] if kernel is not None and len(fitting) > 1 else fitting
        if named and (kernel is not None and device is not None or len(named) == 1):
            return named[0].data
        there = ", ".join(dict.fromkeys(part.target_name for part in found))
        there += f" (and {len(broken)} parts that cannot be read: {broken[0]})" if broken else ""
        if device is None:
            what = "choose one by --target (run: by --device)"
        elif not fitting:
            raise not_for(device, str(path), there)
        elif not named:
            what = f"none of its {len(fitting)} code objects for {device} has a kernel {kernel}"
        else:
            what = f"{len(named)} code objects are for {device}: choose one by a --kernel that it has"
        raise Invalid(f"{path} has code for {there}; {what}")


def _distinct(found: list[Member]) -> list[Member]:
    """One of those that are the same bytes for the same target; a library is not held in memory for it."""
    if len(found) < 2:
        return found
    return list({(part.target_name, cache_key(part.data)): part for part in found}.values())


def _has(part: Member, kernel: str) -> bool:
    try:
        return any(record.name == kernel for record in read_object(part.data, part.target_name).kernels)
    except LuthierError:
        return False
