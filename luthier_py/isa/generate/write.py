"""From rows to the bytes of the table files.

In: rows of every target. Out: file name -> bytes. ``records`` holds every distinct row once, a line each, after a
header and lines with what rows share; ``index`` says which lines a target has. Layout: luthier_py.isa.encoding.table.
"""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

from luthier_py.isa.encoding.table import INDEX_FILE, RECORDS_FILE, compress, table_key
from luthier_py.isa.generate.rows import DraftRow, Generation, rows_of
from luthier_py.isa.generate.tablegen import TableGen, decoder_order
from luthier_py.isa.model.target import targets

T = TypeVar("T")


class Numbered(Generic[T]):
    """Values numbered in order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[T, int] = {}

    def __call__(self, value: T) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def values(self) -> list[T]:
        return list(self.numbers)


def render(tablegen: TableGen) -> dict[str, bytes]:
    """The table files, by name."""
    tables: dict[str, tuple[list[str], list[DraftRow]]] = {}
    cache: dict[tuple[str, Generation], list[DraftRow]] = {}
    for target in targets():
        for wave_size in target.wave_sizes:
            features = tablegen.features(target.name, wave_size)
            tables[table_key(target.name, wave_size)] = (
                [f"{size} {space}" for size, space in decoder_order(features)], rows_of(tablegen, features, cache))
    objects = {id(row): row for _, rows in tables.values() for row in rows}  # most are shared between targets
    distinct = sorted(set(objects.values()), key=lambda row: (row.format, row.base, row.record, row.value, repr(row)))
    line_of = {row: line for line, row in enumerate(distinct)}
    line_of_object = {number: line_of[row] for number, row in objects.items()}
    index = (
        f"{key} {_json({'order': order, 'runs': _runs(sorted(line_of_object[id(row)] for row in rows))})}"
        for key, (order, rows) in tables.items()
    )
    return {RECORDS_FILE: compress(_records(distinct)), INDEX_FILE: compress("\n".join(index))}


def _records(rows: list[DraftRow]) -> str:
    classes: Numbered[Any] = Numbered()
    shapes: Numbered[Any] = Numbered()
    registers: Numbered[Any] = Numbered()
    namespaces: Numbered[str] = Numbered()
    images: Numbered[Any] = Numbered()
    lines = []
    for row in rows:
        shape = tuple((o.name, o.access.value, classes(o.operand_class), o.segments) for o in row.shape)
        lines.append(_json([
            row.record, row.template, row.base, row.format, row.size_bytes, namespaces(row.namespace), row.mask,
            row.value, row.fill, shapes(shape), registers(row.reads), registers(row.writes), row.flags, row.counters,
            row.spaces, int(row.partial), -1 if row.image is None else images(row.image),
        ]))
    header = {
        "llvm": "22.1.8", "shapes": len(shapes.numbers), "classes": classes.values(), "registers": registers.values(),
        "namespaces": namespaces.values(), "images": images.values(),
    }
    return "\n".join([_json(header), *map(_json, shapes.values()), *lines])


def _runs(lines: list[int]) -> list[int]:
    """Ascending numbers as a flat list of (gap since the last run's end, run length) pairs."""
    runs: list[int] = []
    end = 0
    for line in lines:
        if runs and line == end:
            runs[-1] += 1
        else:
            runs += [line - end, 1]
        end = line + 1
    return runs


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
