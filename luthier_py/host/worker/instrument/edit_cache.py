"""Cached edits of a tool, found without the program and without recording them again.

In: a key of what is to be instrumented and of what the tool declares that its edits depend on
(rewrite/tool/edit_key.py). Out: CachedEdits, or None. Invariant: edits are not cached if the tool alone can
make their variables or if their notes cannot be pickled; none are found if a file that the tool named by `reads` has
changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from luthier_py.base.records import dataclass
from luthier_py.base.storage import Shelf, digest
from luthier_py.host.worker.instrument.notes import Unkept, pack_notes, unpack_notes
from luthier_py.rewrite.tool import LAUNCH_NUMBER, Allocations, Channel, LaunchParameter, LaunchVariable, Tool, Variable
from luthier_py.rewrite.tool.hooks.printing import PRINTED
from luthier_py.rewrite.tool.hooks.types import NUMBERS, Scalar

if TYPE_CHECKING:
    from luthier_py.program.ir import Program

SHELF = Shelf("cached_edits", 64 << 20)
_TYPES = {str(type): type for type in NUMBERS}


@dataclass(frozen=True, slots=True)
class ProgramVariable:
    """A variable of the program, by its address in the code object."""

    name: str
    address: int
    changes: bool


@dataclass(frozen=True, slots=True)
class CachedEdits:
    """``copy``: the key of what was made."""

    copy: str
    variables: tuple[Variable, ...]
    program_variables: tuple[ProgramVariable, ...]
    notes: Callable[[], Any]


def _map_variables(tool: Tool) -> dict[str, Variable]:
    known = *tool.variables, *tool.channels, *tool.launch_parameters, LAUNCH_NUMBER, PRINTED
    return {variable.name: variable for variable in known}


def _variable(name: str, type: str, length: int | None, initial: str) -> Variable:
    made = Variable(_TYPES[type], length, name=name)
    made.initial = bytes.fromhex(initial) or None
    return made


def find_cached_edits(key: str, tool: Tool, program: Callable[[], Program]) -> CachedEdits | None:
    """The cached edits of a key, or None. ``program`` is called when notes that name it are read."""
    kept = SHELF.read(key)
    if kept is None:
        return None
    head, _, notes = kept.partition(b"\n")
    facts = json.loads(head)
    if not _agree(tool.declared_files, facts["files"]):
        return None
    declared = _map_variables(tool)
    variables = {
        name: declared.get(name) or _variable(name, type, length, initial)
        for name, type, length, initial in facts["variables"]
    }
    program_variables = tuple(ProgramVariable(*row) for row in facts["program_variables"])
    with suppress(Unkept):
        noted = unpack_notes(notes, program, tool, variables)
        return CachedEdits(facts["copy"], tuple(variables.values()), program_variables, noted)
    return None


def _agree(named: Mapping[str, str], kept: Mapping[str, str]) -> bool:
    """Whether the ``kept`` files are unchanged and the tool has ``named`` no other file since."""
    return named.keys() <= kept.keys() and all((named.get(path) or digest(path)) == known
                                               for path, known in kept.items())


def remember(key: str, tool: Tool, program: Program, known: CachedEdits) -> None:
    """Cache the edits where the invariant allows it."""
    variables = {variable.name: variable for variable in known.variables}
    declared = _map_variables(tool)
    if any(declared.get(name, variable) is not variable for name, variable in variables.items()):
        return
    special = Allocations, Channel, LaunchParameter, LaunchVariable
    own = {name for name, variable in variables.items()
           if isinstance(variable, special) or not isinstance(variable.type, Scalar)}
    if own - declared.keys():
        return  # what it is is known to the tool alone
    try:
        notes = pack_notes(known.notes(), program, tool, variables)
    except Unkept:
        return
    facts = {
        "files": dict(tool.declared_files), "copy": known.copy,
        "variables": [(v.name, str(v.type), v.length, (v.initial or b"").hex()) for v in known.variables],
        "program_variables": [astuple(variable) for variable in known.program_variables],
    }  # fmt: skip
    SHELF.write(key, json.dumps(facts).encode() + b"\n" + notes)
