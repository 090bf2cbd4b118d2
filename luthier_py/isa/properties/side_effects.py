"""Instructions that do nothing but compute, wait, or read and write memory at an address: what may run in the middle of
an application's kernel without an effect on it.

In: a row. Out: why it is no such instruction. Invariant: what is not listed, and is not known by its flags to compute
or to move data alone, is refused.
"""

from __future__ import annotations

from functools import cache

from luthier_py.isa.encoding.instruction import OpFlag, OpInfo, Space

_CACHES = frozenset({
    "BUFFER_GL0_INV", "BUFFER_GL1_INV", "BUFFER_INV", "BUFFER_INVL2", "BUFFER_WBINVL1", "BUFFER_WBINVL1_VOL",
    "BUFFER_WBL2", "GLOBAL_INV", "GLOBAL_WB", "GLOBAL_WBINV", "S_GL1_INV", "S_DCACHE_INV", "S_DCACHE_WB",
})
# LLVM says of these that they have side effects, or they are SOPP: waits and hints; reading clocks and hardware
# registers; float modes, which show in MODE; caches, whose contents are no matter of results; masks, as EXEC shows.
_QUIET = frozenset({
    "S_NOP", "V_NOP", "S_SLEEP",
    "S_WAITCNT", "S_WAITCNT_DEPCTR", "S_WAITCNT_VSCNT", "S_WAITCNT_VMCNT", "S_WAITCNT_EXPCNT",
    "S_WAITCNT_LGKMCNT", "S_WAIT_ALU", "S_WAIT_IDLE",
    *(f"S_WAIT_{counter}" for counter in ("LOADCNT", "STORECNT", "SAMPLECNT", "BVHCNT", "KMCNT", "DSCNT", "EXPCNT",
                                          "ASYNCCNT", "TENSORCNT", "XCNT", "LOADCNT_DSCNT", "STORECNT_DSCNT")),
    "S_DELAY_ALU", "S_CLAUSE", "S_INST_PREFETCH", "S_SET_INST_PREFETCH_DISTANCE",
    "S_GETREG_B32", "S_SETREG_B32", "S_SETREG_IMM32_B32", "S_ROUND_MODE", "S_DENORM_MODE",
    "S_MEMTIME", "S_MEMREALTIME", "S_GET_SHADER_CYCLES_U64", "S_SENDMSG_RTN_B32", "S_SENDMSG_RTN_B64",
    *_CACHES,
    *(f"S_{name}_{kind}_B{bits}" for bits in (32, 64) for kind in ("SAVEEXEC", "WREXEC")
      for name in ("AND", "OR", "XOR", "ANDN1", "ANDN2", "ORN1", "ORN2", "NAND", "NOR", "XNOR")),
})
_CHANGES_STATE = frozenset({"V_CLREXCP"})  # TRAPSTS, for which there is no flag
_LEAVES = OpFlag.CALL | OpFlag.INDIRECT | OpFlag.END | OpFlag.FORKS
_SHAPES = frozenset({"SOP1", "SOP2", "SOPC", "SOPK"})


@cache
def outside(op: OpInfo) -> str | None:
    """What an instruction may do beside its registers, and memory in the spaces of its row; None for nothing."""
    flags = op.flags
    if flags & _LEAVES:
        return "goes elsewhere"
    if flags & (OpFlag.BARRIER | OpFlag.MAY_STOP):
        return "waits for others, or stops"
    if flags & (OpFlag.EXPORT | OpFlag.GDS) or Space.GDS in op.spaces:
        return "sends data"
    if OpFlag.INDEXES_REGISTERS in flags:
        return "makes registers relative"
    if op.base in _QUIET or OpFlag.BRANCH in flags:
        return None
    if op.base in _CHANGES_STATE or OpFlag.SIDE_EFFECTS in flags and not flags & OpFlag.ATOMIC:
        return "has an effect of its own"
    plain = op.format in _SHAPES if OpFlag.SALU in flags else bool(flags & (
        OpFlag.VALU | OpFlag.SMEM | OpFlag.VMEM | OpFlag.LDS))
    return None if plain else "has an effect of its own"


def tends_caches(op: OpInfo) -> bool:
    """Whether it makes caches forget or write back what they have, and accesses nothing itself."""
    return op.base in _CACHES


@cache
def computes(op: OpInfo) -> bool:
    """Whether nothing but registers matters to it, and nothing else is changed; branches among them."""
    memory = OpFlag.SMEM | OpFlag.VMEM | OpFlag.LDS | OpFlag.GDS
    return outside(op) is None and not op.flags & memory and not op.spaces
