"""Every error that Luthier-py raises on purpose, and the place it speaks of.

One root, :class:`LuthierError`. A message says what is wrong and what to do; the
:class:`Location` says where. Nothing else is raised for bad input.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from enum import Enum

from luthier_py.base.names import demangle
from luthier_py.base.records import dataclass

TOOL_MODULE = "luthier_tool_"
"""How modules are called that are made of a tool's file or folder."""


def printable(text: str) -> str:
    """A line, perhaps out of a file, as it may go to a terminal: what controls one, or does not show, is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """The same for text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def how_many(number: int, noun: str) -> str:
    """``1 argument``, ``2 arguments``."""
    return f"{number} {noun}{'s' * (number != 1)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean instr_count?``; empty if nothing known is like it."""
    found = closest(name, known)
    return "" if found is None else f"; did you mean {found}?"


def closest(name: str, known: Iterable[str]) -> str | None:
    """What is written most like it, in whatever case; None if nothing is like it."""
    near = {each.lower(): each for each in sorted(known)}
    found = get_close_matches(name.lower(), near, 1)
    return near[found[0]] if found else None


def describe_inlining(lines: Iterable[object]) -> str:
    """The line of an instruction, and where that was inlined; nothing without lines."""
    return " inlined at ".join(map(str, lines))


@dataclass(frozen=True, slots=True)
class Location:
    """Where in a code object something was found; unknown parts stay ``None``. ``lines``: of the source, that of the
    innermost function first and then where it was inlined. ``inserted``: an instruction of a tool, in front of the
    application's at ``pc``."""

    kernel: str | None = None
    pc: int | None = None
    text: str | None = None
    lines: tuple[str, ...] = ()
    inserted: bool = False

    def __str__(self) -> str:
        parts = []
        if self.kernel is not None:
            parts.append(f"kernel {demangle(self.kernel)}")
        place = [] if self.pc is None else [f"pc 0x{self.pc:x}"]
        text = [] if self.text is None else [f"`{self.text}`"]
        if self.inserted:
            parts.append(f"{(text or ['code'])[0]} that the tool inserted{''.join(f' before {at}' for at in place)}")
        else:
            parts += place + text
        lines = f" ({describe_inlining(self.lines)})" if self.lines else ""
        return printable(", ".join(parts) + lines)


class LuthierError(Exception):
    """Root of all errors. ``str()`` is one line: what, where, what to do."""

    def __init__(self, message: str, where: Location | None = None) -> None:
        self.message = message = printable_lines(message)
        self.where = where
        super().__init__(f"{message} [{where}]" if where and str(where) else message)


class Malformed(LuthierError):
    """The input breaks its own format: a truncated ELF, a bad note, undecodable code."""


class Unsupported(LuthierError):
    """The input is well formed, but uses something that Luthier-py does not handle."""


class Invalid(LuthierError):
    """A caller's request makes no sense: unknown kernel, wrong argument count or type."""


class Misread(Invalid):
    """A text that a caller wrote cannot be read; the message has its line, and a caret under the place."""


class HookError(LuthierError):
    """A hook uses Python that is not device Python; carries the source file and line."""


class Uncompiled(HookError):
    """A hook's C++ does not compile; the message has the compiler's lines."""


class ToolError(LuthierError):
    """A tool's own Python fails before it says what to instrument, or what it reports is no data."""


class EditConflict(LuthierError):
    """A recorded edit cannot be applied at its place."""


class OutOfRegisters(LuthierError):
    """No register is left for a hook at some point of the kernel."""


class CheckFailed(LuthierError):
    """The independent checker found that a patch could change the application."""


def require_version(name: str, found: int, known: int) -> None:
    """Unsupported where the file ``name`` is of a version ``found`` that is newer than all ``known`` ones."""
    if found > known:
        raise Unsupported(f"{name}: it is of version {found}, and this Luthier-py reads {known}; take a newer one")


class FaultKind(Enum):
    """What a wave did that no device lets pass."""

    BAD_ADDRESS = "bad address"                  # global memory: nothing is allocated there
    READ_ONLY = "write to read-only memory"
    MISALIGNED = "misaligned address"
    LDS = "address outside of LDS"
    SCRATCH = "address outside of private memory"
    BAD_JUMP = "jump to what is not code"
    ILLEGAL_INSTRUCTION = "illegal instruction"
    TRAP = "s_trap"
    NO_REGISTERS = "vector registers that were given back"
    MODE = "a value of MODE for which no code was translated"  # a limit of the emulator, not the program's mistake
    SURFACE = "surface that is not emulated"     # the same: what its resource asks for, no manual says


@dataclass(frozen=True, slots=True)
class DeviceFault:
    """A wave's fault, for the code that handles it; addresses are those of the device."""

    kind: FaultKind
    pc: int                     # of the instruction; of a bad jump, where it went
    address: int | None = None  # of memory, that could not be accessed
    write: bool = False         # the access was one, or an atomic
    trap: int | None = None     # the number of the s_trap


class DeviceError(LuthierError):
    """A kernel failed while it ran: bad address, no forward progress, bad launch. ``fault``: what a wave did, if so."""

    def __init__(self, message: str, where: Location | None = None, fault: DeviceFault | None = None) -> None:
        super().__init__(message, where)
        self.fault = fault


class TimeLimit(DeviceError):
    """A kernel took longer than it was given."""


def one_line(error: Exception) -> str:
    """The error's message; for an unexpected exception also its type, and the file and line that raised it: those of
    the tool, if a tool is on the stack."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, (LuthierError, OSError)):
        return " ".join(str(error).splitlines())
    steps = list(traceback.walk_tb(error.__traceback__))
    of_tool = [step for step in steps if str(step[0].f_globals.get("__name__")).startswith(TOOL_MODULE)]
    frames = [(frame.f_code, line) for frame, line in (of_tool or steps)[-1:]]
    place = "".join(f" ({code.co_filename}:{line}, in {code.co_name})" for code, line in frames)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"
