"""Text of hardware registers (s_getreg, s_setreg), messages (s_sendmsg) and dependency hints (s_delay_alu).

In: the 16-bit immediate. Out: LLVM's spelling. Sources: AMD ISA manuals (S_GETREG_B32, S_SENDMSG) and
AMDGPUAsmUtils.cpp for which names exist on which generation; a name that does not exist prints as a number.
"""

from __future__ import annotations

from luthier_py.isa.target import Target
from luthier_py.isa.text_modifiers import Handler, Line

_COMMON = {1: "MODE", 2: "STATUS", 3: "TRAPSTS", 5: "GPR_ALLOC", 6: "LDS_ALLOC", 7: "IB_STS", 15: "SH_MEM_BASES"}
_TRAP = {16: "TBA_LO", 17: "TBA_HI", 18: "TMA_LO", 19: "TMA_HI"}
HARDWARE_REGISTERS: dict[int, dict[int, str]] = {
    9: {**_COMMON, **_TRAP, 4: "HW_ID"},
    10: {**_COMMON, **_TRAP, 20: "FLAT_SCR_LO", 21: "FLAT_SCR_HI", 23: "HW_ID1", 24: "HW_ID2", 25: "POPS_PACKER",
         29: "SHADER_CYCLES"},
    11: {**_COMMON, 18: "PERF_SNAPSHOT_DATA", 19: "PERF_SNAPSHOT_PC_LO", 20: "FLAT_SCR_LO", 21: "FLAT_SCR_HI",
         22: "PERF_SNAPSHOT_PC_HI", 23: "HW_ID1", 24: "HW_ID2", 29: "SHADER_CYCLES"},
}
# Messages; the old ones end with gfx10.
_OLD_MESSAGES = {
    1: "MSG_INTERRUPT", 2: "MSG_GS", 3: "MSG_GS_DONE", 4: "MSG_SAVEWAVE", 5: "MSG_STALL_WAVE_GEN",
    6: "MSG_HALT_WAVES", 7: "MSG_ORDERED_PS_DONE", 8: "MSG_EARLY_PRIM_DEALLOC", 9: "MSG_GS_ALLOC_REQ",
    10: "MSG_GET_DOORBELL", 15: "MSG_SYSMSG",
}
MESSAGE_NAMES: dict[int, dict[int, str]] = {
    9: _OLD_MESSAGES,
    10: {**_OLD_MESSAGES, 11: "MSG_GET_DDID"},
    11: {1: "MSG_INTERRUPT", 2: "MSG_HS_TESSFACTOR", 3: "MSG_DEALLOC_VGPRS", 9: "MSG_GS_ALLOC_REQ",
         128: "MSG_RTN_GET_DOORBELL", 129: "MSG_RTN_GET_DDID", 130: "MSG_RTN_GET_TMA", 131: "MSG_RTN_GET_REALTIME",
         132: "MSG_RTN_SAVE_WAVE", 133: "MSG_RTN_GET_TBA"},
}
_GS, _GS_DONE, _SYSTEM = 2, 3, 15
GS_OPERATIONS = ("GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT")
SYSTEM_OPERATIONS = {1: "SYSMSG_OP_ECC_ERR_INTERRUPT", 2: "SYSMSG_OP_REG_RD", 3: "SYSMSG_OP_HOST_TRAP_ACK",
                     4: "SYSMSG_OP_TTRACE_PC"}


def _of_generation(names: dict[int, dict[int, str]], target: Target) -> dict[int, str]:
    return names[min(target.generation, max(names))]


def _hardware_register(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    number, first, size = value & 63, value >> 6 & 31, (value >> 11 & 31) + 1
    known = _of_generation(HARDWARE_REGISTERS, line.target).get(number)
    name = str(number) if known is None else f"HW_REG_{known}"
    return f"hwreg({name})" if (first, size) == (0, 32) else f"hwreg({name}, {first}, {size})"


def _message(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    old = line.target.generation < 11
    number = value & (15 if old else 255)
    operation, stream = (value >> 4 & 7, value >> 8 & 3) if old else (0, 0)
    name = _of_generation(MESSAGE_NAMES, line.target).get(number)
    if name is not None and (details := _message_details(number if old else 0, operation, stream)) is not None:
        return f"sendmsg({name}{details})"
    if number | operation << 4 | stream << 8 == value:
        return f"sendmsg({number}, {operation}, {stream})"
    return str(value)


def _message_details(number: int, operation: int, stream: int) -> str | None:
    """Operation and stream of a message that has them; None when they make no sense for it."""
    if number in (_GS, _GS_DONE):
        if operation >= 4 or (operation == 0 and (number == _GS or stream)):
            return None
        return f", {GS_OPERATIONS[operation]}" + (f", {stream}" if operation else "")
    if number == _SYSTEM:
        return f", {SYSTEM_OPERATIONS[operation]}" if operation in SYSTEM_OPERATIONS and not stream else None
    return "" if not operation and not stream else None


DELAYS = ("NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1", "TRANS32_DEP_2",
          "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3")
SKIPS = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")


def _delay(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    first, skip, second = value & 15, value >> 4 & 7, value >> 7 & 15
    shown = [f"{name}({names[bits] if bits < len(names) else '/* invalid */'})"
             for name, names, bits in (("instid0", DELAYS, first), ("instskip", SKIPS, skip),
                                       ("instid1", DELAYS, second)) if bits]
    return " | ".join(shown) or "0"


# s_waitcnt_depctr, s_wait_alu: name, first bit, width; a field of all ones waits for nothing and is not shown.
DEPENDENCIES = (("hold_cnt", 7, 1), ("sa_sdst", 0, 1), ("va_vdst", 12, 4), ("va_sdst", 9, 3), ("va_ssrc", 8, 1),
                ("va_vcc", 1, 1), ("vm_vsrc", 2, 3))


def _dependency_counters(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    shown = [f"depctr_{name}({value >> first & (1 << width) - 1})" for name, first, width in DEPENDENCIES
             if value >> first & (1 << width) - 1 != (1 << width) - 1]
    return " ".join(shown)


MESSAGES: dict[str, Handler] = {
    "printHwreg": _hardware_register, "printSendMsg": _message, "printSDelayALU": _delay,
    "printDepCtr": _dependency_counters,
}
