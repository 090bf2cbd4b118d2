"""Images in memory row after row, in plain integers.

In: a wave, an instruction and its row. Out: registers and memory after it. Sources: RDNA 3 ISA, 10.1 (dmask), 10.2
(coordinates), 10.4 (data) and 10.5 (resources).
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py.isa import Inst, OperandKind, Reg
from luthier_py.isa.images import DIMENSIONS
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.images import ImageAtomic, ImageMove
from reference.elements import Format, components, decoded, encoded, formats
from reference.memory import modified
from reference.vector import field
from reference.wave import M32, Wave

TYPES = {8: "1D", 9: "2D", 10: "3D", 11: "CUBE", 12: "1D_ARRAY", 13: "2D_ARRAY"}


@dataclass
class Picture:
    """An image's view."""

    base: int
    format: Format | None
    sizes: dict[str, int]   # x, y, slice: elements in the view
    pitch: int
    lines: int
    first: int
    name: str
    selects: list[int]


def picture(wave: Wave, inst: Inst) -> Picture:
    operand = inst["srsrc"].reg
    assert operand is not None and wave.target is not None
    whole = sum(wave.scalar(operand.index + i) << 32 * i for i in range(8))

    def bits(high: int, low: int) -> int:
        return whole >> low & ((1 << high - low + 1) - 1)

    known, name = formats(wave.target), DIMENSIONS[inst["dim"].value].name
    assert TYPES[bits(127, 124)] == name
    width, first = bits(75, 62) + 1, bits(156, 144)
    format = known.get(bits(59, 52))
    pitch = bits(141, 128) + 1 if bits(127, 124) in (8, 9) and bits(141, 128) else width
    height = 1 if name.startswith("1D") else bits(91, 78) + 1
    slices = bits(140, 128) + 1
    count = slices if name == "3D" else slices - first if "ARRAY" in name or name == "CUBE" else 1
    selects = [bits(98 + 3 * i, 96 + 3 * i) for i in range(4)]
    return Picture(bits(39, 0) << 8, format, {"x": width, "y": height, "slice": count}, pitch, height,
                   0 if name == "3D" else first, name, selects)


def place(wave: Wave, inst: Inst, at: Picture, lane: int, level: bool) -> int | None:
    """The address of a lane's element; None outside."""
    given: list[int] = []
    for operand in inst.operands:
        if operand.name.startswith("vaddr") and operand.reg is not None and operand.kind is not OperandKind.ABSENT:
            words = wave.vector(operand.reg, lane)
            given += [words >> 32 * i & M32 for i in range(operand.reg.dwords)]
    if field(inst, "a16"):
        given = [half for word in given for half in (word & 0xFFFF, word >> 16)]
    wanted = {"1D": "x", "2D": "xy", "3D": "xyz", "CUBE": "xyz", "1D_ARRAY": "xz", "2D_ARRAY": "xyz"}[at.name]
    values = dict(zip(wanted, given, strict=False))
    x, y, layer = (values.get(letter, 0) for letter in "xyz")
    if level and given[len(wanted)]:
        return None
    if x >= at.sizes["x"] or y >= at.sizes["y"] or layer >= at.sizes["slice"]:
        return None
    assert at.format is not None
    return at.base + (((layer + at.first) * at.lines + y) * at.pitch + x) * at.format.bytes


def move(wave: Wave, inst: Inst, row: ImageMove) -> None:
    at, reg, narrow = picture(wave, inst), inst["vdata"].reg, bool(field(inst, "d16"))
    assert reg is not None and at.format is not None
    channels = [i for i in range(4) if field(inst, "dmask") >> i & 1]
    kind = FormatStore if row.stores else FormatLoad
    places = components(kind(len(channels), narrow, status=bool(field(inst, "tfe"))), reg)
    found: dict[tuple[int, int], int] = {}
    for lane in wave.lanes():
        address = place(wave, inst, at, lane, row.level)
        if row.stores:
            if address is not None:
                _store(wave, at, address, channels, places, wave.vector(reg, lane), narrow)
            continue
        element = 0 if address is None else wave.load(address, at.format.bytes)
        values, shift = [0] * 4, 0
        for number, width in enumerate(at.format.widths):
            values[number] = decoded(element >> shift & ((1 << width) - 1), width, at.format.numbers, narrow)
            shift += width
        unit = 1 if at.format.numbers in ("UINT", "SINT") else 0x3C00 if narrow else 0x3F800000
        for channel, (word, bit) in zip(channels, places, strict=True):
            select = at.selects[channel]
            value = values[select - 4] if select >= 4 else unit * select
            found[word, lane] = found.get((word, lane), 0) | value << bit
    for (word, lane), value in found.items():
        wave.set_vector(Reg(reg.file, reg.index + word, 1), lane, value)


def _store(wave: Wave, at: Picture, address: int, channels: list[int], places: list[tuple[int, int]], data: int,
           narrow: bool) -> None:
    assert at.format is not None
    mask = 0xFFFF if narrow else M32
    given = {channel: data >> 32 * word + bit & mask for channel, (word, bit) in zip(channels, places, strict=True)}
    element, shift = 0, 0
    for number, width in enumerate(at.format.widths):
        if 4 + number in at.selects:
            value = given.get(at.selects.index(4 + number), 0)
            element |= encoded(value, width, at.format.numbers, narrow) << shift
        shift += width
    wave.store(address, at.format.bytes, element)


def atomic(wave: Wave, inst: Inst, row: ImageAtomic) -> None:
    at, reg = picture(wave, inst), inst["vdata"].reg
    assert reg is not None and at.format is not None
    width, found = 8 * at.format.bytes, {}
    for lane in wave.lanes():
        address, whole = place(wave, inst, at, lane, False), wave.vector(reg, lane)
        old = 0 if address is None else wave.load(address, width // 8)
        if address is not None:
            new = modified(row.of(width), False, old, whole & ((1 << width) - 1), whole >> width)
            wave.store(address, width // 8, new)
        found[lane] = old
    if field(inst, "cpol") & 1:
        for lane, old in found.items():
            wave.set_vector(Reg(reg.file, reg.index, width // 32), lane, old)
