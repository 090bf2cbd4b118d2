"""Commands of a program, carried out in native code as far as each is like one before.

In: the ring that the program writes (host/hip/control.c), launches that are ready by what the program calls them. Out:
what was carried out, and why native code (ticket_code) came back. Invariant: commands are done in their order, each
once; one that the ring does not have comes by the socket, and nothing overtakes it.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from luthier_py.base.storage import sources
from luthier_py.emulator.code.engine import begin_address, native_function
from luthier_py.emulator.launches.ready import ReadyLaunch
from luthier_py.emulator.memory.device_memory import read_bytes
from luthier_py.emulator.records.layout import Outcome
from luthier_py.emulator.records.words import Words, address_of, zero_words
from luthier_py.host.native.protocol import Control
from luthier_py.host.worker.device.command_code import (
    COMMANDS,
    ENTRIES,
    ENTRY_WORDS,
    HEAD_WORDS,
    RECORD_HEAD_BYTES,
    Pause,
    home,
    native_commands,
    native_sleep,
)
from luthier_py.host.worker.futex import futex_wake
from luthier_py.host.worker.wire import Request

MOST_KNOWN = ENTRIES // 2
_SLEEP_NANOSECONDS = 500_000_000


@dataclass(frozen=True, slots=True)
class _ReadyCommand:
    """A launch by its head, what is ready for it, and how somebody goes on with one that has stopped."""

    head: Words
    ready: ReadyLaunch
    go_on: Callable[[Outcome], None]


class CommandLoop:
    """Mutable. ``control``: where the arena begins; ``tables``: address of the number of tables of allocations;
    ``timed``: native code carries out nothing itself."""

    def __init__(self, control: int, tables: int, timed: bool = False) -> None:
        self._control = control
        self._launches = zero_words(ENTRIES * ENTRY_WORDS)
        self._known: dict[int, _ReadyCommand] = {}
        """By address: what the table names lives."""
        self._record = zero_words(len(COMMANDS))
        first = {"control": control, "next": 1, "launches": address_of(self._launches), "tables": tables,
                 "timed": int(timed)}  # fmt: skip
        for name, value in first.items():
            self._record[COMMANDS[name] // 8] = value
        self._written = ctypes.c_uint64.from_address(control + Control.WRITTEN)
        self._taken = ctypes.c_uint64.from_address(control + Control.TAKEN)
        self._posted = ctypes.c_uint32.from_address(control + Control.POSTED)

    def _field(self, name: str) -> int:
        return self._record[COMMANDS[name] // 8]

    def carry_on(self, done: bool) -> Pause:
        """Carry out what is there; ``done``: what :meth:`carry_on` came back with is. The first call loads LLVM."""
        if not self._field("begin"):
            self._record[COMMANDS["begin"] // 8] = begin_address()
        return Pause(_function()(address_of(self._record), done))

    @property
    def request(self) -> Request:
        """The record in hand."""
        record = self._field("record")
        code, size = (int.from_bytes(read_bytes(record + at, 4), "little") for at in (8, 12))
        return Request(code, read_bytes(record + RECORD_HEAD_BYTES, size))

    @property
    def number(self) -> int:
        """Of the command in hand."""
        return self._field("next")

    def go_on(self) -> None:
        """With the launch that has stopped."""
        self._known[self._field("ready")].go_on(Outcome(self._field("outcome")))

    @property
    def none_in_ring(self) -> bool:
        """Whether all that the program has written to the ring is taken."""
        return self._written.value == self._taken.value

    def stop_known(self) -> None:
        """From another thread: the launch that native code has begun by itself comes back. None begins so again."""
        for known in tuple(self._known.values()):
            known.ready.stop()

    def take_other(self) -> None:
        """What is in hand is not in the ring."""
        self._record[COMMANDS["size"] // 8] = 0

    def know(self, head: bytes, ready: ReadyLaunch, go_on: Callable[[Outcome], None]) -> None:
        """Launches that begin so are carried out natively from now on; ``go_on``: with one that was begun so."""
        alive = {address: known for address, known in self._known.items() if known.ready.alive}
        if len(alive) < len(self._known) or len(alive) >= MOST_KNOWN:
            self._known = alive if len(alive) < MOST_KNOWN else {}
            self.forget()
            for known in self._known.values():
                self._enter(known)
        self._known[ready.address] = _ReadyCommand(array("Q", head), ready, go_on)
        self._enter(self._known[ready.address])

    def _enter(self, known: _ReadyCommand) -> None:
        at = home(known.head.tolist()) * ENTRY_WORDS
        while self._launches[at + HEAD_WORDS] and self._launches[at : at + HEAD_WORDS] != known.head:
            at = (at + ENTRY_WORDS) % len(self._launches)
        self._launches[at : at + HEAD_WORDS] = known.head
        self._launches[at + HEAD_WORDS] = known.ready.address

    def forget(self) -> None:
        """What launches have in common is not what it was. From any thread, as nothing runs that asks for it."""
        self._launches[HEAD_WORDS::ENTRY_WORDS] = zero_words(ENTRIES)

    def sleep(self, unless: Callable[[], bool]) -> None:
        """Until something is in the ring or :meth:`wake` is called, or for a while; ``unless``: why it was called."""
        posted = self._posted.value
        if not unless():
            _sleep()(self._control, posted, _SLEEP_NANOSECONDS)

    def wake(self) -> None:
        """Something came by the socket."""
        self._posted.value = (self._posted.value + 1) & 0xFFFFFFFF
        futex_wake(self._control + Control.POSTED)


_ROOMS = ("host",)
"""Whose sources decide what ticket_code writes, beside the translator's."""


@cache
def _function() -> Any:
    kinds = ctypes.c_uint64, ctypes.c_uint64
    address = native_function("luthier_tickets", native_commands, _libc(), sources(*_ROOMS))
    return ctypes.CFUNCTYPE(ctypes.c_uint64, *kinds)(address)


@cache
def _sleep() -> Any:
    kinds = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64
    return ctypes.CFUNCTYPE(None, *kinds)(native_function("luthier_sleep", native_sleep, _libc(), sources(*_ROOMS)))


@cache
def _libc() -> dict[str, int]:
    library = ctypes.CDLL(None)
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
            for name in ("syscall", "clock_gettime")}
