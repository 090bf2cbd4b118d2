"""The edge of a running program: what goes wrong behind it becomes a value, never the program's end.

Invariant: this is the only place of the worker that catches everything, bugs included; these keep their traceback.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import TypeVar

from luthier_py.errors import LuthierError

Result = TypeVar("Result")


class Refused(LuthierError):
    """What a program may ask for and not get: it is told by a status, and nothing is printed."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def guarded(action: Callable[[], Result]) -> Result | Exception:
    """The action's result, or what it raised; said on stderr unless it is a Refused."""
    try:
        return action()
    except Exception as error:
        if not isinstance(error, Refused):
            say(error)
        return error


def say(error: object) -> None:
    """One line on stderr; for a bug of ours, its traceback as well."""
    if isinstance(error, Exception) and not isinstance(error, (LuthierError, OSError)):
        traceback.print_exception(error)
    print(f"luthier: {error}", file=sys.stderr, flush=True)
