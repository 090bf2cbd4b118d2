"""Fields of hardware registers that name the compute unit that a wave runs on.

In: a target. Out: registers by name, with the bits of each that distinguish units. Invariant: two waves have the same
bits if they run on one unit: a compute unit, from RDNA on a work-group processor, which is two of them with one LDS.

By AMD's ISA manuals HW_ID of GCN and CDNA has CU_ID in 11:8, SH_ID in 12, SE_ID in 15:13; HW_ID1 of RDNA has WGP_ID in
13:10, SA_ID in 16, SE_ID in 20:18; XCC_ID of CDNA 3 has the die in 3:0. Not checked on hardware.
"""

from __future__ import annotations

from luthier_py.isa.model.names import HARDWARE_REGISTERS, names_of
from luthier_py.isa.model.target import Target

_BITS = {4: 0xFF00, 23: 0x1D3C00, 20: 0xF}  # by register


def compute_unit_bits(target: Target) -> dict[str, int]:
    """Bits by the register's name."""
    names = names_of(HARDWARE_REGISTERS, target)
    return {names[number]: _BITS[number] for number in sorted(target.place_registers & _BITS.keys())}
