"""Many cases in one test, which tells all that fail, with the first one's error.

In: a check and what it is called with: seeds, or names. Out: nothing, or an AssertionError. Invariant: a case that
fails does not keep others from running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Case = TypeVar("Case")


def check_all(check: Callable[[Case], object], cases: Iterable[Case]) -> None:
    failed: dict[Case, Exception] = {}
    for case in cases:
        try:
            check(case)
        except Exception as error:
            failed[case] = error
    if failed:
        first, error = next(iter(failed.items()))
        raise AssertionError(f"{len(failed)} fail: {', '.join(map(str, failed))}; {first}: {error}") from error
