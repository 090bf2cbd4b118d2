"""When the device's worker has carried out commands, for a trace of a program.

In: the environment, commands by their number. Out: a record for each in the file that LUTHIER_TRACED names, to which
the program writes what it has requested (host/native/traced.h). Invariant: a command that failed has none; a file
that cannot be written stops no command, and is said once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from luthier_py.host.native.protocol import TRACED, Traced
from luthier_py.host.worker.error_boundary import say

FILE = "LUTHIER_TRACED"
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class CommandTrace:
    """Mutable: has the file open until it cannot be written. ``program``: whose commands they are."""

    def __init__(self, environment: Mapping[str, str], program: int) -> None:
        self._path, self._program = environment.get(FILE, ""), program
        self._file: int | None = None
        try:
            self._file = os.open(self._path, _FLAGS, 0o600) if self._path else None
        except OSError as error:
            self._give_up(error)

    @property
    def on(self) -> bool:
        """Whether commands are timed: not without LUTHIER_TRACED, and not once its file could not be written."""
        return self._file is not None

    def time_action(self, number: int, action: Callable[[], None]) -> Callable[[], None]:
        """What carries out a command, and records when."""
        return action if self._file is None else lambda: self._carry_out(number, action)

    def _carry_out(self, number: int, action: Callable[[], None]) -> None:
        begin = time.monotonic_ns()
        action()
        row = TRACED.pack(Traced.DONE, self._program, 0, 0, 0, 0, number, 0, begin, time.monotonic_ns(), 0, 0)
        try:
            if self._file is not None:
                os.write(self._file, row)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._file = None
        say(f"{FILE}={self._path}: {error.strerror}")
