"""How a command ends: with an exit code, and one line on stderr for whatever went wrong.

Invariant: nothing passes through here, so no input and no bug prints a traceback unless the user requests it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import NoReturn

from luthier_py.base.errors import Invalid, LuthierError, Misread, Uncompiled, one_line
from luthier_py.host.worker.error_boundary import TRACEBACK, say, wants_tracebacks


class ExitCode(IntEnum):
    """Exit codes of `luthier`. ``USAGE``: the request is wrong (Invalid, a file that is not there). ``ERROR``:
    all other failures. ``NOTHING_OBSERVED``: the command worked, but its tool had nothing to observe."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOTHING_OBSERVED = 3
    INTERRUPTED = 130  # a shell's code for SIGINT


_WRONG_REQUESTS = Invalid, FileNotFoundError, NotADirectoryError, IsADirectoryError


def run_to_an_end(command: Callable[[], object]) -> NoReturn:
    """Run a command; what it has printed is written when it ends, or it did not end well."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")  # closed: nothing can be written there
    try:
        try:
            command()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except KeyboardInterrupt:
        code: object = ExitCode.INTERRUPTED
    except Exception as error:
        code = _tell(error)
    except SystemExit as end:
        code = end.code
    else:
        code = ExitCode.OK
    sys.exit(code if code is None or isinstance(code, (int, str)) else str(code))


def _tell(error: Exception) -> ExitCode:
    if isinstance(error, OSError):
        _close_stdout()
    if isinstance(error, BrokenPipeError):
        return ExitCode.ERROR  # the reader has closed the pipe
    if wants_tracebacks():
        traceback.print_exception(error)
    ours = isinstance(error, (LuthierError, OSError))
    if isinstance(error, (Misread, Uncompiled)):
        say(error)
    else:
        say(one_line(error) if ours else f"{one_line(error)}; --traceback or {TRACEBACK}=1 shows how it came about")
    return ExitCode.USAGE if isinstance(error, _WRONG_REQUESTS) else ExitCode.ERROR


def _close_stdout() -> None:
    """What could not be written is not tried again when Python ends."""
    with suppress(OSError, ValueError, AttributeError):
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def nothing_observed(tool: str, reasons: list[str]) -> str:
    """The message that ``tool`` observed nothing, with each of the ``reasons`` once."""
    return f"tool {tool} observed nothing{': ' * bool(reasons)}{'; '.join(dict.fromkeys(reasons))}"
