"""How a command ends: with an exit code, and one line on stderr for whatever went wrong.

Invariant: nothing passes through here, so no input and no bug prints a traceback that nobody asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import IntEnum

from luthier_py.errors import LuthierError


class Exit(IntEnum):
    OK = 0
    ERROR = 1
    NOTHING_OBSERVED = 3


def end_well_or_in_one_line(command: Callable[[], object]) -> None:
    """Run a command; SystemExit with its code."""
    try:
        command()
    except LuthierError as error:
        print(f"luthier: {error}", file=sys.stderr)
        sys.exit(Exit.ERROR)
    except OSError as error:
        print(
            f"luthier: {error.filename}: {error.strerror}" if error.filename else f"luthier: {error}", file=sys.stderr
        )
        sys.exit(Exit.ERROR)
