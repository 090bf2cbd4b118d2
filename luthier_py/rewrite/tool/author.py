"""Where in the author's code something was written, for messages."""

from __future__ import annotations

import sys

ROOM = __name__.rpartition(".")[0]


def caller() -> str:
    """``file:line`` of the first frame outside of this room."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return module == ROOM or module.startswith(f"{ROOM}.")
