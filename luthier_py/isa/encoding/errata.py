"""What LLVM's records do not say, or say wrongly, each with its evidence.

In: operation names (OpInfo.base). Out: sets that the table generator applies. Invariant: a fact is
written here once, with the manual section or experiment that shows it.
"""

from __future__ import annotations

from luthier_py.isa.encoding.instruction import Counter, OpFlag

# The destination is also a source, but LLVM has no tie for it. SCC == 0 leaves sdst as it was: AMD "Vega" ISA, SOP1
# S_CMOV_B32 and SOPK S_CMOVK_I32, "if (SCC) D = S0". The others accumulate: V_PK_FMAC_F16 is D = S0 * S1 + D of packed
# halves (MI200 ISA, VOP2), V_CVT_PKACCUM_U8_F32 replaces one byte of D (Vega ISA, VOP3), V_INTERP_P2_F32 is
# D = P20 * S0 + D, and its VINTRP form has the tie. LLVM's instruction selection uses none of these forms. Where an
# encoding has src2, that is what is added to.
READS_OWN_DESTINATION = frozenset({"S_CMOV_B32", "S_CMOV_B64", "S_CMOVK_I32", "V_PK_FMAC_F16", "V_CVT_PKACCUM_U8_F32",
                                   "V_INTERP_P2_F32"})

# M0 says where parameters lie in LDS (Vega ISA, VINTRP), in every encoding; LLVM's gfx9 form with op_sel lacks it.
# S_SET_GPR_IDX_MODE sets four bits of it and leaves the others (Vega ISA 12.5).
READS_M0 = frozenset({"V_INTERP_P2_F16", "S_SET_GPR_IDX_MODE"})

# They move registers of the lanes of EXEC, as all VALU does (RDNA ISA, VOP1); LLVM's pseudos list M0 instead of it.
READS_EXEC = frozenset({"V_MOVRELSD_2_B32", "V_SWAPREL_B32"})

# It sets eight bits of MODE and leaves the others (SIDefines.h, VGPR_MSB); LLVM has the write only.
READS_MODE = frozenset({"S_SET_VGPR_MSB"})

# LLVM says that all of SOPC write SCC; these change how later instructions run, and nothing else
# (Vega ISA 12.4: S_SETVSKIP, S_SET_GPR_IDX_ON).
LEAVES_SCC_ALONE = frozenset({"S_SETVSKIP", "S_SET_GPR_IDX_ON"})

# Flags that TableGen does not carry. Manual sections: SOPP (12.5) and SOP1 (12.2) of the Vega ISA.
FLAGS: dict[str, OpFlag] = {
    "S_BARRIER": OpFlag.BARRIER,
    "S_BARRIER_WAIT": OpFlag.BARRIER | OpFlag.WAIT,
    "S_WAITCNT": OpFlag.WAIT,
    "S_WAITCNT_DEPCTR": OpFlag.WAIT,
    "S_WAITCNT_VSCNT": OpFlag.WAIT,
    "S_WAITCNT_VMCNT": OpFlag.WAIT,
    "S_WAITCNT_EXPCNT": OpFlag.WAIT,
    "S_WAITCNT_LGKMCNT": OpFlag.WAIT,
    **{
        f"S_WAIT_{counter}": OpFlag.WAIT
        for counter in ("LOADCNT", "STORECNT", "SAMPLECNT", "BVHCNT", "KMCNT", "DSCNT", "EXPCNT", "EVENT",
                        "IDLE", "ASYNCCNT", "TENSORCNT", "XCNT", "LOADCNT_DSCNT", "STORECNT_DSCNT")
    },
    "S_ENDPGM": OpFlag.END | OpFlag.TERMINATOR,
    "S_ENDPGM_SAVED": OpFlag.END | OpFlag.TERMINATOR,
    "S_ENDPGM_ORDERED_PS_DONE": OpFlag.END | OpFlag.TERMINATOR,
    "S_GETPC_B64": OpFlag.GETS_PC,
    "S_SETPC_B64": OpFlag.INDIRECT | OpFlag.TERMINATOR | OpFlag.SETS_PC,
    "S_SWAPPC_B64": OpFlag.INDIRECT | OpFlag.CALL,
    "S_CALL_B64": OpFlag.CALL,
    # Return from the trap handler, and the gfx9 fork and join pair, go where a register says.
    "S_RFE_B64": OpFlag.INDIRECT | OpFlag.TERMINATOR,
    "S_RFE_RESTORE_B64": OpFlag.INDIRECT | OpFlag.TERMINATOR,
    "S_CBRANCH_G_FORK": OpFlag.INDIRECT | OpFlag.TERMINATOR | OpFlag.FORKS,
    "S_CBRANCH_I_FORK": OpFlag.INDIRECT | OpFlag.TERMINATOR | OpFlag.FORKS,
    "S_CBRANCH_JOIN": OpFlag.INDIRECT | OpFlag.TERMINATOR | OpFlag.FORKS,
    # A jump by a register, relative to the PC (LLVM: isBranch without a target operand; gfx1250 ISA, SOP1).
    "S_ADD_PC_I64": OpFlag.INDIRECT | OpFlag.TERMINATOR,
    # A trap handler need not come back, and who is halted waits for the host (Vega ISA 12.5, S_TRAP, S_SETHALT).
    "S_TRAP": OpFlag.MAY_STOP,
    "S_SETHALT": OpFlag.MAY_STOP,
    # The next instructions issue without others between them (RDNA ISA, SOPP S_CLAUSE).
    "S_CLAUSE": OpFlag.CLAUSE,
    # D.f16[31:16] (Vega ISA 12.14, V_MAD_MIXHI_F16).
    "V_MAD_MIXHI_F16": OpFlag.WRITES_HIGH_HALF,
    "V_FMA_MIXHI_F16": OpFlag.WRITES_HIGH_HALF,
    "V_FMA_MIXHI_BF16": OpFlag.WRITES_HIGH_HALF,
    # Padding behind code (LLVM: isReturn; RDNA ISA, SOPP S_CODE_END).
    "S_CODE_END": OpFlag.END | OpFlag.TERMINATOR,
    # Read, change and write in one step, but not marked so.
    **{
        name: OpFlag.ATOMIC | OpFlag.ATOMIC_RETURN
        for name in ("DS_APPEND", "DS_CONSUME", "DS_WRXCHG2_B32", "DS_WRXCHG2_B64", "DS_WRXCHG2ST64_B32",
                     "DS_WRXCHG2ST64_B64")
    },
    # Lane select comes from a scalar; EXEC is not looked at (Vega ISA 12.11, V_READLANE_B32).
    "V_READLANE_B32": OpFlag.IGNORES_EXEC,
    "V_WRITELANE_B32": OpFlag.IGNORES_EXEC,
    # The lowest lane of EXEC, lane 0 if EXEC is 0 (Vega ISA 12.8).
    "V_READFIRSTLANE_B32": OpFlag.READS_FIRST_LANE,
    # "fi" fetches from inactive lanes, the swaps and the wave64 forms always do (RDNA ISA, V_PERMLANE*; CDNA 4 ISA,
    # V_PERMLANE16_SWAP_B32; LLVM names those of gfx1250, lane arithmetic by scalars, after the same thing).
    **{
        name: OpFlag.READS_OTHER_LANES
        for name in ("V_PERMLANE16_B32", "V_PERMLANEX16_B32", "V_PERMLANE64_B32", "V_PERMLANE16_VAR_B32",
                     "V_PERMLANEX16_VAR_B32", "V_PERMLANE16_SWAP_B32", "V_PERMLANE32_SWAP_B32", "V_PERMLANE_BCAST_B32",
                     "V_PERMLANE_DOWN_B32", "V_PERMLANE_UP_B32", "V_PERMLANE_XOR_B32")
    },
    # A lane's scale is in one of 16 others (scale_sel; MLIR, amdgpu.scaled_ext_packed_matrix).
    **{
        f"V_CVT_SCALE_PK{count}_{wide}_{small}": OpFlag.READS_OTHER_LANES
        for wide in ("F32", "F16", "BF16")
        for count, smalls in ((8, ("FP8", "BF8", "FP4")), (16, ("FP6", "BF6"))) for small in smalls
    },
    # From here on vector operands are relative to M0 until S_SET_GPR_IDX_OFF (Vega ISA 3.8, VGPR indexing).
    # S_SETVSKIP makes the hardware skip them altogether (12.4).
    "S_SETVSKIP": OpFlag.INDEXES_REGISTERS,
    "S_SET_GPR_IDX_ON": OpFlag.INDEXES_REGISTERS,
    "S_SET_GPR_IDX_OFF": OpFlag.INDEXES_REGISTERS,
    "S_SET_GPR_IDX_MODE": OpFlag.INDEXES_REGISTERS,
    "S_SET_GPR_IDX_IDX": OpFlag.INDEXES_REGISTERS,
    # From here on vector operands mean registers from 256, 512 or 768 on (SIDefines.h, VGPR_MSB).
    "S_SET_VGPR_MSB": OpFlag.INDEXES_REGISTERS,
    **{
        name: OpFlag.INDEXES_REGISTERS
        for name in ("S_MOVRELS_B32", "S_MOVRELS_B64", "S_MOVRELD_B32", "S_MOVRELD_B64", "S_MOVRELSD_2_B32",
                     "V_MOVRELS_B32", "V_MOVRELD_B32", "V_MOVRELSD_B32", "V_MOVRELSD_2_B32",
                     "V_SWAPREL_B32")
    },
}

# Branches that are always taken; every other direct branch may fall through.
UNCONDITIONAL = frozenset({"S_BRANCH", "S_CALL_B64"})

# Register-indexed moves may read, or write, any register of their file (M0 says which).
READS_ANY = frozenset({"S_MOVRELS_B32", "S_MOVRELS_B64", "S_MOVRELSD_2_B32", "V_MOVRELS_B32", "V_MOVRELSD_B32",
                       "V_MOVRELSD_2_B32", "V_SWAPREL_B32"})
WRITES_ANY = frozenset({"S_MOVRELD_B32", "S_MOVRELD_B64", "S_MOVRELSD_2_B32", "V_MOVRELD_B32", "V_MOVRELSD_B32",
                        "V_MOVRELSD_2_B32", "V_SWAPREL_B32"})

# DS instructions that only move data between lanes (12.13, "does not access LDS memory").
NO_MEMORY = frozenset({"DS_PERMUTE_B32", "DS_BPERMUTE_B32", "DS_BPERMUTE_FI_B32", "DS_SWIZZLE_B32", "DS_NOP"})

# Messages, and barriers that write SCC, count on LGKM_CNT (KM_CNT on gfx12), which LLVM handles in C++
# (SIInsertWaitcnts, updateEventWaitcntAfter), not in the record.
COUNTERS: dict[str, Counter] = {
    name: Counter.LGKM
    for name in ("S_SENDMSG", "S_SENDMSGHALT", "S_SENDMSG_RTN_B32", "S_SENDMSG_RTN_B64",
                 "S_BARRIER_SIGNAL_ISFIRST_IMM", "S_BARRIER_SIGNAL_ISFIRST_M0", "S_BARRIER_LEAVE")
}
# The record's named fields say LGKM_CNT, its TSFlags and its pseudo do not: only ASYNC_CNT rises (MCInstrDesc).
COUNTED_ONLY_AS_ASYNC = frozenset({"DS_ATOMIC_ASYNC_BARRIER_ARRIVE_B64"})

# Cache control that is waited for as a store is (the same place, getVmemWaitEventType).
COUNTED_AS_STORES = frozenset({"GLOBAL_WB", "GLOBAL_WBINV"})

# They read LDS and write memory: stores, as far as temporal hints go (isAsyncStore, isTensorStore).
STORES_FROM_LDS = frozenset({
    "TENSOR_STORE_FROM_LDS", "TENSOR_STORE_FROM_LDS_D2",
    *(f"GLOBAL_STORE_ASYNC_FROM_LDS_B{bits}" for bits in (8, 32, 64, 128)),
})

# Results of 16 bits that leave the other half of a gfx9 VGPR alone (GCNSubtarget::zeroesHigh16BitsOfDest: the
# second group of opcodes, "some instructions changed to preserving the high bits"); all take op_sel.
# The other op_sel instructions write 32 bits, or zero the half that they do not select.
FULL_RESULT_WITH_OP_SEL = frozenset({
    "V_PACK_B32_F16", "V_MAD_I32_I16", "V_MAD_U32_U16", "V_CVT_PKNORM_I16_F16", "V_CVT_PKNORM_U16_F16",
    "V_ALIGNBIT_B32", "V_ALIGNBYTE_B32", "V_CVT_F32_F16", "V_CVT_F32_BF16",
})

# The same place, for instructions without op_sel: these "changed to preserving the high bits" on gfx9 (gfx8 zeroes
# them, and is taken for gfx9 here), and on gfx10 "all 16-bit instructions preserve". Which those are the generator
# finds in the records of gfx11, where such results have register classes of their own, but for this one.
KEEPS_HIGH_HALF = frozenset({"V_MADAK_F16", "V_MADMK_F16", "V_FMAMK_F16", "V_FMAAK_F16", "V_MAC_F16", "V_FMAC_F16"})
SIXTEEN_BIT_RESULTS = frozenset({"V_INTERP_P2_F16"})

# Lanes may keep what their destination held: V_PERMLANE64_B32 does nothing in waves of 32 lanes (RDNA 3 ISA, VOP1), and
# of those of gfx1250 no manual says what lanes without a source get.
KEEPS_LANES = frozenset({"V_PERMLANE64_B32", "V_PERMLANE_BCAST_B32", "V_PERMLANE_DOWN_B32", "V_PERMLANE_UP_B32",
                         "V_PERMLANE_XOR_B32"})

# Registers of a block stay that have no bit in M0 (RDNA 4 ISA, 11.5).
KEEPS_REGISTERS = frozenset({"GLOBAL_LOAD_BLOCK", "SCRATCH_LOAD_BLOCK"})

# Loads of one component to 16 bits "write only 16 bits" (RDNA 3 ISA, Table 41); LLVM, which uses them for values of 16
# bits alone, has no tie. So it holds for gfx8, too, of which no manual says it: to preserve too much is never wrong.
KEEPS_OTHER_HALF = frozenset({"BUFFER_LOAD_FORMAT_D16_X", "BUFFER_LOAD_FORMAT_D16_HI_X", "TBUFFER_LOAD_FORMAT_D16_X"})

# M0 as lane select is not counted against the constant bus (SIInstrInfo::verifyInstruction, "writelane").
M0_IS_NOT_ON_CONSTANT_BUS = frozenset({"V_WRITELANE_B32"})

# Shifts of 64 bits read one scalar even where others read two (RDNA ISA 6.2.1; GCNSubtarget::getConstantBusLimit).
ONE_SCALAR_SOURCE = frozenset({"V_LSHLREV_B64", "V_LSHRREV_B64", "V_ASHRREV_I64"})

# From gfx1250 on a scalar register gives one dword to both numbers of packed f32: op_sel and op_sel_hi must not name
# another (gfx1250 programming guide, 4.6.7.1, as llvm-project 152465 and 193866 cite it).
ONE_DWORD_OF_SCALARS = frozenset({"V_PK_ADD_F32", "V_PK_MUL_F32", "V_PK_FMA_F32"})

# Of a scaled WMMA the half with the scales has a third source that nothing reads: v0 in LLVM 22's records, 0 in what
# LLVM 24 makes (Triton, gfx1250).
READ_BY_NOTHING = dict.fromkeys((
    "V_WMMA_SCALE_F32_16X16X128_F8F6F4", "V_WMMA_SCALE16_F32_16X16X128_F8F6F4", "V_WMMA_SCALE_F32_32X16X128_F4",
    "V_WMMA_SCALE16_F32_32X16X128_F4"), 0x1FF << 50)

# Sources that LLVM's records call inline constants only, though its assembler and disassembler take literals of 16 bits
# (llvm-mc -mcpu=gfx1030: v_fma_mix_f32 v1, v2, 0x1234, v3).
TAKES_LITERALS = frozenset({"V_FMA_MIX_F32", "V_FMA_MIXLO_F16", "V_FMA_MIXHI_F16", "V_FMA_MIX_F32_BF16",
                            "V_FMA_MIXLO_BF16", "V_FMA_MIXHI_BF16"})
