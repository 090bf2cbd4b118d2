"""What LLVM calls the numbers in immediates: hardware registers, messages, export targets, buffer formats.

In: a target and a number. Out: its name, or None where the target has none. Sources: AMD ISA manuals (S_GETREG_B32,
S_SENDMSG, EXP, MTBUF), and AMDGPUAsmUtils.cpp of LLVM 22 for which name holds on which target.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from luthier_py.isa.model.target import Target

Where: TypeAlias = Callable[[Target], bool]


def _between(first: int, last: int) -> Where:
    return lambda target: first <= target.generation <= last


_BEFORE_GFX10, _BEFORE_GFX11, _BEFORE_GFX12 = _between(8, 9), _between(8, 10), _between(8, 11)
_GFX9_10, _GFX9_11, _GFX10_11 = _between(9, 10), _between(9, 11), _between(10, 11)
_GFX10, _GFX11 = _between(10, 10), _between(11, 11)
_GFX10_ON, _GFX11_ON, _GFX12_ON = _between(10, 99), _between(11, 99), _between(12, 99)


def _everywhere(target: Target) -> bool:
    return True


def _is_gfx940(target: Target) -> bool:
    return target.sc_cache_bits


def _is_gfx1250(target: Target) -> bool:
    return (target.generation, target.minor) == (12, 5)


def _is_gfx10_1(target: Target) -> bool:
    return (target.generation, target.minor) == (10, 1)


def _has_hold_counter(target: Target) -> bool:
    return (target.generation, target.minor) >= (10, 3)


class Name(NamedTuple):
    """A name of a number in LLVM's assembly; ``where``: the targets on which it holds."""

    number: int
    text: str
    where: Where = _everywhere


# The first that holds is the name. gfx12 renamed most.
HARDWARE_REGISTERS = (
    Name(1, "WAVE_MODE", _GFX12_ON), Name(1, "MODE"), Name(2, "WAVE_STATUS", _GFX12_ON), Name(2, "STATUS"),
    Name(3, "TRAPSTS", _BEFORE_GFX12), Name(4, "HW_ID", _BEFORE_GFX10), Name(4, "WAVE_STATE_PRIV", _GFX12_ON),
    Name(5, "WAVE_GPR_ALLOC", _GFX12_ON), Name(5, "GPR_ALLOC"), Name(6, "WAVE_LDS_ALLOC", _GFX12_ON),
    Name(6, "LDS_ALLOC"), Name(7, "IB_STS"), Name(10, "PERF_SNAPSHOT_DATA", _GFX12_ON),
    Name(11, "PERF_SNAPSHOT_PC_LO", _GFX12_ON), Name(12, "PERF_SNAPSHOT_PC_HI", _GFX12_ON),
    Name(15, "SH_MEM_BASES", _GFX9_11), Name(15, "PERF_SNAPSHOT_DATA1", _GFX12_ON),
    Name(16, "TBA_LO", _GFX9_10), Name(16, "PERF_SNAPSHOT_DATA2", _GFX12_ON), Name(17, "TBA_HI", _GFX9_10),
    Name(17, "WAVE_EXCP_FLAG_PRIV", _GFX12_ON), Name(18, "TMA_LO", _GFX9_10),
    Name(18, "PERF_SNAPSHOT_PC_LO", _GFX11), Name(18, "WAVE_EXCP_FLAG_USER", _GFX12_ON), Name(19, "TMA_HI", _GFX9_10),
    Name(19, "PERF_SNAPSHOT_PC_HI", _GFX11), Name(19, "WAVE_TRAP_CTRL", _GFX12_ON),
    Name(20, "FLAT_SCR_LO", _GFX10_11), Name(20, "WAVE_SCRATCH_BASE_LO", _GFX12_ON), Name(20, "XCC_ID", _is_gfx940),
    Name(21, "FLAT_SCR_HI", _GFX10_11), Name(21, "WAVE_SCRATCH_BASE_HI", _GFX12_ON),
    Name(21, "SQ_PERF_SNAPSHOT_DATA", _is_gfx940), Name(22, "XNACK_MASK", _is_gfx10_1),
    Name(22, "SQ_PERF_SNAPSHOT_DATA1", _is_gfx940), Name(23, "WAVE_HW_ID1", _GFX12_ON), Name(23, "HW_ID1", _GFX10_ON),
    Name(23, "SQ_PERF_SNAPSHOT_PC_LO", _is_gfx940), Name(24, "WAVE_HW_ID2", _GFX12_ON), Name(24, "HW_ID2", _GFX10_ON),
    Name(24, "SQ_PERF_SNAPSHOT_PC_HI", _is_gfx940), Name(25, "POPS_PACKER", _GFX10),
    Name(26, "WAVE_SCHED_MODE", _GFX12_ON), Name(27, "PERF_SNAPSHOT_DATA", _GFX11), Name(28, "IB_STS2", _is_gfx1250),
    Name(29, "SHADER_CYCLES", lambda target: _has_hold_counter(target) and target.generation < 12),
    Name(29, "SHADER_CYCLES_LO", _GFX12_ON), Name(30, "SHADER_CYCLES_HI", _GFX12_ON),
    Name(31, "WAVE_DVGPR_ALLOC_LO", _GFX12_ON), Name(32, "WAVE_DVGPR_ALLOC_HI", _GFX12_ON),
    Name(33, "XNACK_STATE_PRIV", _is_gfx1250), Name(34, "XNACK_MASK", _is_gfx1250),
)
MESSAGES = (
    Name(1, "INTERRUPT"), Name(2, "GS", _BEFORE_GFX11), Name(2, "HS_TESSFACTOR", _GFX11_ON),
    Name(3, "GS_DONE", _BEFORE_GFX11), Name(3, "DEALLOC_VGPRS", _GFX11_ON), Name(4, "SAVEWAVE", _BEFORE_GFX11),
    Name(5, "STALL_WAVE_GEN", _GFX9_11), Name(6, "HALT_WAVES", _GFX9_11), Name(7, "ORDERED_PS_DONE", _GFX9_10),
    Name(8, "EARLY_PRIM_DEALLOC", _GFX9_10), Name(9, "GS_ALLOC_REQ", _between(9, 99)),
    Name(10, "GET_DOORBELL", _GFX9_10), Name(10, "SAVEWAVE_HAS_TDM", _is_gfx1250), Name(11, "GET_DDID", _GFX10),
    Name(15, "SYSMSG"), Name(128, "RTN_GET_DOORBELL", _GFX11_ON), Name(129, "RTN_GET_DDID", _GFX11_ON),
    Name(130, "RTN_GET_TMA", _GFX11_ON), Name(131, "RTN_GET_REALTIME", _GFX11_ON),
    Name(132, "RTN_SAVE_WAVE", _GFX11_ON), Name(133, "RTN_GET_TBA", _GFX11_ON),
    Name(134, "RTN_GET_TBA_TO_PC", _GFX11_ON), Name(135, "RTN_GET_SE_AID_ID", _GFX12_ON),
    Name(136, "RTN_GET_CLUSTER_BARRIER_STATE", _is_gfx1250),
)
MESSAGE_SYSTEM = 15
SYSTEM_OPERATIONS = (
    Name(1, "ECC_ERR_INTERRUPT"), Name(2, "REG_RD"), Name(3, "HOST_TRAP_ACK", _between(8, 8)), Name(4, "TTRACE_PC"),
)
GS_MESSAGES = (2, 3)  # up to gfx10: with an operation and a stream
GS_OPERATIONS = ("GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT")

EXPORT_TARGETS = (
    *(Name(number, f"mrt{number}") for number in range(8)), Name(8, "mrtz"), Name(9, "null", _BEFORE_GFX11),
    *(Name(12 + number, f"pos{number}") for number in range(4)), Name(16, "pos4", _GFX10_ON),
    Name(20, "prim", _GFX10_ON), Name(21, "dual_src_blend0", _GFX11_ON), Name(22, "dual_src_blend1", _GFX11_ON),
    *(Name(32 + number, f"param{number}", _BEFORE_GFX11) for number in range(32)),
)

class Dependency(NamedTuple):
    """A field of s_waitcnt_depctr and s_wait_alu; all ones wait for nothing."""

    text: str
    first: int
    width: int
    where: Where = _everywhere


DEPENDENCIES = (
    Dependency("hold_cnt", 7, 1, _has_hold_counter), Dependency("sa_sdst", 0, 1), Dependency("va_vdst", 12, 4),
    Dependency("va_sdst", 9, 3), Dependency("va_ssrc", 8, 1), Dependency("va_vcc", 1, 1),
    Dependency("vm_vsrc", 2, 3),
)

# s_version
VERSIONS = {0: "UC_VERSION_GFX7", 4: "UC_VERSION_GFX10", 6: "UC_VERSION_GFX11", 9: "UC_VERSION_GFX12"}
VERSION_FLAGS = ((13, "UC_VERSION_W64_BIT"), (14, "UC_VERSION_W32_BIT"), (15, "UC_VERSION_MDP_BIT"))

DATA_FORMATS = ("INVALID", "8", "16", "8_8", "32", "16_16", "10_11_11", "11_11_10", "10_10_10_2", "2_10_10_10",
                "8_8_8_8", "32_32", "16_16_16_16", "32_32_32", "32_32_32_32", "RESERVED_15")
NUMBER_FORMATS = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT")
_INTEGERS = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT")
_EXACT = ("UINT", "SINT", "FLOAT")
# gfx10 and later: one number for both, numbered in this order; gfx11 left out what was hardly used.
_UNIFIED = (
    ("8", _INTEGERS), ("16", (*_INTEGERS, "FLOAT")), ("8_8", _INTEGERS), ("32", _EXACT),
    ("16_16", (*_INTEGERS, "FLOAT")), ("10_11_11", (*_INTEGERS, "FLOAT")), ("11_11_10", (*_INTEGERS, "FLOAT")),
    ("10_10_10_2", _INTEGERS), ("2_10_10_10", _INTEGERS), ("8_8_8_8", _INTEGERS), ("32_32", _EXACT),
    ("16_16_16_16", (*_INTEGERS, "FLOAT")), ("32_32_32", _EXACT), ("32_32_32_32", _EXACT),
)
_GFX11_KEEPS = {"10_11_11": ("FLOAT",), "11_11_10": ("FLOAT",), "10_10_10_2": ("UNORM", "SNORM", "UINT", "SINT")}


@cache
def list_unified_formats(target: Target) -> tuple[str, ...]:
    """Names of MTBUF formats from gfx10 on, by number."""
    kept = _GFX11_KEEPS if target.generation >= 11 else {}
    return ("INVALID", *(f"{data}_{number}" for data, numbers in _UNIFIED for number in kept.get(data, numbers)))


@cache
def names_of(table: tuple[Name, ...], target: Target) -> dict[int, str]:
    """Number -> name on ``target``."""
    found: dict[int, str] = {}
    for row in table:
        if row.where(target):
            found.setdefault(row.number, row.text)
    return found
