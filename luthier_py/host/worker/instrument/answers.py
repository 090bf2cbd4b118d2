"""What the worker answers of a kernel that is launched: whether and how it is instrumented; host/tool/clone.c reads it.

In: a kernel's record, its copy. Out: bytes. Invariant: an answer is one word, what launches have to report, and the
copy if there is one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import astuple
from typing import TYPE_CHECKING

from luthier_py.host.worker.wire import prefix_with_length
from luthier_py.rewrite.tool import Allocations, Channel, LaunchParameter, LaunchVariable, Variable
from luthier_py.rewrite.tool.records.channel import Full

if TYPE_CHECKING:
    from luthier_py.binary.loader import KernelRecord
    from luthier_py.host.worker.instrument.patching import Copy
    from luthier_py.rewrite.inject.cloned import ClonedKernel

NOT_SELECTED, SELECTED, TOLD = (struct.pack("<I", answer) for answer in range(3))
_STATE, _CHANNEL, _PARAMETER, _SIZED, _TABLE = range(5)  # tool.h's enum role


def describe_arguments(record: KernelRecord | None) -> bytes:
    """That launches are to be reported, and where their arguments are."""
    if record is None:
        return SELECTED
    places = [struct.pack("<2I", arg.offset, arg.size) for arg in record.own_args]
    return b"".join([TOLD, struct.pack("<I", len(places)), *places])


def describe_copy(copy: Copy, cloned: ClonedKernel, number: Callable[[Channel], int]) -> bytes:
    """The clone's name, the code object, the tool's variables, those of the program, and what is to be bound."""
    parts = [prefix_with_length(cloned.clone.encode()), prefix_with_length(copy.made.data),
             struct.pack("<I", len(copy.variables))]
    for tool_variable in copy.variables:
        parts += [prefix_with_length(tool_variable.name.encode()), _encode_declaration(tool_variable, number)]
    parts.append(struct.pack("<I", len(copy.program_variables)))
    for variable in copy.program_variables:
        parts += [prefix_with_length(variable.name.encode()), struct.pack("<QI", variable.address, variable.changes)]
    parts.append(struct.pack("<I", len(copy.made.bindings)))
    parts += [struct.pack("<4IQ", *astuple(binding)) for binding in copy.made.bindings]
    return b"".join(parts)


def _encode_declaration(variable: Variable, number: Callable[[Channel], int]) -> bytes:
    """What tool.h's struct declared has behind the name."""
    if not isinstance(variable, Channel):
        roles = {LaunchParameter: _PARAMETER, LaunchVariable: _SIZED, Allocations: _TABLE}
        return struct.pack("<5I", roles.get(type(variable), _STATE), variable.initial is not None, 0, 0, 0)
    drops = variable.full is not Full.WAIT
    return struct.pack("<5I", _CHANNEL, number(variable), variable.capacity, variable.record.slot_bytes, drops)
