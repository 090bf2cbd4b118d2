"""The worker's end of the connection: messages in, replies out (runtime.native.protocol says what is in them).

Invariant: every request that has a reply gets exactly one, also when it failed.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

HEAD = struct.Struct("<II")
_CREDENTIALS = struct.Struct("3i")  # process, user, group


@dataclass(frozen=True, slots=True)
class Request:
    code: int
    content: bytes


def counted(data: bytes) -> bytes:
    """Bytes in a message, behind their number."""
    return struct.pack("<I", len(data)) + data


class Wire:
    """Mutable: a stream socket. End of file is the program's end."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    @property
    def program(self) -> int:
        """The process that the worker is for."""
        credentials = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return int(_CREDENTIALS.unpack(credentials)[0])

    def receive(self) -> Request | None:
        """The next message; None when the program is gone."""
        head = self._read(HEAD.size)
        if head is None:
            return None
        code, size = HEAD.unpack(head)
        content = self._read(size)
        return None if content is None else Request(code, content)

    def reply(self, status: int, content: bytes = b"") -> None:
        self._socket.sendall(HEAD.pack(status, len(content)) + content)

    def _read(self, size: int) -> bytes | None:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(size - len(data), 1 << 20))
            if not piece:
                return None
            data += piece
        return bytes(data)
