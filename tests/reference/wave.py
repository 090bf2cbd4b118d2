"""A wave as plain Python: every register is an integer, or a list of one integer for each lane.

Invariant: values are unsigned and have 32 bits; nothing happens behind a read or write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from luthier_py.isa import EXEC, MODE, Reg, RegFile, Target

LANES = 64
M32 = 0xFFFFFFFF
CODE_BASE = 0x7000_0000_0000


class Fault(Exception):
    """An access of memory that is not there."""


@dataclass
class Freedom:
    """What the manuals leave open of a lane's result: the float that begins at ``first``, and why."""

    notes: frozenset[str]
    width: int
    shift: int  # where the float begins in the register
    extended: bool = False  # its sign fills the register above


@dataclass
class Wave:
    scalars: dict[int, int] = field(default_factory=dict)
    vgprs: dict[int, list[int]] = field(default_factory=dict)
    agprs: dict[int, list[int]] = field(default_factory=dict)
    lds: bytearray = field(default_factory=bytearray)
    scratch: dict[tuple[int, int], int] = field(default_factory=dict)  # (lane, dword) -> bits
    memory: dict[int, bytearray] = field(default_factory=dict)         # address -> bytes
    free: dict[tuple[RegFile, int, int], Freedom] = field(default_factory=dict)  # (file, register, lane)
    pc: int = 0
    half_products_flush: bool = False  # of its target
    d16_clears: bool = False           # D16 loads write zeros to the other half
    permutes_halves: bool = False      # the same
    fnuz_floats: bool = False          # the same
    replicates_matrices: bool = False  # the same
    negates_doubles: bool = False      # the same
    numbers_win: bool = False          # the same
    first_nan: bool = False            # the same
    size: int = LANES
    target: Target | None = None       # where the meaning is another on each

    def scalar(self, index: int, dwords: int = 1) -> int:
        return sum(self.scalars.get(index + i, 0) << 32 * i for i in range(dwords))

    def set_scalar(self, index: int, value: int, dwords: int = 1) -> None:
        for i in range(dwords):
            self.scalars[index + i] = value >> 32 * i & M32
            self.free.pop((RegFile.SGPR, index + i, 0), None)

    def active(self, lane: int) -> bool:
        return bool(self.mask(EXEC) >> lane & 1)

    def mask(self, index: int) -> int:
        """A lane mask."""
        return self.scalar(index, self.size // 32)

    def set_mask(self, index: int, bits: int) -> None:
        self.set_scalar(index, bits, self.size // 32)

    def lanes(self) -> Iterator[int]:
        """Lanes of EXEC, lowest first."""
        mask = self.mask(EXEC)
        return (lane for lane in range(self.size) if mask >> lane & 1)

    def vector(self, reg: Reg, lane: int) -> int:
        """All dwords of a vector register (or of a scalar one, for any lane)."""
        if reg.file is RegFile.SGPR:
            return self.scalar(reg.index, reg.dwords)
        rows = self._rows(reg.file)
        return sum(rows.get(reg.index + i, [0] * LANES)[lane] << 32 * i for i in range(reg.dwords))

    def set_vector(self, reg: Reg, lane: int, value: int) -> None:
        rows = self._rows(reg.file)
        for i in range(reg.dwords):
            rows.setdefault(reg.index + i, [0] * LANES)[lane] = value >> 32 * i & M32
            self.free.pop((reg.file, reg.index + i, lane), None)

    def _rows(self, file: RegFile) -> dict[int, list[int]]:
        return self.agprs if file is RegFile.AGPR else self.vgprs

    @property
    def ieee(self) -> bool:
        """RDNA 4 has the mode no more (RDNA 4 ISA, MODE)."""
        return bool(self.scalar(MODE) >> 9 & 1) and not (self.target is not None and self.target.generation >= 12)

    def flushes(self, width: int) -> bool:
        """MODE flushes denormals of floats of that width (MI200 ISA, 3.4)."""
        return not self.scalar(MODE) >> (5 if width == 32 else 7) & 1

    def load(self, address: int, size: int) -> int:
        data, at = self._place(address, size)
        return int.from_bytes(data[at : at + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        data, at = self._place(address, size)
        data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _place(self, address: int, size: int) -> tuple[bytearray, int]:
        for base, data in self.memory.items():
            if base <= address and address + size <= base + len(data):
                return data, address - base
        raise Fault(f"0x{address:x}")
