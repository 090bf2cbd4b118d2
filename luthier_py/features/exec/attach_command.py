"""The tool under a running program, attached and detached from outside.

In: a process that was started with LUTHIER_SIGNAL, or one that has started it. Out: that signal, with a number that
says which of both; host/tool has its handler. Invariant: no process gets a signal that it does not handle, which
would be its end.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from luthier_py.base.errors import Invalid

SIGNAL = "LUTHIER_SIGNAL"


def switch(process: int, on: bool) -> list[int]:
    """The processes that were signalled: this one, or those below it that have a tool. Invalid where there is
    none."""
    if not Path(f"/proc/{process}").exists():
        raise Invalid(f"there is no process {process}")
    told = [each for each in _family(process) if (number := _signal_of(each)) and _handles(each, number)]
    if not told:
        raise Invalid(f"process {process} has no tool that listens: start the program with a tool and with "
                      f"{SIGNAL}=USR1, or another signal for which it has no handler itself")
    for each in told:
        _send(each, _signal_of(each), on)
    return told


def _family(process: int) -> Iterator[int]:
    """It, and all that it has started and that is still there."""
    yield process
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            below = thread.read_text().split()
        except OSError:  # it has just ended
            continue
        for child in below:
            yield from _family(int(child))


def _signal_of(process: int) -> int:
    """The signal that its environment names for the tool; 0 where there is none, or the environment cannot be
    read."""
    try:
        entries = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return 0
    texts = dict(entry.decode(errors="replace").partition("=")[::2] for entry in entries)
    name = texts.get(SIGNAL, "").upper()
    known = {each.name: int(each) for each in signal.Signals}
    return int(name) if name.isdigit() else known.get(name, known.get(f"SIG{name}", 0))


def _handles(process: int, number: int) -> bool:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return False
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught >> number - 1 & 1)


def _send(process: int, number: int, on: bool) -> None:
    """As sigqueue(3)."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.sigqueue(process, number, ctypes.c_void_p(int(on))):
        raise Invalid(f"process {process} cannot be told: {os.strerror(ctypes.get_errno())}")
