"""How long a launch may take, where the device can end it: the emulator's.

In: seconds or instructions, as a number or as text. Out: the same, checked. Invariant: positive, and seconds not more
than a timer takes.
"""

from __future__ import annotations

import threading

from luthier_py.base.errors import Invalid


def check_time_limit(seconds: float) -> float:
    """The number of seconds, unchanged; Invalid unless it is positive and a timer takes it (threading.TIMEOUT_MAX)."""
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise Invalid(f"a time limit of {seconds:g} seconds: give a positive number")
    return seconds


def parse_time_limit(text: str) -> float | None:
    """None for no text."""
    try:
        return check_time_limit(float(text)) if text else None
    except ValueError:
        raise Invalid("give a number of seconds") from None


def parse_instruction_limit(text: str) -> int | None:
    """None for no text."""
    if text and not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 63):
        raise Invalid("give a positive number of instructions")
    return int(text) if text else None
