"""Inserts nothing: what instrumentation costs before a tool does anything, and the proof that a copy is exact."""

from __future__ import annotations

from luthier_py import COUNT_WARP_LEVEL, EXCLUDE_PRED_OFF, Mutator, Tool


class Nothing(Tool):
    """No insertions: the copy equals its input byte for byte."""

    name = "none"
    cacheable = True
    per_wave = COUNT_WARP_LEVEL  # nothing is counted, however that is done
    active_only = EXCLUDE_PRED_OFF

    def instrument(self, m: Mutator) -> None:
        """Nothing to insert."""
