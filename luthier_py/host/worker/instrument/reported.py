"""What launches have counted, taken from memory of the program (host/preload/reports.c).

In: slots that the program announces and its device fills. Out: their contents, as RESULT messages have them. Invariant:
in the order of the launches, each once; what comes by the wire between two launches comes between their reports.
"""

from __future__ import annotations

import mmap
import select
import socket

from luthier_py.host.native.protocol import Message, ReportPlace
from luthier_py.host.worker.wire import Request, Wire

SHORTEST_NAP, LONGEST_NAP = 50e-6, 2e-3  # seconds, while a launch runs
LOOK_AGAIN = 0.5  # seconds, where no launch is
MOST_IN_A_ROW = 32  # reports, while there may be a message

_WRITTEN, _FAILED, _TAKEN, _ASLEEP = (
    place // 8 for place in (ReportPlace.WRITTEN, ReportPlace.FAILED, ReportPlace.TAKEN, ReportPlace.ASLEEP)
)
_FIRST_SLOT, _SLOTS, _SLOT_BYTES = int(ReportPlace.FIRST_SLOT), int(ReportPlace.SLOTS), int(ReportPlace.SLOT_BYTES)
_HEAD_BYTES = 16  # of a slot


class ReportRing:
    """Mutable: slots in a file that ``process`` has open, from ``offset`` on; OSError where it cannot be had."""

    def __init__(self, process: int, file: int, offset: int) -> None:
        size = _FIRST_SLOT + _SLOTS * _SLOT_BYTES
        with open(f"/proc/{process}/fd/{file}", "r+b", buffering=0) as shared:
            self._memory = mmap.mmap(shared.fileno(), size, offset=offset)
        view = memoryview(self._memory)
        self._words, self._halves = view.cast("Q"), view.cast("I")
        self.unfilled = 0
        """Slots of launches that the device did not end."""

    @property
    def waits(self) -> bool:
        """Whether there are slots that were not taken."""
        return self._words[_WRITTEN] != self._words[_TAKEN]

    def take(self, results: int) -> bytes | None:
        """The next, if it is filled, and behind no more messages than ``results``. One that failed never is."""
        taken = self._words[_TAKEN]
        while taken != self._words[_WRITTEN]:
            at = _FIRST_SLOT + taken % _SLOTS * _SLOT_BYTES
            failed = self._words[_FAILED]
            filled = self._halves[at // 4] == (taken + 1) & 0xFFFFFFFF
            if (not filled and not failed) or self._words[at // 8 + 1] > results:
                return None
            content = self._memory[at + _HEAD_BYTES : at + _HEAD_BYTES + self._halves[at // 4 + 1]]
            taken += 1
            self._words[_TAKEN] = taken
            if filled:
                return content
            self.unfilled += 1
        return None

    def sleep(self) -> None:
        """From now on the program says when there is more."""
        self._words[_ASLEEP] = 1


class ToolWire(Wire):
    """Mutable: messages, and reports from a ring as if they were."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._ring: ReportRing | None = None
        self._results = 0  # that came as messages, since there is a ring
        self._in_a_row = 0  # reports from the ring

    def listen_to(self, ring: ReportRing) -> None:
        """Take reports from this ring from now on, too; RESULT messages are counted from here."""
        self._ring, self._results = ring, 0

    @property
    def unfinished(self) -> int:
        """Launches that the device did not end."""
        return 0 if self._ring is None else self._ring.unfilled

    def receive(self) -> Request | None:
        if (ring := self._ring) is None:
            return super().receive()
        nap = SHORTEST_NAP
        while self._in_a_row < MOST_IN_A_ROW or not self._comes(0):
            self._in_a_row %= MOST_IN_A_ROW
            content = ring.take(self._results)
            if content is not None:
                self._in_a_row += 1
                return Request(Message.RESULT, content)
            if not ring.waits:
                ring.sleep()
            if self._comes(nap if ring.waits else LOOK_AGAIN):
                break
            nap = min(2 * nap, LONGEST_NAP)
        self._in_a_row = 0
        return self._message(ring)

    def _message(self, ring: ReportRing) -> Request | None:
        """The next one; at the program's end what it has left behind."""
        request = super().receive()
        if request is not None:
            self._results += request.code == Message.RESULT
            return request
        content = ring.take(self._results)
        return None if content is None else Request(Message.RESULT, content)

    def _comes(self, seconds: float) -> bool:
        """Whether there is a message, or the end."""
        return self.has_more or bool(select.select([self._socket], [], [], seconds)[0])
