"""What a test may not leave in its process, where later ones would meet it.

In: each test. Out: it fails where it leaves something. What the package itself leaves is taken away: folders of
tools, which stay on Python's path when one is loaded, and that something was said of the cache. Invariant: threads
that end with the process, modules and caches may stay.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOLD = "LUTHIER_CACHE_TOLD"  # storage.py: once is enough, for the programs that this process starts, too
_BY_PYTEST = "PYTEST_CURRENT_TEST"
_SIGNALS = [signal.Signals[f"SIG{name}"] for name in "INT TERM HUP PIPE CHLD ALRM USR1 USR2".split()]


def _children() -> set[str]:
    """Processes of the main thread, running or not waited for; compilers are others' and come and go."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def _stays(process: str) -> bool:
    """What multiprocessing and loaded_command start once, to the end of the process."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        return b"multiprocessing" in command or b"loaded_command" in command
    except OSError:
        return True  # it has ended


def _state() -> dict[str, Any]:
    return {
        "environment": {name: value for name, value in os.environ.items() if name != _BY_PYTEST},
        "working folder": os.getcwd(),
        "signals": {number: signal.getsignal(number) for number in _SIGNALS},
        "search for garbage": gc.isenabled(),
        "recursion": sys.getrecursionlimit(),
    }


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    before, path, children = _state(), list(sys.path), _children()
    threads = set(threading.enumerate())
    yield
    sys.path[:] = path
    if TOLD in before["environment"]:
        os.environ[TOLD] = before["environment"][TOLD]
    else:
        os.environ.pop(TOLD, None)
    after = _state()
    left = {what: (before[what], after[what]) for what in before if before[what] != after[what]}
    assert not left
    assert not [thread for thread in set(threading.enumerate()) - threads if not thread.daemon]
    assert not [process for process in _children() - children if not _stays(process)]
