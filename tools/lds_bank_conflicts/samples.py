"""Accesses that stand for others: of each instruction, one of each kind of conflict, with the addresses of its lanes.

In: LDS instructions; what the device has written. Out: :class:`Sample`. A kind is how many groups of lanes take part
(1, 2, up to 4, up to 8), and how many cycles more the worst of them takes than one without conflicts (none, 1, up to 3,
up to 7, and so on). The first access of a kind is written down whole, and all of them are counted. Invariant: a sample
is of one access, whichever waves run beside each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from luthier_py import Lane, device, ptr, u32, u64
from luthier_py.intrinsics import atomic_add, lane_id, read_first_lane
from luthier_py.isa.timing.lds_banks import BankModel, cycles_of

from .results import Site

TURNOUTS = 4  # of up to 8 groups
KINDS = 7 * TURNOUTS  # of up to 64 cycles
ADDRESSES = 3  # words before them: how many accesses, and EXEC of the first
WORDS = ADDRESSES + 64
SITE_WORDS = KINDS * WORDS


@device
def bits_of(number: u32, most: u32) -> u32:
    """0 for 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7, and so on."""
    bits = u32(0)
    for bit in range(most):
        bits += u32(number >> bit != 0)
    return bits


@device
def keep(samples: ptr[u32], exec: u64, address: Lane[u32], worst: u32, groups: u32) -> None:
    """Count an access, and write down its lanes if it is the first of its kind. All lanes take part."""
    mine = samples + (bits_of(worst, 6) * 4 + bits_of(groups - 1, 3)) * 67
    before = u32(0)
    if lane_id() == 0:
        before = atomic_add(mine, u32(1))
    if read_first_lane(before) == 0:
        if lane_id() == 0:
            mine[1] = u32(exec)
            mine[2] = u32(exec >> 32)
        mine[3 + lane_id()] = address


@dataclass(frozen=True, slots=True)
class Sample:
    """An access of ``site``; there were ``times`` of its kind. ``addresses``: in bytes, by lane, without offsets."""

    site: Site
    times: int
    addresses: dict[int, int]

    def words(self) -> Iterator[dict[int, int]]:
        """The first word of each lane, for each pass."""
        for offset in self.site.access.offsets_bytes:
            yield {lane: address + offset >> 2 for lane, address in self.addresses.items()}

    def cycles(self, model: BankModel, wave_size: int) -> int:
        return sum(cycles_of(model, self.site.access, words, wave_size) for words in self.words())


def samples_of(sites: Iterable[tuple[int, Site]], values: Sequence[int], wave_size: int) -> list[Sample]:
    """Samples of these sites, by their numbers."""
    found = []
    for number, site in sites:
        for start in range(number * SITE_WORDS, (number + 1) * SITE_WORDS, WORDS):
            times, low, high, *addresses = values[start : start + WORDS]
            lanes = low | high << 32
            if times:
                there = {lane: addresses[lane] for lane in range(wave_size) if lanes >> lane & 1}
                found.append(Sample(site, times, there))
    return found
