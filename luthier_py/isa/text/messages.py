"""Text of hardware registers (s_getreg, s_setreg), messages (s_sendmsg), and dependency hints (s_delay_alu, depctr).

In: the 16-bit immediate. Out: LLVM's spelling; a number that has no name on the target prints as a number.
"""

from __future__ import annotations

from luthier_py.isa.model.names import (
    DEPENDENCIES,
    GS_MESSAGES,
    GS_OPERATIONS,
    HARDWARE_REGISTERS,
    MESSAGE_SYSTEM,
    MESSAGES,
    SYSTEM_OPERATIONS,
    VERSION_FLAGS,
    VERSIONS,
    names_of,
)
from luthier_py.isa.model.target import Target
from luthier_py.isa.text.modifiers import Handler, Line


def _hardware_register(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    number, first, size = value & 63, value >> 6 & 31, (value >> 11 & 31) + 1
    known = names_of(HARDWARE_REGISTERS, line.target).get(number)
    name = str(number) if known is None else f"HW_REG_{known}"
    return f"hwreg({name})" if (first, size) == (0, 32) else f"hwreg({name}, {first}, {size})"


def _message(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    old = line.target.generation < 11
    number = value & (15 if old else 255)
    operation, stream = (value >> 4 & 7, value >> 8 & 3) if old else (0, 0)
    name = names_of(MESSAGES, line.target).get(number)
    if name is not None and (details := _message_details(line.target, number, operation, stream)) is not None:
        return f"sendmsg(MSG_{name}{details})"
    if number | operation << 4 | stream << 8 == value:
        return f"sendmsg({number}, {operation}, {stream})"
    return str(value)


def _message_details(target: Target, number: int, operation: int, stream: int) -> str | None:
    """Operation and stream of a message that has them; None when they make no sense for it."""
    if number in GS_MESSAGES and target.generation < 11:
        if operation >= 4 or (operation == 0 and (number == GS_MESSAGES[0] or stream)):
            return None
        return f", {GS_OPERATIONS[operation]}" + (f", {stream}" if operation else "")
    if number == MESSAGE_SYSTEM:
        name = names_of(SYSTEM_OPERATIONS, target).get(operation)
        return None if name is None or stream else f", SYSMSG_OP_{name}"
    return "" if not operation and not stream else None


DELAYS = ("NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1", "TRANS32_DEP_2",
          "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1", "SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3")
SKIPS = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")


def _delay(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    shown = [f"{name}({names[bits] if bits < len(names) else f'/* invalid {what} value */'})"
             for name, what, names, bits in (
                 ("instid0", "instid", DELAYS, value & 15), ("instskip", "instskip", SKIPS, value >> 4 & 7),
                 ("instid1", "instid", DELAYS, value >> 7 & 15)) if bits]
    return " | ".join(shown) or "0"


def _dependency_counters(line: Line, place: int, _: str) -> str:
    value = line.inst.fields[place]
    known = [row for row in DEPENDENCIES if row.where(line.target)]
    if value & ~sum((1 << row.width) - 1 << row.first for row in known):
        return hex(value)
    counts = [(row, value >> row.first & (1 << row.width) - 1) for row in known]
    waited = [(row, count) for row, count in counts if count != (1 << row.width) - 1]
    return " ".join(f"depctr_{row.text}({count})" for row, count in waited or counts)


def _version(line: Line, place: int, _: str) -> str:
    """s_version: the generation that the code was compiled for, and its wave sizes."""
    value = line.inst.fields[place]
    number, flags = value & 0xFF, [name for bit, name in VERSION_FLAGS if value >> bit & 1]
    if value & 0x1F00:
        return str(value) if value <= 64 else hex(value)
    text = VERSIONS.get(number, str(number))
    for place, flag in enumerate(flags):
        text = f"({text})|{flag}" if place else f"{text}|{flag}"
    return text


MESSAGE_HANDLERS: dict[str, Handler] = {
    "printHwreg": _hardware_register, "printSendMsg": _message, "printSDelayALU": _delay,
    "printDepCtr": _dependency_counters, "printVersion": _version,
}
