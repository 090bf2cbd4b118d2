"""The copy as a file against the original: all of it is there as it was, and what is new is what the claim says.

In: the loaded original and copy, and the claim. Out: nothing, or CheckFailed. Invariant: no byte of the original is
another one in the copy but the few of the headers that say where the grown tables are; these have all old rows, and new
ones for the claim's functions, kernels and variables alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from luthier_py.isa import RegSet, instruction_set
from luthier_py.isa.glue import nothing
from luthier_py.loader import (
    DESCRIPTOR_BYTES,
    CodeObject,
    KernelRecord,
    Section,
    SectionType,
    Segment,
    SegmentFlag,
    SegmentType,
)
from luthier_py.loader.codeobject import find_metadata
from luthier_py.loader.elf import DYNAMIC, Elf
from luthier_py.loader.symbols import read_symbols
from luthier_py.proof.claim import Claim
from luthier_py.proof.hashes import check_hashes, failed

_HEADER = ((32, 48), (56, 58), (60, 62))  # e_phoff and e_shoff, e_phnum, e_shnum
_GROWN = (SectionType.SYMTAB, SectionType.DYNSYM, SectionType.STRTAB, SectionType.HASH, SectionType.GNU_HASH,
          SectionType.NOTE)
_TABLES = {4: SectionType.HASH, 5: SectionType.STRTAB, 6: SectionType.DYNSYM, 10: SectionType.STRTAB,
           0x6FFFFEF5: SectionType.GNU_HASH}  # tags of .dynamic, and what they name
_COUNTS = (".sgpr_count", ".vgpr_count", ".agpr_count")
_SIZES = ("granulated_workitem_vgpr_count", "granulated_wavefront_sgpr_count", "granulated_accum_offset",
          "kernel_code_entry_byte_offset")


def check_objects(old: CodeObject, new: CodeObject, claim: Claim) -> None:
    """CheckFailed."""
    allowed = [*_HEADER, *_dynamic_values(old.elf, new.elf)]
    _check_bytes(old.data, new.data, allowed)
    _check_segments(old, new)
    _check_sections(old.elf, new.elf)
    added = _new_symbols(old, new, claim)
    check_hashes(new.elf)
    _check_metadata(old, new, claim)
    _check_room(max((segment.end for segment in old.segments if segment.load), default=0), new, added)


def check_apart(old: CodeObject, new: CodeObject, claim: Claim) -> None:
    """The same of a copy that has nothing of the original in it."""
    if (old.elf.flags, old.elf.abi_version) != (new.elf.flags, new.elf.abi_version) or new.relocations:
        raise failed("it is for something else")
    before, after = dict(old.metadata), dict(new.metadata)
    rows, new_rows = before.pop("amdhsa.kernels", []), after.pop("amdhsa.kernels", [])
    if before != after:
        raise failed("its metadata is another one")
    _check_rows(rows, new_rows, claim)
    check_hashes(new.elf)
    _check_room(0, new, _new_symbols(None, new, claim))


def _check_bytes(old: bytes, new: bytes, allowed: list[tuple[int, int]]) -> None:
    if len(new) < len(old):
        raise failed("it is shorter")
    at = 0
    for start, stop in [*sorted(allowed), (len(old), len(old))]:
        if old[at:start] != new[at:start]:
            wrong = next(k for k in range(at, start) if old[k] != new[k])
            raise failed(f"byte 0x{wrong:x} of the file is another one")
        at = max(at, stop)


def _dynamic_values(old: Elf, new: Elf) -> list[tuple[int, int]]:
    """Where .dynamic names tables that have moved; they are named rightly."""
    found = []
    for segment in old.segments:
        if segment.type != SegmentType.DYNAMIC:
            continue
        for row in range(segment.offset, segment.offset + segment.file_size - DYNAMIC.size + 1, DYNAMIC.size):
            tag, value = DYNAMIC.unpack_from(old.data, row)
            kind = _TABLES.get(tag)
            if not tag:
                break
            if kind is None or row + DYNAMIC.size > len(new.data):
                continue
            moved = DYNAMIC.unpack_from(new.data, row)[1]
            if moved != value:
                if moved != _named(new, tag, kind):
                    raise failed(f"dynamic entry {tag} names no table")
                found.append((row + 8, row + 16))
    return found


def _named(elf: Elf, tag: int, kind: int) -> int | None:
    symbols = elf.find(SectionType.DYNSYM)
    index = elf.sections[symbols].link if kind == SectionType.STRTAB and symbols is not None else elf.find(kind)
    if index is None or index >= len(elf.sections):
        return None
    return elf.sections[index].size if tag == 10 else elf.sections[index].address


def _check_segments(old: CodeObject, new: CodeObject) -> None:
    """Old ones as they were, but for the program headers' own and that of the metadata; new ones behind."""
    end = max((segment.end for segment in old.segments if segment.load), default=0)
    left = list(new.segments)
    found = find_metadata(old.elf)
    for segment in old.segments:
        if segment in left:
            left.remove(segment)
            continue
        same = [each for each in left if (each.type, each.flags, each.align) == (
            segment.type, segment.flags, segment.align)]
        note = found is not None and segment == found[0]
        if not same or not (note or segment.type == SegmentType.PHDR):
            raise failed(f"the segment at 0x{segment.address:x} is another one")
        left.remove(same[0])
        _check_moved(new, same[0], end)
    if any(not segment.load or segment.address < end for segment in left):
        raise failed("it has a segment that is no addition")
    loads = [segment.address for segment in new.segments if segment.load]
    if loads != sorted(loads):
        raise failed("its segments are not in order")


def _check_moved(new: CodeObject, segment: Segment, end: int) -> None:
    holder = new.elf.load_at(segment.address)
    inside = holder is not None and holder.address >= end and (
        segment.offset - holder.offset == segment.address - holder.address and segment.end <= holder.end)
    right = segment.type != SegmentType.PHDR or (segment.offset == new.elf.program_header_offset
                                                 and segment.file_size == 56 * len(new.segments))
    if not inside or not right or segment.physical_address != segment.address or (
            segment.memory_size != segment.file_size):
        raise failed(f"the segment at 0x{segment.address:x} is not in memory")


def _check_sections(old: Elf, new: Elf) -> None:
    if old.section_names != new.section_names or len(new.sections) < len(old.sections):
        raise failed("it has not all sections")
    for k, (before, after) in enumerate(zip(old.sections, new.sections, strict=False)):
        if before == after:
            continue
        moved = replace(after, address=before.address, offset=before.offset, size=before.size, align=before.align)
        if moved != before or before.type not in _GROWN:
            raise failed(f"section {before.name} is another one")
        _check_placed(new, after)
        grows = before.type in (SectionType.SYMTAB, SectionType.DYNSYM, SectionType.STRTAB)
        if grows and not new.content(after).startswith(_table(old, before, k)):
            raise failed(f"section {before.name} has lost rows")


def _table(elf: Elf, section: Section, k: int) -> bytes:
    content = elf.content(section)
    return content if section.type != SectionType.STRTAB or content.endswith(b"\0") else content + b"\0"


def _check_placed(elf: Elf, section: Section) -> None:
    """Its bytes in memory are those of the file."""
    if not section.flags & 2:
        return
    holder = elf.load_at(section.address)
    if holder is None or holder.offset + section.address - holder.address != section.offset:
        raise failed(f"section {section.name} is not where its address says")


def _new_symbols(old: CodeObject | None, new: CodeObject, claim: Claim) -> dict[str, tuple[int, int]]:
    """New ones are those of the claim; their addresses and sizes."""
    before = set() if old is None else {symbol.name for symbol in old.symbols}
    entries = {new_name: name for name, new_name in claim.kernels.items()}
    wanted = {function.symbol for function in claim.functions} | claim.variables.keys() | entries.keys()
    wanted |= {f"{name}.kd" for name in entries}
    found: dict[str, tuple[int, int]] = {}
    for kind in (SectionType.SYMTAB, SectionType.DYNSYM):
        index = new.elf.find(kind)
        if index is None:
            continue
        first = None if old is None else old.elf.find(kind)
        known = 0 if old is None or first is None else len(read_symbols(old.elf, first, lambda row, error: None))
        for symbol in read_symbols(new.elf, index, lambda row, error: None)[known:]:
            if not symbol.name and not symbol.address:
                continue
            if symbol.name not in wanted or symbol.name in before:
                raise failed(f"it has a symbol {symbol.name} that the claim does not name")
            if found.setdefault(symbol.name, (symbol.address, symbol.size)) != (symbol.address, symbol.size):
                raise failed(f"symbol {symbol.name} has two meanings")
    for name in wanted:
        if name not in found:
            raise failed(f"it has no symbol {name}")
    for name, size in claim.variables.items():
        if found[name][1] != size:
            raise failed(f"variable {name} has {found[name][1]} bytes, not {size}")
    return found


def _check_room(end: int, new: CodeObject, added: Mapping[str, tuple[int, int]]) -> None:
    """What was added lies behind the original's ``end``, and nothing over another."""
    last, kernels = end, {name.removesuffix(".kd") for name in added if name.endswith(".kd")}
    for name, (address, size) in sorted(added.items(), key=lambda row: (row[1][0], -row[1][1])):
        segment = new.elf.load_at(address)
        if segment is None or address < end or address + size > segment.end:
            raise failed(f"{name} lies outside of what was added")
        if address < last and name not in kernels:
            raise failed(f"{name} lies over something else")
        last = max(last, address + size)
    filler = nothing(instruction_set(new.target)).raw
    for segment in new.segments:
        if segment.load and segment.address >= end and segment.flags & (SegmentFlag.EXECUTE | SegmentFlag.WRITE):
            _check_filler(new, segment, added, filler)


def _check_filler(new: CodeObject, segment: Segment, added: Mapping[str, tuple[int, int]], filler: bytes) -> None:
    """Between what was added, and where a tool could write or a wave run, is nothing."""
    left = bytearray(new.data[segment.offset:segment.offset + segment.file_size])
    tables = [(each.address, each.size) for each in new.elf.sections if each.flags & 2 and each.type in _GROWN]
    for address, size in (*added.values(), *tables):
        start = max(address - segment.address, 0)
        stop = max(min(address - segment.address + size, len(left)), start)
        left[start:stop] = bytes(stop - start)
    words = np.frombuffer(bytes(left) + bytes(-len(left) % 4), "<u4")
    known = [0, int.from_bytes(filler, "little")] if segment.flags & SegmentFlag.EXECUTE else [0]
    for at in np.flatnonzero(~np.isin(words, known))[:1].tolist():
        raise failed(f"it has bytes at 0x{segment.address + 4 * at:x} of which the claim says nothing")


def _check_metadata(old: CodeObject, new: CodeObject, claim: Claim) -> None:
    before, after = dict(old.metadata), dict(new.metadata)
    rows, new_rows = before.pop("amdhsa.kernels", []), after.pop("amdhsa.kernels", [])
    if before != after or new_rows[:len(rows)] != rows:
        raise failed("its metadata is another one")
    _check_rows(rows, new_rows[len(rows):], claim)


def _check_rows(rows: list[Any], added: list[Any], claim: Claim) -> None:
    by_name = {row.get(".name"): row for row in rows}
    if len(added) != len(claim.kernels):
        raise failed("its metadata has other kernels than the claim")
    for row in added:
        name = next((name for name, made in claim.kernels.items() if made == row.get(".name")), None)
        if name is None or row.get(".symbol") != f"{row['.name']}.kd":
            raise failed(f"its metadata has a kernel {row.get('.name')} that the claim does not name")
        _check_entry(by_name[name], row, name)


def _check_entry(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> None:
    for key in old.keys() | new.keys():
        if key in (".name", ".symbol") or old.get(key) == new.get(key):
            continue
        counts = key in _COUNTS and isinstance(old.get(key), int) and isinstance(new.get(key), int)
        if not counts or new[key] < old[key]:
            raise failed(f"{key} in the metadata of its clone is another one", name)


def check_kernel(old: CodeObject, new: CodeObject, record: KernelRecord, made: str, entry: int, used: RegSet) -> None:
    """A clone's descriptor and metadata: the original's, with room for the registers in ``used``."""
    target, before = old.target, record.descriptor
    symbol = new.symbol(f"{made}.kd")
    if symbol is None or symbol.size != DESCRIPTOR_BYTES:
        raise failed("its clone has no descriptor", record.name)
    clone = new.kernel(made)
    after = clone.descriptor
    grown = {field: getattr(after, field) for field in _SIZES}
    if clone.entry != entry or before.replace(**grown).raw != after.raw:
        raise failed("the descriptor of its clone is another one", record.name)
    sgprs = (used.sgpr & (1 << target.sgpr_limit) - 1).bit_length() + target.extra_sgprs
    vgprs, agprs = used.vgpr.bit_length(), used.agpr.bit_length()
    room = (after.sgpr_count(target), after.arch_vgpr_count(target), after.agpr_count(target))
    had = (before.sgpr_count(target), before.arch_vgpr_count(target), before.agpr_count(target))
    needs = (sgprs if target.generation < 10 else 0, vgprs, agprs)
    if any(have < max(need, own if k != 2 or agprs else 0)
           for k, (have, need, own) in enumerate(zip(room, needs, had, strict=True))):
        raise failed("the descriptor of its clone has too few registers", record.name)
    for key, need in ((".sgpr_count", sgprs), (".vgpr_count", max(vgprs, agprs))):
        if isinstance(record.metadata.get(key), int) and clone.metadata.get(key, 0) < need:
            raise failed(f"{key} in the metadata of its clone is too small", record.name)
