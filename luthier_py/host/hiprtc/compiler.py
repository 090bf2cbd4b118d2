"""The worker behind hiprtc: programs as text to code objects or bitcode, and bitcode linked to code objects.

In: requests of host/hiprtc/protocol. Out: a result, the compiler's words, what it made. Invariant: a program that
cannot be compiled, a compiler that is not there, is a result with a log that says why; nothing is said on stderr.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from luthier_py.base.errors import LuthierError
from luthier_py.host.hiprtc.compilation import Compiled, SourceText, compile_program
from luthier_py.host.hiprtc.linking import link_inputs
from luthier_py.host.hiprtc.protocol import HiprtcMessage, HiprtcResult, Input
from luthier_py.host.worker.wire import Reader, Request, prefix_with_length


class CompilerService:
    """One program's compiler."""

    over = False

    def answer(self, request: Request) -> bytes:
        """Compile (COMPILE), or link (any other code); the reply has result, log, code object, bitcode and names."""
        read = Reader(request.content)
        if request.code == HiprtcMessage.COMPILE:
            return _reply(HiprtcResult.COMPILATION, lambda: compile_program(_program(read)))
        return _reply(HiprtcResult.LINKING, lambda: link_inputs(read.text(), read.texts(), _inputs(read)))

    def handle_exit(self) -> None:
        """Does nothing: no state outlives a request."""


def _reply(failure: HiprtcResult, make: Callable[[], Compiled]) -> bytes:
    try:
        made, result = make(), HiprtcResult.SUCCESS
    except LuthierError as error:
        made, result = Compiled(f"{error}\n"), failure
    parts = [made.log.encode(errors="replace"), made.code, made.bitcode, *(name.encode() for name in made.names)]
    return struct.pack("<I", result) + b"".join(map(prefix_with_length, parts))


def _program(read: Reader) -> SourceText:
    folder, target, name, source = read.text(), read.text(), read.text(), read.text()
    headers = tuple((read.text(), read.text()) for _ in range(read.number()))
    return SourceText(folder, target, name, source, headers, read.texts(), read.texts())


def _inputs(read: Reader) -> list[tuple[Input, bytes]]:
    return [(Input(read.number()), read.data()) for _ in range(read.number())]
