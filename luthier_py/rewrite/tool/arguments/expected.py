"""What methods of the Mutator and functions that make arguments are given: the right kind, or an error that says so.

In: what a tool gave. Out: HookError where it is of another kind, with the tool's file and line.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import NoneType
from typing import TypeVar

from luthier_py.base.errors import HookError
from luthier_py.isa.model.registers import Reg, is_register
from luthier_py.rewrite.tool.author import caller

T = TypeVar("T")
TAKEN_BY = {
    "Instr": "before and after take it", "Block": "at_block takes it", "Stretch": "at_stretch takes it",
    "Region": "at_region takes it", "Counted": "at_counted takes it", "Function": "at_entry and at_exit take it",
    "Edge": "at_edge takes it", "CallSite": "before and after take its instr",
    "Loop": "at_loop_entry, at_back_edge and at_loop_exit take it",
    "Kernel": "at_entry and at_exit take it, and kernel.function is its code",
}
"""By a class's name, so that none is imported here."""

NAMES: dict[type, str] = {int: "an integer", str: "a text", float: "a number", NoneType: "None"}


def expect(given: object, *wanted: type[T], name: str = "this") -> T:
    """What was given; refuses another kind. ``name``: of the parameter, where the first one is not meant."""
    if not isinstance(given, wanted):
        kinds, use = " or ".join(NAMES.get(kind, kind.__name__) for kind in wanted), TAKEN_BY.get(type(given).__name__)
        raise HookError(f"{caller()}: {name} needs {kinds}, not {given!r:.60}" + (f"; {use}" if use else ""))
    if isinstance(given, Reg) and not is_register(given):
        raise HookError(f"{caller()}: {name} needs a register, and there is no {given!r:.60}")
    return given


def each(given: object, wanted: type[T], name: str = "this") -> tuple[T, ...]:
    """Several of a kind, in order."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        one = NAMES.get(wanted, wanted.__name__)
        raise HookError(f"{caller()}: {name} needs a list of which each is {one}, not {given!r:.60}")
    return tuple(expect(one, wanted, name=name) for one in given)
