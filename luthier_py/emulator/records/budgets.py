"""How long turns of waves are.

In: nothing. Out: budgets, of which code that runs takes what it costs; a turn ends below 0. Invariant: a wave of an
instrumented copy has its turns where one of the original has them, unless inserted code waits for something.
"""

from __future__ import annotations

OWN_STEP = 1 << 16
"""What a way back, a call or a return of the application takes. Such a step of code that a tool inserted takes 1."""
SLICES = (31, 61, 127, 251, 509, 1021, 2039)
"""Steps of a wave before the next one gets its turn: few at first, as it may only wait. Primes: waves that go round
together shall not keep step."""


def budget(steps: int) -> int:
    """Of a turn with so many steps of the application, and inserted ones that are fewer than one of these costs."""
    return OWN_STEP * (steps + 1) - 1
