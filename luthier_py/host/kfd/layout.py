"""C structures that ioctls and packets are made of.

In: ``name:code`` words, codes as of module struct. Out: objects with these fields, from bytes and to bytes.
Invariant: what is shorter than the structure has zeros for the rest, and what is longer keeps its rest, as KFD has it
for older and newer callers.
"""

from __future__ import annotations

import struct
from types import SimpleNamespace


class StructLayout:
    """One structure, little endian, without padding that is not named."""

    def __init__(self, text: str) -> None:
        words = [word.partition(":") for word in text.split()]
        self.names = [name for name, _, _ in words]
        self._struct = struct.Struct("<" + "".join(code for _, _, code in words))
        self.size = self._struct.size

    def read(self, data: bytes) -> SimpleNamespace:
        """The fields by name, from the first bytes of ``data``."""
        values = self._struct.unpack(data[: self.size].ljust(self.size, b"\0"))
        return SimpleNamespace(**dict(zip(self.names, values, strict=True)))

    def write(self, fields: SimpleNamespace, data: bytes = b"") -> bytes:
        """As many bytes as ``data`` has, whose rest stays; all without it."""
        packed = self._struct.pack(*(getattr(fields, name) for name in self.names))
        return packed if not data else (packed + data[self.size :])[: len(data)]
