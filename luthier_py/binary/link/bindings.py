"""What a standalone code object names of the original: to be bound, once the original has an address.

In: a patch that was linked as a standalone code object. Out: a binding for each address of the original that its code
builds. Invariant: with all of them filled in, the code uses the program's variables and constants where the program has
them, and identifies functions by what the program's pointers hold; its own code and the tool's variables alone are
reached by the PC.

Any variable that the program can name says where the original is: ROCr's loader puts all segments of a code object into
one allocation (ExecutableImpl::LoadSegmentsV2).

A binding is `s_getpc_b64 pair` with the two adds of its distance: the first becomes `s_mov_b64 pair, 0`, which is as
long, and the literals of the adds become the address.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from luthier_py.base.errors import CheckFailed, Location, Unsupported
from luthier_py.base.records import dataclass
from luthier_py.binary.patch import Chunk, Fixup, FixupKind
from luthier_py.isa import OpFlag, build

if TYPE_CHECKING:
    from luthier_py.binary.loader import CodeObject
    from luthier_py.isa import InstructionSet

_DWORD = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Binding:
    """Offsets in the file of three dwords; what to write to the first, and the address for the other two."""

    getpc: int
    move: int
    low: int
    high: int
    address: int  # in the original object


def find_bindings(isa: InstructionSet, chunks: Iterable[Chunk], linked: CodeObject) -> tuple[Binding, ...]:
    """All that ``linked`` needs; Unsupported for an address that is built in another form."""
    found = []
    for chunk in chunks:
        start = _file_offset(linked, chunk.name)
        for base, fixups in _by_base(chunk).items():
            address = _original(fixups)
            if address is not None:
                found.append(_make_binding(isa, chunk, start, base, fixups, address))
    return tuple(found)


def apply_bindings(data: bytes, found: Iterable[Binding], base: int) -> bytes:
    """The code object as it is loaded where the original lies ``base`` above its own addresses."""
    out = bytearray(data)
    for binding in found:
        address = base + binding.address
        _DWORD.pack_into(out, binding.getpc, binding.move)
        _DWORD.pack_into(out, binding.low, address & 0xFFFFFFFF)
        _DWORD.pack_into(out, binding.high, address >> 32 & 0xFFFFFFFF)
    return bytes(out)


def _by_base(chunk: Chunk) -> dict[int, list[Fixup]]:
    groups: defaultdict[int, list[Fixup]] = defaultdict(list)
    for fixup in chunk.fixups:
        groups[fixup.base_offset].append(fixup)
    return groups


def _original(fixups: list[Fixup]) -> int | None:
    """The first address of the original object that these fixups name."""
    return next((fixup.target + fixup.addend for fixup in fixups if isinstance(fixup.target, int)), None)


def _make_binding(isa: InstructionSet, chunk: Chunk, start: int, base: int, fixups: list[Fixup],
                  address: int) -> Binding:
    halves = dict(half for fixup in fixups if fixup.target == address and not fixup.addend for half in _halves(fixup))
    getpc = isa.decode(chunk.code, base - 4)
    pair = getpc.operands[0].reg
    whole = sum(fixup.kind.size_bytes for fixup in fixups) == 8
    if not whole or len(halves) != 2 or OpFlag.GETS_PC not in getpc.op.flags or pair is None:
        raise Unsupported("it builds an address in a way that a copy in a module of its own cannot have",
                          Location(chunk.name, base - 4, isa.text(getpc)))
    move = int.from_bytes(build.copy(isa, pair, 0).raw, "little")
    low, high = (start + halves[half] for half in (FixupKind.REL32_LO, FixupKind.REL32_HI))
    return Binding(start + base - 4, move, low, high, address)


def _halves(fixup: Fixup) -> Iterator[tuple[FixupKind, int]]:
    """Offsets of the dwords that it fills."""
    if fixup.kind is FixupKind.REL64:
        yield from ((FixupKind.REL32_LO, fixup.offset), (FixupKind.REL32_HI, fixup.offset + 4))
    else:
        yield fixup.kind, fixup.offset


def _file_offset(obj: CodeObject, name: str) -> int:
    symbol = obj.symbol(name)
    if symbol is None:
        raise CheckFailed(f"{obj.name}: the copy has no symbol {name}; are the original's symbol tables damaged?")
    segment = next(s for s in obj.segments if s.load and s.address <= symbol.address < s.address + s.file_size)
    return segment.offset + symbol.address - segment.address
