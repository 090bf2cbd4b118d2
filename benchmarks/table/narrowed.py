"""Tools that write something down for each execution see a part of what long kernels do: what, and its profile.

In: how often each instruction (or opcode) was executed. Out: those whose instrumentation is affordable, chosen by lot,
and the emulator's counts of these alone. Where all is affordable, all is chosen.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from luthier_py.emulator import LaunchProfile
from luthier_py.isa import Inst, OpFlag
from luthier_py.isa.model.registers import EXEC

Key = TypeVar("Key", int, str)
LANES, RECORDS = "mem_printf", "record_reg_vals"
MOST = {LANES: 10_000, "mem_trace": 2_000, "compressibility": 2_000, "memory_divergence": 20_000, RECORDS: 500}
"""Executions: by lanes of LANES, by registers of RECORDS, by waves of others."""
QUIET = ("mem_trace", RECORDS)  # print a line for each record unless they are told not to


def affordable(counts: Mapping[Key, int], most: int, lot: str) -> list[Key] | None:
    """As many as come to ``most`` executions, in an order by lot, and at least one; None if that is all."""
    if sum(counts.values()) <= most:
        return None
    order = sorted(counts)
    random.Random(lot).shuffle(order)
    found: list[Key] = []
    for key in order:
        if not found or counts[key] <= most:
            found.append(key)
            most -= counts[key]
    return found


def of_profile(profile: LaunchProfile, chosen: Iterable[int]) -> LaunchProfile:
    """As if nothing else had been executed."""
    own = set(chosen)
    counts, lanes, active, insts = ({pc: each[pc] for pc in own if pc in each} for each in (
        profile.counts, profile.lanes, profile.active, profile.insts))
    return replace(profile, counts=counts, lanes=lanes, active=active, insts=insts)


def filter_of(fact: str, chosen: Iterable[object]) -> str:
    """For INSTRUMENT."""
    return " | ".join(f"{fact} = {each}" for each in chosen)


def keeps_lanes(inst: Inst) -> bool:
    """Whether as many waves have an active lane behind it as before it: then all that it touches is recorded."""
    return bool(inst.op.flags & (OpFlag.VALU | OpFlag.VMEM | OpFlag.LDS)) and not inst.writes.sgpr >> EXEC & 3
