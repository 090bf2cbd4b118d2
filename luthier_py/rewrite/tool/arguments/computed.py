"""Arguments that are computed where a hook is called: effective addresses, parts of registers, ids of work-items.

In: a device function, and what it is given: registers, constants, variables, or other computed arguments. Out: a
Computed, which a tool passes to a hook as any other argument. Invariant: it is data; nothing of a program is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, filterfalse
from typing import TYPE_CHECKING, Any

from luthier_py.base.errors import HookError
from luthier_py.base.records import dataclass
from luthier_py.isa import EXEC, Reg, RegFile, RegSet, Space
from luthier_py.rewrite.tool.author import caller
from luthier_py.rewrite.tool.edits import Place
from luthier_py.rewrite.tool.hooks.hook import Device, Parameter
from luthier_py.rewrite.tool.hooks.types import Struct

if TYPE_CHECKING:
    from luthier_py.program.ir import Instr


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that is computed where a hook is called, in the lanes that the hook runs in: ``function`` of ``inputs``,
    which are as the arguments of a hook."""

    function: Device
    inputs: tuple[object, ...]
    name: str
    """What it is, in messages."""
    instr: Instr | None = None
    """The instruction that it is about."""
    side: Place | None = None
    """Where it may be taken only: behind ``instr``, which makes it."""
    space: Space = Space.GLOBAL
    """The memory that it is an address in, if it is one."""

    @property
    def result(self) -> Parameter:
        """Its type, and whether lanes have their own."""
        return self.function.signature.results[0]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Held:
    """What a register holds at an instruction."""

    reg: Reg
    name: str
    instr: Instr
    side: Place | None = None
    """As of Computed."""

    def __str__(self) -> str:
        return self.name


def computed(function: Callable[..., Any], *inputs: object) -> Computed:
    """What the @device function ``function`` makes of ``inputs`` where a hook is called, as an argument of the hook.

    ``inputs``: one per parameter; what a hook can be given. HookError where their number is another one, or the
    function has not one result.
    """
    if not isinstance(function, Device):
        raise HookError(f"{caller()}: computed needs a function marked with @device, not {function!r:.60}")
    want, results = len(function.signature.parameters), len(function.signature.results)
    if len(inputs) != want:
        raise HookError(f"{caller()}: {function.name} takes {want} inputs, {len(inputs)} given")
    if results != 1:
        raise HookError(f"{caller()}: {function.name} has {results} results; an argument is one value")
    if any(isinstance(each.type, Struct) for each in (*function.signature.parameters, *function.signature.results)):
        raise HookError(f"{caller()}: {function.name} takes or gives a structure; an argument is a number or a pointer")
    return Computed(function, inputs, function.name)


def about(
    instr: Instr, name: str, function: Callable[..., Any], *inputs: object, side: Place | None = None,
    space: Space = Space.GLOBAL,
) -> Computed:
    """An argument that is about an instruction."""
    assert isinstance(function, Device)
    return Computed(function, inputs, f"{name} of {instr.op.mnemonic}", instr, side, space)


def registers(given: object) -> Iterator[Reg]:
    """The registers that an argument is made of."""
    if isinstance(given, Computed):
        for each in given.inputs:
            yield from registers(each)
    else:
        reg = getattr(given, "reg", given)
        if isinstance(reg, Reg):
            yield reg


def asks_exec(given: Iterable[object]) -> bool:
    """Whether any of some arguments is made of which lanes are active."""
    return any(map(_is_exec, chain.from_iterable(map(registers, given))))


def of_a_place(given: Iterable[object]) -> Iterator[Reg]:
    """Registers that arguments are made of whose values change from place to place, EXEC left out."""
    return filterfalse(_is_exec, chain.from_iterable(map(registers, given)))


def _is_exec(reg: Reg) -> bool:
    return reg.file is RegFile.SGPR and reg.index == EXEC


def out_of_place(given: Iterable[object], instr: Instr, place: Place) -> str:
    """Why one of some arguments cannot be taken there, or nothing."""
    found = (_explain_misplacement(each, instr, place) for each in given if isinstance(each, (Computed, Held)))
    return next(filter(None, found), "")


def _explain_misplacement(given: Computed | Held, instr: Instr, place: Place) -> str:
    if given.instr == instr and given.side is Place.AFTER and place is Place.BEFORE:
        return f"{given} is there after the instruction only; ask for it there"
    made_of = RegSet.of(*registers(given))
    lost = instr.inst.writes & made_of if place is Place.AFTER and given.side is not Place.AFTER else RegSet()
    if given.instr == instr and lost:
        return f"the instruction overwrites {lost}, which {given} is made of; ask for it before the instruction"
    return out_of_place(given.inputs, instr, place) if isinstance(given, Computed) else ""
