"""Changes of our own source of which only a test of the nightly tier knows, each in another room.

In: nothing. Out: SEEDED. Invariant: ``before`` is once in its file; ``known_by`` takes too long for `make test` to run
it always, and fails under the change.
"""

from __future__ import annotations

from typing import NamedTuple


class Seed(NamedTuple):
    """``file``: below the root; ``known_by``: a test."""

    file: str
    before: str
    after: str
    known_by: str


SEEDED: tuple[Seed, ...] = ()
