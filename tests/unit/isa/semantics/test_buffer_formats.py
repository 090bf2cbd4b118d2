"""Typed and formatted buffers of every generation against NumPy, format by format.

Code for each format is large, and made for it alone: what always runs has each format once, on targets in turn; every
format on every target is marked slow.
"""

from __future__ import annotations

import numpy as np
import pytest
from memories import LANES, RNG
from waves import run

from luthier_py.emulator.records.layout import Fault, Status, SurfaceRefusal
from luthier_py.isa import InstructionSet, instruction_set, sgpr, target, vgpr
from luthier_py.isa.model.names import DATA_FORMATS, NUMBER_FORMATS, list_unified_formats

TARGETS = ("gfx803", "gfx810", "gfx900", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1201")
TABLES = ("gfx803", "gfx900", "gfx1010", "gfx1100", "gfx1201")  # one of each table of formats, and way to store
EVERY = [False, pytest.param(True, marks=pytest.mark.slow, id="every format")]
IDENTITY = 4 | 5 << 3 | 6 << 6 | 7 << 9
RAW = 3 << 28  # OOB_SELECT


def set_of(name: str) -> InstructionSet:
    return instruction_set(target(name), 64)


def names(isa: InstructionSet) -> dict[str, int]:
    """Formats that the manuals list, by name: the number of a typed instruction's field."""
    oldest = list_unified_formats(target("gfx1010"))
    if isa.target.generation >= 10:
        return {name: code for code, name in enumerate(list_unified_formats(isa.target)) if code}
    pairs = {f"{data}_{number}": DATA_FORMATS.index(data) | NUMBER_FORMATS.index(number) << 4
             for data in DATA_FORMATS for number in NUMBER_FORMATS}
    return {name: pairs[name] for name in oldest if name in pairs}


def tried(where: str, every: bool) -> dict[str, int]:
    """Of ``names`` those whose turn it is on this target, or all."""
    known = {name: names(set_of(name)) for name in TABLES}
    assert len(known[where]) > 60
    turns = dict[str, str]()
    for number, name in enumerate(sorted(set().union(*known.values()))):
        having = [each for each in TABLES if name in known[each]]
        turns[name] = having[number % len(having)]
    return {name: code for name, code in known[where].items() if every or turns[name] == where}


def shape(name: str) -> tuple[list[int], str]:
    """Widths from X on, and what the numbers are."""
    *widths, numbers = name.split("_")
    return [int(width) for width in reversed(widths)], numbers


def fields(data: np.ndarray, size: int, widths: list[int], offsets: np.ndarray) -> list[np.ndarray]:
    """Components of the elements at ``offsets``, as unsigned integers."""
    wholes = [int.from_bytes(data[int(at) : int(at) + size].tobytes(), "little") for at in offsets]
    found, place = [], 0
    for width in widths:
        found.append(np.array([whole >> place & ((1 << width) - 1) for whole in wholes], np.uint64))
        place += width
    return found


def number(field: np.ndarray, width: int, numbers: str) -> np.ndarray:
    """What registers hold (32 bits each), in NumPy's arithmetic."""
    signed = np.where(field >> np.uint64(width - 1), field.astype(np.int64) - (1 << width), field.astype(np.int64))
    if numbers == "UINT":
        return field.astype(np.uint32)
    if numbers == "SINT":
        return signed.astype(np.int32).view(np.uint32)
    if numbers == "FLOAT":
        if width == 32:
            return field.astype(np.uint32)
        half = (field << np.uint64(15 - width if width < 16 else 0)).astype(np.uint16).view(np.float16)
        return half.astype(np.float32).view(np.uint32)
    value = {"UNORM": field.astype(np.float64) / ((1 << width) - 1), "USCALED": field.astype(np.float64),
             "SNORM": np.maximum(signed / max((1 << width - 1) - 1, 1), -1), "SSCALED": signed.astype(np.float64)}
    return value[numbers].astype(np.float32).view(np.uint32)


def resource(data: np.ndarray, records: int, last: int, stride: int = 0, swizzle: int = 0) -> dict[int, int]:
    base = data.ctypes.data
    return {4: base & 0xFFFFFFFF, 5: base >> 32 | stride << 16 | swizzle << 30, 6: records, 7: last}


def format_bits(isa: InstructionSet, name: str) -> int:
    """Of dword 3 of a resource."""
    code = names(isa)[name]
    return code << 12 if isa.target.generation >= 10 else (code & 15) << 15 | code >> 4 << 12


def quiet(bits: np.ndarray) -> np.ndarray:
    """NaNs that the host has made quiet, and those it has not, are one."""
    return np.where(np.isnan(bits.view(np.float32)), np.uint32(0x7FC00000), bits)


@pytest.mark.parametrize("where", TABLES)
@pytest.mark.parametrize("every", EVERY)
def test_every_format_is_loaded(where: str, every: bool) -> None:
    isa = set_of(where)
    data = RNG.integers(0, 256, 64 * 16 + 64).astype(np.uint8)
    checked = 3 << 28 if isa.target.generation >= 10 else 0
    for name, code in tried(where, every).items():
        widths, numbers = shape(name)
        size = sum(widths) // 8
        offsets = (LANES * size).astype(np.uint32)
        state = run([isa.make("tbuffer_load_format_xyzw", vgpr(4, 4), vgpr(0), sgpr(4, 4), sgpr(8), format=code,
                              offen=True)], isa=isa, vgprs={0: offsets}, memory=[data],
                    sgprs={**resource(data, data.nbytes, checked | 7 << 12 | 4 << 15), 8: 0})
        assert state.status is Status.JUMP, (name, state.fault())
        expected = [number(field, width, numbers)
                    for field, width in zip(fields(data, size, widths, offsets), widths, strict=True)]
        expected += [np.zeros(64, np.uint32)] * (4 - len(expected))
        for component, wanted in enumerate(expected):
            found = state.vgpr(4 + component)
            if numbers == "FLOAT":
                found, wanted = quiet(found), quiet(wanted)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{where} {name} component {component}")


@pytest.mark.parametrize("where", TABLES)
@pytest.mark.parametrize("every", EVERY)
def test_every_format_is_stored(where: str, every: bool) -> None:
    """Two components of a format with more leave the others at 0, on RDNA 4 at the first one's value."""
    isa = set_of(where)
    data = np.zeros(64 * 16, np.uint8)
    checked = 3 << 28 if isa.target.generation >= 10 else 0
    for name, code in tried(where, every).items():
        widths, numbers = shape(name)
        if "SCALED" in numbers:
            continue
        size, width = sum(widths) // 8, min(widths)
        if numbers == "SINT":
            given = RNG.integers(-(1 << width - 1), 1 << width - 1, (4, 64)).astype(np.int32).view(np.uint32)
        elif numbers == "UINT":
            given = RNG.integers(0, 1 << width, (4, 64), dtype=np.uint64).astype(np.uint32)
        else:
            given = (RNG.normal(0, 0.6, (4, 64))).astype(np.float32).view(np.uint32)
        data[:] = 0xAA
        offsets = (LANES * size).astype(np.uint32)
        state = run([isa.make("tbuffer_store_format_xy", vgpr(4, 2), vgpr(0), sgpr(4, 4), sgpr(8), format=code,
                              offen=True)], isa=isa, vgprs={0: offsets, 4: given[0], 5: given[1]}, memory=[data],
                    sgprs={**resource(data, data.nbytes, checked | 7 << 12 | 4 << 15), 8: 0})
        assert state.status is Status.JUMP, (name, state.fault())
        missing = given[0] if isa.target.generation == 12 else np.zeros(64, np.uint32)
        sources = [given[0], given[1], missing, missing]
        for component, (field, width) in enumerate(zip(fields(data, size, widths, offsets), widths, strict=True)):
            wanted = stored(sources[component], width, numbers)
            np.testing.assert_array_equal(field, wanted, err_msg=f"{where} {name} component {component}")


def stored(bits: np.ndarray, width: int, numbers: str) -> np.ndarray:
    mask = np.uint64((1 << width) - 1)
    if numbers in ("UINT", "SINT") or width == 32:
        return bits.astype(np.uint64) & mask
    value = bits.view(np.float32).astype(np.float64)
    if numbers == "UNORM":
        return np.rint(np.clip(value, 0, 1) * ((1 << width) - 1)).astype(np.uint64)
    if numbers == "SNORM":
        return np.rint(np.clip(value, -1, 1) * ((1 << width - 1) - 1)).astype(np.int64).view(np.uint64) & mask
    with np.errstate(over="ignore"):
        near = bits.view(np.float32).astype(np.float16)
    away = np.abs(near.astype(np.float64)) > np.abs(value)
    half = (near.view(np.uint16) - away).astype(np.uint64)
    return half if width == 16 else np.where(value < 0, 0, half >> np.uint64(15 - width)).astype(np.uint64)


@pytest.mark.parametrize("where", TARGETS)
def test_a_resource_says_format_and_order(where: str) -> None:
    """BUFFER_LOAD_FORMAT and STORE_FORMAT: blue first, alpha always 1; what is out of range is 0, but for the 1."""
    isa = set_of(where)
    data = RNG.integers(0, 256, 256).astype(np.uint8)
    before = data.reshape(64, 4).astype(np.float32) / 255
    selects = 6 | 5 << 3 | 4 << 6 | 1 << 9
    last = selects | format_bits(isa, "8_8_8_8_UNORM") | (RAW if isa.target.generation >= 10 else 0)
    registers = {0: (LANES * 4).astype(np.uint32)}
    loads = [isa.make("buffer_load_format_xyzw", vgpr(4, 4), vgpr(0), sgpr(4, 4), sgpr(8), offen=True)]
    state = run(loads, isa=isa, vgprs=registers, memory=[data], sgprs={**resource(data, 200, last), 8: 0})
    assert state.status is Status.JUMP, state.fault()
    inside = LANES * 4 < 200
    for component, channel in enumerate((2, 1, 0)):
        np.testing.assert_array_equal(state.vgpr(4 + component, np.float32), np.where(inside, before[:, channel], 0))
    np.testing.assert_array_equal(state.vgpr(7, np.float32), 1)
    values = RNG.random((3, 64)).astype(np.float32)
    stores = [isa.make("buffer_store_format_xyz", vgpr(4, 3), vgpr(0), sgpr(4, 4), sgpr(8), offen=True)]
    old = data.copy()
    run(stores, isa=isa, vgprs=registers | {4 + i: values[i].view(np.uint32) for i in range(3)}, memory=[data],
        sgprs={**resource(data, 200, last), 8: 0})
    wanted = np.rint(values.astype(np.float64) * 255).astype(np.uint8)
    found = data.reshape(64, 4)
    for component, channel in enumerate((2, 1, 0)):
        np.testing.assert_array_equal(found[:50, channel], wanted[component][:50])
    np.testing.assert_array_equal(found[:50, 3], 0)  # nothing selects alpha
    np.testing.assert_array_equal(found[50:], old.reshape(64, 4)[50:])


@pytest.mark.parametrize("where", TARGETS)
def test_sixteen_bits(where: str) -> None:
    """D16: two components in a register, or one (gfx8 but for gfx810); of floats what is below is cut off."""
    isa = set_of(where)
    source = RNG.normal(0, 100, (64, 4)).astype(np.float32)
    source[0] = 1e30, -1e30, 6e-8, np.inf
    data = source.view(np.uint8).reshape(-1).copy()
    packed = where != "gfx803"
    registers = 2 if packed else 4
    checked = RAW if isa.target.generation >= 10 else 0
    state = run([isa.make("tbuffer_load_format_d16_xyzw", vgpr(4, registers), vgpr(0), sgpr(4, 4), sgpr(8), offen=True,
                          format=names(isa)["32_32_32_32_FLOAT"])],
                isa=isa, vgprs={0: (LANES * 16).astype(np.uint32)}, memory=[data],
                sgprs={**resource(data, data.nbytes, checked | 7 << 12 | 4 << 15), 8: 0})
    assert state.status is Status.JUMP, state.fault()
    wanted = [stored(source[:, i].copy().view(np.uint32), 16, "FLOAT") for i in range(4)]
    for i in range(4):
        word = state.vgpr(4 + (i // 2 if packed else i))
        np.testing.assert_array_equal(word >> 16 * (i % 2) & 0xFFFF if packed else word, wanted[i])


def test_halves_of_a_register() -> None:
    isa = set_of("gfx1100")
    data = np.arange(64, dtype=np.uint16)
    last = IDENTITY | RAW | format_bits(isa, "16_UINT")
    old = np.full(64, 0xAAAABBBB, np.uint32)
    state = run([isa.make("buffer_load_d16_format_x", vgpr(2), vgpr(0), sgpr(4, 4), 0, offen=True),
                 isa.make("buffer_load_d16_hi_format_x", vgpr(3), vgpr(0), sgpr(4, 4), 0, offen=True)],
                isa=isa, vgprs={0: (LANES * 2).astype(np.uint32), 2: old, 3: old}, memory=[data],
                sgprs=resource(data, 128, last))
    np.testing.assert_array_equal(state.vgpr(2), 0xAAAA0000 | LANES.astype(np.uint32))
    np.testing.assert_array_equal(state.vgpr(3), 0xBBBB | LANES.astype(np.uint32) << 16)


def test_to_lds() -> None:
    isa = set_of("gfx900")
    data, lds = RNG.integers(0, 256, 64).astype(np.uint8), np.zeros(512, np.uint8)
    state = run([isa.make("buffer_load_format_x", vgpr(0), sgpr(4, 4), 0, offen=True, lds=True)], isa=isa,
                vgprs={0: LANES.astype(np.uint32)}, memory=[data], lds=lds,
                sgprs={**resource(data, 40, IDENTITY | format_bits(isa, "8_UNORM")), 124: 64})
    assert state.status is Status.JUMP, state.fault()
    wanted = np.where(np.arange(64) < 40, data.astype(np.float32) / 255, 0).astype(np.float32)
    np.testing.assert_array_equal(lds[64 : 64 + 256].view(np.float32), wanted)


@pytest.mark.parametrize("where", ["gfx900", "gfx1030", "gfx1201"])
def test_what_is_not_bound_loads_zeros(where: str) -> None:
    """A resource without a format: also for instructions that convert nothing (RDNA 3 ISA, 9.3)."""
    isa = set_of(where)
    data = np.arange(1, 65, dtype=np.uint32)
    before = data.copy()
    load = "buffer_load_b32" if isa.target.generation >= 11 else "buffer_load_dword"
    state = run([isa.make(load, vgpr(2), vgpr(0), sgpr(4, 4), sgpr(8), offen=True),
                 isa.make("buffer_load_format_x", vgpr(3), vgpr(0), sgpr(4, 4), sgpr(8), offen=True),
                 isa.make("buffer_store_format_x", vgpr(0), vgpr(0), sgpr(4, 4), sgpr(8), offen=True)],
                isa=isa, vgprs={0: (LANES * 4).astype(np.uint32)}, memory=[data],
                sgprs={**resource(data, 256, 1 | RAW * (isa.target.generation >= 10)), 8: 0})
    assert state.status is Status.JUMP, state.fault()
    assert not state.vgpr(2).any() and not state.vgpr(3).any()
    np.testing.assert_array_equal(data, before)


REFUSALS = {
    "no such format": ("buffer_load_format_x", IDENTITY | 127 << 12, 0, SurfaceRefusal.FORMAT),
    "reserved select": ("buffer_load_format_x", 2 | 20 << 12, 0, SurfaceRefusal.RESERVED_SELECT),
    "integer of 32 bits to 16": ("buffer_load_format_d16_x", IDENTITY | 20 << 12, 0, SurfaceRefusal.NARROW_INTEGER),
    "two components to one": ("buffer_store_format_x", 4 | 4 << 3 | 20 << 12, 0, SurfaceRefusal.SELECTED_TWICE),
    "300 to 8 bits": ("buffer_store_format_x", IDENTITY | 5 << 12, 300, SurfaceRefusal.DOES_NOT_FIT),
    "scaled to memory": ("buffer_store_format_x", IDENTITY | 3 << 12, 0, SurfaceRefusal.DOES_NOT_FIT),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_no_manual_says_is_refused(name: str) -> None:
    mnemonic, last, value, why = REFUSALS[name]
    isa = set_of("gfx1030")
    data = np.zeros(64, np.uint32)
    state = run([isa.make(mnemonic, vgpr(2), vgpr(0), sgpr(4, 4), 0, offen=True)], isa=isa, memory=[data],
                vgprs={0: (LANES * 4).astype(np.uint32), 2: np.full(64, value, np.uint32)},
                sgprs=resource(data, 256, last | RAW), exec_mask=1 << 5)
    assert state.status is Status.FAULT and state.fault() == (Fault.SURFACE, 5, why)
