"""The worker behind hiprtc: programs as text to code objects or bitcode, and bitcode linked to code objects.

In: requests of runtime.hiprtc.protocol. Out: a result, the compiler's words, what it made. Invariant: a program that
cannot be compiled, a compiler that is not there, is a result with a log that says why; nothing is said on stderr.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from luthier_py.errors import LuthierError
from luthier_py.runtime.hiprtc.protocol import Input, Message, Result
from luthier_py.worker.compilation import Made, Program, compiled
from luthier_py.worker.linking import linked
from luthier_py.worker.wire import Request, counted


class CompilerService:
    """One program's compiler."""

    over = False

    def answer(self, request: Request) -> bytes:
        read = Reader(request.content)
        if request.code == Message.COMPILE:
            return _reply(Result.COMPILATION, lambda: compiled(read.program()))
        return _reply(Result.LINKING, lambda: linked(read.text(), read.texts(), read.inputs()))

    def ended(self) -> None:
        """Nothing is kept."""


def _reply(failure: Result, make: Callable[[], Made]) -> bytes:
    try:
        made, result = make(), Result.SUCCESS
    except LuthierError as error:
        made, result = Made(f"{error}\n"), failure
    parts = [made.log.encode(errors="replace"), made.code, made.bitcode, *(name.encode() for name in made.names)]
    return struct.pack("<I", result) + b"".join(map(counted, parts))


class Reader:
    """Mutable: what is left of a message."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def number(self) -> int:
        (value,) = struct.unpack_from("<I", self._content, self._at)
        self._at += 4
        return int(value)

    def data(self) -> bytes:
        size = self.number()
        self._at += size
        return self._content[self._at - size : self._at]

    def text(self) -> str:
        return self.data().decode(errors="surrogateescape")

    def texts(self) -> tuple[str, ...]:
        return tuple(self.text() for _ in range(self.number()))

    def program(self) -> Program:
        folder, target, name, source = self.text(), self.text(), self.text(), self.text()
        headers = tuple((self.text(), self.text()) for _ in range(self.number()))
        return Program(folder, target, name, source, headers, self.texts(), self.texts())

    def inputs(self) -> list[tuple[Input, bytes]]:
        return [(Input(self.number()), self.data()) for _ in range(self.number())]
