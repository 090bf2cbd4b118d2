"""What the copy has beside the original: symbols that a loader finds, in memory of their own.

In: the loaded original, if the copy has it, the loaded copy and the claim. Out: nothing, or CheckFailed. Invariant: new
symbols are the claim's, each with the attributes of its kind, in a segment that may be run, or written, or neither,
as its kind demands; nothing lies over anything else; variables are zero or, as tables, what the claim says, and between
all that is nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from luthier_py.binary.loader import (
    CodeObject,
    SectionFlag,
    SectionType,
    Segment,
    SegmentFlag,
    Symbol,
    SymbolBinding,
    SymbolType,
    Visibility,
)
from luthier_py.binary.loader.elf import Elf
from luthier_py.binary.loader.symbols import read_symbols
from luthier_py.proof.claim import Claim
from luthier_py.proof.code import FILLER
from luthier_py.proof.hashes import check_hashes, make_failure

GROWN = (SectionType.SYMTAB, SectionType.DYNSYM, SectionType.STRTAB, SectionType.HASH, SectionType.GNU_HASH,
         SectionType.NOTE)
_FETCHED_AHEAD = 1024  # bytes behind code that must be memory: what LLVM puts there (AMDGPUTargetStreamer, EmitCodeEnd)


class _Kind(NamedTuple):
    type: SymbolType
    flags: SegmentFlag
    dynamic: bool  # whether a loader looks for it


_FUNCTION = _Kind(SymbolType.FUNC, SegmentFlag.READ | SegmentFlag.EXECUTE, False)
_KERNEL = _FUNCTION._replace(dynamic=True)
_DESCRIPTOR = _Kind(SymbolType.OBJECT, SegmentFlag.READ, True)
_TABLE = _Kind(SymbolType.OBJECT, SegmentFlag.READ, True)
_VARIABLE = _Kind(SymbolType.OBJECT, SegmentFlag.READ | SegmentFlag.WRITE, True)


class _Added(NamedTuple):
    name: str
    kind: _Kind
    address: int
    size: int


def check_additions(old: CodeObject | None, new: CodeObject, claim: Claim) -> None:
    """``old``: None where nothing of it is in the copy."""
    end = 0 if old is None else max((segment.end for segment in old.segments if segment.load), default=0)
    added = _new_symbols(old, new, claim)
    check_hashes(new.elf, 0 if old is None else len(_rows(old.elf, SectionType.DYNSYM)))
    _check_room(end, new, added)
    _check_contents(new, added, {**claim.tables, **claim.initial})
    for segment in new.segments:
        if segment.load and segment.address >= end and segment.flags & (SegmentFlag.EXECUTE | SegmentFlag.WRITE):
            known = [each for each in added if each.kind is not _VARIABLE or each.name in claim.initial]
            _check_filler(new, segment, known)


def _rows(elf: Elf, kind: SectionType) -> tuple[Symbol, ...]:
    index = elf.find(kind)
    return () if index is None else read_symbols(elf, index, lambda row, error: None)


def _collect_expected_symbols(claim: Claim) -> dict[str, _Kind]:
    return {function.symbol: _FUNCTION for function in claim.functions} | {
        name: _VARIABLE for name in claim.variables} | {
        name: _TABLE for name in claim.tables} | {
        name: _KERNEL for name in claim.kernels.values()} | {
        f"{name}.kd": _DESCRIPTOR for name in claim.kernels.values()}


def _new_symbols(old: CodeObject | None, new: CodeObject, claim: Claim) -> list[_Added]:
    """New ones are those of the claim. By address."""
    before = set() if old is None else {symbol.name for symbol in old.symbols}
    wanted, found = _collect_expected_symbols(claim), dict[str, Symbol]()
    tables = [kind for kind in (SectionType.SYMTAB, SectionType.DYNSYM) if new.elf.find(kind) is not None]
    for kind in tables:
        rows = _rows(new.elf, kind)[0 if old is None else len(_rows(old.elf, kind)):]
        here = {symbol.name: symbol for symbol in rows if symbol.name or symbol.address}
        for name, symbol in here.items():
            if name not in wanted or name in before:
                raise make_failure(f"it has a symbol {name} that the claim does not name")
            if found.setdefault(name, symbol) != symbol:
                raise make_failure(f"symbol {name} has two meanings")
        for name, what in wanted.items():
            if name not in here and (what.dynamic or kind is tables[0]):
                raise make_failure(f"it has no symbol {name} in {kind.name}")
    for name, size in claim.sizes.items():
        if found[name].size != size:
            raise make_failure(f"variable {name} has {found[name].size} bytes, not {size}")
    for name, symbol in found.items():
        _check_symbol(new.elf, symbol, wanted[name])
    added = [_Added(name, kind, found[name].address, found[name].size) for name, kind in wanted.items()]
    return sorted(added, key=lambda each: (each.address, -each.size))


def _check_symbol(elf: Elf, symbol: Symbol, kind: _Kind) -> None:
    """A loader takes it for what it is, and looks where it is."""
    if (symbol.type, symbol.binding) != (kind.type, SymbolBinding.GLOBAL) or symbol.visibility not in (
            Visibility.DEFAULT, Visibility.PROTECTED):
        raise make_failure(f"symbol {symbol.name} is one of another kind")
    section = elf.sections[symbol.section] if 0 < symbol.section < len(elf.sections) else None
    if section is None or not section.flags & SectionFlag.ALLOC or not (
            section.address <= symbol.address <= symbol.address + symbol.size <= section.address + section.size):
        raise make_failure(f"symbol {symbol.name} is not in its section")


def _check_room(end: int, new: CodeObject, added: list[_Added]) -> None:
    """What was added lies behind the original's ``end``, nothing over another, and in memory of its kind."""
    last, starts = end, set[int]()
    for name, kind, address, size in added:
        segment = new.elf.load_at(address)
        if segment is None or address < end or address + size > segment.end:
            raise make_failure(f"{name} lies outside of what was added")
        if segment.flags != kind.flags:
            raise make_failure(f"{name} lies in memory of another kind")
        if kind.flags & SegmentFlag.EXECUTE and address + size + _FETCHED_AHEAD > segment.end:
            raise make_failure(f"behind {name} is no memory for instructions that are fetched ahead")
        if address < last and not (kind is _KERNEL and address in starts):
            raise make_failure(f"{name} lies over something else")
        last = max(last, address + size)
        starts.add(address)
    for address, size in _tables(new):
        for each in added:
            if each.address < address + size and address < each.address + each.size:
                raise make_failure(f"{each.name} lies over something else")


def _check_contents(new: CodeObject, added: list[_Added], wanted: Mapping[str, bytes]) -> None:
    """``wanted``: contents by name; what the file lacks at their ends is zero."""
    for each in added:
        segment = new.elf.load_at(each.address)
        if each.name not in wanted or segment is None:
            continue
        at = segment.offset + each.address - segment.address
        found = new.data[at : min(at + each.size, segment.offset + segment.file_size)]
        if found.ljust(each.size, b"\0") != wanted[each.name]:
            raise make_failure(f"{each.name} has other bytes than the claim's")


def _tables(new: CodeObject) -> Iterator[tuple[int, int]]:
    for section in new.elf.sections:
        if section.flags & SectionFlag.ALLOC and section.type in GROWN:
            yield section.address, section.size


def _check_filler(new: CodeObject, segment: Segment, added: list[_Added]) -> None:
    """What lies between ``added`` where a tool could write or a wave run is nothing."""
    left = bytearray(new.data[segment.offset:segment.offset + segment.file_size])
    kept = [(each.address, each.size) for each in added]
    for address, size in (*kept, *_tables(new)):
        start = max(address - segment.address, 0)
        stop = max(min(address - segment.address + size, len(left)), start)
        left[start:stop] = bytes(stop - start)
    words = np.frombuffer(bytes(left) + bytes(-len(left) % 4), "<u4")
    known = [0, FILLER] if segment.flags & SegmentFlag.EXECUTE else [0]
    for at in np.flatnonzero(~np.isin(words, known))[:1].tolist():
        raise make_failure(f"it has bytes at 0x{segment.address + 4 * at:x} of which the claim says nothing")
