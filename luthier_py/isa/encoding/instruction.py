"""What a decoded instruction is: a table row (OpInfo) and the fields of one encoding (Inst).

In: rows from the generated tables. Out: structured operands and effects that the rest of
Luthier-py asks; no code parses a mnemonic. Invariant: an Inst is immutable, and ``raw`` is what
``encode`` gives back for it.
"""

from __future__ import annotations

from enum import Enum, Flag, auto
from typing import NamedTuple

from luthier_py.base.records import dataclass
from luthier_py.isa.model.registers import EXEC, M0, MODE, NAMED, NO_REGS, SCC, SCRATCH_BASE, VCC, Reg, RegSet


class OperandKind(Enum):
    """What an operand is."""

    REGISTER = auto()   # reg is set
    CONSTANT = auto()   # inline constant or literal in a source field; value holds its bits
    SPECIAL = auto()    # read-only source without a register: aperture, vccz, execz, scc as source, null
    IMMEDIATE = auto()  # a plain field: offset, modifier, wait count; value holds it, sign extended where signed
    TARGET = auto()     # branch displacement in dwords, signed, from the end of the instruction
    ABSENT = auto()     # the field says that there is no such operand (saddr off, sdst null)


class Access(Flag):
    """What an instruction does to an operand: both for a destination that is a source, too, NONE for a plain field."""

    NONE = 0
    READ = auto()
    WRITE = auto()


class OpFlag(Flag):
    """What kind of instruction; several may hold."""

    NONE = 0
    SALU = auto()
    VALU = auto()
    TRANS = auto()           # transcendental VALU
    MATRIX = auto()          # MFMA, SMFMAC, WMMA
    DOT = auto()
    SMEM = auto()
    VMEM = auto()            # MUBUF, MTBUF, MIMG, FLAT, GLOBAL, SCRATCH
    FLAT = auto()            # any of FLAT, GLOBAL, SCRATCH encodings
    LDS = auto()             # DS encoding (not GDS forms)
    GDS = auto()
    EXPORT = auto()
    MAY_LOAD = auto()
    MAY_STORE = auto()
    ATOMIC = auto()
    ATOMIC_RETURN = auto()   # an atomic that returns the old value
    BRANCH = auto()          # direct, PC-relative: s_branch, s_cbranch_*
    CONDITIONAL = auto()     # may fall through
    INDIRECT = auto()        # s_setpc, s_swappc
    CALL = auto()            # s_swappc, s_call
    END = auto()             # s_endpgm and its like: nothing follows
    BARRIER = auto()         # work-group barrier
    WAIT = auto()            # s_waitcnt and its like
    TERMINATOR = auto()      # ends a basic block (branches, s_setpc, s_endpgm; not calls)
    SIDE_EFFECTS = auto()    # LLVM's hasSideEffects: never move or drop
    IGNORES_EXEC = auto()    # vector instruction that acts whatever EXEC is (v_readlane, v_writelane, ...)
    PACKED = auto()
    DPP = auto()
    SDWA = auto()
    # Nothing may be inserted that relies on vector operands where these hold.
    INDEXES_REGISTERS = auto()  # s_set_gpr_idx_*, *_movrel*, s_setvskip: makes vector operands relative, or skipped
    READS_OTHER_LANES = auto()  # a lane's result may come from lanes that are not active
    READS_FIRST_LANE = auto()   # from the lowest active lane, or from lane 0 where none is
    MAY_STOP = auto()           # the wave may go no further: traps and halts
    FORKS = auto()              # control forks to several places by a stack of the hardware's
    GETS_PC = auto()            # the result is the address of the next instruction, and nothing else happens
    SETS_PC = auto()            # jumps to the address in src0, and nothing else happens
    CLAUSE = auto()             # binds the instructions that follow together
    WRITES_HIGH_HALF = auto()   # the result is in the upper 16 bits, whatever modifiers say

    def __and__(self, other: OpFlag) -> OpFlag:
        """As any Flag's, without the checks: it is called more than once for each instruction."""
        value: int = self._value_ & other._value_
        found = _COMBINED.get(value)
        return found if found is not None else _COMBINED.setdefault(value, OpFlag(value))


_COMBINED: dict[int, OpFlag] = {}
MOVES = OpFlag.MAY_LOAD | OpFlag.MAY_STORE | OpFlag.ATOMIC
"""Of what accesses memory."""


class Counter(Flag):
    """Memory counters that an instruction raises. gfx12 renamed the first three and split off the others."""

    NONE = 0
    VM = auto()      # vector memory, but for stores from gfx10 on
    LGKM = auto()    # LDS, GDS, scalar memory and messages; from gfx12 on LDS only
    EXP = auto()
    VS = auto()      # vector stores, gfx10 on
    SAMPLE = auto()  # gfx12: images with a sampler
    BVH = auto()     # gfx12: ray intersection
    KM = auto()      # gfx12: scalar memory and messages
    ASYNC = auto()   # gfx1250: between memory and LDS
    TENSOR = auto()  # gfx1250
    X = auto()       # gfx1250: replay after a page fault; raised by all vector and scalar memory
    LOAD = VM
    DS = LGKM
    STORE = VS


class Space(Flag):
    """Memory that an instruction may touch."""

    NONE = 0
    GLOBAL = auto()
    LDS = auto()
    SCRATCH = auto()
    SCALAR = auto()  # constant memory through the scalar cache (global memory too)
    GDS = auto()


@dataclass(frozen=True, slots=True)
class OperandInfo:
    """One operand of a table row."""

    name: str        # LLVM's name: vdst, src0, saddr, offset, ...
    access: Access   # NONE for modifiers
    dwords: int      # width in dwords as the row has it; 0 for modifiers
    kind: str        # operand class of the table (see operands)
    type: str        # LLVM's OperandType, decides how constants expand ("OPERAND_REG_IMM_FP32", ...)
    printer: str     # LLVM's PrintMethod, see text
    signed: int      # width of a signed field; 0: unsigned; negative: unsigned, so many bits may be set
    files: str       # register files that it may name: any of V, S, A; L for lds_direct; m, e, h: not M0, EXEC, EXEC_HI
    aligned: bool    # vector tuples start at even registers, on targets that want it
    segments: tuple[tuple[int, int, int], ...]  # (first bit of the encoding, width, first bit of the field)


class Effects(NamedTuple):
    """Registers that one instruction touches."""

    reads: RegSet
    writes: RegSet
    partial_writes: RegSet


@dataclass(frozen=True, slots=True, eq=False)
class OpInfo:
    """One table row: an opcode in one encoding on one target."""

    record: str                      # LLVM record, "V_ADD_F32_e32_vi": for maintainers and tests only
    mnemonic: str                    # "v_add_f32_e32", as LLVM prints it
    base: str                        # "V_ADD_F32": the operation, same in every encoding; key of semantics
    format: str                      # "VOP2", "SOP1", "FLAT", ...
    size_bytes: int                  # without a trailing literal
    operands: tuple[OperandInfo, ...]
    implicit_reads: RegSet
    implicit_writes: RegSet
    flags: OpFlag
    counters: Counter
    spaces: Space
    row: int                         # index in the target's table
    template: str                    # assembly text with $operand places
    mask: int                        # fixed bits of the encoding
    value: int
    fill: int                        # don't-care bits that LLVM's assembler sets
    partial: bool                    # a 16-bit or one-lane result: the rest of the destination stays
    may_mask_lanes: bool             # SDWA, DPP, images: modifiers decide whether bits of the destination stay
    literals: tuple[int, ...]        # operands whose field may say that a literal follows

    @property
    def mnemonics(self) -> tuple[str, ...]:
        """The mnemonics of all that it does: a dual instruction (VOPD) is two, "v_dual_mul_f32" and
        "v_dual_add_f32"."""
        first, *others = self.template.split(" :: ")
        return (self.mnemonic, *(other.partition(" ")[0] for other in others)) if others else (self.mnemonic,)


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of one instruction."""

    name: str
    kind: OperandKind
    access: Access
    reg: Reg | None = None   # for REGISTER
    value: int = 0           # CONSTANT: bits at the operand's width; IMMEDIATE, TARGET: the field; SPECIAL: operand
                             # encoding; REGISTER: 1 for the high half of a 16-bit operand
    type: str = ""           # as in OperandInfo


class Inst:
    """One decoded instruction without a place. Compared by identity; never changed once made.

    A plain class, because decoding makes hundreds of thousands: effects are computed at first use.
    """

    __slots__ = ("_effects", "fields", "literal", "op", "operands", "raw")

    def __init__(self, op: OpInfo, fields: tuple[int, ...], literal: int | None, raw: bytes,
                 operands: tuple[Operand, ...]) -> None:
        self.op = op
        self.fields = fields        # raw field values, one per op.operands
        self.literal = literal      # trailing literal dword(s), if any
        self.raw = raw
        self.operands = operands    # one per op.operands, same order
        self._effects: Effects | None = None

    def __repr__(self) -> str:
        return f"<Inst {self.op.mnemonic} {self.raw.hex()}>"

    def effects(self) -> Effects:
        """All that it reads and writes, implicit registers among them."""
        if self._effects is None:
            self._effects = effects_of(self.op, self.operands)
        return self._effects

    @property
    def reads(self) -> RegSet:
        """Registers read, explicit and implicit; for a partial write the old value is read too."""
        return self.effects().reads

    @property
    def writes(self) -> RegSet:
        """Registers written, explicit and implicit; vector registers only in the lanes of EXEC."""
        return self.effects().writes

    @property
    def partial_writes(self) -> RegSet:
        """Subset of ``writes`` that keeps some bits whatever EXEC is (d16, op_sel, SDWA preserve, DPP masks)."""
        return self.effects().partial_writes

    @property
    def named(self) -> RegSet:
        """Registers read or written, but for those that an index may choose: the wave has these already."""
        if OpFlag.INDEXES_REGISTERS in self.op.flags:
            return RegSet.of(*(operand.reg for operand in self.operands if operand.reg is not None))
        return self.reads | self.writes

    @property
    def size_bytes(self) -> int:
        """Bytes of the encoding with the literal behind it, which ``op.size_bytes`` leaves out."""
        return len(self.raw)

    def find(self, name: str) -> Operand | None:
        """The operand called ``name``, or None."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        return None

    def __getitem__(self, name: str) -> Operand:
        """The operand of a name in AMD's manuals: vdst, src0, simm16, ...; ``find`` gives None where there is none."""
        operand = self.find(name)
        if operand is None:
            raise KeyError(f"{self.op.mnemonic} has no operand {name}")
        return operand

    def branch_target(self, pc: int) -> int | None:
        """Target address of a direct branch or call at ``pc`` (AMD ISA, SOPP: simm16 * 4 + next pc)."""
        for operand in self.operands:
            if operand.kind is OperandKind.TARGET:
                return pc + self.size_bytes + 4 * operand.value
        return None


# Sources that are not registers of their own but show one: operand encoding -> what is read.
SRC_VCCZ, SRC_EXECZ, SRC_SCC, SRC_LDS_DIRECT = 251, 252, 253, 254
SRC_NULL = (124, 125)  # it reads 0; of the two the one that is not M0, which decodes as a register
_SHOWS = {
    SRC_VCCZ: 3 << VCC, SRC_EXECZ: 3 << EXEC, SRC_SCC: 1 << SCC, SRC_LDS_DIRECT: 1 << M0,
}
_SDWA_PRESERVE = 2
_ALL_ROWS = 0xF
# Texture fail enable, LOD warning enable: a lane that fails gets a status and no data, so its registers may stay as
# they were (LLVM sets them before such an instruction, and ties them to it: SITargetLowering::AddMemOpInit).
FAIL_ENABLES = frozenset({"tfe", "lwe"})


_READ, _WRITE = Access.READ, Access.WRITE


def find_underlying_scalars(source: int) -> int:
    """The scalar registers whose values a source shows that is no register itself."""
    return _SHOWS.get(source, 0)


SETS_HARDWARE = frozenset({"S_SETREG_B32", "S_SETREG_IMM32_B32"})
FLAT_SCR_LO = 20  # HW_REG_FLAT_SCR_LO, HW_REG_FLAT_SCR_HI (RDNA 2 ISA, "Hardware Register Values")


def _hardware_registers(written: int, operands: tuple[Operand, ...]) -> int:
    """What s_setreg writes: MODE, if nothing better is known."""
    number = next(operand.value & 63 for operand in operands if operand.name == "simm16") - FLAT_SCR_LO
    return written & ~(1 << MODE) | 1 << SCRATCH_BASE + number if number in (0, 1) else written


def effects_of(op: OpInfo, operands: tuple[Operand, ...]) -> Effects:
    """What an instruction of ``op`` with ``operands`` reads and writes."""
    read, written = op.implicit_reads.bits, op.implicit_writes.bits
    for operand in operands:
        reg = operand.reg
        if reg is not None:
            bits = reg.bits
            access = operand.access  # members are singletons: comparing identities is what makes this fast
            if access is not _WRITE:
                read |= bits
            if access is not _READ:
                written |= bits
        elif operand.kind is OperandKind.SPECIAL:
            read |= find_underlying_scalars(operand.value)
    if op.format == "MIMG":
        read |= find_unnamed_addresses(operands)
    if op.base in SETS_HARDWARE:
        written = _hardware_registers(written, operands)
    writes = RegSet(written)
    if not (op.partial or op.may_mask_lanes and _masks_lanes(op, operands)):
        return Effects(RegSet(read), writes, NO_REGS)
    kept = writes.vectors
    return Effects(RegSet(read | kept.bits), writes, kept)


_COORDINATES, _SAMPLED = 4, 13  # offset, bias, reference, six gradients, three coordinates, clamp


def find_unnamed_addresses(operands: tuple[Operand, ...]) -> int:
    """Vector registers that an image instruction may read behind the one that it names, as bits: up to gfx9 the
    resource says how many coordinates there are (Vega ISA, 8.2.4)."""
    named = {operand.name: operand.reg for operand in operands}
    first = named.get("vaddr")
    if first is None or "da" not in named:  # from RDNA 1 on there is dim instead
        return 0
    count = max(_SAMPLED if "ssamp" in named else _COORDINATES, first.dwords)
    count = min(count, NAMED - first.index)
    return Reg(first.file, first.index, count).bits


def _masks_lanes(op: OpInfo, operands: tuple[Operand, ...]) -> bool:
    """Whether modifiers leave bits of the destination as they were, even with EXEC full."""
    modifiers = {operand.name: operand.value for operand in operands if operand.kind is OperandKind.IMMEDIATE}
    if OpFlag.SDWA in op.flags:
        return modifiers.get("dst_unused") == _SDWA_PRESERVE
    if any(modifiers.get(name) for name in FAIL_ENABLES):
        return True
    # Lanes outside the masks, and with bound_ctrl 0 those whose source lane is missing, are not written.
    full = modifiers.get("row_mask", _ALL_ROWS) == modifiers.get("bank_mask", _ALL_ROWS) == _ALL_ROWS
    return not (full and ("dpp_ctrl" not in modifiers or modifiers.get("bound_ctrl") == 1))
