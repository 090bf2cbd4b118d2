"""The edge of a running program: what goes wrong behind it becomes a value, never the program's end.

Invariant: this is the only place of the worker that catches everything, bugs included; each is one line on stderr with
its type and place, and with TOOL_VERBOSE=1 its traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from luthier_py.errors import LuthierError, printable_lines

Result = TypeVar("Result")


class Refused(LuthierError):
    """What a program may ask for and not get: it is told by a status, and nothing is printed."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def guarded(action: Callable[[], Result], what: str = "") -> Result | Exception:
    """The action's result, or what it raised; said on stderr, as ``what: why``, unless it is a Refused."""
    try:
        return action()
    except Exception as error:
        if not isinstance(error, Refused):
            if os.environ.get("TOOL_VERBOSE", "0") not in ("", "0"):
                traceback.print_exception(error)
            say(f"{what}: {one_line(error)}" if what else one_line(error))
        return error


def one_line(error: Exception) -> str:
    """What went wrong; for what nobody raised on purpose also its type, and the file and line that it comes from."""
    if isinstance(error, (LuthierError, OSError)):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


def say(text: object) -> None:
    """One line on stderr, if there is anybody to read it."""
    with suppress(OSError, ValueError):
        print(f"luthier: {printable_lines(str(text))}", file=sys.stderr, flush=True)
