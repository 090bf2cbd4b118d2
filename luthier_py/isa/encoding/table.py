"""The generated tables: where they are, how they are stored, and one target's rows in memory.

In: ``tables/records.json.gz`` (a header line, a line per distinct operand shape, a line per distinct row
of all targets) and ``tables/index.json.gz`` (a line per target and wave size: its rows, and LLVM's decoder
order). Out: Table. The tables are data derived from LLVM 22.1.8 (see tables/NOTICE).
Invariant: reading is lazy and cached, and only lines that are needed are parsed; a row is plain data, what
it means is in decode, operands, encode and text.
"""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from luthier_py.base.errors import Unsupported
from luthier_py.base.records import dataclass

TABLES = Path(__file__).parents[1] / "tables"
RECORDS_FILE = "records.json.gz"
INDEX_FILE = "index.json.gz"


class OperandClass(NamedTuple):
    """How the field of an operand reads; see luthier_py.isa.encoding.operands for the kinds."""

    kind: str
    dwords: int    # 0: not a register, or as wide as the wave's lane mask
    type: str      # LLVM's OperandType
    printer: str   # LLVM's PrintMethod
    signed: int    # width of a signed field; 0: unsigned; negative: unsigned, so many bits may be set
    files: str = ""  # register files it may name: any of V, S, A; L for lds_direct; m, e, h: not M0, EXEC, EXEC_HI
    aligned: int = 0  # tuples start at even registers, on targets that want it


class ShapeOperand(NamedTuple):
    """One operand of a shape in the records file. ``access``: bits of Access; ``class_number``: place in
    Records.classes."""

    name: str
    access: int
    class_number: int
    segments: list[list[int]]  # [first bit of the encoding, width, first bit of the field]


class ImageInfo(NamedTuple):
    """What decides the widths of an image instruction's operands; see luthier_py.isa.encoding.images."""

    data: int                 # dwords as the row has them
    address: int
    extra: int                # addresses that come whatever the dimension is
    coordinates: int          # whether there are any
    level: int                # one more address: level of detail, its clamp, or mip level
    gradients: int            # whether there are any
    packed_gradients: int     # always of 16 bits
    a16_packs_gradients: int  # of 16 bits when the addresses are
    gathers: int              # four texels whatever dmask says
    packed_d16: int
    separate: int             # an operand for each address
    partly_separate: int      # the last of them takes what is left
    sizes: list[list[int]]    # (data, address) that exist


class Row(NamedTuple):
    """One line of the records file."""

    record: str
    template: str
    base: str
    format: str
    size_bytes: int
    namespace: int
    mask: int
    value: int
    fill: int
    shape: int
    reads: int
    writes: int
    flags: int
    counters: int
    spaces: int
    partial: int
    image: int   # number in the records' images; -1: none


@dataclass(frozen=True, slots=True)
class Records:
    """The records file: what rows share, and the lines of shapes and rows, parsed at first use."""

    classes: tuple[OperandClass, ...]
    registers: list[list[str]]  # lists of LLVM's register names
    namespaces: list[str]
    images: tuple[ImageInfo, ...]
    shape_lines: list[str]
    row_lines: list[str]

    def shape(self, number: int) -> list[ShapeOperand]:
        """The operands of shape ``number``, parsed from its line at each call."""
        return [ShapeOperand(*operand) for operand in json.loads(self.shape_lines[number])]


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one target and wave size, and the rank of each row's decoder table (lower is tried first)."""

    records: Records
    rows: tuple[Row, ...]
    ranks: dict[int, int]  # namespace number -> rank


def table_key(name: str, wave_size: int) -> str:
    """The key of a target's line in the index: "gfx90a-wave64"."""
    return f"{name}-wave{wave_size}"


def compress(text: str) -> bytes:
    """The text as gzip has it, without the time, so that equal tables make equal files."""
    return gzip.compress(text.encode(), 9, mtime=0)


def decompress(path_or_data: Path | bytes) -> str:
    """The text of a file at a path, or of its bytes."""
    data = path_or_data.read_bytes() if isinstance(path_or_data, Path) else path_or_data
    return gzip.decompress(data).decode()


@cache
def load_table(name: str, wave_size: int) -> Table:
    """The rows of target ``name``; Unsupported when no table was generated for it."""
    entry = _index_entry(table_key(name, wave_size))
    if entry is None:
        raise Unsupported(f"there is no instruction table for {name} with wave size {wave_size}")
    records = _records()
    chosen: list[str] = []
    position = 0
    runs = iter(entry["runs"])
    for gap in runs:
        position += gap
        count = next(runs)
        chosen += records.row_lines[position:position + count]
        position += count
    order = {namespace: rank for rank, namespace in enumerate(entry["order"])}
    ranks = {number: order[namespace] for number, namespace in enumerate(records.namespaces) if namespace in order}
    with _no_collection():
        rows = tuple(Row._make(row) for row in json.loads(f"[{','.join(chosen)}]"))
    return Table(records, rows, ranks)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn garbage collection off: many objects are made here that stay in use."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _index_entry(key: str) -> dict[str, Any] | None:
    for line in decompress(TABLES / INDEX_FILE).splitlines():
        name, entry = line.split(" ", 1)
        if name == key:
            found: dict[str, Any] = json.loads(entry)
            return found
    return None


@cache
def _records() -> Records:
    first, *lines = decompress(TABLES / RECORDS_FILE).split("\n")
    header = json.loads(first)
    shapes = header["shapes"]
    classes = tuple(OperandClass(*values) for values in header["classes"])
    images = tuple(ImageInfo(*values) for values in header["images"])
    return Records(classes, header["registers"], header["namespaces"], images, lines[:shapes], lines[shapes:])
