"""Formats of elements in memory that buffers and images convert: fields and numbers, by the number that names them.

In: a target. Out: its formats, by the number of a typed instruction's field or of a resource's. Names are those of
`names`, which list fields from the highest bits down; X is in the lowest bits (RDNA 3 ISA, 10.7; Mesa, ac_formats.c).
Invariant: what a table leaves out, no manual lists.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from luthier_py.base.records import dataclass
from luthier_py.isa.model.names import DATA_FORMATS, NUMBER_FORMATS, list_unified_formats
from luthier_py.isa.model.target import Target, targets


class NumberFormat(IntEnum):
    """What the fields hold, as gfx8 and gfx9 number it."""

    UNORM = 0    # 0 to 1 as 0 to the largest
    SNORM = 1    # -1 to 1
    USCALED = 2  # integers that become floats
    SSCALED = 3
    UINT = 4
    SINT = 5
    FLOAT = 7


@dataclass(frozen=True, slots=True)
class ElementFormat:
    """An element; ``widths`` are bits of X, Y, Z and W, as many as there are. Without any, nothing is bound."""

    widths: tuple[int, ...] = ()
    numbers: NumberFormat = NumberFormat.UINT

    @property
    def bytes(self) -> int:
        """Bytes of an element in memory; 0 where nothing is bound."""
        return sum(self.widths) // 8

    @property
    def word(self) -> int:
        """All of it in 32 bits: widths of six bits each, numbers from bit 24 on."""
        return sum(width << 6 * place for place, width in enumerate(self.widths)) | self.numbers << 24


NUMBERS_BIT = 24
UNBOUND = ElementFormat()
_FIRST_UNIFIED = 10
"""Its names are all that data and number formats before it make together (LLVM, AMDGPUModifierSyntax, "fmt")."""


@cache
def resource_formats(generation: int) -> tuple[ElementFormat | None, ...]:
    """By the number in a resource's dword 3, from bit 12 on: 7 bits up to gfx10, later 6. None where there is none."""
    names = list_unified_formats(_any_of(max(generation, _FIRST_UNIFIED)))
    if generation >= _FIRST_UNIFIED:
        found = [_parse_format(name) for name in names]
        return (*found, *[None] * ((64 if generation > _FIRST_UNIFIED else 128) - len(found)))
    known = {name: _parse_format(name) for name in names}
    return tuple(UNBOUND if data == "INVALID" else known.get(f"{data}_{numbers}")
                 for data in DATA_FORMATS for numbers in NUMBER_FORMATS)


def decode_typed_format(generation: int, field: int) -> ElementFormat | None:
    """The format of a typed instruction's field ``format``."""
    code = field if generation >= _FIRST_UNIFIED else (field & 15) << 3 | field >> 4
    formats = resource_formats(generation)
    return formats[code] if code < len(formats) else None


def _any_of(generation: int) -> Target:
    return next(target for target in targets() if target.generation == generation)


def _parse_format(name: str) -> ElementFormat:
    data, _, numbers = name.rpartition("_")
    return ElementFormat(tuple(map(int, reversed(data.split("_")))), NumberFormat[numbers]) if data else UNBOUND
