"""Where the instructions of an instrumented copy come from: a table in the copy, as line tables are, not loaded.

In: a code object. Out: the original's address for each address of the copy, and which object the original is.
Invariant: it is a hint; an object without the table, or with one that is cut off in a row, or whose rows do not lie one
behind the other in the copy's code, has no origins, and that is no error: all of its code counts as the application's.
What is left of such a table would make inserted code of what has lost its row.

The table is what names the original (all zeros: this very object), and then rows of three dwords in ascending order:
an address here, the original's, and how many bytes stand there as they stood in the original or instead of them, with
BACK where that is a branch that leads back in the original. What no row has was inserted.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property

from luthier_py.base.records import dataclass
from luthier_py.base.storage import Shelf, cache_key
from luthier_py.binary.loader.codeobject import CodeObject, read_object
from luthier_py.binary.loader.elf import Elf

CLONE_SUFFIX = ".luthier"
"""Of the names of instrumented kernels and functions."""
CODE_SECTION, ORIGINS_SECTION = ".text.luthier", ".luthier.origins"
_ROW = struct.Struct("<3I")
_NAME_BYTES = 16
HERE = bytes(_NAME_BYTES)
BACK = 1 << 31
OriginRow = tuple[int, int, int]
_ORIGINALS = Shelf("originals", 1 << 30)


def original_name(name: str) -> str:
    """The name of a kernel, without the suffix of a copy."""
    return name.removesuffix(CLONE_SUFFIX)


def object_name(data: bytes) -> bytes:
    """The digest by which a copy identifies its original."""
    return hashlib.sha256(data).digest()[:_NAME_BYTES]


def keep_original(data: bytes) -> None:
    """Save an original for other processes that run a copy; with the cache off they do not find it."""
    key = object_name(data).hex()
    if _ORIGINALS.read(key) is None:
        _ORIGINALS.write(key, data)


def load_original(name: bytes) -> CodeObject | None:
    """The original that a process saved."""
    data = _ORIGINALS.read(name.hex())
    return None if data is None else read_object(data, "original")


def pack_origins(original: bytes, rows: Iterable[OriginRow]) -> bytes:
    """``original``: its :func:`object_name`, or HERE."""
    return original + b"".join(_ROW.pack(*row) for row in sorted(rows))


@dataclass(frozen=True)
class Origins:
    """Of one copy. ``code``: addresses of all that was added."""

    original: bytes
    code: range
    rows: tuple[OriginRow, ...]
    backward: frozenset[int]
    """Addresses of the application's branches that lead back in the original, wherever they lead here."""

    @cached_property
    def name(self) -> str:
        """A name for all that it says of code."""
        return cache_key("origins", repr(self.code), repr(self.rows), repr(sorted(self.backward)))

    def is_inserted(self, pc: int) -> bool:
        """Whether a tool's code is at ``pc`` in the copy; False for the application's, and for all that was there
        before."""
        return pc in self.code and self.at(pc) is None

    def at(self, pc: int) -> int | None:
        """The original's address; None for what was inserted."""
        row = self._row(pc)
        return None if row is None or pc >= row[0] + row[2] else row[1] + pc - row[0]

    def behind(self, pc: int) -> int | None:
        """The original's address of what comes next in the copy."""
        place = bisect_right(self.rows, (pc, 1 << 32, 0))
        return self.rows[place][1] if place < len(self.rows) else None

    def _row(self, pc: int) -> OriginRow | None:
        place = bisect_right(self.rows, (pc, 1 << 32, 0)) - 1
        return self.rows[place] if place >= 0 else None


def number_of_own(origins: Origins | None, pcs: Iterable[int]) -> int:
    """How many of these addresses have instructions of the application; ``origins``: None where all do."""
    return sum(origins is None or not origins.is_inserted(pc) for pc in pcs)


def read_origins(obj: CodeObject | Elf) -> Origins | None:
    """None where it is no copy, or nothing can be said of one."""
    found = {section.name: section for section in obj.sections}
    code, table = found.get(CODE_SECTION), found.get(ORIGINS_SECTION)
    data = b"" if table is None else obj.data[table.offset : table.offset + table.size]
    if code is None or len(data) < _NAME_BYTES:
        return None
    if (len(data) - _NAME_BYTES) % _ROW.size:
        return None
    rows = tuple(_ROW.iter_unpack(data[_NAME_BYTES:]))
    backward = frozenset(address for address, _, size in rows if size & BACK)
    plain = tuple((address, pc, size & ~BACK) for address, pc, size in rows)
    starts = [address for address, _, _ in plain]
    ends = [address + size for address, _, size in plain]
    if any(start < end for start, end in zip([*starts, code.address + code.size], [code.address, *ends], strict=True)):
        return None
    return Origins(data[:_NAME_BYTES], range(code.address, code.address + code.size), plain, backward)
