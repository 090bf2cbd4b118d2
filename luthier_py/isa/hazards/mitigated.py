"""Hazards that a wait instruction cures: what gfx10 and later do not check, where instructions come to stand together.

Out: rows of data, which `patterns` follows along code. Sources: GCNHazardRecognizer.cpp of LLVM 22 (the function that
each row names) and AMDGPUWaitSGPRHazards.cpp; tests compare with what LLVM inserts. Invariant: no hazard has no row; a
row may require a mitigation where LLVM finds that none is needed.

A hazard is a chain: instructions that come one after the other and share registers, and one more that must not come
then. Each link says what ends the chain behind it.
"""

from __future__ import annotations

from collections.abc import Callable

from luthier_py.base.records import dataclass
from luthier_py.isa.by_target import InstructionSet
from luthier_py.isa.encoding.instruction import Counter, Inst, OperandKind, OpFlag, OpInfo, Space
from luthier_py.isa.encoding.waitcnt import counters_of, counts_named
from luthier_py.isa.hazards.wait_states import Side, is_double_matrix, states_of
from luthier_py.isa.model.names import DEPENDENCIES
from luthier_py.isa.model.registers import EXEC, M0, MODE, NO_REGS, SCC, VCC, RegSet, sgpr

_ALL = RegSet.by_file((1 << 130) - 1, (1 << 1024) - 1, (1 << 256) - 1)
_EVEN = sum(1 << place for place in range(0, 130, 2))
_EXEC, _VCC = RegSet.of(sgpr(EXEC, 2)), RegSet.of(sgpr(VCC, 2))
_LEFT_OUT = RegSet.of(sgpr(EXEC, 2), sgpr(M0), sgpr(SCC), sgpr(MODE))
_LDS, _MEMORY = OpFlag.LDS | OpFlag.GDS, OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS
_SYNCHRONISED = _MEMORY | OpFlag.EXPORT  # they wait for all vector results
# Fields of s_waitcnt_depctr and s_wait_alu, each 0 for "all done".
SA_SDST, VA_VCC, VM_VSRC, VA_SDST, VA_VDST = 0x1, 0x2, 0x1C, 0xE00, 0xF000
FLAT_SCRATCH_BASE = (230, 231)  # scalar source operands from gfx12 on


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a chain, and what ends it before the next one."""

    side: Side
    ended: Callable[[Inst], RegSet]     # the registers for which the chain is over behind an instruction
    reach: int | None = None            # how much may be counted between the first step and the next


@dataclass(frozen=True, slots=True, eq=False)
class Mitigated:
    """``mitigation`` must stand before ``consumed`` when all ``links`` came before it."""

    name: str
    where: Callable[[InstructionSet], bool]
    links: tuple[Link, ...]
    consumed: Side
    mitigation: Callable[[InstructionSet, Inst], tuple[str, ...]]
    counted: Callable[[Inst], int] = lambda inst: int(OpFlag.VALU in inst.op.flags)
    resolved_at_calls: bool = False      # compilers leave no chain open at a call, but take all first links for made
    by_itself: bool = False             # one instruction may be the first two links


def _version(*versions: tuple[int, int], wave_size: int | None = None) -> Callable[[InstructionSet], bool]:
    return lambda isa: (isa.target.generation, isa.target.minor) in versions and wave_size in (None, isa.wave_size)


def _kind(flags: OpFlag, but: OpFlag = OpFlag.NONE) -> Callable[[OpInfo], bool]:
    return lambda op: bool(op.flags & flags) and not op.flags & but


def _any(op: OpInfo) -> bool:
    return True


def _lds_dma(op: OpInfo) -> bool:
    generic = Space.GLOBAL | Space.LDS | Space.SCRATCH
    return OpFlag.VMEM in op.flags and Space.LDS in op.spaces and not (op.format == "FLAT" and op.spaces == generic)


def _uses_lds(op: OpInfo) -> bool:
    return bool(op.flags & _LDS) or _lds_dma(op)


def _vmem_only(op: OpInfo) -> bool:
    return OpFlag.VMEM in op.flags and not _lds_dma(op)


def _permutes(op: OpInfo) -> bool:
    return op.base.startswith("V_PERMLANE")


def _scalars(regs: RegSet) -> RegSet:
    return regs.scalars - _LEFT_OUT


def _pairs(regs: RegSet) -> RegSet:
    """Both registers of each pair of which one is in ``regs``."""
    low = (regs.sgpr | regs.sgpr >> 1) & _EVEN
    return RegSet.by_file(sgpr=low | low << 1) - _LEFT_OUT


def _all_vectors(regs: RegSet) -> RegSet:
    return regs.vectors


def _vectors(regs: RegSet) -> RegSet:
    return RegSet.by_file(vgpr=regs.vgpr)


def _lane_mask(inst: Inst) -> RegSet:
    """Scalars that a vector instruction reads as one bit for each lane."""
    masks = [operand.reg for operand, info in zip(inst.operands, inst.op.operands, strict=True)
             if info.kind == "bool" and operand.reg is not None and info.access.value & 1]
    return _scalars(RegSet.of(*masks) | inst.op.implicit_reads)


def _reads_two(inst: Inst) -> RegSet:
    """Vector registers that are read, if there are at least two."""
    read = _vectors(inst.reads)
    return read if read.vgpr.bit_count() > 1 else NO_REGS


def _matrices_multiplied(inst: Inst) -> RegSet:
    names = ("src0", "src1", "src2") if "SWMMAC" in inst.op.base else ("src0", "src1")
    return RegSet.of(*(o.reg for o in inst.operands if o.name in names and o.reg is not None))


def _scratch_base(inst: Inst) -> RegSet:
    """s[102:103] where their place is read as the base of scratch memory."""
    reads = any(o.kind is OperandKind.SPECIAL and o.value in FLAT_SCRATCH_BASE for o in inst.operands)
    return RegSet.of(sgpr(102, 2)) if reads else NO_REGS


def _far_in_buffer(inst: Inst) -> RegSet:
    offset = inst.find("offset")  # not of cache control
    return _ALL if offset is not None and offset.value & 6 else NO_REGS


def _when(*ways: Callable[[Inst], bool]) -> Callable[[Inst], RegSet]:
    """All registers, behind an instruction of one of these kinds."""
    return lambda inst: _ALL if any(way(inst) for way in ways) else NO_REGS


def _is(flags: OpFlag, but: OpFlag = OpFlag.NONE) -> Callable[[Inst], bool]:
    return lambda inst: bool(inst.op.flags & flags) and not inst.op.flags & but


def _match_bases(*bases: str) -> Callable[[Inst], bool]:
    return lambda inst: inst.op.base in bases


def _waits(fields: int) -> Callable[[Inst], bool]:
    """Whether an instruction waits until ``fields`` of the dependency counters are 0."""
    return lambda inst: inst.op.base == "S_WAITCNT_DEPCTR" and not inst["simm16"].value & fields


_MEMORY_WAITS = ("S_WAITCNT", "S_WAITCNT_VSCNT", "S_WAITCNT_VMCNT", "S_WAITCNT_EXPCNT", "S_WAITCNT_LGKMCNT",
                 "S_WAIT_IDLE")


def _waits_for_everything(inst: Inst) -> bool:
    return inst.op.base == "S_WAITCNT" and inst["simm16"].value == 0


def _waits_for_stores(inst: Inst) -> bool:
    return inst.op.base == "S_WAITCNT_VSCNT" and inst["simm16"].value == 0


def _breaks_scalar_chain(inst: Inst) -> bool:
    """A scalar result, or the end of all scalar loads."""
    op = inst.op
    if OpFlag.WAIT in op.flags:
        return op.base in ("S_WAITCNT", "S_WAITCNT_LGKMCNT") and _lgkm_of_gfx10(inst) == 0
    return OpFlag.SALU in op.flags and op.format != "SOPP" and op.base not in ("S_SETVSKIP", "S_VERSION")


def _lgkm_of_gfx10(inst: Inst) -> int:
    field = inst["simm16"].value
    return field >> 8 & 0x3F if inst.op.base == "S_WAITCNT" else field & 0x3F


def _writes_mask(inst: Inst) -> bool:
    """Whether it is a vector instruction with a lane mask as a result (v_readlane's is none)."""
    return OpFlag.VALU in inst.op.flags and bool(
        inst.op.implicit_writes.sgpr or any(info.name == "sdst" for info in inst.op.operands))


def _vector_but_nop(inst: Inst) -> bool:
    return OpFlag.VALU in inst.op.flags and inst.op.base != "V_NOP"


def _never(inst: Inst) -> RegSet:
    return NO_REGS


def _counters(fields: int) -> Callable[[InstructionSet, Inst], tuple[str, ...]]:
    """Wait for ``fields`` and nothing else."""
    def text(isa: InstructionSet, inst: Inst) -> tuple[str, ...]:
        nothing = sum((1 << row.width) - 1 << row.first for row in DEPENDENCIES if row.where(isa.target))
        return (f"{'s_wait_alu' if isa.target.generation >= 12 else 's_waitcnt_depctr'} 0x{nothing & ~fields:x}",)
    return text


def _texts(*texts: str) -> Callable[[InstructionSet, Inst], tuple[str, ...]]:
    return lambda isa, inst: texts


def _own_move(isa: InstructionSet, inst: Inst) -> tuple[str, ...]:
    """Any VALU but v_nop; a move of what the consumer reads to itself is one."""
    source = inst["src0"].reg
    return () if source is None else (f"v_mov_b32_e32 v{source.index}, v{source.index}",)


_VALU, _SALU, _ALU = _kind(OpFlag.VALU), _kind(OpFlag.SALU), _kind(OpFlag.VALU | OpFlag.SALU)
_GFX10_1, _GFX11, _GFX12_0, _GFX1250 = (
    _version((10, 1)), _version((11, 0), (11, 5), wave_size=64), _version((12, 0)), _version((12, 5)))
_VECTOR_READS, _VECTOR_WRITES = Side(_VALU, lambda i: _vectors(i.reads)), Side(_VALU, lambda i: _vectors(i.writes))
_VECTORS_DONE = _when(_is(_SYNCHRONISED), _waits(VA_VDST))
_MASK = Link(Side(_VALU, _lane_mask), lambda i: _scalars(i.writes))
_READ_BEFORE = Link(Side(_VALU, lambda i: _pairs(i.reads)), _never)
_LEAVES = Side(_kind(OpFlag.CALL | OpFlag.INDIRECT), lambda i: _ALL)
_READS_SCALARS = Side(_kind(OpFlag.VALU | OpFlag.SALU), lambda i: _ALL if _LEAVES.takes_part(i.op)
                      else _scalars(i.reads))
_VALU_READS_SCALARS = Side(_kind(OpFlag.VALU | OpFlag.CALL | OpFlag.INDIRECT), _READS_SCALARS.registers)
_COMMITTED = (_is(OpFlag.SMEM), _is(OpFlag.VMEM, but=OpFlag.FLAT))  # they clear what scalar results leave open


def _make_replay_hazard(name: str, counter: Counter, takes_part: Callable[[OpInfo], bool]) -> Mitigated:
    """``counter``: at 0, such operations are done, and none is to come again. What accesses memory itself comes again
    behind them."""
    def over(inst: Inst) -> bool:
        return any(count == 0 for each, count in counts_named(inst).items() if each in (counter, Counter.X))

    return Mitigated(
        f"{name} may come again where XNACK wants it, then its operands are overwritten (SIInsertWaitcnts)",
        lambda isa: bool(counters_of(isa.target) & Counter.X),
        (Link(Side(takes_part, lambda i: i.reads - _LEFT_OUT), _when(over)),),
        Side(lambda op: not op.flags & (OpFlag.VMEM | OpFlag.SMEM), lambda i: i.writes - _LEFT_OUT),
        _texts("s_wait_xcnt 0x0"),
    )


def _branches_between(first: Callable[[OpInfo], bool], then: Callable[[OpInfo], bool]) -> Mitigated:
    over = _when(_is(_MEMORY), _waits_for_stores)
    return Mitigated("LDS and vector memory, a branch between (fixLdsBranchVmemWARHazard)", _GFX10_1,
                 (Link(Side(first, lambda i: _ALL), over),
                  Link(Side(_kind(OpFlag.BRANCH | OpFlag.INDIRECT), lambda i: _ALL), over)),
                 Side(then, lambda i: _ALL), _texts("s_waitcnt_vscnt null, 0x0"))


def _mask_written(name: str, takes_part: Callable[[OpInfo], bool], registers: Callable[[Inst], RegSet],
                  field: int) -> Mitigated:
    """The wait is right behind the write, whatever comes next but waits of its kind for something else."""
    return Mitigated(f"lane mask is read, then written by {name} (fixVALUMaskWriteHazard)", _GFX11,
                 (_MASK, Link(Side(takes_part, registers), _when(_waits(field)))),
                 Side(lambda op: op.base != "S_WAITCNT_DEPCTR", lambda i: _ALL), _counters(field))


def _scalar_written(name: str, takes_part: Callable[[OpInfo], bool], registers: Callable[[Inst], RegSet],
                    field: int, consumed: Side, also: Callable[[Inst], bool] = lambda inst: False) -> Mitigated:
    """Vector instructions remember scalars that they read, by pairs."""
    return Mitigated(f"scalar that VALU read before is written by {name}, then read (AMDGPUWaitSGPRHazards)", _GFX12_0,
                 (_READ_BEFORE, Link(Side(takes_part, registers), _when(_waits(field), *_COMMITTED, also))),
                 consumed, _counters(field), resolved_at_calls=True, by_itself=True)


def _between_vector_and_memory(name: str, where: Callable[[InstructionSet], bool], takes_part: Callable[[OpInfo], bool],
                               ) -> Mitigated:
    return Mitigated(name, where,
                 (Link(Side(_kind(OpFlag.VALU, but=OpFlag.MATRIX), lambda i: _all_vectors(i.writes)), _never, 0),
                  Link(Side(takes_part, lambda i: _ALL), _never, 1)),
                 Side(_kind(_MEMORY), lambda i: _all_vectors(i.reads)), _texts("s_nop 0"), states_of)


MITIGATED = (
    _between_vector_and_memory("VALU result, v_accvgpr_*, memory reads it (checkMAILdStHazards)",
                               lambda isa: isa.target.has_agprs and not isa.target.unified_agprs,
                               lambda op: op.base in ("V_ACCVGPR_READ_B32", "V_ACCVGPR_WRITE_B32")),
    _between_vector_and_memory("VALU result, f64 matrix, memory reads it (checkMAIVALUHazards)",
                               lambda isa: isa.target.unified_agprs and not isa.target.sc_cache_bits, is_double_matrix),
    Mitigated("vector memory reads a scalar, then it is written (fixVMEMtoScalarWriteHazards)", _GFX10_1,
          (Link(Side(_kind(_MEMORY), lambda i: i.reads.scalars),
                _when(_is(OpFlag.VALU), _waits_for_everything, _waits(VM_VSRC))),),
          Side(_kind(OpFlag.SALU | OpFlag.SMEM), lambda i: i.writes.scalars), _counters(VM_VSRC)),
    Mitigated("scalar memory reads a scalar, then VALU writes it (fixSMEMtoVectorWriteHazards)", _GFX10_1,
          (Link(Side(_kind(OpFlag.SMEM), lambda i: i.reads.scalars), _when(_breaks_scalar_chain)),),
          Side(_VALU, lambda i: i.writes.scalars), _texts("s_mov_b32 null, 0")),
    Mitigated("others read EXEC, then VALU writes it (fixVcmpxExecWARHazard)", _GFX10_1,
          (Link(Side(_any, lambda i: NO_REGS if OpFlag.VALU in i.op.flags else i.reads & _EXEC),
                _when(_writes_mask, _waits(SA_SDST))),),
          Side(_VALU, lambda i: i.writes & _EXEC), _counters(SA_SDST)),
    _branches_between(_uses_lds, _vmem_only),
    _branches_between(_vmem_only, _uses_lds),
    Mitigated("many addresses, then a buffer (checkNSAtoVMEMHazard)", _GFX10_1,
          (Link(Side(lambda op: op.format == "MIMG" and op.size_bytes >= 16, lambda i: _ALL), lambda i: _ALL),),
          Side(lambda op: op.format in ("MUBUF", "MTBUF"), _far_in_buffer),
          _texts("s_nop 0")),
    Mitigated("atomic in memory, s_denorm_mode (checkFPAtomicToDenormModeHazard)", _version((10, 1), (10, 3)),
          (Link(Side(lambda op: OpFlag.ATOMIC in op.flags and OpFlag.VMEM in op.flags, lambda i: _ALL),
                _when(_is(OpFlag.VALU), _match_bases(*_MEMORY_WAITS)), 2),),
          Side(lambda op: op.base == "S_DENORM_MODE", lambda i: _ALL), _texts("s_nop 2"), states_of),
    Mitigated("transcendental result, VALU (fixVALUTransUseHazard)", _version((11, 0)),
          (Link(Side(_kind(OpFlag.TRANS), lambda i: _vectors(i.writes)), _VECTORS_DONE, 5),),
          _VECTOR_READS, _counters(VA_VDST)),
    Mitigated("VALU result, EXEC changes, VALU (fixVALUPartialForwardingHazard)", _GFX11,
          (Link(_VECTOR_WRITES, _VECTORS_DONE, 2),
           Link(Side(_SALU, lambda i: _ALL if i.writes.overlaps(_EXEC) else NO_REGS), _VECTORS_DONE, 7)),
          Side(_VALU, _reads_two), _counters(VA_VDST)),
    _mask_written("SALU", _SALU, lambda i: _scalars(i.writes), SA_SDST),
    _mask_written("VALU", _VALU, lambda i: _scalars(i.writes) - _VCC, VA_SDST),
    _mask_written("VALU, VCC", _VALU, lambda i: i.writes & _VCC, VA_VCC),
    Mitigated("VALU uses what lds_direct writes (fixLdsDirectVALUHazard)", lambda isa: isa.target.generation >= 11,
          (Link(Side(_VALU, lambda i: _vectors(i.reads | i.writes)), _VECTORS_DONE, 14),),
          Side(lambda op: op.format == "LDSDIR", lambda i: _vectors(i.writes)), _counters(VA_VDST)),
    Mitigated("memory uses what lds_direct writes (fixLdsDirectVMEMHazard)", lambda isa: isa.target.generation >= 11,
          (Link(Side(_kind(_MEMORY), lambda i: _vectors(i.reads | i.writes)),
                _when(_is(OpFlag.VALU | OpFlag.EXPORT), _waits_for_everything, _waits(VM_VSRC))),),
          Side(lambda op: op.format == "LDSDIR", lambda i: _vectors(i.writes)), _counters(VM_VSRC)),
    Mitigated("matrix result, matrix multiplies it (fixWMMAHazards)", lambda isa: isa.target.generation >= 11,
          (Link(Side(_kind(OpFlag.MATRIX), lambda i: _vectors(i.writes)), _when(_is(OpFlag.VALU))),),
          Side(_kind(OpFlag.MATRIX), _matrices_multiplied), _texts("v_nop")),
    _scalar_written("SALU", _SALU, lambda i: _scalars(i.writes), SA_SDST, _READS_SCALARS),
    _scalar_written("VALU", _VALU, lambda i: _scalars(i.writes) - _VCC, VA_SDST, _VALU_READS_SCALARS),
    _scalar_written("VALU, VCC", _VALU, lambda i: i.writes & _VCC, VA_VCC, _VALU_READS_SCALARS,
                    lambda i: OpFlag.SALU in i.op.flags and (i.reads | i.writes).overlaps(_VCC)),
    Mitigated("transcendental, VALU reads its result (fixVALUTransCoexecutionHazards)", _GFX1250,
          (Link(Side(_kind(OpFlag.TRANS), lambda i: _vectors(i.writes)), _when(_is(OpFlag.VALU))),),
          Side(_kind(OpFlag.VALU, but=OpFlag.TRANS), lambda i: _vectors(i.reads)), _texts("v_nop")),
    Mitigated("transcendental, VALU overwrites its source (fixVALUTransCoexecutionHazards)", _GFX1250,
          (Link(Side(_kind(OpFlag.TRANS), lambda i: _vectors(i.reads)), _when(_is(OpFlag.VALU))),),
          Side(_kind(OpFlag.VALU, but=OpFlag.TRANS), lambda i: _vectors(i.writes)), _texts("v_nop")),
    Mitigated("matrix, VALU uses its registers (checkWMMACoexecutionHazards)", _GFX1250,
          (Link(Side(_kind(OpFlag.MATRIX), lambda i: _vectors(i.reads | i.writes)), _never, 8),),
          Side(_VALU, lambda i: _vectors(i.reads | i.writes)), _texts(*["v_nop"] * 9)),
    Mitigated("s[102:103] are written, then the base of scratch is read (fixScratchBaseForwardingHazard)", _GFX1250,
          (Link(Side(_ALU, lambda i: _scalars(i.writes)), _when(_waits(SA_SDST | VA_SDST)), 9),),
          Side(_any, _scratch_base), _counters(SA_SDST | VA_SDST), lambda i: int(bool(_scalars(i.writes)))),
    _make_replay_hazard("a scalar load", Counter.KM, _kind(OpFlag.SMEM)),
    _make_replay_hazard("a load", Counter.LOAD, lambda op: OpFlag.VMEM in op.flags and Counter.LOAD in op.counters),
    _make_replay_hazard("a store", Counter.STORE, lambda op: OpFlag.VMEM in op.flags and Counter.STORE in op.counters),
    _make_replay_hazard("another access", Counter.X, lambda op: OpFlag.VMEM in op.flags and not op.counters & (
        Counter.LOAD | Counter.STORE)),
    # The last mitigation, as it is a vector instruction that others may have to stand before.
    Mitigated("v_cmpx, v_permlane (fixVcmpxPermlaneHazards)", _version((10, 1), (11, 0), (11, 5), (12, 0), (12, 5)),
          (Link(Side(_VALU, lambda i: i.writes & _EXEC), _when(_vector_but_nop)),),
          Side(_permutes, lambda i: _EXEC), _own_move),
)
