"""When the device's worker has carried out tickets, for a trace of a program.

In: the environment, tickets by their number. Out: a record for each in the file that LUTHIER_TRACED names, to which the
program writes what it has asked for (runtime/native/traced.h). Invariant: a ticket that failed has none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from luthier_py.runtime.native.protocol import TRACED, Traced

FILE = "LUTHIER_TRACED"


class TicketTrace:
    """``program``: whose tickets they are."""

    def __init__(self, environment: Mapping[str, str], program: int) -> None:
        path, self._program = environment.get(FILE), program
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600) if path else None

    @property
    def on(self) -> bool:
        return self._file is not None

    def timed(self, number: int, action: Callable[[], None]) -> Callable[[], None]:
        """What carries out a ticket, and tells when."""
        file = self._file
        if file is None:
            return action

        def carry_out() -> None:
            begin = time.monotonic_ns()
            action()
            end = time.monotonic_ns()
            os.write(file, TRACED.pack(Traced.DONE, self._program, 0, 0, 0, 0, number, 0, begin, end, 0, 0))

        return carry_out
