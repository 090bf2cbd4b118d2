"""Code with its distances filled in, once everything has an address.

In: a chunk, its address, the addresses of names. Out: the chunk's final bytes. Invariant: only the bytes that
fixups name are written, and each distance fits in 32 bits, as code that builds addresses from dwords expects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from luthier_py.base.errors import Invalid, Unsupported

if TYPE_CHECKING:
    from luthier_py.binary.patch import Chunk, Fixup


def resolve(chunk: Chunk, addresses: Mapping[str, int]) -> bytes:
    """The chunk's code for its place in ``addresses``."""
    code = bytearray(chunk.code)
    for fixup in chunk.fixups:
        distance = _target(fixup, chunk, addresses) + fixup.addend - addresses[chunk.name] - fixup.base_offset
        if not -(1 << 31) <= distance < 1 << 31:
            raise Unsupported(f"chunk {chunk.name}, offset {fixup.offset}: {fixup.target} is {distance} bytes away; "
                              "code reaches 2 GiB; make the patch smaller")
        code[fixup.offset : fixup.offset + fixup.kind.size_bytes] = fixup.kind.encode_distance(distance)
    return bytes(code)


def _target(fixup: Fixup, chunk: Chunk, addresses: Mapping[str, int]) -> int:
    if isinstance(fixup.target, int):
        return fixup.target
    if fixup.target not in addresses:
        raise Invalid(f"chunk {chunk.name}, offset {fixup.offset}: the patch has no {fixup.target}")
    return addresses[fixup.target]
