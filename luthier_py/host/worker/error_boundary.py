"""The worker's error boundary: an exception behind it becomes a value and never ends the program.

Invariant: this is the only place of the worker that catches everything, bugs and a tool's sys.exit included; each is
one line on stderr with its type and place, and with LUTHIER_TRACEBACK=1 or TOOL_VERBOSE=1 its traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn, TypeVar

from luthier_py.base.errors import LuthierError, one_line, printable_lines

Answer = TypeVar("Answer")
TRACEBACK = "LUTHIER_TRACEBACK"


class Refused(LuthierError):
    """A refused request: the worker reports a status to the program and prints nothing."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def run_guarded(action: Callable[[], Answer], what: str = "", told: set[str] | None = None) -> Answer | Exception:
    """The action's result, or its exception. The exception is printed on stderr as ``what: why`` unless it is a Refused
    or its reason is in ``told``; a printed reason is added to ``told``."""
    try:
        return action()
    except Exception as error:
        if not isinstance(error, Refused) and (told is None or (why := reason_of(error)) not in told):
            if told is not None:
                told.add(why)
            if wants_tracebacks():
                traceback.print_exception(error)
            say(f"{what}: {one_line(error)}" if what else one_line(error))
        return error
    except SystemExit as stop:
        failure = RuntimeError(f"sys.exit({stop.code!r})").with_traceback(stop.__traceback__)
        return run_guarded(partial(_raise, failure), what, told)


def reason_of(error: Exception) -> str:
    """Wherever in a kernel it was."""
    return error.message if isinstance(error, LuthierError) else one_line(error)


def _raise(error: Exception) -> NoReturn:
    raise error


def wants_tracebacks() -> bool:
    """Whether LUTHIER_TRACEBACK or TOOL_VERBOSE is on."""
    return is_on(TRACEBACK) or is_on("TOOL_VERBOSE")


def is_on(variable: str) -> bool:
    """Whether a variable of the environment says yes."""
    return os.environ.get(variable, "0") not in ("", "0")


def say(text: object) -> None:
    """Print one line on stderr; ignore a closed stderr."""
    with suppress(OSError, ValueError):
        print(f"luthier: {printable_lines(str(text))}", file=sys.stderr, flush=True)
