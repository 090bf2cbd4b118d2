"""How the banks of a target serve an access, in the numbers that device code takes.

In: a target and an LDS access. Out: :class:`Shape`. Invariant: accesses of one shape, whose addresses are at the same
distances, take the same cycles.
"""

from __future__ import annotations

from typing import NamedTuple

from luthier_py.isa import Target
from luthier_py.isa.lds_banks import LdsAccess, Way, bank_model


class Shape(NamedTuple):
    """The last parameters of every hook that works cycles out."""

    dwords: int
    bank_bits: int
    address_bits: int
    """Bits that tell all dwords of LDS apart, and one more for the words behind an address."""
    shared: int
    """Whether lanes get a word together."""
    parity0: int
    parity1: int
    parity2: int
    regular: int
    """Whether every group has one lane for each remainder by the number of blocks of ``dwords`` side by side."""


def shape_of(target: Target, access: LdsAccess, wave_size: int) -> Shape:
    service = bank_model(target).service(access.way, access.dwords)
    bits = (target.lds_bytes // 4 - 1).bit_length() + 1
    shared = int(access.way is not Way.ATOMIC)
    blocks, left = divmod(service.banks, access.dwords)
    regular = not left and all(sorted(lane % blocks for lane in lanes) == list(range(blocks))
                               for lanes in service.groups(wave_size))
    parity0, parity1, parity2 = (*service.parities, 0, 0)[:3]
    bank_bits = service.banks.bit_length() - 1
    return Shape(access.dwords, bank_bits, bits, shared, parity0, parity1, parity2, int(regular))
