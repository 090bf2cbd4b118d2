"""What the maker of an instrumented copy says of it: plain data about addresses, registers and bytes.

In: nothing; `inject` makes these. Out: a Claim, which is believed in nothing but what the tool requested: which hook
runs where, with which arguments, and which registers of the application it may change. Everything else in it is a hint
that is proved or refuted.

Addresses of the original are virtual ones in its code object. In clones they are offsets from the clone's symbol, so a
claim does not depend on where a linker puts things.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from luthier_py.base.records import dataclass, field
from luthier_py.isa import LaneOf, Reg, Space


class Side(Enum):
    """On which side of an instruction a call runs."""

    BEFORE = "before"
    AFTER = "after"
    TAKEN = "taken"
    """On the way of a branch that is taken."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """``size`` bytes of the original's instructions are at offset ``clone`` of the clone without a gap. An instruction
    of another size there is a separate Stretch."""

    original: int
    clone: int
    size: int


@dataclass(frozen=True, slots=True)
class Address:
    """Of a byte of one of the tool's variables."""

    variable: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """What the tool keeps for each wave from kernel entry to kernel exit, where `ClonedFunction.locations` say: a
    variable by its number, or something that the wave starts with, by its name (`proof.initial_state`)."""

    number: int | str


@dataclass(frozen=True, slots=True)
class InCell:
    """``dwords`` lanes of a dword that each lane has of private memory, from lane ``first`` on. ``cell``: the number of
    that dword in what the tool has of it."""

    cell: int
    first: int
    dwords: int = 1


Value: TypeAlias = "Reg | Address | Kept"


@dataclass(frozen=True, slots=True)
class Payload:
    """A compiled hook, with registers as its compiler or author chose them.

    ``params`` and ``results`` are where it expects arguments and leaves results. ``pointers`` says of each parameter
    how many times the hook declares it a pointer: 1 where it may read and write memory through it, 2 where what it
    finds there is a pointer again, 0 for numbers; ``pointed`` how many bytes are there.
    """

    name: str
    code: bytes
    params: tuple[Reg, ...]
    results: tuple[Reg, ...]
    pointers: tuple[int, ...]
    pointed: tuple[int, ...]
    exec: int | None
    """What EXEC is in it; None for what the application has there."""
    absolute: int = 0
    """The same of numbers in the code itself: the hook was given an address that the tool knows."""
    fields: tuple[int, ...] = ()
    """Offsets of literal dwords in ``code`` that each call has its own numbers for."""
    stack: Reg | None = None
    """Where it expects the offset of its stack in each lane's private memory, and how many bytes it has of that."""
    frame_bytes: int = 0
    near: tuple[Space, ...] = ()
    """Of each parameter: LDS or SCRATCH where it is an address there, at which the hook may read; NONE for others.
    Empty where all are."""
    near_numbers: Space = Space.NONE
    """The same of numbers in the code itself."""
    resource: Reg | None = None
    """Where it expects the resource of private memory, where that is in buffers."""
    mode: int | None = None
    """The float bits of MODE that it is compiled for; None for those that the application has."""
    as_written: bool = False
    """Instructions of an author, which run wherever control comes; else it is not to run where no lane is active, if
    that made its scalars others."""


@dataclass(frozen=True, slots=True)
class Call:
    """One insertion. ``arguments`` and ``into`` belong to the payload's ``params`` and ``results``."""

    payload: int
    """Its number in the claim."""
    insertion: int
    """The number that the tool gave it."""
    start: int
    """Of the first instruction of the payload."""
    point: int
    """Address of the original's instruction beside which it runs."""
    side: Side
    arguments: tuple[Value, ...]
    into: tuple[Reg | Kept, ...]
    constants: tuple[int, ...] = ()
    """What the payload's ``fields`` hold."""


@dataclass(frozen=True, slots=True)
class ClonedFunction:
    """A function of the original, by its address, and the symbol of its clone. ``stretches`` ascend; ``calls`` on one
    side of an instruction run in their order here, and those behind it run before those before the next one.

    ``locations``: of each thing that the tool keeps for a wave, by number or name, the scalar registers, or lanes of a
    vector register or of private memory, that its component leaves to it from kernel entry to kernel exit.
    ``private``: bytes of a lane's private memory that the application has none of, and the tool may use."""

    name: str
    original: int
    symbol: str
    wave_size: int
    stretches: tuple[Stretch, ...]
    calls: tuple[Call, ...]
    locations: Mapping[int | str, Reg | LaneOf | InCell]
    instead: Mapping[int, bytes] = field(default_factory=dict)
    """By address in the original, what is to stand there instead of its instruction."""
    private: range = range(0)


@dataclass(frozen=True, slots=True)
class Claim:
    """All of one copy. ``kernels``: original name -> name of its clone. ``variables``: name -> size in bytes.
    ``tables``: names of read-only data of hooks -> its bytes; ``initial``: of variables that are not zero at
    first."""

    functions: tuple[ClonedFunction, ...]
    kernels: Mapping[str, str]
    payloads: tuple[Payload, ...]
    variables: Mapping[str, int]
    tables: Mapping[str, bytes] = field(default_factory=dict)
    initial: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of variables and tables, in bytes."""
        return {**self.variables, **{name: len(data) for name, data in self.tables.items()}}
