"""Wait counts: what a wait instruction waits for, and the immediate of s_waitcnt.

In: an instruction, or counts by counter. Out: counts, or an immediate. Source: LLVM 22 AMDGPUBaseInfo.cpp
(getVmcntBitWidthLo and its neighbours); AMD ISA manuals, "S_WAITCNT". Invariant: decoding what `encode_waitcnt` made
gives the counts back, or lower ones; a counter that is not waited for does not appear.

A counter is never above the highest number that its field can hold, so that number waits for nothing. What has been
outstanding for longer is waited for by one less (LLVM, WaitcntBrackets::determineWait).
"""

from __future__ import annotations

from collections.abc import Mapping

from luthier_py.base.errors import Unsupported
from luthier_py.isa.encoding.instruction import Counter, Inst, OpFlag
from luthier_py.isa.model.target import Target

Segments = tuple[tuple[int, int], ...]  # (first bit, width), low part first

_GFX9: dict[Counter, Segments] = {
    Counter.VM: ((0, 4), (14, 2)), Counter.EXP: ((4, 3),), Counter.LGKM: ((8, 4),),
}
_GFX10: dict[Counter, Segments] = {**_GFX9, Counter.LGKM: ((8, 6),)}
_GFX11: dict[Counter, Segments] = {Counter.EXP: ((0, 3),), Counter.LGKM: ((4, 6),), Counter.VM: ((10, 6),)}
_LAYOUTS = {8: {**_GFX9, Counter.VM: ((0, 4),)}, 9: _GFX9, 10: _GFX10, 11: _GFX11, 12: _GFX11}

# Instructions that wait for one counter: SOPK of gfx10 and gfx11 (their sdst is null), SOPP of gfx12.
_SINGLE = {
    "S_WAITCNT_VSCNT": Counter.VS, "S_WAITCNT_VMCNT": Counter.VM,
    "S_WAITCNT_EXPCNT": Counter.EXP, "S_WAITCNT_LGKMCNT": Counter.LGKM,
    **{f"S_WAIT_{counter.name}CNT": counter for counter in (
        Counter.EXP, Counter.SAMPLE, Counter.BVH, Counter.KM, Counter.ASYNC, Counter.TENSOR, Counter.X)},
    "S_WAIT_LOADCNT": Counter.LOAD, "S_WAIT_STORECNT": Counter.STORE, "S_WAIT_DSCNT": Counter.DS,
}
# gfx12: two counters in one immediate, the second in the low byte.
_DOUBLE = {
    "S_WAIT_LOADCNT_DSCNT": (Counter.LOAD, Counter.DS), "S_WAIT_STORECNT_DSCNT": (Counter.STORE, Counter.DS),
}
_WAITS = {counter: name for name, counter in _SINGLE.items() if name.startswith("S_WAIT_")}
_WIDTHS = {Counter.EXP: 3, Counter.BVH: 3, Counter.KM: 5}  # of gfx12's counters; the others have 6 bits


def _layout(target: Target) -> dict[Counter, Segments]:
    return _LAYOUTS[target.generation]


def counters_of(target: Target) -> Counter:
    """The counters that a target has."""
    if (target.generation, target.minor) >= (12, 5):  # no images, no exports
        return Counter.LOAD | Counter.STORE | Counter.DS | Counter.KM | Counter.ASYNC | Counter.TENSOR | Counter.X
    found = Counter.VM | Counter.LGKM | Counter.EXP | (Counter.VS if target.store_counter else Counter.NONE)
    return found | (Counter.SAMPLE | Counter.BVH | Counter.KM if target.generation >= 12 else Counter.NONE)


def highest_count(target: Target, counter: Counter) -> int:
    """The highest number that a wait can name: that waits for nothing."""
    segments = _layout(target).get(counter) if target.generation < 12 else ((0, _WIDTHS.get(counter, 6)),)
    return _limit(segments or ((0, 6),))


def encode_waitcnt(target: Target, counts: Mapping[Counter, int]) -> int:
    """The immediate that waits until each counter is at most its count; counters left out are not waited for."""
    if target.generation >= 12:
        raise Unsupported(f"{target.name} has no s_waitcnt, but one wait instruction for each counter")
    return encode_immediate(target, _clamp_counts(target, counts))


def _clamp_counts(target: Target, counts: Mapping[Counter, int]) -> dict[Counter, int]:
    """Counts that wait, where those requested may be too high for it."""
    return {counter: min(count, highest_count(target, counter) - 1) for counter, count in counts.items()}


def encode_immediate(target: Target, counts: Mapping[Counter, int]) -> int:
    """The immediate of an s_waitcnt as it is written, also where that waits for nothing. gfx12 still decodes it."""
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
    return {counter: count for counter, count in counts_named(inst).items() if count < highest_count(target, counter)}


def counts_named(inst: Inst) -> dict[Counter, int]:
    """Counts in instructions that wait for one or two counters, by whose names these are; also what waits for
    nothing."""
    if (counter := _SINGLE.get(inst.op.base)) is not None:
        return {counter: inst["simm16"].value & 0x3F}
    if (pair := _DOUBLE.get(inst.op.base)) is None:
        return {}
    return {pair[0]: inst["simm16"].value >> 8 & 0x3F, pair[1]: inst["simm16"].value & 0x3F}


def waits_written(target: Target, counts: Mapping[Counter, int]) -> list[tuple[str, tuple[str | int, ...]]]:
    """The fewest instructions that wait until each counter is at most its count: mnemonics and operands."""
    waits: list[tuple[str, tuple[str | int, ...]]] = []
    least = _clamp_counts(target, counts)
    if target.generation >= 12:
        for name, (first, second) in _DOUBLE.items():
            if first in least and second in least:
                waits.append((name.lower(), (least.pop(first) << 8 | least.pop(second),)))
        return [*waits, *((_WAITS[counter], (count,)) for counter, count in least.items())]
    together = {counter: count for counter, count in least.items() if counter in _layout(target)}
    if together:
        waits.append(("s_waitcnt", (encode_waitcnt(target, together),)))
    if Counter.VS in least:
        waits.append(("s_waitcnt_vscnt", ("null", least[Counter.VS])))
    return waits


def _limit(segments: Segments) -> int:
    return (1 << sum(width for _, width in segments)) - 1
