"""Where waves stand that get no further, in words of bounded length.

In: waves, and the code that they run. Out: one line: how many stand at which instruction, and its line in the source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from luthier_py.emulator.code.code import HostedCode
from luthier_py.emulator.code.code_place import code_place
from luthier_py.emulator.records.layout import Status
from luthier_py.emulator.waves.slot import Standing

PLACES = 5
"""That are told; the others are counted."""


def told(waves: Iterable[Standing], codes: Sequence[HostedCode]) -> str:
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
        parts.append(f"{_names(here)} at {code_place(codes[number].base + pc, codes[number:])}")
    if left := ordered[PLACES:]:
        parts.append(f"{sum(len(here) for _, here in left)} waves at {len(left)} other places")
    if ended:
        parts.append(f"{ended} waves of these work-groups have ended")
    return "; ".join(parts) or "no work-group is resident"


def _kind(status: Status) -> Status:
    return status if status in (Status.BARRIER, Status.MEETING) else Status.JUMP


def _place(wave: Standing, code: HostedCode) -> int:
    """The instruction that a wave waits at, or the one that it goes on with."""
    pc = wave.pc - code.base & (1 << 64) - 1
    if _kind(wave.status) is Status.JUMP:
        return pc
    return next(at for at in (pc - 4, pc - 8) if at in code.insts and at + code.insts[at].size_bytes == pc)


def _names(waves: list[Standing]) -> str:
    first = min((wave.group, wave.wave) for wave in waves)
    name = f"wave {first[1]} of work-group {first[0]}"
    return name if len(waves) == 1 else f"{len(waves)} waves ({name} first)"
