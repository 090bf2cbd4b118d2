"""What a decoded instruction is: a table row (OpInfo) and the fields of one encoding (Inst).

In: rows from the generated tables. Out: structured operands and effects that the rest of
Luthier-py asks; nobody parses a mnemonic. Invariant: an Inst is immutable, and ``raw`` is what
``encode`` gives back for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, auto

from luthier_py.isa.registers import NO_REGS, Reg, RegSet


class OperandKind(Enum):
    REGISTER = auto()   # reg is set
    CONSTANT = auto()   # inline constant or literal in a source field; value holds its bits
    SPECIAL = auto()    # read-only source without a register: aperture, vccz, execz, scc as source, null
    IMMEDIATE = auto()  # a plain field: offset, modifier, wait count; value holds it, sign extended where signed
    TARGET = auto()     # branch displacement in dwords, signed, from the end of the instruction
    ABSENT = auto()     # the field says that there is no such operand (saddr off, sdst null)


class Access(Flag):
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


class Counter(Flag):
    """Memory counters that an instruction raises (gfx9 names; later targets split them)."""

    NONE = 0
    VM = auto()
    LGKM = auto()
    EXP = auto()
    VS = auto()


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
    kind: str        # operand class of the table (see decode)
    type: str        # LLVM's OperandType, decides how constants expand ("OPERAND_REG_IMM_FP32", ...)


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


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of one instruction."""

    name: str
    kind: OperandKind
    access: Access
    reg: Reg | None = None   # for REGISTER
    value: int = 0           # CONSTANT: bits at the operand's width; IMMEDIATE, TARGET: the field; SPECIAL: operand encoding
    type: str = ""           # as in OperandInfo


@dataclass(frozen=True, slots=True, eq=False)
class Inst:
    """One decoded instruction without a place. Compared by identity."""

    op: OpInfo
    fields: tuple[int, ...]            # raw field values, one per op.operands
    literal: int | None                # trailing literal dword(s), if any
    raw: bytes
    operands: tuple[Operand, ...]      # one per op.operands, same order
    reads: RegSet                      # explicit and implicit; for a partial write the old value is read too
    writes: RegSet
    partial_writes: RegSet = NO_REGS   # subset of writes that keeps some bits whatever EXEC is (d16, op_sel, SDWA preserve)

    @property
    def size_bytes(self) -> int:
        return len(self.raw)

    def find(self, name: str) -> Operand | None:
        """The operand called ``name``, or None."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        return None

    def __getitem__(self, name: str) -> Operand:
        operand = self.find(name)
        if operand is None:
            raise KeyError(f"{self.op.mnemonic} has no operand {name}")
        return operand

    def branch_target(self, pc: int) -> int | None:
        """Address that a direct branch or call at ``pc`` goes to (AMD ISA, SOPP: simm16 * 4 + next pc)."""
        for operand in self.operands:
            if operand.kind is OperandKind.TARGET:
                return pc + self.size_bytes + 4 * operand.value
        return None
