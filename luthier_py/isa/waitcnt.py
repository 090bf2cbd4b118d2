"""Wait counts: what a wait instruction waits for, and the immediate of s_waitcnt.

In: an instruction, or counts by counter. Out: counts, or an immediate. Source: LLVM 22 AMDGPUBaseInfo.cpp
(getVmcntBitWidthLo and its neighbours); AMD ISA manuals, "S_WAITCNT". Invariant: decoding what `encode_waitcnt` made
gives the counts back; a counter that is not waited for does not appear.
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.errors import Unsupported
from luthier_py.isa.instruction import Counter, Inst, OpFlag
from luthier_py.isa.target import Target

Segments = tuple[tuple[int, int], ...]  # (first bit, width), low part first

_GFX9: dict[Counter, Segments] = {
    Counter.VM: ((0, 4), (14, 2)), Counter.EXP: ((4, 3),), Counter.LGKM: ((8, 4),),
}
_GFX10: dict[Counter, Segments] = {**_GFX9, Counter.LGKM: ((8, 6),)}
_GFX11: dict[Counter, Segments] = {Counter.EXP: ((0, 3),), Counter.LGKM: ((4, 6),), Counter.VM: ((10, 6),)}
_LAYOUTS = {9: _GFX9, 10: _GFX10, 11: _GFX11}

# Instructions of gfx10 and gfx11 that wait for one counter (SOPK; their sdst is null).
_SINGLE = {
    "S_WAITCNT_VSCNT": Counter.VS, "S_WAITCNT_VMCNT": Counter.VM,
    "S_WAITCNT_EXPCNT": Counter.EXP, "S_WAITCNT_LGKMCNT": Counter.LGKM,
}


def _layout(target: Target) -> dict[Counter, Segments]:
    if target.generation not in _LAYOUTS:
        raise Unsupported(f"{target.name} has no s_waitcnt, but one wait instruction for each counter")
    return _LAYOUTS[target.generation]


def encode_waitcnt(target: Target, counts: Mapping[Counter, int]) -> int:
    """The immediate that waits until each counter is at most its count; counters left out are not waited for."""
    immediate = 0
    for counter, segments in _layout(target).items():
        left = min(counts.get(counter, _limit(segments)), _limit(segments))
        for first, width in segments:
            immediate |= (left & (1 << width) - 1) << first
            left >>= width
    return immediate


def decode_waitcnt(target: Target, immediate: int) -> dict[Counter, int]:
    """Counts that s_waitcnt with ``immediate`` waits for."""
    limits = _layout(target)
    return {counter: count for counter, count in read_waitcnt(target, immediate).items()
            if count < _limit(limits[counter])}


def read_waitcnt(target: Target, immediate: int) -> dict[Counter, int]:
    """All counts in the immediate of s_waitcnt, those that wait for nothing too."""
    counts = {}
    for counter, segments in _layout(target).items():
        count = position = 0
        for first, width in segments:
            count |= (immediate >> first & (1 << width) - 1) << position
            position += width
        counts[counter] = count
    return counts


def waits_for(target: Target, inst: Inst) -> dict[Counter, int]:
    """Counts that ``inst`` waits for; empty for instructions that wait for none of these counters."""
    if OpFlag.WAIT not in inst.op.flags:
        return {}
    if inst.op.base == "S_WAITCNT":
        return decode_waitcnt(target, inst["simm16"].value & 0xFFFF)
    counter = _SINGLE.get(inst.op.base)
    return {} if counter is None else {counter: inst["simm16"].value & 0x3F}


def _limit(segments: Segments) -> int:
    return (1 << sum(width for _, width in segments)) - 1
