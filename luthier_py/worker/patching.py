"""One kernel's code object with the tool in it, as a running program needs it.

In: a code object, a tool, the kernel that is to be launched. Out: a Copy, which has no parts that only reports need.
Invariant: a copy from the user's cache is the one that would be made now: its key has the code object, all edits with
the compiled identity of their hooks, and this very installation.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from luthier_py.errors import Location
from luthier_py.inject.model import ClonedKernel, Resources
from luthier_py.jit import fingerprint
from luthier_py.link import Binding
from luthier_py.loader import CodeObject, SegmentFlag, SymbolType
from luthier_py.pipeline import carry_out, plan
from luthier_py.storage import Shelf, cache_key
from luthier_py.tool import Refusal, Tool, Variable

UNIT_ID = "__hip_cuid_"  # clang's mark of a compilation unit; nothing reads it
MANAGED = ".managed"  # the initial value of a managed variable; the runtime has moved it
PLAIN = ".initial"  # as long
SHELF = Shelf("copies", 1 << 30)
_HEAD_BYTES = 8


@dataclass(frozen=True, slots=True)
class Made:
    """What the cache keeps. ``cloned`` is None where the original is to run."""

    data: bytes
    cloned: ClonedKernel | None
    refused: tuple[Refusal, ...]
    bindings: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class ProgramVariable:
    """A variable of the program, by its address in the code object."""

    name: str
    address: int
    changes: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """What is made, and what belongs to this run."""

    made: Made
    variables: tuple[Variable, ...]
    program_variables: tuple[ProgramVariable, ...]
    seconds: Mapping[str, float]
    cached: bool
    notes: Any
    """What the tool keeps for its reports."""


def patch(code: bytes, tool: Tool, kernel: str, whole: bool = False) -> Copy:
    """``whole``: with all of the code object in it. Raises LuthierError when nothing could be made."""
    planned = plan(code, tool, "code object", [kernel])
    start = time.perf_counter()
    key = cache_key(installation(), code, kernel, str(whole), fingerprint(planned.edits, planned.program.isa))
    kept = SHELF.read(key)
    seconds = {**planned.seconds, "cache": time.perf_counter() - start}
    if kept is not None:
        made, cached = unpack(kept), True
    else:
        done = carry_out(planned, keep_going=True, apart=not whole)
        cloned = next((row for row in done.patched.report if row.name == kernel), None)
        made = Made(without_managed(done.data), cloned, done.refused, done.bindings)
        cached = done.cached
        seconds.update(done.seconds)
        SHELF.write(key, pack(made))
    edits = planned.edits
    return Copy(made, edits.variables, program_variables(planned.obj), seconds, cached, edits.notes)


def without_managed(data: bytes) -> bytes:
    """The copy's managed variables as plain pointers, which we fill in. HIP's runtime knows managed ones by the names
    of symbols (clr, hip_code_object.cpp) and would give a module that is loaded memory of its own for them."""
    if MANAGED.encode() + b"\0" not in data:
        return data
    changed = bytearray(data)
    for section in ELFFile(BytesIO(data)).iter_sections("SHT_STRTAB"):
        start, end = section["sh_offset"], section["sh_offset"] + section["sh_size"]
        changed[start:end] = data[start:end].replace(MANAGED.encode() + b"\0", PLAIN.encode() + b"\0")
    return bytes(changed)


@cache
def installation() -> str:
    """All files of this package as they are: another version makes other copies."""
    root = Path(__file__).parent.parent
    stats = {path: path.stat() for path in sorted(root.rglob("*")) if path.suffix in (".py", ".gz", ".json")}
    return cache_key(*(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in stats.items()))


def pack(made: Made) -> bytes:
    """Facts as JSON, their size before them, and the bytes."""
    facts = {
        "cloned": asdict(made.cloned) if made.cloned else None,
        "refused": [asdict(r) for r in made.refused],
        "bindings": [astuple(binding) for binding in made.bindings],
    }
    head = json.dumps(facts).encode()
    return len(head).to_bytes(_HEAD_BYTES, "little") + head + made.data


def unpack(kept: bytes) -> Made:
    end = _HEAD_BYTES + int.from_bytes(kept[:_HEAD_BYTES], "little")
    facts = json.loads(kept[_HEAD_BYTES:end])
    cloned, refused = facts["cloned"], facts["refused"]
    if cloned is not None:
        resources = {name: Resources(**cloned[name]) for name in ("before", "after")}
        cloned = ClonedKernel(**{**cloned, **resources})
    refusals = tuple(Refusal(**{**row, "where": Location(**row["where"])}) for row in refused)
    return Made(kept[end:], cloned, refusals, tuple(Binding(*row) for row in facts["bindings"]))


def program_variables(obj: CodeObject) -> tuple[ProgramVariable, ...]:
    found = [s for s in obj.symbols if s.defined and s.type == SymbolType.OBJECT and s.size]
    found = [s for s in found if not s.name.endswith((".kd", MANAGED)) and not s.name.startswith(UNIT_ID)]
    written = [s for s in obj.segments if s.load and s.flags & SegmentFlag.WRITE]
    return tuple(
        ProgramVariable(s.name, s.address, any(w.address <= s.address < w.end for w in written)) for s in found
    )
