"""A queue of compilations, carried out in child processes, several at once; what waves wait for comes first.

In: jobs that give bytes. Out: the bytes, or None where a child came to nothing. Invariant: a job changes nothing of
this process, so a thread that needs the result of a failed job can compile it itself.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

from luthier_py.base import llvm
from luthier_py.base.errors import LuthierError

CHILD_SECONDS = 300


class Job:
    """Mutable: one compilation. ``made`` and ``ended``: what it gave, and whether it has."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        self.work = work
        self.made: bytes | None = None
        self._ended = threading.Event()

    @property
    def ended(self) -> bool:
        """Whether the job is over; ``made`` is None then if the child failed or took more than CHILD_SECONDS."""
        return self._ended.is_set()

    def run(self) -> None:
        """Do the work in a child process and wait for it; a child that fails leaves ``made`` None, and nothing is
        raised."""
        try:
            self.made = llvm.apart(self.work, CHILD_SECONDS)
        except (LuthierError, OSError, MemoryError):
            self.made = None
        finally:
            self._ended.set()

    def wait(self) -> None:
        """Block until the job has ended."""
        self._ended.wait()

    def abandon(self) -> None:
        """No thread works on it any more."""
        self._ended = threading.Event()
        self._ended.set()


class CompileQueue:
    """Mutable: jobs that wait, and as many compiler threads as there are places, each with a child of its own."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._jobs: deque[Job] = deque()
        self._running: set[Job] = set()
        self._threads = 0
        self._lock = threading.Lock()

    def begin(self, work: Callable[[], bytes]) -> Job:
        """Behind all others."""
        job = Job(work)
        with self._lock:
            self._jobs.append(job)
            if self._threads < self.places:
                self._threads += 1
                threading.Thread(target=self._work, name="luthier-compile", daemon=True).start()
        return job

    def result(self, job: Job) -> bytes | None:
        """Wait for it; it is the next one to be begun."""
        with self._lock:
            if job in self._jobs:
                self._jobs.remove(job)
                self._jobs.appendleft(job)
        job.wait()
        return job.made

    def _work(self) -> None:
        job: Job | None = None
        try:
            while (job := self._next(job)) is not None:
                job.run()
        finally:
            if job is not None:  # it raised an unexpected exception
                with self._lock:
                    self._threads -= 1
                    self._running.discard(job)

    def _next(self, done: Job | None) -> Job | None:
        """None where there is nothing to do, and one thread less."""
        with self._lock:
            if done is not None:
                self._running.discard(done)
            if not self._jobs:
                self._threads -= 1
                return None
            job = self._jobs.popleft()
            self._running.add(job)
            return job

    def begin_anew(self) -> None:
        """Reset the queue in a forked child, which has neither the parent's threads nor their unfinished jobs."""
        self._lock, self._threads = threading.Lock(), 0
        for job in (*self._jobs, *self._running):
            job.abandon()
        self._jobs.clear()
        self._running.clear()


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


COMPILE_QUEUE = CompileQueue(cores())
os.register_at_fork(after_in_child=COMPILE_QUEUE.begin_anew)
