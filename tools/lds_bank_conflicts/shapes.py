"""How the banks of a target serve an access, in the numbers that device code takes.

In: a target and an LDS access. Out: :class:`Shape`. Invariant: accesses of one shape, whose addresses are at the same
distances, take the same cycles in the same lanes.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from luthier_py.isa import Target
from luthier_py.isa.timing.lds_banks import LaneGroups, LdsAccess, Way, bank_model


class Groups(NamedTuple):
    """Lanes that are served together: neighbours, or the lanes of up to four masks in each half of a wave."""

    span: int
    """How many neighbours; 0 where there are masks."""
    heads: int
    """The first lane of each group."""
    mask0: int
    mask1: int
    mask2: int
    mask3: int


class Shape(NamedTuple):
    """The last parameters of every hook that works cycles out."""

    dwords: int
    bank_bits: int
    address_bits: int
    """Bits that number all dwords of LDS, and one more for the words behind an address."""
    shared: int
    """Whether lanes get a word together."""
    parity0: int
    parity1: int
    parity2: int
    seats: int
    """Whether there is a lane for each bank of each group, if ``dwords`` are served as one."""
    groups: Groups

    @property
    def numbers(self) -> tuple[int, ...]:
        return (*self[:-1], *self.groups)


def shape_of(target: Target, access: LdsAccess, wave_size: int) -> Shape:
    return _shape(target, bank_model(target).service(access.way, access.dwords), access.way, access.dwords, wave_size)


@cache
def _shape(target: Target, service: LaneGroups, way: Way, dwords: int, wave_size: int) -> Shape:
    bits = (target.lds_bytes // 4 - 1).bit_length() + 1
    shared = int(way is not Way.ATOMIC)
    parity0, parity1, parity2 = (*service.parities, 0, 0)[:3]
    bank_bits = service.banks.bit_length() - 1
    return Shape(dwords, bank_bits, bits, shared, parity0, parity1, parity2,
                 int(_seats(target, service, dwords, wave_size)), _groups(service, wave_size))


def _seats(target: Target, service: LaneGroups, dwords: int, wave_size: int) -> bool:
    """From gfx10 on lanes of a wave of 64 exchange values within a half only, and those that are not served have no
    lane to follow there."""
    blocks, left = divmod(service.banks, dwords)
    return not left and blocks * len(service.groups(64)) <= 64 and (wave_size == 64) == (target.generation == 9)


def _groups(service: LaneGroups, wave_size: int) -> Groups:
    groups = service.groups(wave_size)
    size = len(groups[0])
    if size in (8, 16) and all(lanes == tuple(range(lanes[0], lanes[0] + size)) for lanes in groups):
        return Groups(size, sum(1 << lanes[0] for lanes in groups), 0, 0, 0, 0)
    masks = [sum(1 << lane for lane in lanes) for lanes in groups if lanes[0] < 32]
    return Groups(0, 0, *(*masks, 0, 0, 0)[:4])
