"""The clone: an instrumented function between lift and bytes, as the passes of this room hand it on.

A clone is a sequence of items: Slices of the application's instructions that are unchanged, Singles (the
application's that name something which moves, and what is inserted), Runs of a hook's instructions, and Labels before
what is named. Nothing here knows an address of the copy, so items can be added anywhere until `relax`. Invariant
(`verify`): the application's instructions, or their replacements, are in their order, each once; all that is not the
application's carries the Edit that it came from; every Label that is named occurs once. Items never change: a pass
makes a new clone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from luthier_py.base.records import dataclass, replace
from luthier_py.binary.patch import FixupKind
from luthier_py.isa import Inst, InstructionSet, LaneOf, Reg
from luthier_py.isa.build import add, add_with_carry
from luthier_py.isa.columns import Columns
from luthier_py.program.ir import Instr
from luthier_py.program.ir.model import Instrs
from luthier_py.rewrite.tool import Entry, Place, WaveVariable


@dataclass(frozen=True, slots=True)
class PrivateCell:
    """A dword of each lane's private memory, behind the application's own. ``resource``: by which it is reached, where
    that is in buffers."""

    offset_bytes: int
    resource: Reg | None = None

    def __str__(self) -> str:
        return f"private memory at {self.offset_bytes}"


SpillSlot: TypeAlias = "Reg | PrivateCell"
"""Where a vector register is put aside: an accumulator, or private memory."""


@dataclass(frozen=True, slots=True)
class SpilledLocation:
    """As LaneOf, where no vector register is left for good: a call that wants it brings it into one from ``slot``."""

    slot: SpillSlot
    first: int
    dwords: int = 1

    def lanes(self, spill_vgpr: Reg) -> LaneOf:
        """Where it is while ``spill_vgpr`` holds all of the slot."""
        return LaneOf(spill_vgpr, self.first, self.dwords)

    def __str__(self) -> str:
        return str(self.lanes(self.slot)) if isinstance(self.slot, Reg) else (
            f"{self.slot}, lanes {self.first}:{self.first + self.dwords - 1}")


AssignedLocation: TypeAlias = "Reg | LaneOf | SpilledLocation"
"""Where something lives from kernel entry to kernel exit."""


class Own(Enum):
    """A wave's persistent values that no tool requests: hooks' code needs them."""

    PRIVATE_RESOURCE = "private_resource"
    """By which buffer instructions reach the wave's private memory."""

    @property
    def dwords(self) -> int:
        return 4


PersistentValue: TypeAlias = "WaveVariable | Entry | Own"
"""What has a home."""


def dwords_of(persistent: PersistentValue) -> int:
    """How many scalar registers, or lanes of a vector register, the value takes."""
    return persistent.dwords if isinstance(persistent, Own) else persistent.type.dwords


def part(reg: Reg, offset: int, dwords: int = 1) -> Reg:
    """``dwords`` registers of ``reg``, from number ``offset`` in it on."""
    return Reg(reg.file, reg.index + offset, dwords)


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """A point that branches and addresses name; ``address`` is that of the original's block which begins there."""

    address: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """The application's instructions at the places ``start`` to ``stop`` of ``code``, which follow each other there."""

    code: Columns
    start: int
    stop: int

    @property
    def pc(self) -> int:
        """Original address of the first instruction."""
        return self.code.bounds[0][self.start]

    @property
    def end(self) -> int:
        """Original address behind the last instruction."""
        return self.code.bounds[1][self.stop - 1]

    @property
    def size_bytes(self) -> int:
        """Bytes of the instructions, in the original as in the copy."""
        starts, ends = self.code.bounds
        return ends[self.stop - 1] - starts[self.start]

    def inst(self, at: int) -> Inst:
        """The instruction at the place ``at`` of ``code``, between ``start`` and ``stop``."""
        return self.code.inst(at)

    @property
    def instrs(self) -> Instrs:
        """Its instructions, as places of the original."""
        return Instrs(self.code, self.start, self.stop)

    def place(self, pc: int) -> int:
        """The place of the first instruction from an address on."""
        return bisect_left(self.code.bounds[0], pc, self.start, self.stop)

    def cut(self, at: int) -> tuple[Slice, ...]:
        """The instructions before a place, and those from it on; neither is empty."""
        parts = replace(self, stop=at), replace(self, start=at)
        return tuple(part for part in parts if part.start < part.stop)


@dataclass(frozen=True, slots=True)
class Referent:
    """What a PC-relative literal refers to: exactly one field is set."""

    address: int | None = None    # an address of the original object: data, or an original function
    function: int | None = None   # the clone of the function at this original address
    label: Label | None = None    # a point of this clone
    variable: str | None = None   # a tool variable
    offset: int = 0               # bytes behind that


@dataclass(frozen=True, slots=True)
class Reference:
    """A literal is ``target`` minus the address of ``base``, or a half of that."""

    kind: FixupKind
    target: Referent
    base: Label


@dataclass(frozen=True, slots=True)
class Allotted:
    """What a call got: registers by whose ``policy``; where its ``arguments`` are when it begins, its ``results`` when
    it ends; what it ``saved`` and where, and what was ``spilled`` for it and where to."""

    policy: str
    arguments: tuple[Reg, ...]
    results: tuple[Reg, ...]
    saved: tuple[tuple[Reg, Reg], ...]
    spilled: tuple[tuple[Reg, Reg | LaneOf | PrivateCell], ...]


class Cause(Enum):
    """Why something is inserted."""

    PROLOGUE = "prologue"  # at the kernel's entry
    CALL = "call"          # of a hook
    EDGE = "edge"          # an edge with separate code continues
    INSTEAD = "instead"    # of one of the application's instructions
    LOOKUP = "lookup"      # of what an indirect call reaches
    WAIT = "wait"          # between the application's and inserted code
    ISLAND = "island"      # of branches that do not reach


@dataclass(frozen=True, slots=True)
class Edit:
    """What an inserted instruction belongs to; calls are numbered, and stand at an instruction of the original."""

    cause: Cause
    number: int = 0
    name: str = ""
    point: int = 0
    place: Place = Place.BEFORE


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Instructions ``start`` to ``stop`` of a hook, which follow each other there."""

    insts: tuple[Inst, ...]
    start: int
    stop: int
    edit: Edit

    @property
    def size_bytes(self) -> int:
        """Bytes of the instructions."""
        return sum([inst.size_bytes for inst in self.insts[self.start : self.stop]])

    def inst(self, at: int) -> Inst:
        """The hook's instruction of this number, between ``start`` and ``stop``."""
        return self.insts[at]

    def cut(self, at: int) -> tuple[Run, ...]:
        """As of a Slice."""
        parts = replace(self, stop=at), replace(self, start=at)
        return tuple(part for part in parts if part.start < part.stop)


@dataclass(frozen=True, slots=True, eq=False)
class Single:
    """One instruction: the application's ``origin``, or inserted by ``edit``, or both: what replaces ``origin``.
    Of a hook's ``payload`` only branches."""

    inst: Inst
    origin: Instr | None = None
    edit: Edit | None = None
    payload: bool = False
    jump: Label | None = None
    reference: Reference | None = None

    @property
    def inserted(self) -> bool:
        """Whether it is inserted code alone: it neither is nor replaces an instruction of the application."""
        return self.origin is None

    @property
    def instead(self) -> bool:
        """Whether it replaces another one."""
        return self.origin is not None and self.edit is not None

    @property
    def size_bytes(self) -> int:
        """Bytes of the instruction, its literal included."""
        return self.inst.size_bytes


Item: TypeAlias = "Label | Slice | Run | Single"


@dataclass(frozen=True, slots=True, eq=False)
class Clone:
    """The clone of the function at ``original``; ``labels`` are those of its blocks, by original address."""

    original: int
    name: str
    items: tuple[Item, ...]
    labels: Mapping[int, Label]

    @property
    def codes(self) -> set[Columns]:
        """What its slices are of: all of it is in the clone."""
        return {item.code for item in self.items if isinstance(item, Slice)}

    @property
    def rewritten(self) -> bool:
        """Whether other instructions stand for some of the application's."""
        return any(isinstance(item, Single) and item.instead for item in self.items)

    @property
    def apart(self) -> set[tuple[Inst, bool]]:
        """Instructions that are in no slice, and whether they are inserted."""
        singles = {(item.inst, item.inserted) for item in self.items if isinstance(item, Single)}
        runs = {id(item.insts): item.insts for item in self.items if isinstance(item, Run)}
        return singles | {(inst, True) for insts in runs.values() for inst in insts}


def address_of(isa: InstructionSet, edit: Edit, to: Reg, pc: Reg, base: Label, target: Referent) -> list[Single]:
    """``to`` := the address of ``target``, where ``pc`` is the address of ``base``; destroys SCC."""
    return [
        Single(make(isa, part(to, offset), part(pc, offset)), edit=edit, reference=Reference(half, target, base))
        for make, offset, half in ((add, 0, FixupKind.REL32_LO), (add_with_carry, 1, FixupKind.REL32_HI))
    ]
