"""Control flow, and instructions whose effect is not a value: waits, messages, hardware registers.

In: nothing. Out: data rows; the emulator and analyses act on them.
Source: AMD Instinct MI200 ISA, chapter 4, 12.5 (SOPP), 12.3 (SOPK), 12.13 (LDS & GDS: DS_GWS_BARRIER, DS_GWS_SEMA_P).
"""

from __future__ import annotations

from enum import Enum, auto

from luthier_py.base.records import dataclass
from luthier_py.isa.semantics.meaning import declare


@dataclass(frozen=True, slots=True)
class Branch:
    """To the TARGET operand when ``register`` is zero, or is not; always without a register."""

    register: str | None = None  # scc, vcc, exec
    if_zero: bool = False


class Action(Enum):
    """Named as in mnemonics; several of these may be one action."""

    NOTHING = auto()   # no effect on results: waits, cache control, priorities, performance counters
    END = auto()
    BARRIER = auto()
    # Of a barrier with a number: src0 or simm16, or M0[4:0] where there is none (gfx1250). -1 is the work-group's own.
    BARRIER_SIGNAL = auto()  # the first half: this wave has come; M0[22:16], if not 0, says how many will
    BARRIER_SIGNAL_ISFIRST = auto()  # the same; scc = no wave had come before
    BARRIER_WAIT = auto()    # the second: until all have; of named ones that which was joined last
    BARRIER_INIT = auto()    # M0[22:16] waves have to come, and none has
    BARRIER_JOIN = auto()    # this wave can wait for it from here on
    BARRIER_STATE = auto()   # sdst = 1 in [0], how many have to come in [10:4], how many have in [22:16]
    GWS_BARRIER = auto()  # of a launch's waves: data0 + 1 of them meet at global wave sync resource offset + M0[21:16]
    GWS_INIT = auto()      # how many meet there first (each GWS_BARRIER says so too, and that counts), or may go on
    # Of a resource as a semaphore, which counts how many waves may go on.
    GWS_SEMA_V = auto()    # one more; as many more as data0 says, where there is one
    GWS_SEMA_P = auto()    # wait until there is one, and take it
    GWS_SEMA_RELEASE_ALL = auto()  # as many as wait
    SLEEP = auto()     # other waves get their turn
    SENDMSG = auto()   # to the host, if simm16[3:0] is INTERRUPT_MESSAGE; otherwise NOTHING
    SENDMSG_RTN = auto()  # sdst = what the hardware answers to the message src0 (AnsweredMessage)
    GETPC = auto()     # sdst = address of the next instruction
    SETPC = auto()     # go to src0
    ADD_PC = auto()     # go to the next instruction and src0 bytes further
    SWAPPC = auto()    # both
    CALL = auto()      # sdst = next, go to TARGET
    TRAP = auto()      # the launch fails here; NOTHING if src is DEBUG_TRAP
    GETREG = auto()    # sdst = bits of a hardware register
    SETREG = auto()    # bits of a hardware register = sdst
    SETREG_IMM = auto()
    ROUND_MODE = auto()     # MODE[3:0] = simm16
    DENORM_MODE = auto()  # MODE[7:4] = simm16
    CLOCK = auto()     # sdst = cycles of the core's clock
    WALL_CLOCK = auto()  # sdst = cycles of a clock of constant rate
    WAVE_ID = auto()  # sdst = the wave's number in its work-group


DEBUG_TRAP = 3
"""The s_trap of llvm.debugtrap, which does nothing where there is no debugger (AMDGPUUsage, "Trap Handler ABI")."""


INTERRUPT_MESSAGE = 1
"""The s_sendmsg that interrupts the host (MI200 ISA, 12.5, S_SENDMSG)."""

DEALLOC_VGPRS = 3
"""From gfx11 on: by which a wave gives back its vector registers (RDNA 3 ISA, 16.5, S_SENDMSG)."""


class AnsweredMessage(Enum):
    """Messages that are answered (LLVM, SIDefines.h, SendMsg::Id, ID_RTN_*)."""

    GET_DOORBELL = 0x80  # the number of the queue's doorbell
    GET_DDID = 0x81      # of the draw or dispatch, for debuggers
    GET_TMA = 0x82       # addresses of the trap handler and its memory
    GET_REALTIME = 0x83  # as WALL_CLOCK
    GET_TBA = 0x85


class HardwareRegister(Enum):
    """Numbers in the simm16 of s_getreg and s_setreg: [5:0] register, [10:6] offset, [15:11] size - 1."""

    MODE = 1
    STATUS = 2
    TRAPSTS = 3
    HW_ID = 4
    GPR_ALLOC = 5
    LDS_ALLOC = 6
    IB_STS = 7
    SH_MEM_BASES = 15
    EXCP_FLAG_PRIV = 17  # from gfx12 on, in the place of TRAPSTS
    EXCP_FLAG_USER = 18
    SCHED_MODE = 26  # from gfx12 on: which instructions hardware holds back by itself
    IB_STS2 = 28  # gfx1250
    SHADER_CYCLES = 29  # from gfx10.3 on: 20 bits, from gfx12 on the lower 32 of 64
    SHADER_CYCLES_HI = 30
    DVGPR_ALLOC_LO = 31  # from gfx12 on
    DVGPR_ALLOC_HI = 32


declare("S_BRANCH", Branch())
for _register in "scc", "vcc", "exec":
    _zero, _nonzero = ("0", "1") if _register == "scc" else ("Z", "NZ")
    declare(f"S_CBRANCH_{_register.upper()}{_zero}", Branch(_register, True))
    declare(f"S_CBRANCH_{_register.upper()}{_nonzero}", Branch(_register, False))

declare(
    "S_NOP V_NOP S_WAITCNT S_SETPRIO S_SETHALT S_INCPERFLEVEL S_DECPERFLEVEL S_TTRACEDATA S_ICACHE_INV S_WAKEUP "
    "S_DCACHE_INV S_DCACHE_INV_VOL S_DCACHE_WB S_DCACHE_WB_VOL BUFFER_WBINVL1 BUFFER_WBINVL1_VOL "
    "BUFFER_INVL2 BUFFER_INV BUFFER_WBL2 DS_NOP V_CLREXCP S_INST_PREFETCH S_CLAUSE S_CODE_END S_DELAY_ALU "
    "BUFFER_GL0_INV BUFFER_GL1_INV S_GL1_INV GLOBAL_INV GLOBAL_WB GLOBAL_WBINV S_WAITCNT_DEPCTR S_WAITCNT_VSCNT "
    "S_WAITCNT_VMCNT S_WAITCNT_EXPCNT S_WAITCNT_LGKMCNT S_WAIT_DSCNT S_WAIT_KMCNT S_WAIT_LOADCNT S_WAIT_STORECNT "
    "S_WAIT_LOADCNT_DSCNT S_WAIT_STORECNT_DSCNT S_WAIT_EXPCNT S_WAIT_SAMPLECNT S_WAIT_BVHCNT S_WAIT_XCNT S_WAIT_EVENT "
    "S_WAIT_ASYNCCNT S_WAIT_TENSORCNT "
    "S_WAIT_IDLE S_TTRACEDATA_IMM S_PREFETCH_INST S_PREFETCH_INST_PC_REL S_PREFETCH_DATA S_PREFETCH_DATA_PC_REL "
    "S_BUFFER_PREFETCH_DATA GLOBAL_PREFETCH_B8 FLAT_PREFETCH_B8 S_SETPRIO_INC_WG V_PIPEFLUSH S_VERSION S_ATC_PROBE "
    "S_ATC_PROBE_BUFFER",
    Action.NOTHING,
)
declare("S_ENDPGM S_ENDPGM_SAVED", Action.END)
declare("S_BARRIER", Action.BARRIER)
declare("S_BARRIER_SIGNAL_IMM S_BARRIER_SIGNAL_M0", Action.BARRIER_SIGNAL)
declare("S_BARRIER_SIGNAL_ISFIRST_IMM S_BARRIER_SIGNAL_ISFIRST_M0", Action.BARRIER_SIGNAL_ISFIRST)
declare("S_BARRIER_INIT_IMM S_BARRIER_INIT_M0", Action.BARRIER_INIT)
declare("S_BARRIER_JOIN_IMM S_BARRIER_JOIN_M0", Action.BARRIER_JOIN)
declare("S_GET_BARRIER_STATE_IMM S_GET_BARRIER_STATE_M0", Action.BARRIER_STATE)
declare("S_BARRIER_WAIT", Action.BARRIER_WAIT)
declare("DS_GWS_BARRIER", Action.GWS_BARRIER)
declare("DS_GWS_INIT", Action.GWS_INIT)
declare("DS_GWS_SEMA_V DS_GWS_SEMA_BR", Action.GWS_SEMA_V)
declare("DS_GWS_SEMA_P", Action.GWS_SEMA_P)
declare("DS_GWS_SEMA_RELEASE_ALL", Action.GWS_SEMA_RELEASE_ALL)
declare("S_SLEEP S_SLEEP_VAR S_MONITOR_SLEEP", Action.SLEEP)
declare("S_SENDMSG", Action.SENDMSG)
declare("S_SENDMSG_RTN_B32 S_SENDMSG_RTN_B64", Action.SENDMSG_RTN)
declare("S_GETPC_B64", Action.GETPC)
declare("S_SETPC_B64", Action.SETPC)
declare("S_ADD_PC_I64", Action.ADD_PC)
declare("S_SWAPPC_B64", Action.SWAPPC)
declare("S_CALL_B64", Action.CALL)
declare("S_TRAP", Action.TRAP)
declare("S_GETREG_B32", Action.GETREG)
declare("S_SETREG_B32", Action.SETREG)
declare("S_SETREG_IMM32_B32", Action.SETREG_IMM)
declare("S_ROUND_MODE", Action.ROUND_MODE)
declare("S_DENORM_MODE", Action.DENORM_MODE)
declare("S_MEMTIME S_GET_SHADER_CYCLES_U64", Action.CLOCK)
declare("S_MEMREALTIME", Action.WALL_CLOCK)
declare("S_GET_WAVEID_IN_WORKGROUP", Action.WAVE_ID)  # RDNA ISA, 12.6


class Indexing(Enum):
    """Operands relative to M0: a region of vector instructions, or one scalar move."""

    ON = auto()            # M0[7:0] = src0, and from here on the operands that the mask names are relative
    OFF = auto()
    READ_SCALAR = auto()   # sdst = SGPR[src0 + M0]
    WRITE_SCALAR = auto()  # SGPR[sdst + M0] = src0
    MOVE_SCALAR = auto()   # SGPR[sdst + M0[25:16]] = SGPR[src0 + M0[9:0]]


declare("S_SET_GPR_IDX_ON", Indexing.ON)
declare("S_SET_GPR_IDX_OFF", Indexing.OFF)
declare("S_MOVRELS_B32 S_MOVRELS_B64", Indexing.READ_SCALAR)
declare("S_MOVRELD_B32 S_MOVRELD_B64", Indexing.WRITE_SCALAR)
declare("S_MOVRELSD_2_B32", Indexing.MOVE_SCALAR)


class Switch(Enum):
    """Modes that change what vector instructions mean from here on."""

    SKIP = auto()      # vector instructions are skipped if the bit of src0 is set whose number src1 is
    OPERANDS = auto()  # M0[15:12] = simm16: which operands are relative while a region is open
    INDEX = auto()     # M0[7:0] = src0
    UPPER = auto()     # which operands mean registers from 256, 512 or 768 on: none if simm16[7:0] is 0


declare("S_SETVSKIP", Switch.SKIP)
declare("S_SET_GPR_IDX_MODE", Switch.OPERANDS)
declare("S_SET_GPR_IDX_IDX", Switch.INDEX)
declare("S_SET_VGPR_MSB", Switch.UPPER)


class CrossLane(Enum):
    """Vector instructions that read or write registers of other lanes."""

    READ_FIRST = auto()  # sdst = src0 in the lowest lane of EXEC, lane 0 if EXEC is 0
    READ = auto()        # sdst = src0 in lane src1; EXEC does not matter
    WRITE = auto()       # vdst in lane src1 = src0; EXEC does not matter
    OTHER_HALF = auto()  # vdst = src0 of the lane 32 further, whether that is in EXEC or not; nothing in waves of 32


declare("V_READFIRSTLANE_B32", CrossLane.READ_FIRST)
declare("V_READLANE_B32", CrossLane.READ)
declare("V_WRITELANE_B32", CrossLane.WRITE)
declare("V_PERMLANE64_B32", CrossLane.OTHER_HALF)
