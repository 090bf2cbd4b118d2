"""Hooks that count executions in registers of a wave or in memory, and what is done at its end.

In: a wave's marks and counts so far. Out: the new ones; executions in memory, times the threads that they stand for.
Invariant: a mark's bit belongs to one counter, and so does the element of ``executions`` that its lane adds to.
"""

from __future__ import annotations

from luthier_py import hook, ptr, u32, u64
from luthier_py.intrinsics import atomic_add, lane_id, popcount


@hook
def mark(ran: u64, bit: u64) -> u64:
    return ran | bit


@hook
def add(count: u64) -> u64:
    return count + 1


@hook(lanes="all")
def flush_marks(executions: ptr[u64], ran: u64, threads: u32) -> None:
    if ran >> lane_id() & 1 != 0:
        atomic_add(executions + lane_id(), u64(threads))


@hook(lanes="one")
def flush_four(executions: ptr[u64], a: u64, b: u64, c: u64, d: u64, threads: u32) -> None:
    atomic_add(executions, a * threads)
    atomic_add(executions + 1, b * threads)
    atomic_add(executions + 2, c * threads)
    atomic_add(executions + 3, d * threads)


@hook(lanes="one")
def count(executions: ptr[u64], threads: u32) -> None:
    atomic_add(executions, u64(threads))


@hook(lanes="one")
def count_if_active(executions: ptr[u64], exec: u64, lanes: u64) -> None:
    if exec & lanes != 0:
        atomic_add(executions, u64(1))


@hook(lanes="one")
def count_lanes(executions: ptr[u64], exec: u64, lanes: u64) -> None:
    atomic_add(executions, u64(popcount(exec & lanes)))
