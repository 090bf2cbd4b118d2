"""Images in memory row after row, in plain integers.

In: a wave, an instruction and its row. Out: registers and memory after it. Sources: RDNA 3 ISA, 10.1 (dmask), 10.2
(coordinates), 10.4 (data) and 10.5 (resources); GCN 3 ISA, 8.2 and Vega ISA, 8.2 (resources before RDNA, and how many
coordinates these have); RDNA 4 ISA, 10.5; ROCr, resource_kv.h, resource_ai.h and resource_gfx12.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from luthier_py.isa import Inst, OperandKind, Reg
from luthier_py.isa.encoding.images import DIMENSIONS
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from luthier_py.isa.semantics.images import ImageAtomic, ImageMove, ImageQuery
from reference.elements import Format, components, decoded, encoded, formats
from reference.memory import flushes, modified
from reference.vector import field
from reference.wave import M32, Wave

TYPES = {8: "1D", 9: "2D", 10: "3D", 11: "CUBE", 12: "1D_ARRAY", 13: "2D_ARRAY"}


@dataclass
class Picture:
    """An image's view."""

    base: int
    format: Format | None
    sizes: dict[str, int]   # x, y, slice: elements in the view
    row_bytes: int
    lines: int
    first: int
    name: str
    selects: list[int]


def picture(wave: Wave, inst: Inst) -> Picture:
    operand = (inst.find("srsrc") or inst["rsrc"]).reg
    assert operand is not None and wave.target is not None
    whole = sum(wave.scalar(operand.index + i) << 32 * i for i in range(8))

    def bits(high: int, low: int) -> int:
        return whole >> low & ((1 << high - low + 1) - 1)

    known, name, generation = formats(wave.target), TYPES[bits(127, 124)], wave.target.generation
    assert inst.find("dim") is None or DIMENSIONS[inst["dim"].value].name == name
    assert bits(120, 116) == (8 if generation == 8 else 0)
    plain, pitch = name in ("1D", "2D"), 0
    if generation <= 9:
        code, width, lines, first = bits(57, 52) << 3 | bits(61, 58), bits(77, 64), bits(91, 78), bits(172, 160)
        pitch = bits(154 if generation == 8 else 156, 141) + 1
        slices = bits(185, 173) if generation == 8 and name != "3D" else bits(140, 128)
    elif generation == 12:
        code, width, lines, first = bits(56, 49), bits(77, 62), bits(93, 78), bits(157, 144)
        pitch, slices = bits(143, 128) + 1 if plain and bits(143, 128) else 0, bits(141, 128)
    else:
        code, width, lines, first = bits(60 if generation == 10 else 59, 52), bits(75, 62), bits(91, 78), bits(156, 144)
        pitch = bits(141, 128) + 1 if plain and bits(141, 128) and (generation, wave.target.minor) >= (10, 3) else 0
        slices = bits(140, 128)
    width, height, slices, format = width + 1, 1 if name.startswith("1D") else lines + 1, slices + 1, known.get(code)
    size = format.bytes if format is not None else 4
    row_bytes = pitch * size if pitch else -(-width * size // 256) * 256
    count = slices if name == "3D" else slices - first if "ARRAY" in name or name == "CUBE" else 1
    selects = [bits(98 + 3 * i, 96 + 3 * i) for i in range(4)]
    return Picture(bits(39, 0) << 8, format, {"x": width, "y": height, "slice": count}, row_bytes, height,
                   0 if name == "3D" else first, name, selects)


def place(wave: Wave, inst: Inst, at: Picture, lane: int, level: bool) -> int | None:
    """The address of a lane's element; None outside."""
    given = _coordinates(wave, inst, lane)
    wanted = {"1D": "x", "2D": "xy", "3D": "xyz", "CUBE": "xyz", "1D_ARRAY": "xz", "2D_ARRAY": "xyz"}[at.name]
    values = dict(zip(wanted, given, strict=False))
    x, y, layer = (values.get(letter, 0) for letter in "xyz")
    if level and given[len(wanted)]:
        return None
    if x >= at.sizes["x"] or y >= at.sizes["y"] or layer >= at.sizes["slice"]:
        return None
    assert at.format is not None
    return at.base + ((layer + at.first) * at.lines + y) * at.row_bytes + x * at.format.bytes


def _coordinates(wave: Wave, inst: Inst, lane: int) -> list[int]:
    assert wave.target is not None
    given: list[int] = []
    for operand in inst.operands:
        if operand.name.startswith("vaddr") and operand.reg is not None and operand.kind is not OperandKind.ABSENT:
            dwords = 4 if inst.find("dim") is None else operand.reg.dwords  # as many as there may be
            words = wave.vector(Reg(operand.reg.file, operand.reg.index, dwords), lane)
            given += [words >> 32 * i & M32 for i in range(dwords)]
    if field(inst, "a16") or wave.target.generation == 9 and field(inst, "r128"):
        return [half for word in given for half in (word & 0xFFFF, word >> 16)]
    return given


def query(wave: Wave, inst: Inst, row: ImageQuery) -> None:
    """RDNA 4 ISA, 10.1: width, height, depth, levels."""
    at, reg = picture(wave, inst), inst["vdata"].reg
    assert reg is not None
    places = [i for i in range(4) if field(inst, "dmask") >> i & 1]
    for lane, level in [(lane, _coordinates(wave, inst, lane)[0]) for lane in wave.lanes()]:
        sizes = [0 if level else at.sizes[name] for name in ("x", "y", "slice")] + [1]
        for number, channel in enumerate(places):
            wave.set_vector(Reg(reg.file, reg.index + number, 1), lane, sizes[channel])


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
    assert at.format is not None and wave.target is not None
    mask = 0xFFFF if narrow else M32
    given = {channel: data >> 32 * word + bit & mask for channel, (word, bit) in zip(channels, places, strict=True)}
    missing = given[channels[0]] if wave.target.generation >= 12 else 0  # RDNA 4 ISA, 10.1: DMASK; RDNA 3 ISA, the same
    element, shift = 0, 0
    for number, width in enumerate(at.format.widths):
        if 4 + number in at.selects:
            value = given.get(at.selects.index(4 + number), missing)
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
            kind = row.of(width)
            new = modified(kind, flushes(wave, kind, "IMAGE"), old, whole & ((1 << width) - 1), whole >> width,
                           wave.numbers_win)
            wave.store(address, width // 8, new)
        found[lane] = old
    if field(inst, "cpol") & 1:
        for lane, old in found.items():
            wave.set_vector(Reg(reg.file, reg.index, width // 32), lane, old)
