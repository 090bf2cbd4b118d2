"""What kernels print without asking (-mprintf-kind=buffered): from their buffer to the program's stdout.

In: the buffer behind hidden_printf_buffer after a launch, and the formats in its code object's metadata. Out: messages
as those that kernels send otherwise, for the program to print (hostcalls.c). Invariant: when the launch counts as done,
everything is printed. Layouts: LLVM, AMDGPUEmitPrintf.cpp; ROCm device libraries, __printf_alloc; clr, rocprintf.cpp.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Iterator, Mapping
from typing import Any

from luthier_py.emulator.memory.device_memory import Memory, read_bytes, write_bytes

ARGUMENT = "hidden_printf_buffer"
_BUFFER_BYTES = 4 << 20  # as clr has it for work-groups of 1024
_HEAD = struct.Struct("<2I")  # bytes used, bytes that there are; behind this head
_TO_STDERR, _CONSTANT_FORMAT, _SIZE_SHIFT = 1, 2, 2  # bits of a record's first dword
_POLL_SECONDS = 1e-4


def formats(metadata: Mapping[str, Any]) -> dict[int, bytes]:
    """Format strings by their hash. An entry is ``0:0:HASH,FORMAT``."""
    found = {}
    for entry in metadata.get("amdhsa.printf", ()):
        number, comma, text = str(entry).split(":", 2)[-1].partition(",")
        if comma:
            found[int(number, 16)] = text.encode("utf-8", "surrogateescape")
    return found


class Printing:
    """Mutable: the buffer of all launches, which come one after the other."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._buffer = 0
        self._printed: ctypes.c_uint64 | None = None

    def set_message_word(self, address: int) -> None:
        """The program looks at the word at ``address`` for messages, and writes 0 when they are printed."""
        self._printed = ctypes.c_uint64.from_address(address)

    def empty(self) -> int:
        """The buffer's address, for a launch."""
        if not self._buffer:
            self._buffer = self._memory.allocate(_BUFFER_BYTES, "printf buffer").address
        write_bytes(self._buffer, _HEAD.pack(0, _BUFFER_BYTES - _HEAD.size))
        return self._buffer

    def print(self, known: Mapping[int, bytes]) -> None:
        """Hand over what a launch has left, and wait until it is printed."""
        used, _ = _HEAD.unpack(read_bytes(self._buffer, _HEAD.size))
        content = read_bytes(self._buffer + _HEAD.size, min(used, _BUFFER_BYTES - _HEAD.size))
        batch = b"".join(struct.pack("<Q", len(message) // 8) + message for message in messages(content, known))
        if not batch or self._printed is None:
            return
        place = self._memory.reserve(len(batch) + 8)
        write_bytes(place, batch + bytes(8))
        self._printed.value = place
        while self._printed.value:
            time.sleep(_POLL_SECONDS)
        self._memory.free(place)


def messages(content: bytes, known: Mapping[int, bytes]) -> Iterator[bytes]:
    """Each record as a message: where to, then the format, strings and numbers, filled up to words of 8 bytes."""
    at = 0
    while at + 4 <= len(content):
        (control,) = struct.unpack_from("<I", content, at)
        size = control >> _SIZE_SHIFT
        if size < 4 or at + size > len(content):
            return
        record, at = content[at + 4 : at + size], at + size
        if control & _CONSTANT_FORMAT:
            text = known.get(int.from_bytes(record[:8], "little"))
            if text is None:
                continue
            record = text + bytes(8 - len(text) % 8) + record[8:]
        yield struct.pack("<Q", control & _TO_STDERR) + record
