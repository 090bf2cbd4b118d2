"""What the clock of an emulated device's core counts.

In: a word. Out: a ClockKind. Invariant: what is not known is Invalid, and named.
"""

from __future__ import annotations

from enum import Enum

from luthier_py.base.errors import Invalid


class ClockKind(Enum):
    """The word is the option's."""

    INSTRUCTIONS = "instructions"  # that waves have executed
    MODEL = "model"                # cycles of the cycle model


def parse_clock(text: str) -> ClockKind:
    """Without a word, instructions."""
    try:
        return ClockKind(text or ClockKind.INSTRUCTIONS.value)
    except ValueError:
        raise Invalid(f"clock `{text}`: give {' or '.join(kind.value for kind in ClockKind)}") from None
