"""What was added to a copy, where it lies, and what its clones' descriptors say: made wrong by linker and inserter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from luthier_py.base.errors import CheckFailed
from luthier_py.binary.link import grow, layout, writer
from luthier_py.binary.loader import SectionFlag, SectionType, SegmentFlag, Symbol, SymbolType, load
from luthier_py.binary.loader.elf import SYMBOL, Elf
from luthier_py.binary.loader.symbols import read_symbols
from luthier_py.binary.patch import NewVariable
from luthier_py.isa import RegSet, vgpr
from luthier_py.proof import prove
from luthier_py.rewrite.inject import apply, policies, resources
from luthier_py.rewrite.inject.fragment import general_registers
from luthier_py.rewrite.pipeline import Instrumented, carry_out, instrument, plan
from luthier_py.rewrite.tool import load_tool
from luthier_py.samples import sample

WRITE = SectionFlag.ALLOC | SectionFlag.WRITE
EXECUTE = SectionFlag.ALLOC | SectionFlag.EXECUTE
FILL = layout._fill


def made(name: str = "reduce") -> Instrumented:
    return instrument(sample(name).path.read_bytes(), load_tool("instr_count"))


copy = cache(made)


def shifted(flags: SectionFlag, by: int) -> Callable[..., layout.Blob]:
    """A linker that puts what has ``flags`` some bytes later."""
    def fill(*given: object) -> layout.Blob:
        blob = FILL(*given)
        if blob.flags != flags:
            return blob
        return replace(blob, size=blob.size + by, offsets={name: at + by for name, at in blob.offsets.items()})

    return fill


@pytest.mark.parametrize(("flags", "by", "why"), [
    (WRITE, 4, "not a multiple of 8"), (WRITE, 1, "not a multiple of 8"),
    (EXECUTE, 64, "no multiple of 256"), (EXECUTE, 4, "no multiple of 256"),
    (SectionFlag.ALLOC, 8, "no multiple of 256"),
])
def test_what_is_not_aligned(monkeypatch: pytest.MonkeyPatch, flags: SectionFlag, by: int, why: str) -> None:
    monkeypatch.setattr(layout, "_fill", shifted(flags, by))
    with pytest.raises(CheckFailed, match=why):
        made()


@pytest.mark.parametrize("flags", [SegmentFlag.READ, SegmentFlag.READ | SegmentFlag.EXECUTE])
def test_variables_are_where_waves_may_write(monkeypatch: pytest.MonkeyPatch, flags: SegmentFlag) -> None:
    segment_flags = writer._segment_flags
    monkeypatch.setattr(writer, "_segment_flags", lambda section: (
        flags if section.flags & SectionFlag.WRITE else segment_flags(section)))
    with pytest.raises(CheckFailed, match="memory of another kind"):
        made()


def test_code_is_where_nobody_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    segment_flags = writer._segment_flags
    monkeypatch.setattr(writer, "_segment_flags", lambda section: segment_flags(section) if not (
        section.flags & SectionFlag.EXECUTE) else SegmentFlag.READ | SegmentFlag.WRITE)
    with pytest.raises(CheckFailed, match="memory of another kind"):
        made()


def test_variables_begin_with_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "NewVariable", lambda name, size, align, initial: NewVariable(
        name, size, align, b"\1" * size))
    with pytest.raises(CheckFailed, match="of which the claim says nothing"):
        made()


def test_memory_follows_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "_PREFETCH_BYTES", 256)
    with pytest.raises(CheckFailed, match="fetched ahead"):
        made()


@pytest.mark.parametrize("name", ["instr_count_total", "reduce.luthier", "reduce.luthier.kd"])
def test_what_a_loader_looks_for_is_a_dynamic_symbol(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    new_symbols, (variable, *_) = grow._new_symbols, copy().patched.claim.variables
    name = variable if name == "instr_count_total" else name
    monkeypatch.setattr(grow, "_new_symbols", lambda *given: [
        replace(symbol, dynamic=symbol.name != name and symbol.dynamic) for symbol in new_symbols(*given)])
    with pytest.raises(CheckFailed, match=f"no symbol {name} in DYNSYM"):
        made()


def row_of(elf: Elf, kind: SectionType, name: str) -> tuple[int, Symbol]:
    """Where a symbol's row is in the file."""
    index = elf.find(kind)
    assert index is not None
    number, symbol = next((k, each) for k, each in enumerate(read_symbols(elf, index)) if each.name == name)
    return elf.sections[index].offset + SYMBOL.size * number, symbol


@pytest.mark.parametrize("field", ["local", "weak", "type", "hidden", "section", "no section", "absolute"])
def test_new_symbols_are_what_they_are_for(field: str) -> None:
    original, claim, linked = copy().obj.data, copy().patched.claim, load(copy().data).elf
    for name in (*claim.variables, "reduce.luthier", "reduce.luthier.kd"):
        data = bytearray(copy().data)
        for kind in (SectionType.SYMTAB, SectionType.DYNSYM):
            at, symbol = row_of(linked, kind, name)
            other = SymbolType.OBJECT if symbol.type is SymbolType.FUNC else SymbolType.FUNC
            place, value = {
                "local": (4, int(symbol.type)), "weak": (4, 2 << 4 | symbol.type), "type": (4, 1 << 4 | other),
                "hidden": (5, 2), "section": (6, 1), "no section": (6, 0), "absolute": (6, 0xFFF1)}[field]
            data[at + place : at + place + (2 if place == 6 else 1)] = value.to_bytes(2 if place == 6 else 1, "little")
        with pytest.raises(CheckFailed, match=f"symbol {name} is (not in its section|one of another kind)"):
            prove(original, bytes(data), claim)


def test_new_symbols_are_in_the_hash_tables() -> None:
    """One that begins behind them finds none of them."""
    data, elf = bytearray(copy().data), load(copy().data).elf
    at = elf.find(SectionType.GNU_HASH)
    assert at is not None
    start = elf.sections[at].offset + 4
    data[start : start + 4] = (0xFFFF).to_bytes(4, "little")
    with pytest.raises(CheckFailed, match="hash"):
        prove(copy().obj.data, bytes(data), copy().patched.claim)


@pytest.mark.parametrize("tag", [4, 5, 6, 10, 0x6FFFFEF5])
def test_a_copy_apart_names_its_tables(tag: int) -> None:
    apart = carry_out(plan(sample("reduce").path.read_bytes(), load_tool("instr_count")), apart=True)
    prove(apart.obj.data, apart.data, apart.patched.claim, True)
    elf, data = load(apart.data).elf, bytearray(apart.data)
    table = next(section for section in elf.sections if section.type == SectionType.DYNAMIC)
    rows = range(table.offset, table.offset + table.size, 16)
    row = next(row for row in rows if int.from_bytes(data[row : row + 8], "little") == tag)
    data[row + 8] ^= 8
    with pytest.raises(CheckFailed, match=f"dynamic entry {tag} names no table"):
        prove(apart.obj.data, bytes(data), apart.patched.claim, True)


@pytest.mark.parametrize("grown", [
    lambda target, descriptor: descriptor.with_vgpr_count(target, 256),
    lambda target, descriptor: descriptor.with_sgpr_count(target, 102),
    lambda target, descriptor: descriptor.with_accum_offset(descriptor.accum_offset + 4),
])
def test_descriptors_have_no_more_registers_than_are_needed(monkeypatch: pytest.MonkeyPatch, grown) -> None:
    new_kernel = apply._new_kernel

    def larger(program, *given):
        kernel = new_kernel(program, *given)
        return replace(kernel, descriptor=grown(program.obj.target, kernel.descriptor))

    monkeypatch.setattr(apply, "_new_kernel", larger)
    monkeypatch.setattr(resources, "has_room", lambda *given: True)
    with pytest.raises(CheckFailed, match="more registers than it needs"):
        made()


def high_registers(program, *_) -> RegSet:
    """Those that leave no room for a work-group of 1024, in a file of 512 for four waves."""
    return RegSet.of(*(vgpr(k) for k in range(200, 216))) | general_registers(program.isa).scalars


def test_hooks_leave_room_for_a_work_group(monkeypatch: pytest.MonkeyPatch) -> None:
    code, tool = sample("mandelbrot").path.read_bytes(), load_tool("instr_count", {"COUNT_WARP_LEVEL": "0"})
    monkeypatch.setattr(policies, "at_no_cost", lambda *given: RegSet())
    dear = instrument(code, tool)
    descriptor = load(dear.data).kernels[-1].descriptor
    assert dear.program.obj.target.waves_for(descriptor.vgpr_count(dear.program.obj.target)) >= 4
    monkeypatch.setattr(policies, "at_no_cost", high_registers)
    monkeypatch.setattr(resources, "has_room", lambda *given: True)
    with pytest.raises(CheckFailed, match="no room for a work-group of 1024"):
        instrument(code, tool)
