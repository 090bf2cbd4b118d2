"""Where waves stand that get no further, in words of bounded length.

In: waves, and the code that they run. Out: one line: how many stand at which instruction, and its line in the source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.code.code_place import code_place
from luthier_py.emulator.launches.masked_lanes import behind_loop, lanes_text
from luthier_py.emulator.records.layout import Status
from luthier_py.emulator.waves.slot import Standing

PLACES = 5
"""As many are described; the others are counted."""


def describe_wait_states(waves: Iterable[Standing], codes: Sequence[HostedCode]) -> str:
    """``codes``: that of the kernel, and others that waves have come to."""
    places: dict[tuple[Status, int, int], list[Standing]] = defaultdict(list)  # status, code, pc
    ended = 0
    for wave in waves:
        if wave.status is Status.DONE:
            ended += 1
        else:
            number = next((number for number, code in enumerate(codes) if code.holds(wave.pc)), 0)
            places[_kind(wave.status), number, _place(wave, codes[number])].append(wave)
    ordered = sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    parts = []
    for (_, number, pc), here in ordered[:PLACES]:
        place = code_place(codes[number].base + pc, codes[number:])
        parts.append(f"{_names(here)} at {place}{_lanes(here, codes[number:])}")
    if left := ordered[PLACES:]:
        parts.append(f"{sum(len(here) for _, here in left)} waves at {len(left)} other places")
    if ended:
        parts.append(f"{ended} waves of these work-groups have ended")
    return "; ".join(parts) or "no work-group is resident"


def _kind(status: Status) -> Status:
    return status if status in (Status.BARRIER, Status.MEETING) else Status.JUMP


def _place(wave: Standing, code: HostedCode) -> int:
    """The instruction that a wave waits at, or the one that it continues with."""
    pc = wave.pc - code.base & (1 << 64) - 1
    if _kind(wave.status) is Status.JUMP:
        return pc
    return next(at for at in (pc - 4, pc - 8) if at in code.insts and at + code.insts[at].size_bytes == pc)


def waits_for_itself(waves: Iterable[Standing], codes: Sequence[HostedCode]) -> bool:
    """Whether lanes of some wave go round in a circle before others of it, that are masked off, can write anything."""
    return any(wave.in_circle and _goes_on(wave, code) is not None
               for wave in waves for code in codes if code.holds(wave.pc))


def _goes_on(wave: Standing, code: HostedCode) -> int | None:
    """Where its lanes do that are masked off while others are in a loop."""
    loops = wave.status in (Status.YIELD, Status.JUMP) and wave.active and wave.masked_off
    return behind_loop(code, wave.pc - code.base & (1 << 64) - 1) if loops else None


def _lanes(waves: list[Standing], codes: Sequence[HostedCode]) -> str:
    """Of the first of these waves that is in a loop with some of its lanes."""
    for wave in sorted(waves, key=lambda each: (each.group, each.wave)):
        if (behind := _goes_on(wave, codes[0])) is not None:
            name = "its" if len(waves) == 1 else f"of wave {wave.wave} of work-group {wave.group}"
            place = code_place(codes[0].base + behind, codes)
            return (f": {name} {lanes_text(wave.active)} in a loop, until whose end {lanes_text(wave.masked_off)} "
                    f"masked off, to go on at {place}")
    return ""


def _names(waves: list[Standing]) -> str:
    first = min((wave.group, wave.wave) for wave in waves)
    name = f"wave {first[1]} of work-group {first[0]}"
    return name if len(waves) == 1 else f"{len(waves)} waves ({name} first)"
