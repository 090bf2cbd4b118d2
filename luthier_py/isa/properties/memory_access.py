"""The data of a memory access: what `accesses` reads from an instruction.

In: nothing. Out: MemoryAccess. Invariant: operands are those of the instruction; nothing here needs meanings, which
take long to import.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto

from luthier_py.base.records import dataclass
from luthier_py.isa.encoding.instruction import Operand, Space


class AccessKind(IntEnum):
    """What is done with memory."""

    LOAD = 1
    STORE = 2
    ATOMIC = 3


class AddressForm(Enum):
    """How an address is made."""

    FAR = auto()            # vaddr (64 bits) + offset: global and flat
    NEAR = auto()           # saddr (64 bits) + vaddr (32 bits) + offset: global, and flat where it has saddr
    LDS = auto()            # addr + offset: a byte of the work-group's memory
    SCRATCH = auto()        # vaddr + saddr + offset, of 32 bits: a byte of the lane's private memory
    BUFFER = auto()         # by a resource, srsrc, from vaddr, soffset and offset
    SCALAR = auto()         # sbase (64 bits) + soffset + offset, cut to dwords
    SCALAR_BUFFER = auto()  # the same by a resource, sbase
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """One instruction's. Each lane accesses as many elements as there are ``offsets``, of ``bytes`` each."""

    kind: AccessKind
    spaces: Space
    form: AddressForm
    bytes: int | None
    offsets: tuple[int, ...]
    """Immediates, in bytes: one for each element that an address is made for."""
    base: Operand | None = None
    """saddr, sbase or srsrc."""
    vector: Operand | None = None
    """vaddr or addr."""
    scalar: Operand | None = None
    """soffset; saddr of scratch."""
    indexed: bool = False
    """Of a buffer: vaddr has an index, in its first register."""
    offset_enabled: bool = False
    """Of a buffer: vaddr has an offset, in its last register."""
    unit: int = 1
    """Bytes in which vaddr of NEAR and SCRATCH, and soffset of SCALAR, count."""

    @property
    def of_wave(self) -> bool:
        """Whether a wave makes it once, and not each lane."""
        return self.form in (AddressForm.SCALAR, AddressForm.SCALAR_BUFFER)

    @property
    def total_bytes(self) -> int | None:
        """The size of all elements of a lane; of the wave where the access is scalar."""
        return None if self.bytes is None else self.bytes * len(self.offsets)
