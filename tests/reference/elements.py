"""Formatted elements, in integers and fractions: names of formats say what fields there are.

Sources: RDNA 3 ISA, 9.3 (components, what is missing), 9.3.1 (D16), 10.4.1; RDNA 4 ISA, 9.3 (what a store lacks);
Direct3D 11.3 functional specification, 3.2.3 (normalized numbers, floats without a sign).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from luthier_py.isa import Inst, Reg, Target
from luthier_py.isa.model.names import DATA_FORMATS, NUMBER_FORMATS, list_unified_formats
from luthier_py.isa.semantics.elements import FormatLoad, FormatStore
from reference import floats
from reference.buffers import Resource, lane_operands, resource_of
from reference.vector import field
from reference.wave import M32, Wave


@dataclass(frozen=True)
class Format:
    widths: tuple[int, ...]  # of X first
    numbers: str

    @property
    def bytes(self) -> int:
        return sum(self.widths) // 8


def format_named(name: str) -> Format:
    data, _, numbers = name.rpartition("_")
    return Format(tuple(int(word) for word in data.split("_"))[::-1], numbers)


def formats(target: Target) -> dict[int, Format]:
    """By the number in a resource."""
    if target.generation >= 10:
        return {code: format_named(name) for code, name in enumerate(list_unified_formats(target)) if code}
    return {data << 3 | number: format_named(f"{DATA_FORMATS[data]}_{NUMBER_FORMATS[number]}")
            for data in range(1, 15) for number in range(8) if _known(DATA_FORMATS[data], NUMBER_FORMATS[number])}


def _known(data: str, numbers: str) -> bool:
    """Fields of 32 bits are not converted, those of less than 10 no floats."""
    widths = [int(word) for word in data.split("_")]
    if max(widths) == 32:
        return numbers in ("UINT", "SINT", "FLOAT")
    return numbers != "RESERVED_6" and (numbers != "FLOAT" or min(widths) >= 10 and 2 not in widths)


def typed_code(target: Target, number: int) -> int:
    return number if target.generation >= 10 else (number & 15) << 3 | number >> 4


def _to_half(bits: int) -> int:
    """f32 to f16, toward zero; finite numbers stay finite."""
    if floats.is_nan(bits, 32):
        return floats.resized(bits, 32, 16)
    sign = bits >> 31 << 15
    if floats.is_infinite(bits, 32):
        return sign | 0x7C00
    value = abs(floats.number(bits, 32))
    if value < Fraction(1, 1 << 24):
        return sign
    exponent = max(_exponent(value), -14)
    return sign | min(int(value / Fraction(2) ** (exponent - 10)) + (exponent + 14 << 10), 0x7BFF)


def _exponent(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if value >= Fraction(2) ** exponent else exponent - 1


def decoded(bits: int, width: int, numbers: str, narrow: bool) -> int:
    """A field in a register, of 16 bits if ``narrow``."""
    wanted = 16 if narrow else 32
    negative = bits - (1 << width) if bits >> width - 1 else bits
    if numbers in ("UINT", "SINT"):
        return (negative if numbers == "SINT" else bits) & ((1 << wanted) - 1)
    if numbers == "FLOAT":
        if width == 32:
            return _to_half(bits) if narrow else bits
        half = bits << {10: 5, 11: 4, 16: 0}[width]
        return half if narrow else floats.resized(half, 16, 32)
    number = {
        "UNORM": Fraction(bits, (1 << width) - 1), "USCALED": Fraction(bits), "SSCALED": Fraction(negative),
        "SNORM": max(Fraction(negative, max((1 << width - 1) - 1, 1)), Fraction(-1)),
    }[numbers]
    return floats.rounded(number, wanted)


def encoded(bits: int, width: int, numbers: str, narrow: bool) -> int:
    """A component as a field."""
    if numbers in ("UINT", "SINT"):
        signed = numbers == "SINT" and narrow and bits >> 15
        return (bits - 0x10000 if signed else bits) & ((1 << width) - 1)
    single = floats.resized(bits, 16, 32) if narrow else bits
    if numbers == "FLOAT":
        half = bits if narrow else _to_half(bits)
        return single if width == 32 else half if width == 16 else _without_sign(half, width)
    least = Fraction(-1 if numbers == "SNORM" else 0)
    if floats.is_nan(single, 32):
        number = Fraction(0)
    elif floats.is_infinite(single, 32):
        number = least if single >> 31 else Fraction(1)
    else:
        number = min(max(floats.number(single, 32), least), Fraction(1))
    most = (1 << width - (numbers == "SNORM")) - 1
    return round(number * most) & ((1 << width) - 1)  # Python's: ties to the even one


def _without_sign(half: int, width: int) -> int:
    if floats.is_nan(half, 16):
        return (1 << width) - 1
    return 0 if half >> 15 else half >> 15 - width


def components(row: FormatLoad | FormatStore, reg: Reg) -> list[tuple[int, int]]:
    """(register, shift) of each component."""
    if not row.narrow:
        return [(i, 0) for i in range(row.components)]
    if row.high:
        return [(0, 16)]
    if reg.dwords - row.status < row.components:
        return [(i // 2, i % 2 * 16) for i in range(row.components)]
    return [(i, 0) for i in range(row.components)]


def _meaning(wave: Wave, inst: Inst, row: FormatLoad | FormatStore) -> tuple[Resource, Format | None, list[int]]:
    resource = resource_of(wave, inst, converts=True)
    known = formats(resource.target)
    if row.typed:
        code, selects = typed_code(resource.target, field(inst, "format")), [4, 5, 6, 7]
    else:
        code, selects = resource.code, [resource.words[3] >> 3 * i & 7 for i in range(4)]
    return resource, known.get(code) if resource.bound else None, selects


def load(wave: Wave, inst: Inst, row: FormatLoad) -> None:
    resource, format, selects = _meaning(wave, inst, row)
    found = {}
    for lane in wave.lanes():
        at = lane_operands(wave, inst, lane, resource)
        if format is None:
            found[lane] = [0] * row.components
            continue
        size, element = format.bytes, 0
        if resource.inside(at.index, at.offset, at.scalar, size, at.indexed):
            element = wave.load(resource.address(at.index, at.offset, at.scalar), size)
        channels, place = [0] * 4, 0
        for channel, width in enumerate(format.widths):
            channels[channel] = decoded(element >> place & ((1 << width) - 1), width, format.numbers, row.narrow)
            place += width
        integer = format.numbers in ("UINT", "SINT")
        unit = 1 if integer else 0x3C00 if row.narrow else 0x3F800000
        found[lane] = [channels[select - 4] if select >= 4 else unit * select for select in selects[: row.components]]
    if row.to_lds:
        base = (wave.scalar(124) & 0x3FFFF) + field(inst, "offset")
        for lane, values in found.items():
            wave.lds[base + 4 * lane : base + 4 * lane + 4] = values[0].to_bytes(4, "little")
        return
    reg = inst["vdata"].reg
    assert reg is not None and wave.target is not None
    keeps = row.narrow and row.components == 1 and wave.target.generation >= 9 and not wave.d16_clears
    for lane, values in found.items():
        words: dict[int, int] = {}
        for (place, shift), value in zip(components(row, reg), values, strict=True):
            words[place] = words.get(place, 0) | value << shift
        for place, word in words.items():
            one = Reg(reg.file, reg.index + place, 1)
            old = wave.vector(one, lane) & (0xFFFF if row.high else 0xFFFF0000) if keeps else 0
            wave.set_vector(one, lane, old | word)


def store(wave: Wave, inst: Inst, row: FormatStore) -> None:
    resource, format, selects = _meaning(wave, inst, row)
    reg = inst["vdata"].reg
    assert reg is not None
    for lane in wave.lanes():
        at = lane_operands(wave, inst, lane, resource)
        if format is None or not resource.inside(at.index, at.offset, at.scalar, format.bytes, at.indexed):
            continue
        whole, mask = wave.vector(reg, lane), 0xFFFF if row.narrow else M32
        given = [whole >> 32 * place + shift & mask for place, shift in components(row, reg)]
        given += [given[0] if resource.target.generation >= 12 else 0] * (4 - len(given))
        element, place = 0, 0
        for channel, width in enumerate(format.widths):
            if 4 + channel in selects:
                component = given[selects.index(4 + channel)]
                element |= encoded(component, width, format.numbers, row.narrow) << place
            place += width
        wave.store(resource.address(at.index, at.offset, at.scalar), format.bytes, element)
