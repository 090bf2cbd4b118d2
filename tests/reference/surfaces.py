"""Resources and formats of the cases: what buffers of a target can be, as far as manuals say what becomes of it.

In: an instruction, its row, and its case's part of memory. Out: dwords of a resource, fields, data. Every address that
is in range lies in that part.
"""

from __future__ import annotations

import random

from luthier_py.isa import Inst, InstructionSet, Target
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from reference.elements import Format, formats, typed_code
from reference.values import float_edges
from reference.wave import LANES, M32

RAW = 3 << 28  # OOB_SELECT
_IDENTITY = 4 | 5 << 3 | 6 << 6 | 7 << 9
SELECTS = (_IDENTITY, 6 | 5 << 3 | 4 << 6 | 7 << 9, 7 | 4 << 3 | 5 << 6 | 6 << 9, 4 | 0 << 3 | 0 << 6 | 1 << 9)


def usable(target: Target, row: FormatLoad | FormatStore) -> dict[int, Format]:
    """Formats that the row converts: no scaled integers to memory, none of 32 bits to 16."""
    def is_usable(format: Format) -> bool:
        if isinstance(row, FormatStore) and "SCALED" in format.numbers:
            return False
        return not (row.narrow and max(format.widths) == 32 and format.numbers != "FLOAT")

    return {code: format for code, format in formats(target).items() if is_usable(format)}


def with_format(isa: InstructionSet, inst: Inst, row: object, generator: random.Random, shows: bool) -> Inst:
    """A typed instruction with a format of its own; ``shows``: one that has all components."""
    if not isinstance(row, FormatLoad | FormatStore) or not row.typed:
        return inst
    known = usable(isa.target, row)
    if shows:
        known = {code: format for code, format in known.items() if len(format.widths) == 4}
    fields = [number for number in range(128) if typed_code(isa.target, number) in known]
    return isa.with_field(inst, "format", generator.choice(fields))


def resource_words(isa: InstructionSet, inst: Inst, row: object, address: int, generator: random.Random) -> list[int]:
    """Raw or of records, linear or woven, with any check of ranges."""
    target, pick = isa.target, generator.choice
    indexed = any(word in inst.op.record for word in ("IDXEN", "BOTHEN"))
    vector = "BUFFER" in inst.op.base and not inst.op.base.startswith("S_")
    if target.wide_resources:
        return _wide(address, indexed, generator)
    checked = pick((0, 1, 2, 3)) if target.generation >= 10 else 0
    stride, woven, scale = pick((32, 32, 16, 0)) if indexed else pick((0, 0, 16)), 0, 0
    if not vector:
        stride = pick((0, 16))
    if vector and indexed and stride == 16 and _bytes(row) <= 4:
        woven = 1 if target.generation >= 11 else 2
    if target.generation == 12 and stride:
        scale = pick((0, 1))
        stride //= 4 if scale else 1
    lanes = vector and not indexed and not woven and stride == 16 and pick((False, True))
    whole = pick((4096, 200, 100, 68, 0))
    if indexed and stride or checked in (0, 1):
        whole = pick((40, 50, 2))
    if vector and indexed and stride and target.generation == 8 and not woven:
        whole = pick((4096, 1024, 600, 20))
    if not vector and stride:
        whole = pick((200, 10, 3))
    last = checked << 28 | scale << 18 | (lanes and 1 << 23)
    if target.generation == 8:
        last |= 1 << 19  # elements of 4 bytes
    if isinstance(row, FormatLoad | FormatStore) and not row.typed:
        known = usable(target, row)
        last |= generator.choice(list(known)) << 12
        last |= pick(SELECTS if isinstance(row, FormatLoad) else SELECTS[:3])
        if pick((False,) * 9 + (True,)):
            last &= ~(127 << 12)
    elif not (lanes and target.generation <= 9):
        last |= 4 << 15 | 7 << 12
    return [address & M32, address >> 32 | stride << 16 | woven << 30, whole, last]


def _wide(address: int, indexed: bool, generator: random.Random) -> list[int]:
    stride, check = generator.choice((32, 64)) if indexed else 0, 0
    scale = generator.choice((0, 1, 2)) if indexed else 0
    if indexed:
        check = generator.choice((0, 1))
    records = generator.choice((4096, 700, 68, 0) if not indexed else (2000, 900))
    whole = address | records << 57 | (stride // (1, 4, 8)[scale]) << 108 | scale << 122 | check << 125
    return [whole >> 32 * i & M32 for i in range(4)]


def _bytes(row: object) -> int:
    if isinstance(row, FormatLoad | FormatStore):
        return 16
    return getattr(row, "dwords", 1) * getattr(row, "bits", 32) // 8


def format_of(target: Target, inst: Inst, row: FormatLoad | FormatStore, words: list[int]) -> Format | None:
    code = typed_code(target, inst["format"].value) if row.typed else _code(target, words[3])
    return formats(target).get(code)


def _code(target: Target, last: int) -> int:
    return last >> 12 & (63 if target.generation >= 11 else 127)


def element_data(row: FormatStore, format: Format | None, dwords: int, generator: random.Random) -> list[int]:
    """What each lane stores: floats around the ends of ranges, integers that every field holds."""
    def one(bits: int) -> int:
        if format is None:
            return generator.getrandbits(bits)
        width = min(format.widths)
        if format.numbers == "SINT":
            return generator.randrange(-(1 << width - 1), 1 << width - 1) & ((1 << bits) - 1)
        if format.numbers == "UINT":
            return generator.randrange(1 << min(width, bits))
        if format.numbers == "FLOAT" or generator.random() < 0.2:
            return generator.choice((*float_edges(bits), generator.getrandbits(bits)))
        unit = 0x3C00 if bits == 16 else 0x3F800000
        return generator.randrange(unit + unit // 16) | generator.getrandbits(1) << bits - 1

    step = 16 if row.narrow else 32
    return [sum(one(step) << place for place in range(0, 32 * dwords, step)) for _ in range(LANES)]
