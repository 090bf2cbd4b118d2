"""What the counters of a launch's workers come to.

In: counters by code. Out: a LaunchProfile. Invariant: addresses are those of the kernel's own code, and of other code
by its distance from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.options.settings import CounterKind
from luthier_py.emulator.waves.cycle_account import LaunchCycles
from luthier_py.emulator.waves.profile import LaunchProfile
from luthier_py.emulator.waves.shape import Shape
from luthier_py.isa.encoding.instruction import Inst


def launch_profile(shape: Shape, codes: Sequence[HostedCode], workers: Sequence[Mapping[HostedCode, memoryview]],
                   seconds: float, cycles: LaunchCycles | None = None) -> LaunchProfile:
    """``codes``: the kernel's own first; ``workers``: what each has counted."""
    found: dict[CounterKind, dict[int, int]] = {what: {} for what in CounterKind}
    base = codes[0].base
    for code in codes:
        _add_up(code, [worker[code] for worker in workers if code in worker], code.base - base, found)
    insts: Mapping[int, Inst] = codes[0].insts
    if len(codes) > 1:
        insts = {pc + code.base - base: inst for code in codes for pc, inst in code.insts.items()}
    return LaunchProfile(shape.record.name, shape.groups, shape.all_waves, found[CounterKind.WAVES],
                         found[CounterKind.LANES], found[CounterKind.ACTIVE_WAVES], seconds, insts, base, cycles)


def _add_up(code: HostedCode, counters: Sequence[memoryview], offset: int,
            found: dict[CounterKind, dict[int, int]]) -> None:
    """Add what was counted in ``code`` to ``found``, at addresses that are ``offset`` higher."""
    numbers = code.numbers.counters[: min(map(len, counters), default=0)]
    totals = sum((np.array(each[: len(numbers)]) for each in counters), np.zeros(len(numbers), np.uint64))
    for number in np.flatnonzero(totals).tolist():
        what, pcs = numbers[number]
        counts, total = found[what], int(totals[number])
        for pc in pcs:
            counts[pc + offset] = counts.get(pc + offset, 0) + total
