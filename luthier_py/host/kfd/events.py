"""Events: the program waits for them, the driver and kernels set them.

In: the words of host/kfd/events.c in shared memory, and the page into whose slots kernels write the numbers of
events. Out: waiters wake.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from luthier_py.host.kfd import words
from luthier_py.host.kfd.protocol import ARENA_START, EVENT_WORDS, EVENTS, EVENTS_OFFSET

_UNUSED, _SET, _AUTO = 0, 2, 4
_UNSIGNALED = (1 << 64) - 1  # of a slot: not written yet (kfd_events.c)
_TIMES, _WAITING, _DATA = 8, 12, 16
_STRIDE = 4 * EVENT_WORDS
_SCAN_SECONDS = 0.0005
PAGE_BYTES = 8 * EVENTS  # of the page of slots


class Events:
    """Mutable: the table in shared memory."""

    def __init__(self) -> None:
        self._slots: NDArray[np.uint64] | None = None
        self._page = 0  # address of the slots
        self._thread: threading.Thread | None = None
        self._running = 0  # kernels
        self._looking = threading.Event()  # set while there are any
        self._lock = threading.Lock()
        self._table = np.ctypeslib.as_array(
            (ctypes.c_uint32 * (EVENTS * EVENT_WORDS)).from_address(ARENA_START + EVENTS_OFFSET)
        ).reshape(EVENTS, EVENT_WORDS)

    def set(self, number: int, data: bytes = b"") -> None:
        """``data``: what threads that wait for it read."""
        if not 0 < number < EVENTS:
            return
        place = ARENA_START + EVENTS_OFFSET + _STRIDE * number
        state = words.load(place, 32)
        if state == _UNUSED:
            return
        if data:
            ctypes.memmove(place + _DATA, data, len(data))
        waiting = words.load(place + _WAITING, 32)  # before it is set again, so that no waiting thread is missed
        words.add(place + _TIMES, 1, 32)
        if not (state & _AUTO and waiting):
            words.store(place, _SET | state & _AUTO, 32)
        words.add(ARENA_START, 1, 32)
        words.wake(ARENA_START)

    def of_type(self, kind: int) -> list[int]:
        """Numbers of the events of a type that the program has created (KFD_IOC_EVENT_*)."""
        rows = (self._table[:, 0] != _UNUSED) & (self._table[:, 1] == kind)
        return [int(number) for number in np.flatnonzero(rows)]

    def use_page(self, address: int) -> None:
        """Where kernels write the number of an event before they send an interrupt; a thread looks from now on."""
        slots = np.ctypeslib.as_array((ctypes.c_uint64 * EVENTS).from_address(address))
        slots[:] = _UNSIGNALED
        with self._lock:
            self._slots, self._page = slots, address
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, daemon=True)
            self._thread.start()

    def leave_page(self, address: int) -> None:
        """Memory at ``address`` is freed: if it was that page, its words are read no more."""
        with self._lock:
            if self._page == address:
                self._slots, self._page = None, 0

    @contextmanager
    def poll_events(self) -> Iterator[None]:
        """While a kernel runs."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)
            self.scan()

    def _count(self, more: int) -> None:
        with self._lock:
            self._running += more
            (self._looking.set if self._running else self._looking.clear)()

    def scan(self) -> None:
        """What kernels have written."""
        with self._lock:
            slots = self._slots
            found = np.flatnonzero(slots != _UNSIGNALED).tolist() if slots is not None else []
            if slots is not None:
                slots[found] = _UNSIGNALED
        for slot in found:
            self.set(slot)

    def _look(self) -> None:
        while self._looking.wait():
            self.scan()
            threading.Event().wait(_SCAN_SECONDS)
