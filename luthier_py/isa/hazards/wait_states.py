"""Wait states: how far apart two instructions must be where the hardware does not check.

In: instructions in the order in which they run. Out: how many wait states are missing before each, given what the ones
before it still owe. Sources: GCNHazardRecognizer.cpp of LLVM 22 (the constants in each row), and the "Manually Inserted
Wait States" table of AMD's Vega and CDNA2 ISA manuals. From gfx10 on the hardware checks registers: all but soft
clauses is in `mitigated_hazards` there. Invariant: never too few; matrix rows take the longest case of the generation.

Every instruction is one wait state, ``s_nop n`` is n + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import TypeAlias

from luthier_py.base.records import dataclass
from luthier_py.isa.by_target import InstructionSet
from luthier_py.isa.encoding.instruction import Inst, OperandKind, OpFlag, OpInfo
from luthier_py.isa.model.registers import EXEC, M0, NO_REGS, VCC, RegFile, RegSet, sgpr
from luthier_py.isa.model.target import Target
from luthier_py.isa.properties.vector_modes import decode_mode_field

_EXEC = RegSet.of(sgpr(EXEC, 2))
_VCC = RegSet.of(sgpr(VCC, 2))
_M0 = RegSet.of(sgpr(M0))
_MEMORY = OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.EXPORT
MATRIX_RESULT = 20   # 16 passes and 3 after a 32x32, 19; gfx950 needs one more
MATRIX_SOURCE_C = 15
_ANY = RegSet.by_file(sgpr=1)  # a register that means "whatever the registers are"
_WROTE = RegSet.by_file(agpr=1 << 1000)  # one that means "something has been written"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a hazard: the operations that take part, and the registers by which each of them does."""

    takes_part: Callable[[OpInfo], bool]
    registers: Callable[[Inst], RegSet]


@dataclass(frozen=True, slots=True, eq=False)
class Hazard:
    """``states`` are needed between a producer and a consumer that share registers.

    In a ``clause`` they are needed as long as all instructions between the two could be producers, and only if these
    or the producer have all of ``needs`` among their registers.
    """

    name: str
    states: int
    produced: Side
    consumed: Side
    where: Callable[[Target], bool] = lambda target: target.generation < 10
    clause: bool = False
    needs: RegSet = NO_REGS


def _vectors(registers: RegSet) -> RegSet:
    return registers.vectors


def _scalars(registers: RegSet) -> RegSet:
    return registers.scalars


def _kind(flags: OpFlag, but: OpFlag = OpFlag.NONE) -> Callable[[OpInfo], bool]:
    return lambda op: bool(op.flags & flags) and not op.flags & but


def _match_bases(*bases: str) -> Callable[[OpInfo], bool]:
    return lambda op: op.base in bases


def _writes(takes_part: Callable[[OpInfo], bool], only: RegSet | None = None) -> Side:
    """By vector registers that are written, or by those of ``only``."""
    return Side(takes_part, (lambda i: _vectors(i.writes)) if only is None else lambda i: i.writes & only)


def _reads(takes_part: Callable[[OpInfo], bool]) -> Side:
    return Side(takes_part, lambda i: _vectors(i.reads))


def _touches(takes_part: Callable[[OpInfo], bool]) -> Side:
    return Side(takes_part, lambda i: _vectors(i.reads | i.writes))


def _always(takes_part: Callable[[OpInfo], bool], registers: RegSet) -> Side:
    """By some registers, whatever the operands are."""
    return Side(takes_part, lambda i: registers)


def _lane_select(inst: Inst) -> RegSet:
    reg = inst["src1"].reg
    return NO_REGS if reg is None else RegSet.of(reg)


def _wide_store_data(inst: Inst) -> RegSet:
    """Data of a store of more than 64 bits, which is read late."""
    data = [operand.reg for operand in inst.operands if operand.name == "vdata" and operand.reg is not None]
    return RegSet.of(*(reg for reg in data if reg.dwords > 2))


def _m0_reader(inst: Inst) -> RegSet:
    """What reads M0 other than as an ordinary scalar source: messages, indexing, LDS and GDS by M0."""
    special = _reads_m0_specially(inst.op) or any(operand.kind is OperandKind.SPECIAL for operand in inst.operands)
    return inst.reads & _M0 if special else NO_REGS


def _hardware_register(inst: Inst) -> RegSet:
    """The hardware register that s_setreg or s_getreg names, as a register number."""
    return RegSet.by_file(sgpr=1 << (inst["simm16"].value & 63))


_VALU = _kind(OpFlag.VALU)
_PLAIN_VALU = _kind(OpFlag.VALU, but=OpFlag.MATRIX)
_VMEM = _kind(OpFlag.VMEM)
_MATRIX = _kind(OpFlag.MATRIX)
_SETREG = _match_bases("S_SETREG_B32", "S_SETREG_IMM32_B32")
_LANE_ACCESS = _match_bases("V_READLANE_B32", "V_WRITELANE_B32", "V_READFIRSTLANE_B32")
_ACC_READ, _ACC_WRITE = _match_bases("V_ACCVGPR_READ_B32"), _match_bases("V_ACCVGPR_WRITE_B32")
_TRAPSTS = RegSet.by_file(sgpr=1 << 3)
_USES_VECTORS = _kind(OpFlag.VALU | _MEMORY)
_VALU_SCALARS = Side(_VALU, lambda i: _scalars(i.writes))


def _reads_m0_specially(op: OpInfo) -> bool:
    return bool(op.flags & (OpFlag.INDEXES_REGISTERS | _MEMORY)) or op.base in ("S_SENDMSG", "S_SENDMSGHALT")


def _find_source_c(inst: Inst) -> RegSet:
    """The third source of a matrix operation."""
    reg = inst["src2"].reg
    return NO_REGS if reg is None else RegSet.of(reg)


def _is_gfx908(target: Target) -> bool:
    return target.has_agprs and not target.unified_agprs


def _is_gfx940(target: Target) -> bool:
    return target.sc_cache_bits


def _is_gfx950(target: Target) -> bool:
    return target.sc_cache_bits and target.minor == 5


def _shifts_result(op: OpInfo) -> bool:
    """Results that may go to another part of their register (getDstSelForwardingOperand)."""
    selects = op.partial and any(info.name == "op_sel" for info in op.operands)
    return OpFlag.VALU in op.flags and (selects or OpFlag.SDWA in op.flags)


def _permutes(op: OpInfo) -> bool:
    return op.base.startswith("V_PERMLANE")


def _any(op: OpInfo) -> bool:
    return True


def _divides(op: OpInfo) -> bool:
    return op.base.startswith("V_DIV_FMAS")


def _stores(op: OpInfo) -> bool:
    return bool(op.flags & OpFlag.VMEM and op.flags & OpFlag.MAY_STORE)


def is_double_matrix(op: OpInfo) -> bool:
    """Whether it is a matrix instruction on f64, which has separate hazards and wait states."""
    return bool(op.flags & OpFlag.MATRIX) and "_F64_" in op.base


def _clause(kind: OpFlag, where: Callable[[Target], bool]) -> tuple[Hazard, ...]:
    """Under XNACK loads in a row may be replayed together, so none of them may write what another reads, nor what it
    reads itself, and stores are separate; while nothing is written, all may follow (GCNHazardRecognizer,
    checkSoftClauseHazards: ClauseDefs.none())."""
    part = _kind(kind)
    reads, writes = Side(part, lambda i: i.reads - _EXEC), Side(part, lambda i: i.writes)
    notes = Side(part, lambda i: i.reads - _EXEC | _WROTE if i.writes else i.reads - _EXEC)
    return (Hazard("clause writes, then reads", 1, writes, reads, where, True),
            Hazard("clause reads, then writes", 1, notes, writes, where, True, _WROTE),
            Hazard("clause writes, then what must not be replayed", 1,
                   Side(part, lambda i: _ANY if i.writes else NO_REGS),
                   Side(part, lambda i: _ANY if _must_not_be_replayed(i) else NO_REGS), where, True),
            Hazard("clause with what must not be replayed", 1, Side(part, lambda i: _ANY if _destroys(i) else NO_REGS),
                   Side(part, lambda i: _ANY), where, True))


def _destroys(inst: Inst) -> bool:
    """Whether an instruction writes what it reads."""
    return inst.writes.overlaps(inst.reads)


def _must_not_be_replayed(inst: Inst) -> bool:
    return OpFlag.MAY_STORE in inst.op.flags or _destroys(inst)


_FMA64 = _match_bases("V_FMA_F64", "V_FMAC_F64", "V_ADD_F64", "V_MUL_F64", "V_MAX_F64", "V_MIN_F64")

HAZARDS = (
    Hazard("VALU writes SGPR or EXEC, VMEM reads it", 5, _VALU_SCALARS, Side(_VMEM, lambda i: _scalars(i.reads))),
    Hazard("VALU writes VCC, v_div_fmas", 4, _writes(_VALU, _VCC), _always(_divides, _VCC)),
    Hazard("VALU writes SGPR, lane select", 4, _VALU_SCALARS,
           Side(_match_bases("V_READLANE_B32", "V_WRITELANE_B32"), _lane_select)),
    Hazard("VGPR is written, DPP reads it", 2, _writes(_any), _reads(_kind(OpFlag.DPP))),
    Hazard("VALU writes EXEC, DPP", 5, _writes(_VALU, _EXEC), _always(_kind(OpFlag.DPP), _EXEC)),
    Hazard("s_setreg, s_getreg", 2, Side(_SETREG, _hardware_register),
           Side(_match_bases("S_GETREG_B32"), _hardware_register)),
    Hazard("s_setreg, s_setreg", 2, Side(_SETREG, _hardware_register), Side(_SETREG, _hardware_register)),
    Hazard("s_setreg of MODE, s_set_vgpr_msb", 1, Side(_SETREG, lambda i: _ANY if decode_mode_field(i) else NO_REGS),
           _always(_match_bases("S_SET_VGPR_MSB"), _ANY),
           lambda target: True),  # LLVM, pull request 184904: it would be lost
    Hazard("SALU writes M0, special reader", 1, _writes(_kind(OpFlag.SALU), _M0), Side(_any, _m0_reader)),
    Hazard("wide store, VALU overwrites data", 1, Side(_stores, _wide_store_data), _writes(_VALU)),
    Hazard("wide store, VALU overwrites data", 2, Side(_stores, _wide_store_data), _writes(_VALU), _is_gfx940),
    Hazard("s_setreg of TRAPSTS, s_rfe", 1, Side(_SETREG, lambda i: _hardware_register(i) & _TRAPSTS),
           _always(_match_bases("S_RFE_B64"), _TRAPSTS)),
    Hazard("VALU writes VGPR, matrix reads it", 2, _writes(_PLAIN_VALU), _reads(_MATRIX)),
    Hazard("VALU writes EXEC, matrix", 4, _writes(_PLAIN_VALU, _EXEC), _always(_MATRIX, _EXEC)),
    Hazard("matrix result, any use", MATRIX_RESULT, _writes(_MATRIX), _touches(_USES_VECTORS)),
    Hazard("matrix that is added, VALU overwrites it", MATRIX_SOURCE_C, Side(_MATRIX, _find_source_c),
           _writes(_PLAIN_VALU)),
    Hazard("f64 matrix, f64 arithmetic", 2, _always(is_double_matrix, _ANY), _always(_FMA64, _ANY)),
    Hazard("VALU writes VGPR, v_accvgpr_write", 2, _writes(_PLAIN_VALU), _reads(_ACC_WRITE), _is_gfx908),
    Hazard("VALU writes EXEC, v_accvgpr_write", 4, _writes(_PLAIN_VALU, _EXEC), _always(_ACC_WRITE, _EXEC), _is_gfx908),
    Hazard("v_accvgpr_write, its register is used", 3, _writes(_ACC_WRITE),
           _touches(lambda op: _MATRIX(op) or _ACC_READ(op) or _ACC_WRITE(op)), _is_gfx908),
    Hazard("v_accvgpr_read, memory reads its register", 2, _writes(_ACC_READ), _reads(_kind(_MEMORY)), _is_gfx908),
    Hazard("DOT result, any use", 3, _writes(_kind(OpFlag.DOT)), _touches(_USES_VECTORS),
           lambda target: target.unified_agprs),
    Hazard("TRANS result, VALU", 1, _writes(_kind(OpFlag.TRANS)), _reads(_VALU), _is_gfx940),
    Hazard("shifted result, VALU", 1, _writes(_shifts_result), _touches(_VALU), _is_gfx940),
    Hazard("VALU writes SGPR, VALU reads it", 2, _VALU_SCALARS, Side(_VALU, lambda i: _scalars(i.reads) - _EXEC),
           _is_gfx940),
    Hazard("VALU writes EXEC, lane access", 4, _writes(_VALU, _EXEC), _always(_LANE_ACCESS, _EXEC), _is_gfx940),
    Hazard("VALU writes VGPR, lane read", 1, _writes(_VALU), _reads(_LANE_ACCESS), _is_gfx940),
    Hazard("VALU writes VGPR, v_permlane", 2, _writes(_VALU), _reads(_permutes), _is_gfx950),
    Hazard("v_cmpx, v_permlane", 4, _writes(_VALU, _EXEC), _always(_permutes, _EXEC), _is_gfx950),
    *_clause(OpFlag.SMEM, lambda target: target.xnack),
    *_clause(OpFlag.VMEM, lambda target: target.xnack and target.generation < 10),
)

NO_ROWS: frozenset[Hazard] = frozenset()
PendingStates: TypeAlias = dict[tuple[Hazard, int], RegSet]  # hazard and wait states that are left -> registers


def possible_hazards(isa: InstructionSet, ops: Iterable[OpInfo]) -> frozenset[Hazard]:
    """Hazards that code of these operations may have."""
    pairs = [rows_of(isa, op) for op in ops]
    return NO_ROWS.union(*(made for made, _ in pairs)) & NO_ROWS.union(*(met for _, met in pairs))


@cache
def goes_on(isa: InstructionSet, op: OpInfo) -> bool:
    """Whether a clause may go on over an operation."""
    return any(row.clause for row in rows_of(isa, op)[0])


@lru_cache(maxsize=1 << 16)
def find_produced_hazards(isa: InstructionSet, inst: Inst) -> PendingStates:
    """What ``inst`` owes to whatever comes right behind it."""
    return {(row, row.states): regs for row in rows_of(isa, inst.op)[0] if (regs := row.produced.registers(inst))}


def compute_missing_states(isa: InstructionSet, pending: PendingStates, inst: Inst) -> int:
    """Wait states that are missing where ``inst`` comes next; 0 when it may follow at once."""
    meets = find_consumed_hazards(isa, inst) if pending else {}
    return max((states for (row, states), regs in pending.items()
                if row in meets and regs.overlaps(meets[row]) and not row.needs - regs), default=0) if meets else 0


@lru_cache(maxsize=1 << 16)
def find_consumed_hazards(isa: InstructionSet, inst: Inst) -> dict[Hazard, RegSet]:
    """Hazards that ``inst`` may run into, and with which registers."""
    return {row: regs for row in rows_of(isa, inst.op)[1] if (regs := row.consumed.registers(inst))}


def elapse_wait_states(pending: PendingStates, states: int) -> PendingStates:
    """What is left after so many wait states; waiting ends every clause."""
    return {(row, left - states): regs for (row, left), regs in pending.items() if left > states and not row.clause}


def advance_hazards(isa: InstructionSet, pending: PendingStates, inst: Inst) -> PendingStates:
    """What instructions before ``inst`` owe behind it."""
    if not pending:
        return pending
    producing = rows_of(isa, inst.op)[0]
    kept = {(row, left): regs | row.produced.registers(inst) & row.needs if row.needs else regs
            for (row, left), regs in pending.items() if row.clause and row in producing}
    return elapse_wait_states(pending, states_of(inst)) | kept


def join_hazards(a: PendingStates, b: PendingStates) -> PendingStates:
    """What is pending where paths meet; ``a`` itself if ``b`` adds nothing."""
    more = {key: regs | a.get(key, NO_REGS) for key, regs in b.items() if not regs <= a.get(key, NO_REGS)}
    return {**a, **more} if more else a


def only_waits(op: OpInfo) -> bool:
    """Whether an operation may be worth more than one wait state."""
    return op.base == "S_NOP"


def states_of(inst: Inst) -> int:
    """Wait states that ``inst`` itself is worth."""
    return (inst["simm16"].value & 15) + 1 if only_waits(inst.op) else 1


@cache
def rows_of(isa: InstructionSet, op: OpInfo) -> tuple[frozenset[Hazard], frozenset[Hazard]]:
    """Hazards that an operation may produce, and those that it may run into."""
    here = [row for row in HAZARDS if row.where(isa.target)]
    return (frozenset(row for row in here if row.produced.takes_part(op)),
            frozenset(row for row in here if row.consumed.takes_part(op)))


def unsafe_displacement(target: Target, dwords: int) -> bool:
    """Whether a branch hangs with this displacement (GCNSubtarget::hasOffset3fBug)."""
    return dwords == 0x3F and (target.generation, target.minor) == (10, 1)


def unsafe_shift_amount(target: Target, inst: Inst) -> bool:
    """Whether a 64-bit shift takes its amount from a register where gfx90a gets it wrong.

    The last register of a block of eight must not be the amount (GCNSubtarget::hasShift64HighRegBug).
    """
    if not target.shift64_bug or inst.op.base not in ("V_LSHLREV_B64", "V_LSHRREV_B64", "V_ASHRREV_I64"):
        return False
    reg = inst["src0"].reg
    return reg is not None and reg.file is RegFile.VGPR and reg.index % 8 == 7
