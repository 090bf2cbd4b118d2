"""Wait states: how far apart two instructions must be where the hardware does not check.

In: the instructions before a place, and the one that comes next. Out: how many wait states are missing
between them. Sources: GCNHazardRecognizer.cpp of LLVM 22 (the constants in each row), and the "Manually
Inserted Wait States" table of AMD's Vega and CDNA2 ISA manuals. gfx10+ checks registers in hardware and has
no rows here. Invariant: never too few; matrix rows take the longest case of the generation.

Every instruction is one wait state, ``s_nop n`` is n + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from luthier_py.isa.instruction import Inst, OperandKind, OpFlag
from luthier_py.isa.instruction_set import InstructionSet
from luthier_py.isa.registers import EXEC, M0, NO_REGS, VCC, RegFile, RegSet, sgpr
from luthier_py.isa.target import Target

Registers = Callable[[Inst], RegSet]

_EXEC = RegSet.of(sgpr(EXEC, 2))
_VCC = RegSet.of(sgpr(VCC, 2))
_M0 = RegSet.of(sgpr(M0))
_MEMORY = OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.EXPORT
MATRIX_RESULT = 20   # 16 passes and 3 after a 32x32, 19; gfx950 needs one more
MATRIX_SOURCE_C = 15
WINDOW = 20          # instructions to look back at; no row is longer


@dataclass(frozen=True, slots=True)
class Hazard:
    """``states`` are needed between a producer and a consumer that share registers."""

    name: str
    states: int
    produced: Registers  # registers by which an earlier instruction endangers a later one
    consumed: Registers  # registers by which a later instruction is endangered
    where: Callable[[Target], bool] = lambda target: target.generation == 9


def _vector_of(registers: RegSet) -> RegSet:
    return RegSet(0, registers.vgpr, registers.agpr)


def _scalar_of(registers: RegSet) -> RegSet:
    return RegSet(registers.sgpr, 0, 0)


def _is(inst: Inst, flags: OpFlag) -> bool:
    return bool(inst.op.flags & flags)


def _when(flags: OpFlag, registers: Registers) -> Registers:
    return lambda inst: registers(inst) if _is(inst, flags) else NO_REGS


def _lane_select(inst: Inst) -> RegSet:
    operand = inst.find("src1") if inst.op.base in ("V_READLANE_B32", "V_WRITELANE_B32") else None
    return RegSet.of(operand.reg) if operand is not None and operand.reg is not None else NO_REGS


def _plain_valu(registers: Registers) -> Registers:
    """VALU but for matrix operations."""
    return lambda inst: registers(inst) if _is(inst, OpFlag.VALU) and not _is(inst, OpFlag.MATRIX) else NO_REGS


def _wide_store_data(inst: Inst) -> RegSet:
    """Data of a store of more than 64 bits, which is read late."""
    if not _is(inst, OpFlag.VMEM) or not _is(inst, OpFlag.MAY_STORE):
        return NO_REGS
    data = [operand.reg for operand in inst.operands if operand.name == "vdata" and operand.reg is not None]
    return RegSet.of(*(reg for reg in data if reg.dwords > 2))


def _m0_reader(inst: Inst) -> RegSet:
    """What reads M0 other than as an ordinary scalar source: messages, indexing, LDS and GDS by M0."""
    special = _is(inst, OpFlag.INDEXES_REGISTERS | _MEMORY) or inst.op.base in ("S_SENDMSG", "S_SENDMSGHALT")
    direct = any(operand.kind is OperandKind.SPECIAL for operand in inst.operands)
    return inst.reads & _M0 if special or direct else NO_REGS


_FMA64 = frozenset({"V_FMA_F64", "V_FMAC_F64", "V_ADD_F64", "V_MUL_F64", "V_MAX_F64", "V_MIN_F64"})
_ANY = RegSet(sgpr=1)  # a register that stands for "whatever the registers are"


def _double_matrix(inst: Inst) -> RegSet:
    return _ANY if _is(inst, OpFlag.MATRIX) and "_F64_" in inst.op.base else NO_REGS


def _hardware_register(*bases: str) -> Registers:
    """The hardware register that s_setreg or s_getreg names, as a register number."""
    def registers(inst: Inst) -> RegSet:
        return RegSet(sgpr=1 << (inst["simm16"].value & 63)) if inst.op.base in bases else NO_REGS
    return registers


_SETREG = ("S_SETREG_B32", "S_SETREG_IMM32_B32")

HAZARDS = (
    Hazard("VALU writes SGPR, VMEM reads it", 5, _when(OpFlag.VALU, lambda i: _scalar_of(i.writes)),
           _when(OpFlag.VMEM, lambda i: _scalar_of(i.reads) - _EXEC)),
    Hazard("VALU writes VCC, v_div_fmas", 4, _when(OpFlag.VALU, lambda i: i.writes & _VCC),
           lambda i: i.reads & _VCC if i.op.base.startswith("V_DIV_FMAS") else NO_REGS),
    Hazard("VALU writes SGPR, lane select", 4, _when(OpFlag.VALU, lambda i: _scalar_of(i.writes)), _lane_select),
    Hazard("VALU writes VGPR, DPP reads it", 2, _when(OpFlag.VALU, lambda i: _vector_of(i.writes)),
           _when(OpFlag.DPP, lambda i: _vector_of(i.reads))),
    Hazard("VALU writes EXEC, DPP", 5, _when(OpFlag.VALU, lambda i: i.writes & _EXEC),
           _when(OpFlag.DPP, lambda i: _EXEC)),
    Hazard("s_setreg, s_getreg", 2, _hardware_register(*_SETREG), _hardware_register("S_GETREG_B32")),
    Hazard("s_setreg, s_setreg", 2, _hardware_register(*_SETREG), _hardware_register(*_SETREG)),
    Hazard("SALU writes M0, special reader", 1, _when(OpFlag.SALU, lambda i: i.writes & _M0), _m0_reader),
    Hazard("wide store, VALU overwrites data", 1, _wide_store_data,
           _when(OpFlag.VALU, lambda i: _vector_of(i.writes))),
    Hazard("VALU writes VGPR, matrix reads it", 2, _plain_valu(lambda i: _vector_of(i.writes)),
           _when(OpFlag.MATRIX, lambda i: _vector_of(i.reads))),
    Hazard("VALU writes EXEC, matrix", 4, _plain_valu(lambda i: i.writes & _EXEC),
           _when(OpFlag.MATRIX, lambda i: _EXEC)),
    Hazard("matrix result, any use", MATRIX_RESULT, _when(OpFlag.MATRIX, lambda i: _vector_of(i.writes)),
           _when(OpFlag.VALU | _MEMORY, lambda i: _vector_of(i.reads | i.writes))),
    Hazard("matrix source, VALU overwrites it", MATRIX_SOURCE_C, _when(OpFlag.MATRIX, lambda i: _vector_of(i.reads)),
           _plain_valu(lambda i: _vector_of(i.writes))),
    Hazard("f64 matrix, f64 arithmetic", 2, _double_matrix, lambda i: _ANY if i.op.base in _FMA64 else NO_REGS),
    Hazard("DOT result, any use", 3, _when(OpFlag.DOT, lambda i: _vector_of(i.writes)),
           _when(OpFlag.VALU | _MEMORY, lambda i: _vector_of(i.reads | i.writes))),
    Hazard("TRANS result, VALU", 1, _when(OpFlag.TRANS, lambda i: _vector_of(i.writes)),
           _when(OpFlag.VALU, lambda i: _vector_of(i.reads)), lambda target: target.sc_cache_bits),
    Hazard("VALU writes SGPR, VALU reads it", 2, _when(OpFlag.VALU, lambda i: _scalar_of(i.writes)),
           _when(OpFlag.VALU, lambda i: _scalar_of(i.reads) - _EXEC), lambda target: target.sc_cache_bits),
    Hazard("VALU writes EXEC, lane access", 4, _when(OpFlag.VALU, lambda i: i.writes & _EXEC),
           lambda i: _EXEC if "LANE_B32" in i.op.base else NO_REGS, lambda target: target.sc_cache_bits),
    Hazard("VALU writes VGPR, lane read", 1, _when(OpFlag.VALU, lambda i: _vector_of(i.writes)),
           lambda i: _vector_of(i.reads) if "LANE_B32" in i.op.base else NO_REGS,
           lambda target: target.sc_cache_bits),
)


def states_of(inst: Inst) -> int:
    """Wait states that ``inst`` itself is worth."""
    return (inst["simm16"].value & 15) + 1 if inst.op.base == "S_NOP" else 1


def wait_states(isa: InstructionSet, before: Sequence[Inst], inst: Inst) -> int:
    """Wait states that are missing between the end of ``before`` and ``inst``; 0 when it may follow at once.

    ``before`` is what runs just before, oldest first; the last WINDOW of it are looked at.
    """
    rows = [(row, consumed) for row in HAZARDS if row.where(isa.target) and (consumed := row.consumed(inst))]
    missing = _soft_clause(isa.target, before, inst)
    passed = 0
    for earlier in reversed(before):
        if passed >= WINDOW or not rows:
            break
        for row, consumed in rows:
            if row.states - passed > missing and row.produced(earlier).overlaps(consumed):
                missing = row.states - passed
        passed += states_of(earlier)
    return missing


def _soft_clause(target: Target, before: Sequence[Inst], inst: Inst) -> int:
    """1 when ``inst`` must not join the loads before it: under XNACK they may be replayed together, so none of
    them may write what another reads (GCNHazardRecognizer::checkSoftClauseHazards)."""
    kind = inst.op.flags & (OpFlag.SMEM | OpFlag.VMEM)
    if not kind or not target.xnack:
        return 0
    reads, writes = inst.reads - _EXEC, inst.writes
    for earlier in reversed(before):
        if not earlier.op.flags & kind:
            return 0
        if earlier.writes.overlaps(reads) or writes.overlaps(earlier.reads - _EXEC):
            return 1
    return 0


def unsafe_shift_amount(target: Target, inst: Inst) -> bool:
    """Whether a 64-bit shift takes its amount from a register where gfx90a gets it wrong.

    The last register of a block of eight must not be the amount (GCNSubtarget::hasShift64HighRegBug).
    """
    if not target.shift64_bug or inst.op.base not in ("V_LSHLREV_B64", "V_LSHRREV_B64", "V_ASHRREV_I64"):
        return False
    reg = inst["src0"].reg
    return reg is not None and reg.file is RegFile.VGPR and reg.index % 8 == 7
