"""The copy as a file against the original: all of it is there as it was, and what is new is what the claim says.

In: the loaded original and copy, and the claim. Out: nothing, or CheckFailed. Invariant: no byte of the original is
another one in the copy but the few of the headers that say where the grown tables are; these have all old rows, and new
ones in the metadata are the claim's kernels'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from luthier_py.base.records import replace
from luthier_py.binary.loader import CodeObject, Section, SectionType, Segment, SegmentType
from luthier_py.binary.loader.codeobject import find_metadata
from luthier_py.binary.loader.elf import DYNAMIC, Elf
from luthier_py.proof.additions import GROWN, check_additions
from luthier_py.proof.claim import Claim
from luthier_py.proof.hashes import make_failure

_HEADER = ((32, 48), (56, 58), (60, 62))  # e_phoff and e_shoff, e_phnum, e_shnum
_TABLES = {4: SectionType.HASH, 5: SectionType.STRTAB, 6: SectionType.DYNSYM, 10: SectionType.STRTAB,
           0x6FFFFEF5: SectionType.GNU_HASH}  # tags of .dynamic, and what they name
_COUNTS = (".private_segment_fixed_size", ".sgpr_count", ".vgpr_count", ".agpr_count")


def check_objects(old: CodeObject, new: CodeObject, claim: Claim) -> None:
    """CheckFailed."""
    allowed = [*_HEADER, *_dynamic_values(old.elf, new.elf)]
    _check_bytes(old.data, new.data, allowed)
    _check_segments(old, new)
    _check_sections(old.elf, new.elf)
    check_additions(old, new, claim)
    _check_metadata(old, new, claim)


def check_apart(old: CodeObject, new: CodeObject, claim: Claim) -> None:
    """The same of a copy that has nothing of the original in it."""
    if (old.elf.flags, old.elf.abi_version) != (new.elf.flags, new.elf.abi_version) or new.relocations:
        raise make_failure("it is for something else")
    named = {tag: value for _, tag, value in _dynamic_rows(new.elf)}
    for tag in _TABLES:
        if tag not in named or named[tag] != _find_table_value(new.elf, tag):
            raise make_failure(f"dynamic entry {tag} names no table")
    before, after = dict(old.metadata), dict(new.metadata)
    rows, new_rows = before.pop("amdhsa.kernels", []), after.pop("amdhsa.kernels", [])
    if before != after:
        raise make_failure("its metadata is another one")
    _check_rows(rows, new_rows, claim)
    check_additions(None, new, claim)


def _check_bytes(old: bytes, new: bytes, allowed: list[tuple[int, int]]) -> None:
    if len(new) < len(old):
        raise make_failure("it is shorter")
    at = 0
    for start, stop in [*sorted(allowed), (len(old), len(old))]:
        if old[at:start] != new[at:start]:
            wrong = next(k for k in range(at, start) if old[k] != new[k])
            raise make_failure(f"byte 0x{wrong:x} of the file is another one")
        at = max(at, stop)


def _dynamic_rows(elf: Elf) -> Iterator[tuple[int, int, int]]:
    """Offsets in the file of the entries of .dynamic that name tables, with their tags and values."""
    for segment in elf.segments:
        if segment.type != SegmentType.DYNAMIC:
            continue
        for row in range(segment.offset, segment.offset + segment.file_size - DYNAMIC.size + 1, DYNAMIC.size):
            tag, value = DYNAMIC.unpack_from(elf.data, row)
            if not tag:
                break
            if tag in _TABLES:
                yield row, tag, value


def _dynamic_values(old: Elf, new: Elf) -> list[tuple[int, int]]:
    """Where .dynamic names tables that may have moved; they are named rightly."""
    found = []
    for row, tag, value in _dynamic_rows(old):
        if row + DYNAMIC.size > len(new.data):
            continue
        moved = DYNAMIC.unpack_from(new.data, row)[1]
        if moved != value or value == _find_table_value(old, tag):
            if moved != _find_table_value(new, tag):
                raise make_failure(f"dynamic entry {tag} names no table")
            found.append((row + 8, row + 16))
    return found


def _find_table_value(elf: Elf, tag: int) -> int | None:
    symbols, kind = elf.find(SectionType.DYNSYM), _TABLES[tag]
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
            raise make_failure(f"the segment at 0x{segment.address:x} is another one")
        left.remove(same[0])
        _check_moved(new, same[0], end)
    if any(not segment.load or segment.address < end for segment in left):
        raise make_failure("it has a segment that is no addition")
    loads = [segment.address for segment in new.segments if segment.load]
    if loads != sorted(loads):
        raise make_failure("its segments are not in order")


def _check_moved(new: CodeObject, segment: Segment, end: int) -> None:
    holder = new.elf.load_at(segment.address)
    inside = holder is not None and holder.address >= end and (
        segment.offset - holder.offset == segment.address - holder.address and segment.end <= holder.end)
    right = segment.type != SegmentType.PHDR or (segment.offset == new.elf.program_header_offset
                                                 and segment.file_size == 56 * len(new.segments))
    if not inside or not right or segment.physical_address != segment.address or (
            segment.memory_size != segment.file_size):
        raise make_failure(f"the segment at 0x{segment.address:x} is not in memory")


def _check_sections(old: Elf, new: Elf) -> None:
    if old.section_names != new.section_names or len(new.sections) < len(old.sections):
        raise make_failure("it has not all sections")
    for before, after in zip(old.sections, new.sections, strict=False):
        if before == after:
            continue
        moved = replace(after, address=before.address, offset=before.offset, size=before.size, align=before.align)
        if moved != before or before.type not in GROWN:
            raise make_failure(f"section {before.name} is another one")
        _check_placed(new, after)
        grows = before.type in (SectionType.SYMTAB, SectionType.DYNSYM, SectionType.STRTAB)
        if grows and not new.content(after).startswith(_table(old, before)):
            raise make_failure(f"section {before.name} has lost rows")


def _table(elf: Elf, section: Section) -> bytes:
    content = elf.content(section)
    return content if section.type != SectionType.STRTAB or content.endswith(b"\0") else content + b"\0"


def _check_placed(elf: Elf, section: Section) -> None:
    """Its bytes in memory are those of the file."""
    if not section.flags & 2:
        return
    holder = elf.load_at(section.address)
    if holder is None or holder.offset + section.address - holder.address != section.offset:
        raise make_failure(f"section {section.name} is not where its address says")


def _check_metadata(old: CodeObject, new: CodeObject, claim: Claim) -> None:
    before, after = dict(old.metadata), dict(new.metadata)
    rows, new_rows = before.pop("amdhsa.kernels", []), after.pop("amdhsa.kernels", [])
    if before != after or new_rows[:len(rows)] != rows:
        raise make_failure("its metadata is another one")
    _check_rows(rows, new_rows[len(rows):], claim)


def _check_rows(rows: list[Any], added: list[Any], claim: Claim) -> None:
    if not rows and not added:
        return  # an object without metadata; of its kernels there are the descriptors alone
    by_name = {row.get(".name"): row for row in rows}
    if len(added) != len(claim.kernels):
        raise make_failure("its metadata has other kernels than the claim")
    for row in added:
        name = next((name for name, made in claim.kernels.items() if made == row.get(".name")), None)
        if name is None or row.get(".symbol") != f"{row['.name']}.kd":
            raise make_failure(f"its metadata has a kernel {row.get('.name')} that the claim does not name")
        _check_entry(by_name[name], row, name)


def _check_entry(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> None:
    for key in old.keys() | new.keys():
        if key in (".name", ".symbol") or old.get(key) == new.get(key):
            continue
        if (key, new.get(key)) == (".uses_dynamic_stack", False):
            continue  # where the descriptor has no such stack either, which is checked
        counts = key in _COUNTS and isinstance(old.get(key), int) and isinstance(new.get(key), int)
        if not counts or new[key] < old[key]:
            raise make_failure(f"{key} in the metadata of its clone is another one", name)
