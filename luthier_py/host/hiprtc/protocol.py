"""Messages between a program's hiprtc (C) and the compiler beside it (Python).

The framing is host/native/protocol's; what is counted is a u32 number of bytes and then these bytes.
"""

from __future__ import annotations

from enum import IntEnum


class HiprtcMessage(IntEnum):
    """Both are answered with a Result as u32, a counted log and the counted output; COMPILE also with counted bitcode
    and a counted lowered name for each expression."""

    COMPILE = 1  # counted folder, target, name, source; u32 headers, for each counted name and text; u32 options,
    # each counted; u32 name expressions, each counted
    LINK = 2  # counted target; u32 options, each counted; u32 inputs, for each u32 Input and its counted content


class HiprtcResult(IntEnum):
    """hiprtcResult (hip/hiprtc.h)."""

    SUCCESS = 0
    OUT_OF_MEMORY = 1
    PROGRAM_CREATION_FAILURE = 2
    INVALID_INPUT = 3
    INVALID_PROGRAM = 4
    INVALID_OPTION = 5
    COMPILATION = 6
    BUILTIN_OPERATION_FAILURE = 7
    NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8
    NO_LOWERED_NAMES_BEFORE_COMPILATION = 9
    NAME_EXPRESSION_NOT_VALID = 10
    INTERNAL_ERROR = 11
    LINKING = 100


class Input(IntEnum):
    """hipJitInputType (hip/linker_types.h), as far as it is HIP's own."""

    BITCODE = 100
    BUNDLED_BITCODE = 101
    ARCHIVE = 102
    SPIRV = 103


def header() -> str:
    """hiprtc_protocol.h."""
    lines = [f"#define MESSAGE_{message.name} {message.value}u" for message in HiprtcMessage]
    lines += [f"#define INPUT_{kind.name} {kind.value}" for kind in Input]
    names = ((result, "HIPRTC_SUCCESS" if not result else f"HIPRTC_ERROR_{result.name}") for result in HiprtcResult)
    values = list(names)
    enum = " ".join(f"{name} = {result.value}," for result, name in values)
    every = " \\\n".join(f"    RESULT({name})" for _, name in values)
    return "\n".join([*lines, f"enum {{ {enum} }};", f"#define ALL_RESULTS(RESULT) \\\n{every}", ""])
