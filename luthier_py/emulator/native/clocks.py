"""The clocks that kernels read. That of the core counts executed instructions; the wall clock is this computer's.

In: what a worker counts for each block, and how many instructions these have. Out: what clocks.c reads of that.
Invariant: a clock that no kernel reads costs nothing; an application reads the same with a tool as without it.

The instructions are those of all waves that the worker has run, since a wave with another's turn in between waits; from
launch to launch they continue, once a wave has read the clock. A block is counted when a wave enters it, so code
that reads the clock subtracts what is left of its own block. With the cycle model (see cycles) the core's clock
counts cycles instead.
"""

from __future__ import annotations

import ctypes
import threading
from array import array
from collections.abc import Sequence
from functools import cache
from operator import mul

from luthier_py.emulator.memory.pool import Pages
from luthier_py.emulator.records.words import Words, address_of, zero_words

PAUSE_MICROSECONDS = 100
"""For which code that waits for the host leaves it the processor."""
CLOCK_KHZ = 1_000_000       # what hipDeviceAttributeClockRate says: as if an instruction, or a cycle, took a nanosecond
WALL_CLOCK_KHZ = 100_000    # s_memrealtime: hipDeviceAttributeWallClockRate; 100 MHz as AMD's devices since MI200
NANOSECONDS_OF_WALL_CYCLE = 1_000_000 // WALL_CLOCK_KHZ
_LOOKED, _COUNT, _BEFORE, _FIRST = range(4)  # words: whether a wave has looked; pairs of weights; what was before
_ALL, _OWN = range(2)  # of each pair


class ExecutedInstructions:
    """Mutable: those of one device's launches that are over, all and the applications'; several may end at once."""

    def __init__(self) -> None:
        self._words: Words = zero_words(2)
        self._lock = threading.Lock()

    @property
    def address(self) -> int:
        """Address of two u64: all instructions, and the applications'."""
        return address_of(self._words)

    def add(self, *counts: int) -> None:
        """Add what a launch has executed: all instructions, then the application's; sums wrap at 64 bits."""
        with self._lock:
            for which, count in enumerate(counts):
                self._words[which] = self._words[which] + count & (1 << 64) - 1


class InstructionClock:
    """Mutable: how many instructions each counter of a code stands for. ``most``: how many counters there may be;
    ``executed``: on the code's device."""

    def __init__(self, most: int, executed: ExecutedInstructions) -> None:
        self._executed = executed
        self._pages = Pages(8 * (2 * most + _FIRST))
        self._words = memoryview(self._pages.memory).cast("Q")
        self._words[_BEFORE] = executed.address

    @property
    def address(self) -> int:
        """Address of the words that clocks.c reads: its struct clock (_LOOKED and what follows)."""
        return self._pages.address

    @property
    def counters(self) -> int:
        """How many have a weight."""
        return self._words[_COUNT]

    def weigh(self, *instructions: tuple[int, int]) -> None:
        """Of the next counters: all, and the application's."""
        first, flat = _FIRST + 2 * self.counters, [number for pair in instructions for number in pair]
        self._words[first : first + len(flat)] = memoryview(array("Q", flat))
        self._words[_COUNT] += len(instructions)

    def settle(self, counters: Sequence[int] | memoryview) -> None:
        """These counters are about to be cleared."""
        if self._words[_LOOKED]:
            self._words[_LOOKED] = 0
            self._executed.add(self.count_executed(counters), self.count_executed(counters, _OWN))

    def count_executed(self, counters: Sequence[int] | memoryview, which: int = _ALL) -> int:
        """Instructions, as these counters say."""
        count = self.counters
        return sum(map(mul, counters[:count], self._words[_FIRST + which : _FIRST + 2 * count : 2]))


class CycleClock:
    """Mutable: how far a device is, in cycles of its core; launches come one after the other."""

    def __init__(self) -> None:
        self.now = 0


@cache
def host_functions() -> dict[str, int]:
    """Functions of this process, by name."""
    library, found = ctypes.CDLL(None), {}
    for name in ("clock_gettime", "usleep"):
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert address is not None
        found[name] = address
    return found
