"""Launches that still run when their program has ended without waiting: by a signal, _exit or exec.

In: whether something runs, and what ends it. Out: nothing; the launch that is ended fails, which says where its waves
stand. Invariant: short launches end by themselves, and whatever happens this comes to an end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

WHY = "the program ended while this kernel ran"
GRACE, PATIENCE = 0.5, 5.0  # seconds until launches are ended, and for that: code may be on its way to the translator
LONGEST = GRACE + PATIENCE
_LOOK = 0.005


def end_launches(run: Callable[[], bool], end: Callable[[str], None]) -> None:
    """``run``: whether any does. ``end``: what runs now, with a reason; it may have begun, and not be there yet."""
    started = time.monotonic()
    while run() and (passed := time.monotonic() - started) < LONGEST:
        if passed >= GRACE:
            end(WHY)
        time.sleep(_LOOK)
