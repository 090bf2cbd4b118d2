"""One kernel's code object with the tool in it, as a running program needs it.

In: a code object, a tool, the kernel that is to be launched. Out: a Copy, which has no parts that only reports need.
Invariant: a copy from the user's cache is the one that would be made now: its key has the code object, this very
installation, and all edits with the compiled identity of their hooks. The tool does not record its edits again, nor is
the code read, where what the tool declares to depend on is as it was when it recorded them
(host/worker/instrument/edit_cache.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, astuple
from functools import cache, lru_cache, partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import Location
from luthier_py.base.late_modules import llvmlite_version
from luthier_py.base.records import dataclass
from luthier_py.base.storage import Shelf, cache_key, sources
from luthier_py.binary import loader
from luthier_py.binary.link import Binding
from luthier_py.host.worker.instrument.edit_cache import CachedEdits, ProgramVariable, find_cached_edits, remember
from luthier_py.program import ir
from luthier_py.rewrite import jit
from luthier_py.rewrite.inject.cloned import ClonedKernel, Resources
from luthier_py.rewrite.tool import Refusal, Tool, Variable
from luthier_py.rewrite.tool.edit_key import edit_key

if TYPE_CHECKING:
    from luthier_py.rewrite.pipeline import Instrumented, Planned

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
class Copy:
    """What is made, and what belongs to this run."""

    made: Made
    variables: tuple[Variable, ...]
    program_variables: tuple[ProgramVariable, ...]
    seconds: Mapping[str, float]
    cached: bool
    notes: Callable[[], Any]
    """What the tool keeps for its reports."""
    program: Callable[[], ir.Program]
    """Lifts the kernel's code again."""


def patch(code: bytes, tool: Tool, kernel: str, whole: bool = False) -> Copy:
    """``whole``: with all of the code object in it. Raises LuthierError when nothing could be made."""
    start = time.perf_counter()
    subject = (installation(), _digest(code), kernel, str(whole))
    program = partial(_lift_kernel, code, kernel)
    key = edit_key(tool)
    known = None if key is None else find_cached_edits(cache_key(*subject, key), tool, program)
    if known is not None and (made := _read_cached(known.copy)) is not None:
        seconds = {"cache": time.perf_counter() - start}
        return Copy(made, known.variables, known.program_variables, seconds, True, known.notes, program)
    from luthier_py.rewrite.pipeline import plan  # a copy from the cache needs nothing of it

    planned = plan(code, tool, "code object", [kernel])
    copy, made_as = _by_edits(planned, kernel, whole, subject, program)
    if key is not None:
        kept = CachedEdits(made_as, copy.variables, copy.program_variables, copy.notes)
        remember(cache_key(*subject, key), tool, planned.program, kept)
    return copy


def _by_edits(
    planned: Planned, kernel: str, whole: bool, subject: tuple[str, ...], program: Callable[[], ir.Program]
) -> tuple[Copy, str]:
    """The copy that the tool requests, cached or made now, and its key."""
    edits, start = planned.edits, time.perf_counter()
    key = cache_key(*subject, jit.fingerprint(edits, planned.program.isa))
    made = _read_cached(key)
    seconds, cached = {**planned.seconds, "cache": time.perf_counter() - start}, True
    if made is None:
        made, done = _make_copy(planned, kernel, whole)
        seconds, cached = {**seconds, **done.seconds}, done.cached
        SHELF.write(key, pack(made))
    own = program_variables(planned.obj)
    return Copy(made, edits.variables, own, seconds, cached, lambda: edits.notes, program), key


def _make_copy(planned: Planned, kernel: str, whole: bool) -> tuple[Made, Instrumented]:
    from luthier_py.rewrite.pipeline import carry_out

    done = carry_out(planned, keep_going=True, apart=not whole)
    cloned = next((row for row in done.patched.report if row.name == kernel), None)
    return Made(without_managed(done.data), cloned, done.refused, done.bindings), done


def _read_cached(key: str) -> Made | None:
    kept = SHELF.read(key)
    return None if kept is None else unpack(kept)


def _lift_kernel(code: bytes, kernel: str) -> ir.Program:
    return ir.lift(loader.load(code, "code object"), [kernel])


@lru_cache(maxsize=8)
def _digest(code: bytes) -> str:
    return cache_key(code)


def without_managed(data: bytes) -> bytes:
    """The copy's managed variables as plain pointers, which we fill in. HIP's runtime knows managed ones by the names
    of symbols (clr, hip_code_object.cpp) and would give a module that is loaded memory of its own for them."""
    if MANAGED.encode() + b"\0" not in data:
        return data
    from elftools.elf.elffile import ELFFile  # takes long to import, and is rarely needed

    changed = bytearray(data)
    for section in ELFFile(BytesIO(data)).iter_sections("SHT_STRTAB"):
        start, end = section["sh_offset"], section["sh_offset"] + section["sh_size"]
        changed[start:end] = data[start:end].replace(MANAGED.encode() + b"\0", PLAIN.encode() + b"\0")
    return bytes(changed)


@cache
def installation() -> str:
    """Another version makes other copies. A tool may ask anything of this package, so all of it counts."""
    return cache_key(llvmlite_version(), sources())


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
    """Read back what `pack` has written."""
    end = _HEAD_BYTES + int.from_bytes(kept[:_HEAD_BYTES], "little")
    facts = json.loads(kept[_HEAD_BYTES:end])
    cloned, refused = facts["cloned"], facts["refused"]
    if cloned is not None:
        resources = {name: Resources(**cloned[name]) for name in ("before", "after")}
        cloned = ClonedKernel(**{**cloned, **resources})
    refusals = tuple(Refusal(**{**row, "where": Location(**row["where"])}) for row in refused)
    return Made(kept[end:], cloned, refusals, tuple(Binding(*row) for row in facts["bindings"]))


def program_variables(obj: loader.CodeObject) -> tuple[ProgramVariable, ...]:
    """The program's own global variables: no kernel descriptors, no marks of clang's, no initial values of managed
    variables. ``changes`` is true of those in writable segments."""
    found = [s for s in obj.symbols if s.defined and s.type == loader.SymbolType.OBJECT and s.size]
    found = [s for s in found if not s.name.endswith((".kd", MANAGED)) and not s.name.startswith(UNIT_ID)]
    written = [s for s in obj.segments if s.load and s.flags & loader.SegmentFlag.WRITE]
    return tuple(
        ProgramVariable(s.name, s.address, any(w.address <= s.address < w.end for w in written)) for s in found
    )
