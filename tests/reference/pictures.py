"""Images of the cases: instructions with dmask and dimension, resources, coordinates.

In: an image instruction and its case's part of memory. Out: the same with fields, and the case's registers. Every
element of an image lies in that part.
"""

from __future__ import annotations

import math
import random

from luthier_py.isa import Inst, InstructionSet, Target
from luthier_py.isa.encoding.images import DIMENSIONS
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.images import ImageAtomic, ImageMove, ImageQuery
from luthier_py.isa.semantics.memory import Modify
from reference.elements import formats
from reference.images import TYPES
from reference.surfaces import SELECTS, element_data, usable
from reference.wave import LANES, M32

MOVES = (ImageMove, ImageAtomic, ImageQuery)
_BYTES = 3584  # of an image


def with_fields(isa: InstructionSet, inst: Inst, row: ImageMove | ImageAtomic, generator: random.Random) -> Inst | None:
    """None where nothing fits the registers that the encoding has."""
    for _ in range(20):
        made = _chosen(isa, inst, row, generator)
        if made is not None and _fits(made):
            return made
    return None


def _fits(inst: Inst) -> bool:
    """Whether the data are as wide as dmask says."""
    count, data = inst["dmask"].value.bit_count(), inst["vdata"].reg
    packed = (count + 1) // 2 if _field(inst, "d16") else count
    return data is not None and data.dwords - _field(inst, "tfe") == packed


def _chosen(isa: InstructionSet, inst: Inst, row: ImageMove | ImageAtomic, generator: random.Random) -> Inst | None:
    pick = generator.choice
    if isinstance(row, ImageAtomic):
        few = (1,) if row.kind != "u" and row.modify is Modify.ADD else (1, 3)
        dmask = pick((3, 15) if row.modify is Modify.COMPARE_SWAP else few)
        inst = isa.with_field(inst, "cpol", pick((0, 1)))
    else:
        dmask = generator.randrange(1, 16)
    if isinstance(row, ImageMove):
        inst = isa.with_field(inst, "d16", pick((0, 0, 1)))
    inst = isa.with_field(inst, "dmask", dmask)
    if inst.find("unorm") is not None:
        inst = isa.with_field(inst, "unorm", 1)
    if inst.find("dim") is None:
        return _without_dimension(isa, inst, generator)
    inst = isa.with_field(inst, "a16", pick((0, 0, 0, 1)))
    level = isinstance(row, ImageMove) and row.level
    for dim in generator.sample((0, 1, 2, 3, 4, 5), 6):
        made = isa.with_field(inst, "dim", dim)
        count = DIMENSIONS[dim].coordinates + level
        if _registers(made) >= (-(-count // 2) if made["a16"].value else count):
            return made
    return None


def _without_dimension(isa: InstructionSet, inst: Inst, generator: random.Random) -> Inst:
    """Up to gfx9: behind the data there is room for all coordinates that there may be."""
    data = inst["vdata"].reg
    assert data is not None
    inst = isa.with_field(inst, "vaddr", data.index + data.dwords)
    if isa.target.generation == 9:
        inst = isa.with_field(inst, "r128", generator.choice((0, 0, 0, 1)))  # coordinates of 16 bits
    return isa.with_field(inst, "da", generator.choice((0, 1)))


def _registers(inst: Inst) -> int:
    return sum(operand.reg.dwords for operand in inst.operands if operand.name.startswith("vaddr") and operand.reg)


def values(isa: InstructionSet, inst: Inst, row: ImageMove | ImageAtomic, address: int,
           generator: random.Random) -> tuple[list[int], list[int] | None]:
    """Dwords of the resource, and data of a store for each lane."""
    pick, target = generator.choice, isa.target
    like = FormatStore(1, bool(_field(inst, "d16"))) if isinstance(row, ImageMove) and row.stores else FormatLoad(
        1, bool(_field(inst, "d16")))
    known = usable(target, like)
    if isinstance(row, ImageAtomic):
        size = 4 * (inst["dmask"].value.bit_count() // (1 + (row.modify is Modify.COMPARE_SWAP)))
        known = {code: format for code, format in formats(target).items() if format.bytes == size}
    code = pick(list(known))
    format, stores = known[code], isinstance(row, ImageMove) and row.stores
    if inst.find("dim") is None:
        name = pick(("1D_ARRAY", "2D_ARRAY") if inst["da"].value else ("1D", "2D", "3D"))
    else:
        name = DIMENSIONS[inst["dim"].value].name
    words = _resource(target, name, code, format.bytes, address, generator)
    words[3] |= pick(SELECTS[:3] if stores else SELECTS)
    data = None
    if stores:
        reg = inst["vdata"].reg
        assert reg is not None
        data = element_data(like, format, reg.dwords, generator)  # type: ignore[arg-type]
    return words, data


def _field(inst: Inst, name: str) -> int:
    operand = inst.find(name)
    return 0 if operand is None else operand.value


def _resource(target: Target, name: str, code: int, size: int, address: int, generator: random.Random) -> list[int]:
    base, pick = -(-address // 256) * 256, generator.choice
    flat, layered = name.startswith("1D"), "ARRAY" in name or name in ("3D", "CUBE")
    width, generation = pick((1, 7, 13)), target.generation
    says = generation <= 9 or not layered and (generation, target.minor) >= (10, 3)
    if not says and (generation == 12 or size & size - 1):
        width = math.lcm(256, size) // size
    row_bytes = (width + pick((1, 2))) * size if says else -(-width * size // 256) * 256
    lines = _BYTES // row_bytes
    slices = min(pick((1, 2, 3)) if layered else 1, lines)
    height = 1 if flat else min(pick((1, 3, max(lines // slices, 1))), max(lines // slices, 1))
    first = pick((0, slices - 1)) if name != "3D" else 0
    type = next(number for number, each in TYPES.items() if each == name)
    words = [base >> 8 & M32, base >> 40, 0, type << 28, 0, 0, 0, 0]
    fields = _early if generation <= 9 else _late
    fields(words, generation, code, (width, height, slices, first), row_bytes // size if says else 0, layered)
    return words


def _early(words: list[int], generation: int, code: int, sizes: tuple[int, ...], pitch: int, layered: bool) -> None:
    width, height, slices, first = sizes
    words[1] |= code >> 3 << 20 | (code & 7) << 26
    words[2] = width - 1 | height - 1 << 14
    words[3] |= (8 if generation == 8 else 0) << 20
    words[4] = pitch - 1 << 13 | (slices - 1 if layered else 0)
    words[5] = first | (slices - 1 << 13 if generation == 8 and layered else 0)


def _late(words: list[int], generation: int, code: int, sizes: tuple[int, ...], pitch: int, layered: bool) -> None:
    width, height, slices, first = sizes
    words[1] |= code << (17 if generation == 12 else 20) | (width - 1 & 3) << 30
    words[2] = width - 1 >> 2 | height - 1 << 14
    words[4] = slices - 1 | first << 16 if layered else max(pitch - 1, 0)


def coordinates(inst: Inst, generator: random.Random) -> dict[str, list[int]]:
    """What the registers of addresses hold: mostly inside; small, so that lanes do not name different levels often."""
    found = {}
    halves = bool(_field(inst, "a16") or inst.find("dim") is None and _field(inst, "r128"))
    for operand in inst.operands:
        if operand.name.startswith("vaddr") and operand.reg is not None:
            def word(number: int) -> int:
                return generator.choice((0, 0, 1, 2, number % 13, number % 3)) if number else 0

            dwords = 4 if inst.find("dim") is None else operand.reg.dwords
            found[operand.name] = [
                sum((word(lane) | (word(lane + 1) << 16 if halves else 0)) << 32 * i for i in range(dwords))
                for lane in range(LANES)]
    return found
