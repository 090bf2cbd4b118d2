"""Ends a launch that exceeds its limits.

In: LaunchLimits, how many instructions have been executed so far, what ends the launch. Out: which limit was passed.
Invariant: time in which some worker compiled does not count, since a limit shorter than that would let no kernel run; a
launch that has executed more instructions than its limit has passed it, also if no check came before its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from luthier_py.emulator.options.limits import LaunchLimits

LOOK_SECONDS = 0.05
"""Until executed instructions are counted again."""


class LaunchTimer:
    """Mutable: of one launch; ``with`` it, time is counted."""

    def __init__(self, limits: LaunchLimits, executed: Callable[[], int], halt: Callable[[], None]) -> None:
        self._limits, self._executed, self._halt = limits, executed, halt
        self._lock = threading.Lock()
        self._compiling = 0  # workers that do
        self._compiled = 0.0  # seconds in which some did
        self._began = self._compiling_since = time.monotonic()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> LaunchTimer:
        self._began = time.monotonic()
        if self._limits.limited:
            self._wake_after(min(self._seconds_left(), LOOK_SECONDS if self._counts else threading.TIMEOUT_MAX))
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @property
    def passed(self) -> str:
        """The limit that was exceeded, in words; empty while neither was."""
        limits = self._limits
        if self._counts and self._executed() > (limits.instruction_limit or 0):
            return f"no end within the limit of {limits.instruction_limit} instructions"
        return "" if self._seconds_left() > 0 else f"no end within the time limit of {limits.time_limit:g} s"

    @contextmanager
    def exclude_compilation(self) -> Iterator[None]:
        """Some worker is."""
        with self._lock:
            if not self._compiling:
                self._compiling_since = time.monotonic()
            self._compiling += 1
        try:
            yield
        finally:
            with self._lock:
                self._compiling -= 1
                if not self._compiling:
                    self._compiled += time.monotonic() - self._compiling_since

    @property
    def _counts(self) -> bool:
        return self._limits.instruction_limit is not None

    def _seconds_left(self) -> float:
        if self._limits.time_limit is None:
            return threading.TIMEOUT_MAX
        with self._lock:
            now = time.monotonic()
            left = self._limits.time_limit - (now - self._began) + self._compiled
            return left + now - self._compiling_since if self._compiling else left

    def _wake_after(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        if self.passed:
            self._halt()
        else:
            self._wake_after(min(self._seconds_left(), LOOK_SECONDS if self._counts else threading.TIMEOUT_MAX))
