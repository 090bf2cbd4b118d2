"""Commands of a program, carried out in native code as far as each is like one before.

In: the ring that the program writes (host/hip/ring.c), launches that are ready by what the program calls them. Out:
what was carried out, and why native code (host/worker/native/commands.c) came back. Invariant: commands are done in
their order, each once; one that the ring does not have comes by the socket, and nothing overtakes it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from luthier_py.base.records import dataclass
from luthier_py.emulator.code.engine import begin_address
from luthier_py.emulator.launches.ready import ReadyLaunch
from luthier_py.emulator.memory.device_memory import read_bytes
from luthier_py.emulator.records.layout import READY, Outcome
from luthier_py.host.native.protocol import Control
from luthier_py.host.worker.native import MOST_KNOWN, Pause, load_worker_library
from luthier_py.host.worker.wire import Request

_RECORD_HEAD_BYTES = 16
_SLEEP_NANOSECONDS = 500_000_000


class _InHand(ctypes.Structure):
    """What struct commands begins with (native/commands.c): the command to be done, bytes and address of its
    record, ready and outcome of the launch that stopped."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("next", "size", "record", "ready", "outcome")]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _ReadyCommand:
    """A launch by its head, what is ready for it, and what continues it once it has stopped."""

    head: bytes
    ready: ReadyLaunch
    go_on: Callable[[Outcome], None]


class CommandLoop:
    """Mutable. ``control``: where the arena begins; ``tables``: address of the number of tables of allocations;
    ``timed``: native code carries out nothing itself."""

    def __init__(self, control: int, tables: int, timed: bool = False) -> None:
        self._control = control
        self._library = load_worker_library()
        self._commands = self._library.luthier_commands_new(control, tables, timed)
        if not self._commands:
            raise MemoryError
        self._in_hand = _InHand.from_address(self._commands)
        self._begins = False
        self._known: dict[int, _ReadyCommand] = {}
        """By address: what native code has lives."""
        self._written = ctypes.c_uint64.from_address(control + Control.WRITTEN)
        self._taken = ctypes.c_uint64.from_address(control + Control.TAKEN)
        self._posted = ctypes.c_uint32.from_address(control + Control.POSTED)

    def carry_on(self, done: bool) -> Pause:
        """Carry out what is there; ``done``: what :meth:`carry_on` came back with is. The first call loads LLVM."""
        if not self._begins:
            self._library.luthier_commands_begin(
                self._commands, begin_address(), READY["valid"] // 8, READY["kernarg_words"] // 8, Outcome.FINISHED
            )
            self._begins = True
        return Pause(self._library.luthier_carry_on(self._commands, done))

    @property
    def request(self) -> Request:
        """The record in hand."""
        record = self._in_hand.record
        code, size = (int.from_bytes(read_bytes(record + at, 4), "little") for at in (8, 12))
        return Request(code, read_bytes(record + _RECORD_HEAD_BYTES, size))

    @property
    def number(self) -> int:
        """Of the command in hand."""
        return int(self._in_hand.next)

    def go_on(self) -> None:
        """With the launch that has stopped."""
        self._known[self._in_hand.ready].go_on(Outcome(self._in_hand.outcome))

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
        self._in_hand.size = 0

    def know(self, head: bytes, ready: ReadyLaunch, go_on: Callable[[Outcome], None]) -> None:
        """Launches that begin so are carried out natively from now on; ``go_on``: with one that was begun so."""
        alive = {address: known for address, known in self._known.items() if known.ready.alive}
        if len(alive) < len(self._known) or len(alive) >= MOST_KNOWN:
            self._known = alive if len(alive) < MOST_KNOWN else {}
            self.forget()
            for known in self._known.values():
                self._enter(known)
        self._known[ready.address] = _ReadyCommand(head, ready, go_on)
        self._enter(self._known[ready.address])

    def _enter(self, known: _ReadyCommand) -> None:
        self._library.luthier_commands_know(self._commands, known.head, known.ready.address)

    def forget(self) -> None:
        """What launches have in common is not what it was. From any thread, as nothing runs that asks for it."""
        self._library.luthier_commands_forget(self._commands)

    def sleep(self, unless: Callable[[], bool]) -> None:
        """Until something is in the ring or :meth:`wake` is called, or for a while; ``unless``: why it was called."""
        posted = self._posted.value
        if not unless():
            self._library.luthier_sleep(self._control, posted, _SLEEP_NANOSECONDS)

    def wake(self) -> None:
        """Something came by the socket."""
        self._posted.value = (self._posted.value + 1) & 0xFFFFFFFF
        self._library.luthier_wake(self._control + Control.POSTED)
