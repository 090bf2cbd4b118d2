"""Instructions as reports name them, and what a tool leaves out.

In: the instructions of a program, while it is instrumented. Out: InstrPlaces and Omissions: numbers and texts, so that
notes are small. Invariant: what a tool cannot look at is named under ``left_out`` with the reason, by all tools alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from luthier_py.base.errors import EditConflict, HookError
from luthier_py.base.records import dataclass
from luthier_py.program import analysis, ir

NAMED = 8  # instructions that a line for people names


@dataclass(frozen=True, slots=True)
class InstrPlace:
    """An instruction. ``line``: file and line of the source, where they are known. ``loop``: where the innermost loop
    begins that it is in; libraries' kernels of matrices have no lines."""

    pc: int
    text: str
    function: str
    line: str | None
    loop: int | None = None

    def facts(self) -> dict[str, Any]:
        """The begin of a row of findings, with the keys that the emulator's checks have."""
        return {"pc": self.pc, "instruction": self.text, "line": self.line}

    def row(self) -> dict[str, Any]:
        """The begin of a row of counts."""
        loop = "" if self.loop is None else f"{self.loop:#x}"
        return {"pc": self.pc, "instruction": self.text, "function": self.function, "source": self.line or "",
                "loop": loop}


@dataclass(frozen=True, slots=True)
class Omission:
    """What a tool does not look at: an instruction, or a function as a whole, which has no text."""

    place: InstrPlace
    why: str

    def facts(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**self.place.facts(), "function": self.place.function, "why": self.why}


class InstrPlaces:
    """Those of one program (mutable: collects what is left out)."""

    def __init__(self, program: ir.Program, inlined: bool = False) -> None:
        """``inlined``: lines begin with that of the kernel, and go on into what was inlined there."""
        self._program = program
        self._lines = (analysis.source_frames if inlined else analysis.source_lines)(program.obj)
        self._left_out: list[Omission] = []
        self._loops: dict[ir.Function, Mapping[ir.Block, analysis.Loop]] = {}

    @property
    def left_out(self) -> tuple[Omission, ...]:
        """So far."""
        return tuple(self._left_out)

    def of(self, instr: ir.Instr) -> InstrPlace:
        """The place of an instruction."""
        text, function = self._program.isa.text(instr.inst), self._program.function_of(instr)
        if function not in self._loops:
            self._loops[function] = analysis.innermost_loops(function)
        loop = self._loops[function].get(function.block(instr.pc))
        around = None if loop is None else loop.header.address
        return InstrPlace(instr.pc, text, function.name, self._lines.text_at(instr.pc), around)

    def leave_out(self, what: ir.Instr | ir.Function, why: str) -> None:
        """Name what is not looked at."""
        place = self.of(what) if isinstance(what, ir.Instr) else InstrPlace(
            what.address, "", what.name, self._lines.text_at(what.address))
        self._left_out.append(Omission(place, why))

    @contextmanager
    def unless_refused(self, instr: ir.Instr) -> Iterator[None]:
        """What is done inside with ``instr`` is given up, and ``instr`` left out, at a HookError or an EditConflict:
        it has not what a hook wants to be given."""
        try:
            yield
        except (HookError, EditConflict) as error:
            self.leave_out(instr, reason(error))


def left_out_rows(found: Iterable[Omission]) -> list[dict[str, Any]]:
    """The rows of a report for them."""
    return [each.facts() for each in found]


def reason(error: HookError | EditConflict) -> str:
    """Without the place in the tool."""
    return error.message.partition(": ")[2] or error.message


def left_out_of(notes: Any) -> list[Mapping[str, Any]]:
    """What the notes of a tool, or of each of several, name as left out."""
    if isinstance(notes, Mapping):
        return [row for each in notes.values() for row in left_out_of(each)]
    found = getattr(notes, "left_out", ())
    return [row.facts() if isinstance(row, Omission) else row for row in found]


def place_text(row: Mapping[str, Any]) -> str:
    """The instruction of a row, as lines for people begin."""
    return f"{row['pc']:#x} {row['instruction']}" + (f" [{row['line']}]" if row["line"] else "")


def loop_of(row: Mapping[str, Any]) -> str:
    """Where the instruction of a row of counts is, if its source is not known."""
    return "" if row["source"] else str(row["loop"])


def left_out_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Lines for people, one for each reason."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row["why"], {})[row["instruction"] or row["function"]] = None
    for why, names in found.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"  left out, as {why}: {', '.join(sorted(names)[:NAMED])}{more}"
