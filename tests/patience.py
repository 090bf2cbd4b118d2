"""How long tests wait for what other threads and processes do.

Out: PATIENCE, and `until`. Invariant: a bound is there to end a test that hangs, before pytest does
(faulthandler_timeout); no machine is so slow or busy that a test which passes elsewhere meets it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 600  # seconds
PAUSE = 0.002  # seconds between two looks


def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Return as soon as the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(PAUSE)
