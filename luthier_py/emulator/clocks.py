"""The clocks that kernels read, at the rates that a device names for them.

In: nothing. Out: LLVM IR of ``i64 luthier_nanoseconds()``, and the cycles of each clock. Invariant: both count this
computer's monotonic clock, by which the times of events go as well.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache

CLOCK_KHZ = 1_000_000       # s_memtime: what hipDeviceAttributeClockRate says
WALL_CLOCK_KHZ = 100_000    # s_memrealtime: hipDeviceAttributeWallClockRate; 100 MHz as AMD's devices since MI200
_MONOTONIC = time.CLOCK_MONOTONIC  # clock_gettime(2)
assert CLOCK_KHZ == 1_000_000, "a cycle is a nanosecond"
NANOSECONDS_OF_WALL_CYCLE = 1_000_000 // WALL_CLOCK_KHZ


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


@cache
def host_functions() -> dict[str, int]:
    """Functions of this process, by name."""
    function = ctypes.CDLL(None).clock_gettime
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return {"clock_gettime": address}
