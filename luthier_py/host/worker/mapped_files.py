"""Files of the program that are mapped here and become shorter: kernels then find zeros where nothing is left of them,
and the device fails, instead of this process ending by SIGBUS.

In: where files are mapped. Out: the first address at which there was nothing. Invariant: a SIGBUS anywhere else ends
the process, as ever.
"""

from __future__ import annotations

from luthier_py.host.worker.native import load_worker_library

MESSAGE = "a kernel or a copy was behind the end of a file that the program has registered and made shorter since"
_LINE = f"luthier: {MESSAGE}\n".encode()  # the library keeps its address


class MappedFiles:
    """Mutable: one for this process. ``failure``: address of an i32 that gets ``status`` then, with a line on stderr;
    0: the caller of `take_lost` reports it."""

    def __init__(self, failure: int = 0, status: int = 0) -> None:
        self._failure, self._status = failure, status
        self._any = False

    def add(self, start: int, size: int) -> None:
        """From now on a file is mapped there."""
        if not self._any:
            load_worker_library().luthier_watch_files(self._failure, self._status, _LINE)
            self._any = True
        load_worker_library().luthier_add_file(start, size)

    def remove(self, start: int) -> None:
        """No more."""
        if self._any:
            load_worker_library().luthier_remove_file(start)

    def take_lost(self) -> int:
        """The first address where nothing was left, since the last call; or 0."""
        return int(load_worker_library().luthier_take_lost()) if self._any else 0
