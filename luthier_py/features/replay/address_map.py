"""Recorded memory, and the memory that replaces it where the launch is run again.

In: a RecordedLaunch, allocations as a device has them, the module that runs. Out: Counterparts, and what the record
says of the bytes of each. On the emulator memory has its addresses again. On a GPU it is wherever that gives some:
there words of arguments that point into recorded allocations are made to point to what replaces these. Invariant: a
byte of the record has one counterpart, or is no memory of the program.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from luthier_py.base.errors import LuthierError
from luthier_py.base.records import dataclass, replace
from luthier_py.binary.loader import CodeObject, KernelRecord, Symbol, load
from luthier_py.emulator.devices.module import EmulatorModule, resolve_relocations
from luthier_py.emulator.devices.recorded_launch import RecordedLaunch
from luthier_py.emulator.interface import Buffer, Module
from luthier_py.emulator.memory.device_memory import Allocation
from luthier_py.emulator.memory.touched import PAGE_BYTES
from luthier_py.features.replay.differing import parse_pointee_type
from luthier_py.features.run.launch import type_names
from luthier_py.host.worker.instrument.patching import program_variables

_WORD = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class MappedRange:
    """Of recorded bytes from ``start`` on: they are at ``now``. ``type``: of elements, where metadata or the kernel's
    name give it."""

    name: str
    start: int
    size: int
    now: int
    type: str | None = None

    @property
    def end(self) -> int:
        """Address behind the last byte, as it was recorded."""
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class RecordedBytes:
    """Recorded bytes, of one page and one counterpart, from ``offset`` of the latter on."""

    of: MappedRange
    offset: int
    before: bytes
    after: bytes

    @property
    def now(self) -> int:
        """Device address of the first byte, where the launch is run again."""
        return self.of.now + self.offset


def pieces(record: RecordedLaunch, address_map: Sequence[MappedRange]) -> list[RecordedBytes]:
    """All that is recorded of these, which ascend; they come one after the other, and so do the pieces of each."""
    found: list[RecordedBytes] = []
    first = 0
    for one in address_map:
        while first < len(record.pages) and record.pages[first].address + PAGE_BYTES <= one.start:
            first += 1
        for number in range(first, len(record.pages)):
            page = record.pages[number]
            start, end = max(one.start, page.address), min(one.end, page.address + PAGE_BYTES)
            if start >= end:
                break
            inside = slice(start - page.address, end - page.address)
            found.append(RecordedBytes(one, start - one.start, page.before[inside], page.after[inside]))
    return found


def map_allocations(record: RecordedLaunch, kernel: KernelRecord, now: Sequence[int]) -> list[MappedRange]:
    """``now``: where each is. They have the names of arguments that point into them."""
    names, found = _names(record, kernel), []
    for each, address in zip(record.allocations, now, strict=True):
        name, kind = names.get(each.address, (f"{each.name} at 0x{each.address:x}", None))
        found.append(MappedRange(name, each.address, each.size, address, kind))
    return found


def _names(record: RecordedLaunch, kernel: KernelRecord) -> dict[int, tuple[str, str | None]]:
    """What arguments say of allocations, by address: a name, and the elements' type. One that several point into has
    the names of all, since their parts are unknown."""
    found: dict[int, list[tuple[str, str | None]]] = {}
    for number, (arg, type_name) in enumerate(zip(kernel.own_args, type_names(kernel), strict=True)):
        if arg.size == _WORD.size and arg.offset + arg.size <= len(record.kernarg):
            one = _find_allocation(record.allocations, *_WORD.unpack_from(record.kernarg, arg.offset))
            if one is not None:
                words = " ".join(filter(None, (f"argument {number}", arg.name, type_name and f"({type_name})")))
                found.setdefault(one.address, []).append((words, parse_pointee_type(type_name)))
    return {address: (" and ".join(words for words, _ in told), told[0][1] if len({kind for _, kind in told}) == 1
                      else None) for address, told in found.items()}


def _find_allocation(allocations: Sequence[Allocation], address: int) -> Allocation | None:
    return next((each for each in allocations if each.address <= address < max(each.end, each.address + 1)), None)


def map_variables(record: RecordedLaunch, module: Module) -> tuple[list[MappedRange], tuple[str, ...]]:
    """Of the recorded code object's memory: all of it where the module is itself, at its place; otherwise those
    variables that were no more as loading leaves them, by name, and the names of such that the module has not."""
    own = load(record.code)
    if isinstance(module, EmulatorModule) and module.base == record.base:
        parts = [(record.base + each.address, each.memory_size) for each in own.segments if each.load]
        return [MappedRange(f"code object at 0x{start:x}", start, size, start) for start, size in parts if size], ()
    found, nowhere = [], []
    for variable in program_variables(own):
        symbol = own.symbol(variable.name)
        assert symbol is not None
        one = MappedRange(f"variable {symbol.name}", record.base + symbol.address, symbol.size, 0)
        if _never_changed(record, own, symbol, one):
            continue
        try:
            there = module.variable(symbol.name)
        except LuthierError:  # a runtime need not know the names of all
            there = Buffer(0, 0)
        if there.size == symbol.size:
            found.append(replace(one, now=there.address))
        else:
            nowhere.append(symbol.name)
    return found, tuple(nowhere)


def _never_changed(record: RecordedLaunch, own: CodeObject, symbol: Symbol, one: MappedRange) -> bool:
    """As far as it is recorded a variable is what loading makes it, before the launch and after it."""
    content = bytearray(own.read(symbol.address, symbol.size))
    for address, data in resolve_relocations(own, record.base):
        offset = address - symbol.address
        if 0 <= offset <= len(content) - len(data):
            content[offset : offset + len(data)] = data
    return all(piece.before == piece.after == content[piece.offset : piece.offset + len(piece.before)]
               for piece in pieces(record, [one]))


def relocate_arguments(kernel: KernelRecord, kernarg: bytes, allocations: Sequence[MappedRange]) -> bytes:
    """Arguments whose aligned words that point into recorded allocations point to their counterparts."""
    changed = bytearray(kernarg)
    for arg in kernel.own_args:
        end = min(arg.offset + arg.size, len(kernarg)) - _WORD.size
        for offset in range(-(-arg.offset // _WORD.size) * _WORD.size, end + 1, _WORD.size):
            (value,) = _WORD.unpack_from(kernarg, offset)
            one = next((each for each in allocations if each.start <= value < max(each.end, each.start + 1)), None)
            if one is not None:
                _WORD.pack_into(changed, offset, one.now + value - one.start)
    return bytes(changed)


def inner_pointers(record: RecordedLaunch) -> int:
    """Words of recorded memory that look like addresses of recorded memory."""
    words = np.frombuffer(b"".join(page.before for page in record.pages), np.uint64)
    spans = [(each.address, each.end) for each in record.allocations]
    size = max((each.end for each in load(record.code).segments if each.load), default=0)
    inside = [(words >= start) & (words < end) for start, end in [*spans, (record.base, record.base + size)]]
    return int(np.count_nonzero(np.logical_or.reduce(inside)))
