"""Reports in memory of the program: in the order of the launches, each once, whatever comes as a message in between."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from luthier_py.host.native.protocol import Message, ReportPlace
from luthier_py.host.worker.instrument.reported import MOST_IN_A_ROW, ReportRing, ToolWire
from luthier_py.host.worker.wire import HEAD

BYTES = ReportPlace.FIRST_SLOT + ReportPlace.SLOTS * ReportPlace.SLOT_BYTES


class Program:
    """Mutable: the other side, as told.c has it."""

    def __init__(self) -> None:
        self.file = os.memfd_create("reports")
        os.ftruncate(self.file, mmap.PAGESIZE + BYTES)
        self.memory = mmap.mmap(self.file, BYTES, offset=mmap.PAGESIZE)
        self.set(ReportPlace.ASLEEP, 1)
        self.socket, other = socket.socketpair()
        self.wire = ToolWire(other)
        self.written = 0

    def word(self, at: int) -> int:
        return int(struct.unpack_from("<Q", self.memory, at)[0])

    def set(self, at: int, value: int) -> None:
        struct.pack_into("<Q", self.memory, at, value)

    def send(self, code: int, content: bytes = b"") -> None:
        self.socket.sendall(HEAD.pack(code, len(content)) + content)

    def post(self, content: bytes, results: int = 0, filled: bool = True) -> int:
        """Gives the slot's place."""
        at = ReportPlace.FIRST_SLOT + self.written % ReportPlace.SLOTS * ReportPlace.SLOT_BYTES
        struct.pack_into(f"<2IQ{len(content)}s", self.memory, at, self.written, len(content), results, content)
        self.written += 1
        if filled:
            self.fill(at)
        self.set(ReportPlace.WRITTEN, self.written)
        asleep = self.word(ReportPlace.ASLEEP)
        self.set(ReportPlace.ASLEEP, 0)
        if asleep:
            self.send(Message.REPORTED)
        return at

    def fill(self, at: int) -> None:
        """The launch of the slot that was written last is done."""
        struct.pack_into("<I", self.memory, at, self.written)

    def received(self) -> list[bytes]:
        """Contents until the end, in order; of messages without one their code."""
        self.socket.close()
        found = []
        while (request := self.wire.receive()) is not None:
            if request.code != Message.REPORTED:
                found.append(request.content or str(request.code).encode())
        return found


@pytest.fixture
def program() -> Iterator[Program]:
    made = Program()
    made.wire.listen_to(ReportRing(os.getpid(), made.file, mmap.PAGESIZE))
    yield made
    os.close(made.file)


def test_reports_come_in_order_and_once_around_the_ring(program: Program) -> None:
    """Also what a program has left behind that has ended since."""
    found: list[bytes] = []
    for number in range(3 * ReportPlace.SLOTS + 5):
        program.post(b"%d" % number)
        if number % 3 == 2:
            while len(found) <= number:
                request = program.wire.receive()
                assert request is not None
                found += [request.content] * (request.code == Message.RESULT)
    assert found + program.received() == [b"%d" % number for number in range(3 * ReportPlace.SLOTS + 5)]


def test_messages_keep_their_place(program: Program) -> None:
    """One launch was waited for: its report is a message, sent before the ring's next."""
    program.post(b"first")
    program.send(Message.RESULT, b"second")
    program.post(b"third", results=1)
    program.send(Message.RESULT, b"fourth")
    program.post(b"fifth", results=2)
    assert program.received() == [b"first", b"second", b"third", b"fourth", b"fifth"]


def test_a_launch_that_runs_keeps_the_next_back_and_no_message(program: Program) -> None:
    at = program.post(b"slow", filled=False)
    program.send(Message.FORGET, b"other")
    requests = [program.wire.receive(), program.wire.receive()]
    assert [request.code for request in requests if request] == [Message.REPORTED, Message.FORGET]
    later = threading.Timer(0.05, program.fill, (at,))
    later.start()
    request = program.wire.receive()
    assert request is not None and request.content == b"slow"
    later.join()
    program.post(b"quick")
    assert program.received() == [b"quick"]


def test_what_failed_is_left_out(program: Program) -> None:
    program.post(b"done")
    program.post(b"failed", filled=False)
    program.post(b"too late", filled=False)
    program.set(ReportPlace.FAILED, 1)
    assert program.received() == [b"done"] and program.word(ReportPlace.TAKEN) == 3


def test_the_worker_sleeps_until_it_is_told(program: Program) -> None:
    """It takes none of the computer's time where nothing is launched, and says that it is to be woken."""
    program.set(ReportPlace.ASLEEP, 0)
    found: list[object] = []
    reader = threading.Thread(target=lambda: found.append(program.wire.receive()))
    used = time.process_time()
    reader.start()
    time.sleep(0.3)
    assert program.word(ReportPlace.ASLEEP) == 1 and not found and time.process_time() - used < 0.2
    program.post(b"at last")
    reader.join()
    assert program.received() == [b"at last"]


def test_a_message_waits_for_few_reports(program: Program) -> None:
    for number in range(ReportPlace.SLOTS):
        program.post(b"%d" % number)
    program.send(Message.FORGET, b"message")
    before = program.received().index(b"message")  # and what wakes the worker is a message as well
    assert 2 * MOST_IN_A_ROW >= before < ReportPlace.SLOTS


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(OSError):
        ReportRing(os.getpid(), 1 << 20, 0)
