"""What is told of a queue's packets, and in which order: none is carried out before its code could be told."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager, nullcontext

from patience import until

from luthier_py.host.kfd.queues import BARRIER_AND, INVALID, PACKET_BYTES, AqlQueue, DriverQueue, QueueMemory


class Nobody:
    """A driver for queues that wait for nothing."""

    def check(self, address: int, size: int) -> None: ...
    def interrupt(self, number: int) -> None: ...
    def dispatch(self, gpu: int, packet: int, queue: int) -> None: ...
    def halt(self, gpu: int, queue: int) -> None: ...

    def defer_unmapping(self) -> AbstractContextManager[None]:
        return nullcontext()

    def report_failure(self, queue: DriverQueue, error: Exception) -> None:
        raise error


def test_packets_that_were_not_told_wait() -> None:
    """They are there, and their doorbell was rung; of what was told only the first has come to the driver."""
    packets, words = (ctypes.c_uint16 * 2048)(), (ctypes.c_uint64 * 64)()
    packets[:: PACKET_BYTES // 2] = [INVALID] * 64
    at, pointers = ctypes.addressof(packets), ctypes.addressof(words)
    place = QueueMemory(at, ctypes.sizeof(packets), pointers + 56, pointers + 128, pointers, 0)
    queue = AqlQueue(1, 0, place, Nobody())
    queue.percentage = 100
    for index in range(2):
        packets[index * PACKET_BYTES // 2] = BARRIER_AND
    words[7], words[0] = 2, 1  # the write index, the doorbell
    queue.start()
    queue.ring(1)
    until(lambda: words[16] == 1)
    assert queue._step() is None and words[16] == 1
    queue.ring(2)
    until(lambda: words[16] == 2)
    queue.stop()
