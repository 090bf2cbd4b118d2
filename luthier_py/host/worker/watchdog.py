"""When `luthier exec` is killed, the programs that it started are killed and its folder is removed.

In: the folder that `exec` names in the environment, which it holds a lock in as long as it lives, and removes before it
ends; each worker holds one there, too. Out: nothing. Invariant: a program that outlives an `exec` which ended by itself
is not killed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

FOLDER = "LUTHIER_EXEC"
_PREFIX, _LOCK, _SERVED = "luthier-exec-", "lock", "served"
_LOOK = 0.01  # seconds


def new_folder() -> tuple[Path, int]:
    """The folder of an `exec`, and what must stay open as long as it is used."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)  # another `exec` has just taken it for one that was abandoned


def remove_abandoned() -> None:
    """Folders of this user whose `exec` was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
                lock = os.open(folder / _LOCK, os.O_RDWR)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
                finally:
                    os.close(lock)


def nobody_waits(path: Path) -> bool:
    """Whether a file is for an `exec` that has ended: its program did before its worker had begun."""
    return path.parent.name.startswith(_PREFIX) and not path.parent.exists()


def was_served(folder: Path) -> bool:
    """Whether a program of this `exec` had a worker, and so what it needs to have one."""
    return (folder / _SERVED).exists()


def wait_for_workers(folder: Path, seconds: float) -> None:
    """Until all that served programs of this `exec` have ended, and have said what they had to; at most so long."""
    end = time.monotonic() + seconds
    with suppress(OSError), (folder / _SERVED).open("r+b") as served:
        while time.monotonic() < end:
            with suppress(BlockingIOError):
                return fcntl.flock(served, fcntl.LOCK_EX | fcntl.LOCK_NB)
            time.sleep(_LOOK)


class ProgramWatch:
    """One program, for the `exec` that its environment names."""

    def __init__(self, program: int) -> None:
        self._lock: int | None = None
        self._folder = Path(os.environ.get(FOLDER, ""))
        if not self._folder.name.startswith(_PREFIX):
            return
        with suppress(OSError):
            self._program = os.pidfd_open(program)
            self._lock = os.open(self._folder / _LOCK, os.O_RDWR)
            self._served = os.open(self._folder / _SERVED, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._served, fcntl.LOCK_SH)
            threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        assert self._lock is not None
        with suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            if self._folder.exists():
                signal.pidfd_send_signal(self._program, signal.SIGKILL)

    def remove_folder(self) -> None:
        """Remove the folder unless a living `exec` holds its lock."""
        if self._lock is not None:
            with suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                shutil.rmtree(self._folder, ignore_errors=True)
