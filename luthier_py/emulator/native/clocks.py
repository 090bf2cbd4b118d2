"""The clocks that kernels read. That of the core counts executed instructions; the wall clock is this computer's.

In: what a worker counts for each block, and how many instructions these have. Out: LLVM IR of ``i64
luthier_executed(ptr wave)``, of the same for what is no tool's, of ``i64 luthier_nanoseconds()``, and of ``i32
luthier_pause()``. Invariant: nobody pays for a clock that nobody reads; an application reads the same with a tool as
without it.

The instructions are those of all waves that the worker has run, since a wave with another's turn in between waits; from
launch to launch they go on, where somebody looked. A block is counted when a wave enters it, so whoever reads the clock
takes off what is left of its own. With the cycle model (see cycles) the core's clock counts cycles instead.
"""

from __future__ import annotations

import ctypes
import threading
import time
from array import array
from collections.abc import Sequence
from functools import cache
from operator import mul

from luthier_py.emulator.memory.pool import Pages
from luthier_py.emulator.records.template import expand
from luthier_py.emulator.records.words import Words, address_of, zero_words

CLOCK, OWN_CLOCK, WALL_CLOCK = "luthier_executed", "luthier_own_executed", "luthier_nanoseconds"
"""Support functions. Tools' code reads the first, the application's the second, which leaves out what tools insert."""
PAUSE = "luthier_pause"
"""One by which code that waits for the host leaves it the processor."""
PAUSE_MICROSECONDS = 100
CLOCK_KHZ = 1_000_000       # what hipDeviceAttributeClockRate says: as if an instruction, or a cycle, took a nanosecond
WALL_CLOCK_KHZ = 100_000    # s_memrealtime: hipDeviceAttributeWallClockRate; 100 MHz as AMD's devices since MI200
_MONOTONIC = time.CLOCK_MONOTONIC  # clock_gettime(2)
NANOSECONDS_OF_WALL_CYCLE = 1_000_000 // WALL_CLOCK_KHZ
_LOOKED, _COUNT, _BEFORE, _FIRST = range(4)  # words: somebody did; pairs of weights; address of what was before
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
        """Address of the words that ``luthier_executed`` reads (_LOOKED and what follows)."""
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


def emit_executed_function(name: str) -> str:
    """The definition of the support function."""
    which = _OWN if name == OWN_CLOCK else _ALL
    return expand(_EXECUTED_TEXT, name=name, looked=8 * _LOOKED, count=8 * _COUNT, before=8 * _BEFORE, which=which,
                  first=8 * (_FIRST + which))


_EXECUTED_TEXT = """
define i64 @$name(ptr %wave) {
entry:
  %worker.at = get wave.worker of %wave
  %worker = inttoptr i64 %worker.at to ptr
  %counters.at = get worker.counters of %worker
  %counters = inttoptr i64 %counters.at to ptr
  %clock.at = get worker.clock of %worker
  %clock = inttoptr i64 %clock.at to ptr
  %looked = getelementptr i8, ptr %clock, i64 $looked
  store i64 1, ptr %looked
  %before.place = getelementptr i8, ptr %clock, i64 $before
  %before.at = load ptr, ptr %before.place
  %before.word = getelementptr i64, ptr %before.at, i64 $which
  %before = load i64, ptr %before.word
  %count.place = getelementptr i8, ptr %clock, i64 $count
  %count = load i64, ptr %count.place
  %weights = getelementptr i8, ptr %clock, i64 $first
  %any = icmp ne i64 %count, 0
  br i1 %any, label %next, label %done
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %sum = phi i64 [ %before, %entry ], [ %sum.next, %next ]
  %times.place = getelementptr i64, ptr %counters, i64 %i
  %times = load i64, ptr %times.place
  %i.pair = shl i64 %i, 1
  %weight.place = getelementptr i64, ptr %weights, i64 %i.pair
  %weight = load i64, ptr %weight.place
  %part = mul i64 %times, %weight
  %sum.next = add i64 %sum, %part
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %count
  br i1 %more, label %next, label %done
done:
  %all = phi i64 [ %before, %entry ], [ %sum.next, %next ]
  ret i64 %all
}
"""


def nanoseconds(name: str) -> str:
    """The definition of the support function; it calls what ``host_functions`` gives."""
    return f"""
declare i32 @clock_gettime(i32, ptr)
define i64 @{name}() {{
  %time = alloca [2 x i64], align 8
  %status = call i32 @clock_gettime(i32 {_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}}
"""


def pause(name: str) -> str:
    """The definition of the support function; it calls what ``host_functions`` gives."""
    return f"""
declare i32 @usleep(i32)
define i32 @{name}() {{
  %status = call i32 @usleep(i32 {PAUSE_MICROSECONDS})
  ret i32 %status
}}
"""


@cache
def host_functions() -> dict[str, int]:
    """Functions of this process, by name."""
    library, found = ctypes.CDLL(None), {}
    for name in ("clock_gettime", "usleep"):
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert address is not None
        found[name] = address
    return found
