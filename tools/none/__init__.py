"""Inserts nothing: what instrumentation costs before a tool does anything, and the proof that a copy is exact."""

from __future__ import annotations

from luthier_py import Mutator, Tool


class Nothing(Tool):
    """No insertions: the copy equals its input byte for byte."""

    name = "none"

    def instrument(self, m: Mutator) -> None:
        """Nothing to insert."""
