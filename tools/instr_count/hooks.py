"""Hooks that count in registers of a wave, and what is done at its end.

In: a wave's count so far, and what is to be added. Out: the new count; sums in memory. Invariant: what a loop executed
follows from its register, and no other loop runs between the two places where that is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from luthier_py import Mutator, WaveVariable, hook, ptr, u32, u64
from luthier_py.intrinsics import active_mask, atomic_add, popcount

if TYPE_CHECKING:
    from luthier_py.program.analysis import Steps


@hook
def add(count: u64, n: u64) -> u64:
    return count + n


@hook
def add_lanes(count: u64, n: u64) -> u64:
    return count + popcount(active_mask()) * n


@hook
def add_if_active(count: u64, n: u64, exec: u64, lanes: u64) -> u64:
    return count + (n if exec & lanes != 0 else 0)


@hook(fold=False)
def begin(register: u32, one: u32) -> u32:
    """A product leaves SCC alone; a copy would compile to no code at all."""
    return register * one


@hook
def add_steps(count: u64, register: u32, begun: u32, down: u32, shift: u32, n: u64) -> u64:
    """There has been one step at least: a register that is what it was came round."""
    moved = begun - register if down != 0 else register - begun
    return count + (u64((moved - (u32(1) << shift)) >> shift) + u64(1)) * n


@hook(lanes="one")
def flush(total: ptr[u64], count: u64) -> None:
    atomic_add(total, count)


@hook
def start() -> u32:
    return popcount(active_mask())


@hook(lanes="one")
def flush_threads(total: ptr[u64], count: u64, threads: u32) -> None:
    atomic_add(total, count * threads)


def count_steps(m: Mutator, steps: Steps, begun: WaveVariable, weights: Mapping[WaveVariable, int]) -> None:
    """Nothing is done in the loop: its register says how often it ran. ``begun``: what that held before; ``weights``:
    what one iteration adds to each count."""
    for end in steps.before:
        m.before(end, begin, steps.register, 1, into=begun)
    down, shift = int(steps.step < 0), abs(steps.step).bit_length() - 1
    for count, weight in weights.items():
        m.at_edge(steps.out, add_steps, count, steps.register, begun, down, shift, weight, into=count)
