"""One kernel's code object with the tool in it, as a running program needs it.

In: a code object, a tool, the kernel that is to be launched. Out: a Copy, which has no parts that only reports need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from luthier_py.inject.model import ClonedKernel
from luthier_py.loader import CodeObject, SegmentFlag, SymbolType
from luthier_py.pipeline import instrument
from luthier_py.tool import Refusal, Tool, Variable

UNIT_ID = "__hip_cuid_"  # clang's mark of a compilation unit; nothing reads it
MANAGED = ".managed"  # the initial value of a managed variable; the runtime has moved it


@dataclass(frozen=True, slots=True)
class Copy:
    """``cloned`` is None where the original is to run."""

    data: bytes
    cloned: ClonedKernel | None
    refused: tuple[Refusal, ...]
    variables: tuple[Variable, ...]
    shared: tuple[tuple[str, bool], ...]
    """Variables of the program, and whether they change."""
    seconds: Mapping[str, float]
    cached: bool
    notes: Any = None
    """What the tool keeps for its reports."""


def patch(code: bytes, tool: Tool, kernel: str) -> Copy:
    """Raises LuthierError when nothing could be made."""
    made = instrument(code, tool, "code object", [kernel], keep_going=True)
    cloned = next((row for row in made.patched.report if row.name == kernel), None)
    edits, shared = made.edits, shared_variables(made.obj)
    return Copy(made.data, cloned, made.refused, edits.variables, shared, made.seconds, made.cached, edits.notes)


def shared_variables(obj: CodeObject) -> tuple[tuple[str, bool], ...]:
    found = [s for s in obj.symbols if s.defined and s.type == SymbolType.OBJECT and s.size]
    found = [s for s in found if not s.name.endswith((".kd", MANAGED)) and not s.name.startswith(UNIT_ID)]
    written = [s for s in obj.segments if s.load and s.flags & SegmentFlag.WRITE]
    return tuple((s.name, any(w.address <= s.address < w.end for w in written)) for s in found)
