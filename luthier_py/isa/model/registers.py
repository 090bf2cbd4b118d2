"""Registers and sets of registers.

There are three register files. The scalar file is numbered as the ISA encodes scalar
operands, so that special registers have one place of their own beside the SGPRs
(AMD ISA manuals, "Scalar ALU operands"); registers that no operand can name follow at 128.

Invariant: one architectural dword has exactly one (file, index), on every target.
The decoder maps encodings that differ between targets (M0 is 125 on gfx11+) to these.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from luthier_py.base.records import dataclass


class RegFile(IntEnum):
    """A register file; indices count dwords (a VGPR is one dword in each lane)."""

    SGPR = 0
    VGPR = 1
    AGPR = 2


# Scalar file: special registers at their operand encodings.
FLAT_SCRATCH = 102  # gfx9 only, two dwords; plain SGPRs on gfx10+
XNACK_MASK = 104  # gfx9 only, two dwords; plain SGPRs on gfx10+
VCC = 106  # two dwords
TTMP0 = 108  # sixteen dwords
M0 = 124
EXEC = 126  # two dwords
# Scalar file: what operands cannot name as destination.
SCC = 128
MODE = 129
SCRATCH_BASE = 130  # gfx10 only, two dwords: HW_REG_FLAT_SCR_LO and _HI, which s_setreg alone can write
# A set of registers as one int has the scalar file from bit 0, and from these on VGPRs and AGPRs.
VGPR_SHIFT = 256
AGPR_SHIFT = VGPR_SHIFT + 1024
_SHIFTS = (0, VGPR_SHIFT, AGPR_SHIFT)  # by file
SCALARS = (1 << VGPR_SHIFT) - 1
_VECTORS = (1 << AGPR_SHIFT - VGPR_SHIFT) - 1
NAMED = 256  # registers of a file that an operand can name
# Read-only sources (apertures, null, constants) are not registers: they decode as constants
# or as OperandKind.SPECIAL.

SPECIAL_NAMES = {
    FLAT_SCRATCH: "flat_scratch_lo", FLAT_SCRATCH + 1: "flat_scratch_hi",
    XNACK_MASK: "xnack_mask_lo", XNACK_MASK + 1: "xnack_mask_hi",
    VCC: "vcc_lo", VCC + 1: "vcc_hi", M0: "m0", EXEC: "exec_lo", EXEC + 1: "exec_hi",
    SCC: "scc", MODE: "mode", SCRATCH_BASE: "flat_scr_lo", SCRATCH_BASE + 1: "flat_scr_hi",
    **{TTMP0 + i: f"ttmp{i}" for i in range(16)},
}


@dataclass(frozen=True, slots=True)
class Reg:
    """``dwords`` consecutive registers of one file, from ``index`` on."""

    file: RegFile
    index: int
    dwords: int = 1

    @property
    def bits(self) -> int:
        """Its dwords, as in a RegSet."""
        return (1 << self.dwords) - 1 << _SHIFTS[self.file] + self.index

    @property
    def number(self) -> int:
        """The number of the bit of its first dword."""
        return _SHIFTS[self.file] + self.index

    def __str__(self) -> str:
        prefix = "sva"[self.file]
        if self.dwords == 1:
            if self.file is RegFile.SGPR and self.index in SPECIAL_NAMES:
                return SPECIAL_NAMES[self.index]
            return f"{prefix}{self.index}"
        if self.file is RegFile.SGPR and self.dwords == 2 and self.index in (VCC, EXEC, FLAT_SCRATCH, XNACK_MASK):
            return SPECIAL_NAMES[self.index].removesuffix("_lo")
        return f"{prefix}[{self.index}:{self.index + self.dwords - 1}]"


@dataclass(frozen=True, slots=True)
class LaneOf:
    """``dwords`` lanes of the vector register ``reg``, from lane ``first`` on: each holds a dword of a scalar."""

    reg: Reg
    first: int
    dwords: int = 1

    def __str__(self) -> str:
        if self.dwords == 1:
            return f"{self.reg} lane {self.first}"
        return f"{self.reg} lanes {self.first}:{self.first + self.dwords - 1}"


def is_register(reg: Reg) -> bool:
    """Whether some instruction could name it: authors make registers, too, of whatever they have."""
    whole = isinstance(reg.file, RegFile) and isinstance(reg.index, int) and isinstance(reg.dwords, int)
    return whole and reg.index >= 0 and reg.dwords > 0 and reg.index + reg.dwords <= NAMED


def sgpr(index: int, dwords: int = 1) -> Reg:
    """Scalar registers from ``index`` on; ``sgpr(4, 2)`` is s[4:5], ``sgpr(EXEC, 2)`` is exec."""
    return Reg(RegFile.SGPR, index, dwords)


def vgpr(index: int, dwords: int = 1) -> Reg:
    """Vector registers from ``index`` on: ``vgpr(2)`` is v2."""
    return Reg(RegFile.VGPR, index, dwords)


def agpr(index: int, dwords: int = 1) -> Reg:
    """Accumulation registers from ``index`` on: ``agpr(2)`` is a2."""
    return Reg(RegFile.AGPR, index, dwords)


def set_bits(bits: int) -> Iterator[int]:
    """Numbers of the bits that are 1, ascending."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


@dataclass(frozen=True, slots=True)
class RegSet:
    """An immutable set of registers: one bit for each, with the scalar file first and the accumulation file last."""

    bits: int = 0

    @staticmethod
    def of(*regs: Reg) -> RegSet:
        """The set of all dwords of some registers."""
        bits = 0
        for reg in regs:
            bits |= reg.bits
        return RegSet(bits)

    @staticmethod
    def by_file(sgpr: int = 0, vgpr: int = 0, agpr: int = 0) -> RegSet:
        """The set from one mask for each file, whose bit *i* is register *i*."""
        return RegSet(sgpr | vgpr << VGPR_SHIFT | agpr << AGPR_SHIFT)

    @property
    def sgpr(self) -> int:
        """The scalar file as a mask: bit *i* is register *i*, special registers included."""
        return self.bits & SCALARS

    @property
    def vgpr(self) -> int:
        """The vector registers as a mask: bit *i* is v*i*."""
        return self.bits >> VGPR_SHIFT & _VECTORS

    @property
    def agpr(self) -> int:
        """The accumulation registers as a mask: bit *i* is a*i*."""
        return self.bits >> AGPR_SHIFT

    @property
    def scalars(self) -> RegSet:
        """Those of the scalar file."""
        return RegSet(self.bits & SCALARS)

    @property
    def vectors(self) -> RegSet:
        """Those of the other files."""
        return RegSet(self.bits & ~SCALARS)

    def mask(self, file: RegFile) -> int:
        """One bit for each register of a file."""
        return self.agpr if file is RegFile.AGPR else self.vgpr if file is RegFile.VGPR else self.sgpr

    def __or__(self, other: RegSet) -> RegSet:
        return RegSet(self.bits | other.bits)

    def __and__(self, other: RegSet) -> RegSet:
        return RegSet(self.bits & other.bits)

    def __sub__(self, other: RegSet) -> RegSet:
        return RegSet(self.bits & ~other.bits)

    def __le__(self, other: RegSet) -> bool:
        """Whether all registers are in ``other``, too."""
        return not self.bits & ~other.bits

    def __bool__(self) -> bool:
        return self.bits != 0

    def __contains__(self, reg: Reg) -> bool:
        """Whether *all* dwords of ``reg`` are in the set."""
        return not reg.bits & ~self.bits

    def overlaps(self, other: RegSet) -> bool:
        """Whether any register is in both."""
        return self.bits & other.bits != 0

    def __iter__(self) -> Iterator[Reg]:
        """Single-dword registers, file by file, ascending."""
        for file in RegFile:
            for index in set_bits(self.mask(file)):
                yield Reg(file, index)

    def __str__(self) -> str:
        """Ranges, LLVM's way: ``s[0:3] vcc v5``."""
        return " ".join(str(reg) for reg in self.ranges())

    def ranges(self) -> Iterator[Reg]:
        """The set as maximal runs; special registers are not merged with SGPRs."""
        run: Reg | None = None
        for reg in self:
            joins = run is not None and run.file == reg.file and run.index + run.dwords == reg.index
            plain = reg.file is not RegFile.SGPR or not (reg.index in SPECIAL_NAMES and reg.index % 2 == 0)
            single = reg.file is RegFile.SGPR and reg.index in (M0, SCC, MODE)
            if joins and plain and run is not None and not single:
                run = Reg(run.file, run.index, run.dwords + 1)
            else:
                if run is not None:
                    yield run
                run = reg
        if run is not None:
            yield run


NO_REGS = RegSet()
EVERY_REG = RegSet.by_file(SCALARS, _VECTORS, _VECTORS)
