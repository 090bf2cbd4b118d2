"""The worker's end of the connection: messages in, replies out (host/native/protocol says what is in them).

Invariant: every request that has a reply gets exactly one, also when it failed.
"""

from __future__ import annotations

import socket
import struct

from luthier_py.base.records import dataclass

HEAD = struct.Struct("<II")
_AT_ONCE = 1 << 14  # bytes
_CREDENTIALS = struct.Struct("3i")  # process, user, group


@dataclass(frozen=True, slots=True)
class Request:
    """One message. ``code``: of the protocol that the service speaks; ``content``: the bytes behind the head."""

    code: int
    content: bytes


def prefix_with_length(data: bytes) -> bytes:
    """Bytes in a message, behind their number."""
    return struct.pack("<I", len(data)) + data


class Reader:
    """Mutable: what is left of a message."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def number(self) -> int:
        """The next 32 bits, unsigned; struct.error where the message ends before."""
        (value,) = struct.unpack_from("<I", self._content, self._at)
        self._at += 4
        return int(value)

    def data(self) -> bytes:
        """The next bytes, behind their number (32 bits)."""
        size = self.number()
        self._at += size
        return self._content[self._at - size : self._at]

    def text(self) -> str:
        """The next text, counted as `data` is; bytes that are not UTF-8 become surrogates."""
        return self.data().decode(errors="surrogateescape")

    def texts(self) -> tuple[str, ...]:
        """The next texts, behind their number (32 bits)."""
        return tuple(self.text() for _ in range(self.number()))

    def has_bytes_left(self) -> bool:
        """Whether the message has bytes that were not read yet."""
        return self._at < len(self._content)


def parts_of(content: bytes) -> list[bytes]:
    """What was counted one after the other."""
    read, parts = Reader(content), []
    while read.has_bytes_left():
        parts.append(read.data())
    return parts


class Wire:
    """Mutable: a stream socket. End of file is the program's end."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received, self._at = b"", 0  # what has come, and how far it was read

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

    @property
    def has_more(self) -> bool:
        """Whether some of the next message has come."""
        return self._at < len(self._received)

    def reply(self, status: int, content: bytes = b"") -> None:
        """Send a status (`host/native/protocol`) and content; ConnectionError where the program is gone."""
        self._socket.sendall(HEAD.pack(status, len(content)) + content)

    def _read(self, size: int) -> bytes | None:
        """Messages are often short, and many: they come as many at a time as there are."""
        end = self._at + size
        if end <= len(self._received):
            found = self._received[self._at : end]
            self._at = end
            return found
        data = bytearray(self._received[self._at :])
        while len(data) < size:
            piece = self._socket.recv(max(min(size - len(data), 1 << 20), _AT_ONCE))
            if not piece:
                return None
            data += piece
        self._received, self._at = bytes(data[size:]), 0
        return bytes(data[:size])
