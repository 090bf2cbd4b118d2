"""Which tier a test belongs to.

In: a test's marks, and what the last nightly run kept of it. Out: its Tier. Invariant: a tier contains those before
it.

* CHECK: it took less than QUICK seconds, and no case of its function needs a kernel run or a child process; or it is
  marked ``check``: there one sample for each wave size goes through the whole pipeline.
* TEST: it took less than LONG seconds, or is marked ``core``.
* NIGHTLY: all others, those marked ``slow`` among them. `make test` chooses some of them (choosing.py).

A test's part of shared fixtures is included.
"""

from __future__ import annotations

from collections.abc import Set
from enum import IntEnum

from suite.kept import Durations

LONG = 1.0
"""Seconds."""


class Tier(IntEnum):
    CHECK = 0
    TEST = 1
    NIGHTLY = 2


def tier_of(nodeid: str, marks: Set[str], durations: Durations) -> Tier:
    """``marks``: names of the test's marks."""
    if "check" in marks:
        return Tier.CHECK
    if "slow" in marks:
        return Tier.NIGHTLY
    if durations.of(nodeid) is None and not durations.works(nodeid):
        return Tier.CHECK
    if "core" in marks or durations.seconds(nodeid) < LONG:
        return Tier.TEST
    return Tier.NIGHTLY
