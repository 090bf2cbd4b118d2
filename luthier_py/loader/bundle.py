"""Offload bundles: several code objects, one for each target, in one file or section.

In: an AMD GPU code object, a HIP fat binary (``__CLANG_OFFLOAD_BUNDLE__``), or a host ELF that carries fat
binaries in section .hip_fatbin. Out: the device code objects in it. Invariant: every member lies in the file.
(Clang documentation, "ClangOffloadBundler".)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap

from luthier_py.errors import Malformed, Unsupported

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED_MAGIC = b"CCOB"
_ELF_MAGIC = b"\x7fELF"


@dataclass(frozen=True, slots=True)
class Member:
    """One device code object. ``triple`` is the bundle's word for its target: ``hipv4-amdgcn-amd-amdhsa--...``."""

    triple: str
    data: bytes = field(repr=False)


def unbundle(data: bytes | mmap, name: str = "<memory>") -> Iterator[Member]:
    """All AMD GPU code objects in a bundle or in a file that contains bundles, in file order."""
    if data[: len(_COMPRESSED_MAGIC)] == _COMPRESSED_MAGIC:
        raise Unsupported(f"{name}: a compressed offload bundle; take it apart with clang-offload-bundler --unbundle")
    at = data.find(_MAGIC)
    while at >= 0:
        end = at + len(_MAGIC)
        for triple, offset, size in _entries(data, at, name):
            end = max(end, at + offset + size)
            if "amdgcn" in triple and data[at + offset : at + offset + len(_ELF_MAGIC)] == _ELF_MAGIC:
                yield Member(triple, data[at + offset : at + offset + size])
        at = data.find(_MAGIC, end)


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
