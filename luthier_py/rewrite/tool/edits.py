"""Recorded edits: what a tool requested, as data.

A Mutator makes these; jit compiles their hooks and inject applies them. Invariant: every argument and result
has been checked against the hook's signature, and constants are values of their parameter's type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, IntEnum
from functools import cached_property
from typing import Any, TypeAlias, overload

from luthier_py.base.errors import Location
from luthier_py.base.records import dataclass
from luthier_py.isa import Inst, Reg, RegSet
from luthier_py.program.ir import Instr
from luthier_py.rewrite.tool.arguments.entry import Entry
from luthier_py.rewrite.tool.hooks.hook import Hook
from luthier_py.rewrite.tool.variables import Element, LookupTable, Variable, WaveVariable

RuntimeArg: TypeAlias = "Reg | Variable | Element | WaveVariable | Entry"
Constant: TypeAlias = "int | float | bool"
Arg: TypeAlias = "RuntimeArg | Constant"
Destination: TypeAlias = "Reg | WaveVariable"


class Place(Enum):
    """Which side of an instruction."""

    BEFORE = "before"
    AFTER = "after"  # of a conditional branch: on the way where it is not taken
    TAKEN = "taken"  # on the way of a conditional branch where it is


class Field(Enum):
    """A constant that is not compiled in: each call writes its own number into the code."""

    FIELD = "field"


class Turn(IntEnum):
    """Which calls at one point run first."""

    ENTRY = 0   # a wave or function begins
    ARRIVE = 1  # control has come over an edge
    BODY = 2    # all others
    INSTEAD = 3  # a hook takes the place of the instruction
    LEAVE = 4   # control takes an edge
    EXIT = 5    # the wave or function ends


@dataclass(frozen=True, slots=True)
class Before(Sequence[tuple[Instr, Place]]):
    """The places before some instructions; each is made when it is looked at, since few are."""

    pieces: tuple[Sequence[Instr], ...]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    @overload
    def __getitem__(self, key: int) -> tuple[Instr, Place]: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[tuple[Instr, Place], ...]: ...
    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return tuple(self)[key]
        at = key if key >= 0 else key + len(self)
        for piece in self.pieces:
            if 0 <= at < len(piece):
                return piece[at], Place.BEFORE
            at -= len(piece)
        raise IndexError(key)

    def __iter__(self) -> Iterator[tuple[Instr, Place]]:
        return ((instr, Place.BEFORE) for piece in self.pieces for instr in piece)


@dataclass(frozen=True, eq=False)
class Insertion:
    """One call of a hook. ``places``: where it may go; more than one when the tool leaves the choice open.

    Calls at one point run by ``turn``; those of one turn by ``priority``, the highest first; the others by ``order``,
    in which they were recorded.
    """

    places: Sequence[tuple[Instr, Place]]
    hook: Hook
    args: tuple[Arg, ...]              # one per parameter
    into: tuple[Destination, ...]      # one per result
    order: int
    turn: Turn = Turn.BODY
    priority: int = 0
    fields: frozenset[int] = frozenset()  # parameters whose constants are not compiled in

    @property
    def rank(self) -> tuple[Turn, int, int]:
        """What the calls at one point are sorted by."""
        return self.turn, -self.priority, self.order

    @cached_property
    def instr(self) -> Instr:
        """The place that was named, or the first of its range."""
        return self.places[0][0]

    @property
    def runtime_args(self) -> tuple[RuntimeArg, ...]:
        """Arguments that are not compile-time constants, in order."""
        return tuple(arg for arg in self.args if isinstance(arg, (Reg, Variable, Element, WaveVariable, Entry)))

    @property
    def constants(self) -> tuple[Constant | Field | None, ...]:
        """What is compiled, one per parameter; None where the argument is known only at run time."""
        return tuple(
            Field.FIELD if position in self.fields else arg if isinstance(arg, (int, float)) else None
            for position, arg in enumerate(self.args)
        )


@dataclass(frozen=True, slots=True)
class Instead:
    """A replacement of one of the application's instructions."""

    instr: Instr
    inst: Inst


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kernel that a tool requested and that cannot be edited."""

    kernel: str
    reason: str
    where: Location


@dataclass(frozen=True, slots=True)
class Edits:
    """Everything that one tool wants of one program."""

    insertions: tuple[Insertion, ...]
    variables: tuple[Variable, ...]
    wave_variables: tuple[WaveVariable, ...]
    instead: tuple[Instead, ...] = ()
    refused: tuple[Refusal, ...] = ()
    tables: tuple[LookupTable, ...] = ()
    notes: Any = None  # what the tool wants to know of this program when it reports
    tools: tuple[tuple[str, int], ...] = ()  # that put these together, each with the order of its first call

    @property
    def standing(self) -> dict[Instr, Inst]:
        """Replacements of some instructions of the application."""
        return {each.instr: each.inst for each in self.instead}

    @property
    def written(self) -> RegSet:
        """Registers of the application that hooks get their results into."""
        return RegSet.of(*(to for insertion in self.insertions for to in insertion.into if isinstance(to, Reg)))

    @property
    def sites(self) -> int:
        """How many edits there are: a hook in the place of an instruction is one."""
        return len(self.insertions) + len(self.instead) - sum(i.turn is Turn.INSTEAD for i in self.insertions)

    def by_tool(self, insertions: Iterable[Insertion]) -> dict[str, list[Insertion]]:
        """The calls of each of several tools that has any."""
        found: dict[str, list[Insertion]] = {}
        for insertion in insertions:
            name = next((name for name, first in reversed(self.tools) if first <= insertion.order), "")
            found.setdefault(name, []).append(insertion)
        return {name: found[name] for name, _ in self.tools if name in found}

    def reads(self, place: Place) -> dict[Instr, RegSet]:
        """Registers of the application that hooks take as arguments on one side of instructions."""
        found: dict[Instr, RegSet] = {}
        for insertion in self.insertions:
            regs = [arg for arg in insertion.args if isinstance(arg, Reg)]
            for instr, side in insertion.places if regs else ():
                if side is place:
                    found[instr] = found.get(instr, RegSet()) | RegSet.of(*regs)
        return found
