"""Image resources: what their eight dwords say of a picture whose rows lie one after the other, on every generation.

In: the dwords. Out: values. Sources: GCN 3 ISA, 8.2.5 and Vega ISA, 8.2.6 (image resource); RDNA 2 ISA, 8.2.7; RDNA 3
ISA, 10.5; RDNA 4 ISA, 10.5; ROCr's headers of them (image/resource_*.h); for the number that Linux gives
linear tiles of GCN 3, tiling_mode_table_init of its eighth version. Invariant: what is tiled, has several
levels or samples, or is compressed is refused.
"""

from __future__ import annotations

from enum import IntEnum

from luthier_py.base.records import dataclass
from luthier_py.isa.model.target import Target
from luthier_py.isa.semantics.algebra import U64, Value, select

_LINEAR_OF_GCN3 = 8


class PictureType(IntEnum):
    """Of resources; the next two have samples."""

    ONE_D = 8
    TWO_D = 9
    THREE_D = 10
    CUBE = 11
    ONE_D_ARRAY = 12
    TWO_D_ARRAY = 13


@dataclass(frozen=True, slots=True)
class ImageResource:
    """Scalar values: sizes in elements (u32), ``first`` and ``slices`` of an array's view, or a volume's depth."""

    base: Value      # u64
    code: Value      # of the format, as in a buffer's resource
    known: Value     # BOOL: buffers have it, too
    type: Value
    width: Value
    height: Value
    first: Value
    slices: Value
    pitch: Value     # elements from row to row; 0: not said
    selects: Value
    refused: Value   # BOOL


def image_resource(target: Target, words: list[Value]) -> ImageResource:
    """The fields of an image resource out of its eight ``words`` (u32), which each generation has elsewhere;
    ``refused`` is set where it is compressed, tiled, has levels or samples, or is no image."""
    base = (words[0].to(U64) | (words[1] & 0xFF).to(U64) << 32) << 8
    type, compressed = words[3] >> 28, ((words[6] >> 21) & 1).ne(0)
    refused = compressed | (type < PictureType.ONE_D) | (type > PictureType.TWO_D_ARRAY)
    fields = _early if target.generation <= 9 else _rdna4 if target.generation >= 12 else _rdna
    return fields(target, words, base, type, refused)


def _early(target: Target, words: list[Value], base: Value, type: Value, refused: Value) -> ImageResource:
    """GCN 3, Vega and CDNA, whose data and number formats are those of buffers as far as these go."""
    gcn3 = target.generation == 8
    data, numbers = (words[1] >> 20) & 63, (words[1] >> 26) & 15
    code, known = data << 3 | numbers, (data < 16) & (numbers < 8)
    refused = refused | _levels(words).ne(0) | _tiles(words).ne(_LINEAR_OF_GCN3 if gcn3 else 0)
    pitch = ((words[4] >> 13) & (0x3FFF if gcn3 else 0xFFFF)) + 1
    last = words[4] & 0x1FFF
    if gcn3:
        last = select(type.eq(PictureType.THREE_D), last, (words[5] >> 13) & 0x1FFF)
    return ImageResource(base, code, known, type, (words[2] & 0x3FFF) + 1, ((words[2] >> 14) & 0x3FFF) + 1,
                         words[5] & 0x1FFF, last + 1, pitch, words[3] & 0xFFF, refused)


def _rdna(target: Target, words: list[Value], base: Value, type: Value, refused: Value) -> ImageResource:
    """RDNA 1 to 3.5. Only from RDNA 2 on a plain image may say how long its rows are."""
    width = ((words[1] >> 30) | (words[2] & 0xFFF) << 2) + 1
    says_pitch = (target.generation, target.minor) >= (10, 3)
    given = select(_is_plain(type), words[4] & 0x3FFF, 0) if says_pitch else words[4].lift(0)
    bits, shared = (9, 128) if target.generation == 10 else (8, 64)
    code = (words[1] >> 20) & (1 << bits) - 1
    refused = refused | _levels(words).ne(0) | _tiles(words).ne(0)
    return ImageResource(base, code, code < shared, type, width, ((words[2] >> 14) & 0x3FFF) + 1,
                         (words[4] >> 16) & 0x1FFF, (words[4] & 0x1FFF) + 1, select(given.eq(0), 0, given + 1),
                         words[3] & 0xFFF, refused)


def _rdna4(_target: Target, words: list[Value], base: Value, type: Value, refused: Value) -> ImageResource:
    width = ((words[1] >> 30) | (words[2] & 0x3FFF) << 2) + 1
    levels = ((words[1] >> 12) & 31) | ((words[1] >> 25) & 31) | ((words[3] >> 15) & 31)  # highest, first, last
    code, given = (words[1] >> 17) & 0xFF, select(_is_plain(type), words[4] & 0xFFFF, 0)
    return ImageResource(base, code, code < 64, type, width, ((words[2] >> 14) & 0xFFFF) + 1,
                         (words[4] >> 16) & 0x3FFF, (words[4] & 0x3FFF) + 1, select(given.eq(0), 0, given + 1),
                         words[3] & 0xFFF, refused | levels.ne(0) | _tiles(words).ne(0))


def _is_plain(type: Value) -> Value:
    return type.eq(PictureType.ONE_D) | type.eq(PictureType.TWO_D)


def _levels(words: list[Value]) -> Value:
    """First and last."""
    return (words[3] >> 12) & 0xFF


def _tiles(words: list[Value]) -> Value:
    return (words[3] >> 20) & 31
