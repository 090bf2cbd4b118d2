"""ELF notes and the metadata that code objects keep in one of them.

In: the bytes of a NOTE segment. Out: its notes, and the msgpack document of the AMDGPU metadata note as
Python data. Invariant: packing what was unpacked from a compiler's note gives the same bytes.
(AMDGPUUsage, "Note Records" and "Code Object Metadata", code objects v3 and later.)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgpack

from luthier_py.base.errors import Malformed
from luthier_py.base.records import dataclass

_HEADER = struct.Struct("<3I")
METADATA_OWNER = b"AMDGPU\0"
METADATA_TYPE = 32  # NT_AMDGPU_METADATA

Metadata = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Note:
    """One note; ``offset`` counts from the start of the segment."""

    offset: int
    owner: bytes
    type: int
    content: bytes

    @property
    def is_metadata(self) -> bool:
        """Whether it has the metadata of a code object (AMDGPUUsage, NT_AMDGPU_METADATA)."""
        return self.owner == METADATA_OWNER and self.type == METADATA_TYPE

    def pack(self) -> bytes:
        """The note as in a NOTE segment: header, owner and content, the latter two padded to multiples of four
        bytes."""
        header = _HEADER.pack(len(self.owner), len(self.content), self.type)
        return header + _pad_content(self.owner) + _pad_content(self.content)


def read_notes(segment: bytes, what: str) -> tuple[Note, ...]:
    """All notes of a NOTE segment. ``what`` names the place in errors."""
    notes, at = [], 0
    while at < len(segment):
        if at + _HEADER.size > len(segment):
            raise Malformed(f"{what}: note at 0x{at:x} is truncated")
        owner_size, content_size, type = _HEADER.unpack_from(segment, at)
        owner = at + _HEADER.size
        content = owner + _align_size(owner_size)
        if content + content_size > len(segment):
            raise Malformed(f"{what}: note at 0x{at:x} with {content_size} bytes ends outside its segment of "
                            f"0x{len(segment):x} bytes")
        notes.append(Note(at, segment[owner : owner + owner_size], type, segment[content : content + content_size]))
        at = content + _align_size(content_size)
    return tuple(notes)


def unpack_metadata(content: bytes, what: str) -> Metadata:
    """The document in a metadata note's content; Malformed where that is no map in msgpack. ``what`` names the place in
    errors."""
    try:
        document = msgpack.unpackb(content, strict_map_key=False)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise Malformed(f"{what}: metadata is not msgpack: {str(error) or type(error).__name__}") from None
    if not isinstance(document, dict):
        raise Malformed(f"{what}: metadata is a {type(document).__name__}, not a map")
    return document


def merge_metadata(documents: Sequence[Metadata], what: str) -> Metadata:
    """One document with the kernels of all. Malformed where they disagree about anything else."""
    merged: Metadata = {}
    kernels: list[Any] = []
    for document in documents:
        for key, value in document.items():
            if key != "amdhsa.kernels" and merged.setdefault(key, value) != value:
                raise Malformed(f"{what}: two metadata notes have different values of {key}")
        rows = document.get("amdhsa.kernels", [])
        if not isinstance(rows, list):
            raise Malformed(f"{what}: amdhsa.kernels is a {type(rows).__name__}, not an array")
        kernels += rows
    return merged | {"amdhsa.kernels": kernels}


def pack_metadata(metadata: Metadata) -> bytes:
    """A document as a metadata note's content; Malformed where it is nested too deep for msgpack to write."""
    try:
        packed: bytes = msgpack.packb(metadata)
    except ValueError as error:  # it packs less deep than it unpacks
        raise Malformed(f"metadata cannot be written back: {error}") from None
    return packed


def _align_size(size: int) -> int:
    return (size + 3) & ~3


def _pad_content(content: bytes) -> bytes:
    return content + bytes(_align_size(len(content)) - len(content))
