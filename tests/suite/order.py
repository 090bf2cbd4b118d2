"""Groups of tests that run on one process, one after another, and their order.

In: tests in random order, and what the last nightly run kept of them. Out: the order. Invariant: no test relies on
it; it keeps a process from beginning a long group last, while the others have nothing left to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from suite.kept import Durations, split

LONG_FILE = 30.0
"""Seconds. A file that takes longer is divided: it would keep one process busy behind all others."""
FIRST = 10.0
"""Groups that take so many seconds are begun first, the longest of them before the others."""


def group_of(nodeid: str, durations: Durations) -> str:
    """Tests of a file, or of a long one those of a function whose first parameter begins with the same word."""
    file, name = split(nodeid)
    if durations.file_seconds.get(file, 0.0) < LONG_FILE:
        return file
    return f"{file}::{name.partition('-')[0]}"


def order(tests: Sequence[str], durations: Durations) -> list[str]:
    """Groups in the order of their first tests, but for long ones."""
    groups: dict[str, list[str]] = {}
    for test in tests:
        groups.setdefault(group_of(test, durations), []).append(test)
    seconds = {group: sum(durations.seconds(test) for test in members) for group, members in groups.items()}
    ranked = sorted(groups, key=lambda group: -seconds[group] if seconds[group] >= FIRST else 0.0)
    return [test for group in ranked for test in groups[group]]
