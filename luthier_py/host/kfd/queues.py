"""Queues of the emulated GPUs: a thread each, from the doorbell to the completion signal.

In: rings in shared memory. Out: what their packets ask for. Source: HSA Platform System Architecture Specification
1.2, 2.8 and 2.9 (AQL); AMDGPUUsage, "HSA AQL Queue"; amd_hsa_queue.h, amd_hsa_signal.h. Invariant: packets of a queue
are carried out in their order; the read index and a packet's header change only when it is done, or, for a dispatch,
when it was taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from luthier_py.base.errors import DeviceError, LuthierError
from luthier_py.base.records import dataclass
from luthier_py.emulator.memory.device_memory import read_bytes
from luthier_py.host.kfd import sdma, words
from luthier_py.host.worker.error_boundary import run_guarded

VENDOR, INVALID, DISPATCH, BARRIER_AND, AGENT_DISPATCH, BARRIER_OR = range(6)
PM4, BARRIER_VALUE = 1, 2  # AMD's formats of vendor packets
PACKET_BYTES = 64
COMPLETION = 56  # in every packet
_VALUE, _MAILBOX, _EVENT, _START, _END = 8, 16, 24, 32, 40  # of amd_signal_t
_WRITE_INDEX, _INACTIVE = 56, 192  # of amd_queue_t
_SHORTEST, _LONGEST = 50e-6, 2e-3  # seconds between two looks at what others must change


class Driver(Protocol):
    """What queues need of the driver."""

    def check(self, address: int, size: int) -> None: ...

    def interrupt(self, number: int) -> None:
        """Set the event with this number, and wake those that wait for it."""

    def dispatch(self, gpu: int, packet: int, queue: int) -> None: ...
    def halt(self, gpu: int, queue: int) -> None: ...
    def report_failure(self, queue: DriverQueue, error: Exception) -> None: ...
    def defer_unmapping(self) -> AbstractContextManager[None]: ...


@dataclass(slots=True, eq=False)
class QueueMemory:
    """Where a queue is: addresses, and bytes of its ring."""

    ring: int
    ring_bytes: int
    write_pointer: int
    read_pointer: int
    doorbell: int
    save_area: int


class DriverQueue:
    """Mutable: one queue and its thread."""

    def __init__(self, number: int, gpu: int, place: QueueMemory, driver: Driver) -> None:
        self.number, self.gpu, self.place, self._driver = number, gpu, place, driver
        self.alive = True
        self._rung = threading.Event()
        self._done = threading.Event()
        self.priority = self.percentage = 0
        self._packets = 0  # on it, as far as was reported
        words.store(place.doorbell, self.IDLE)

    IDLE = 0

    def start(self) -> None:
        """Carry out packets from now on, in a thread of its own."""
        threading.Thread(target=self._run, daemon=True).start()

    def ring(self, packets: int = 0) -> None:
        """``packets``: so many are on it. Later ones wait until their code was reported, too."""
        self._packets = max(self._packets, packets)
        self._rung.set()

    @property
    def active(self) -> bool:
        """As KFD has it: a queue without a ring, or with 0 percent, does nothing."""
        return bool(self.percentage and self.place.ring)

    def stop(self) -> None:
        """Returns when its thread touches memory no longer."""
        self.alive = False
        self._rung.set()
        while not self._done.wait(_LONGEST):
            self._halt()

    def _halt(self) -> None:
        """End what it is at."""

    def _run(self) -> None:
        try:
            self._carry_out()
        finally:
            self._done.set()

    def _carry_out(self) -> None:
        pause = _SHORTEST
        while self.alive:
            self._rung.clear()
            outcome = run_guarded(self._step_if_active)
            if isinstance(outcome, Exception):
                run_guarded(partial(self._fail, outcome), f"queue {self.number}")
                return
            if outcome is None:
                self._rung.wait()
            elif outcome:
                pause = _SHORTEST
            else:
                self._rung.wait(pause)
                pause = min(2 * pause, _LONGEST)

    def _fail(self, error: Exception) -> None:
        with self._driver.defer_unmapping():
            self._driver.report_failure(self, error)

    def _step_if_active(self) -> bool | None:
        """Nothing that happens to a queue that is being destroyed is news."""
        if not self.active:
            return None
        try:
            with self._driver.defer_unmapping():
                return self._step()
        except LuthierError:
            if self.alive:
                raise
            return None

    def _step(self) -> bool | None:
        """True: a packet was carried out; False: the next one waits for memory; None: there is none."""
        raise NotImplementedError

    def _check(self) -> None:
        """DeviceError where its memory is no longer there."""
        self._driver.check(self.place.ring, self.place.ring_bytes)
        self._driver.check(self.place.write_pointer, 8)
        self._driver.check(self.place.read_pointer, 8)


class AqlQueue(DriverQueue):
    """User-mode compute queue of AQL packets."""

    IDLE = (1 << 64) - 1

    def __init__(self, number: int, gpu: int, place: QueueMemory, driver: Driver) -> None:
        super().__init__(number, gpu, place, driver)
        self._next = 0

    @property
    def address(self) -> int:
        """Of its amd_queue_t."""
        return self.place.write_pointer - _WRITE_INDEX

    @property
    def inactive_signal(self) -> int:
        """Address of the signal that reports the queue's errors (amd_queue_t.queue_inactive_signal); 0 for none."""
        return words.load(self.address + _INACTIVE)

    def _halt(self) -> None:
        self._driver.halt(self.gpu, self.address)

    def _step(self) -> bool | None:
        self._check()
        packet = self.place.ring + self._next * PACKET_BYTES % self.place.ring_bytes
        kind = words.load(packet, 16) & 255
        if self._next >= self._packets or kind == INVALID:
            return None
        if not self._is_barrier_met(packet, kind):
            return False
        started = time.monotonic_ns()
        if kind == DISPATCH:
            self._driver.dispatch(self.gpu, packet, self.address)
        if not self.alive:
            return None
        signal = words.load(packet + COMPLETION)
        words.store(packet, INVALID, 16)
        self._next += 1
        words.store(self.place.read_pointer, self._next)
        complete(signal, self._driver, started)
        return True

    def _is_barrier_met(self, packet: int, kind: int) -> bool:
        """Whether what a barrier waits for is there; DeviceError for a packet that no queue takes."""
        if kind == DISPATCH:
            return True
        if kind in (BARRIER_AND, BARRIER_OR):
            signals = [words.load(packet + 8 + 8 * i) for i in range(5)]
            done = [self._value(signal) == 0 for signal in signals if signal]
            return all(done) if kind == BARRIER_AND else any(done) or not done
        form = read_bytes(packet + 2, 1)[0]
        if kind == VENDOR and form == PM4:
            return True  # cache maintenance: memory here is always coherent
        if kind == VENDOR and form == BARRIER_VALUE:
            return self._barrier_value(packet)
        raise BadPacket(f"AQL packet of type {kind}, format {form}, which no queue of this device takes")

    def _barrier_value(self, packet: int) -> bool:
        """hsa_amd_barrier_value_packet_t: (signal & mask) compared with a value."""
        signal, value, mask = (words.load(packet + 8 + 8 * i) for i in range(3))
        if not signal:
            return True
        now, value = convert_to_signed(self._value(signal) & mask), convert_to_signed(value)
        condition = words.load(packet + 32, 32)
        return (now == value, now != value, now < value, now >= value)[condition & 3]

    def _value(self, signal: int) -> int:
        self._driver.check(signal, PACKET_BYTES)
        return words.load(signal + _VALUE)


class SdmaQueue(DriverQueue):
    """A ring of SDMA packets; its pointers and its doorbell count bytes."""

    def _step(self) -> bool | None:
        self._check()
        end, at = words.load(self.place.doorbell), words.load(self.place.read_pointer)
        if at >= end:
            return None
        word = partial(self._word, at)
        size = sdma.size_of(word(0))
        if word(0) & 255 == sdma.WRITE:
            size += (word(3) & 0xFFFFF) + 1
        try:
            sdma.carry_out([word(i) for i in range(size)], self._driver)
        except sdma.NotYet:
            return False
        if self.alive:
            words.store(self.place.read_pointer, at + 4 * size)
        return True

    def _word(self, at: int, index: int) -> int:
        return words.load(self.place.ring + (at + 4 * index) % self.place.ring_bytes, 32)


class BadPacket(DeviceError):
    """A packet that the queue does not take."""


def complete(signal: int, driver: Driver, started: int, by: Callable[[int], None] | None = None) -> None:
    """What a packet processor does to a completion signal; ``by`` changes its value otherwise than by -1."""
    if not signal:
        return
    driver.check(signal, PACKET_BYTES)
    words.store(signal + _START, started)
    words.store(signal + _END, time.monotonic_ns())
    if by is None:
        words.add(signal + _VALUE, -1)
    else:
        by(signal + _VALUE)
    mailbox, event = words.load(signal + _MAILBOX), words.load(signal + _EVENT, 32)
    if mailbox:
        driver.interrupt(event)


def convert_to_signed(value: int) -> int:
    """A word of 64 bits, read as two's complement."""
    return value - (1 << 64) if value >> 63 else value
