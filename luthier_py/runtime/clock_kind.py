"""What the clock of an emulated device's core counts.

In: a word, as an option or in the environment. Out: a ClockKind. Invariant: what is not known is Invalid, and named.
"""

from __future__ import annotations

from enum import Enum

from luthier_py.errors import Invalid

VARIABLE = "LUTHIER_CLOCK"


class ClockKind(Enum):
    """The word is the option's."""

    INSTRUCTIONS = "instructions"  # that waves have executed
    MODEL = "model"                # cycles of the cycle model


def chosen_clock(text: str) -> ClockKind:
    """By LUTHIER_CLOCK, or --clock; without a word, instructions."""
    try:
        return ClockKind(text or ClockKind.INSTRUCTIONS.value)
    except ValueError:
        raise Invalid(f"clock `{text}`: give {' or '.join(kind.value for kind in ClockKind)}") from None
