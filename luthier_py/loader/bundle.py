"""Offload bundles: several code objects, one for each target, in one file or section.

In: an AMD GPU code object, a HIP fat binary (``__CLANG_OFFLOAD_BUNDLE__``, or compressed, ``CCOB``), or a host ELF
that carries fat binaries in section .hip_fatbin. Out: the device code objects in it. Invariant: every member lies in
the file, or in what one compressed bundle of it holds. (Clang documentation, "ClangOffloadBundler".)
"""

from __future__ import annotations

import re
import struct
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from mmap import mmap

from luthier_py.errors import Malformed
from luthier_py.loader import compressed
from luthier_py.loader.codeobject import CodeObject, load

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_ANY = re.compile(_MAGIC + b"|" + compressed.MAGIC)
_ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Member:
    """One device code object. ``triple`` is the bundle's word for its target: ``hipv4-amdgcn-amd-amdhsa--...``."""

    triple: str
    data: bytes = field(repr=False)


def load_all(data: bytes | mmap, name: str = "<memory>") -> list[CodeObject]:
    """The code object that ``data`` is, or all that a bundle or a host program carries, named by their targets."""
    found = [load(member.data, f"{name}, {member.triple.rpartition('--')[2]}") for member in unbundle(data, name)]
    return found or [load(bytes(data), name)]


def unbundle(data: bytes | mmap, name: str = "<memory>") -> Iterator[Member]:
    """All AMD GPU code objects in a bundle or in a file that contains bundles, in file order."""
    at = 0
    while (found := _ANY.search(data, at)) is not None:
        at = found.start()
        if found[0] == _MAGIC:
            at = yield from _members(data, at, name)
        elif (head := compressed.head_at(data, at)) is not None:
            yield from _unpacked(compressed.decompress(data, head, name), f"{name}, unpacked from 0x{at:x}")
            at = head.next_at
        elif at == 0:
            raise compressed.unknown(name)
        else:
            at = found.end()


def _unpacked(bundle: bytes, name: str) -> Iterator[Member]:
    if not bundle.startswith(_MAGIC):
        raise Malformed(f"{name}: no offload bundle is in it")
    yield from _members(bundle, 0, name)


def _members(data: bytes | mmap, at: int, name: str) -> Generator[Member, None, int]:
    """The members of the bundle at ``at``; gives back where it ends."""
    end = at + len(_MAGIC)
    for triple, offset, size in _entries(data, at, name):
        end = max(end, at + offset + size)
        if "amdgcn" in triple and data[at + offset : at + offset + min(size, len(_ELF_MAGIC))] == _ELF_MAGIC:
            yield Member(triple, data[at + offset : at + offset + size])
    return end


def _entries(data: bytes | mmap, at: int, name: str) -> Iterator[tuple[str, int, int]]:
    """(triple, offset from the bundle's start, size) of each entry of the bundle at ``at``."""
    what = f"{name}: offload bundle at 0x{at:x}"
    try:
        cursor = at + len(_MAGIC)
        (count,) = struct.unpack_from("<Q", data, cursor)
        cursor += 8
        for _ in range(count):
            offset, size, triple_size = struct.unpack_from("<3Q", data, cursor)
            cursor += 24
            if at + offset + size > len(data) or cursor + triple_size > len(data):
                raise Malformed(f"{what}: entry with 0x{size:x} bytes at 0x{offset:x} ends outside the file")
            yield data[cursor : cursor + triple_size].decode("ascii", "replace"), offset, size
            cursor += triple_size
    except struct.error:
        raise Malformed(f"{what}: its table of entries is truncated") from None
