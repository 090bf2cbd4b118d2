"""Instrumented code before it has addresses.

A cloned function is a sequence of items: the application's own instructions (``origin`` set, bytes
re-used) and inserted ones. Branches name the original block they go to; PC-relative literals name
what they refer to. Nothing here knows an address, so items can be added anywhere until `relax`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from luthier_py.inject.patch import Chunk, FixupKind, NewKernel, NewVariable
from luthier_py.ir import Function, Instr
from luthier_py.isa import Inst, InstructionSet, Reg, RegSet
from luthier_py.proof.claim import Claim
from luthier_py.tool import Refusal

PLACEHOLDER = 0x7FFFFFFF  # forces a literal; link writes the real one
PLACEHOLDER64 = 0x7FFFFFFF_7FFFFFFF


@lru_cache(maxsize=1 << 16, typed=True)
def made(isa: InstructionSet, mnemonic: str, *operands: Reg | int) -> Inst:
    """An instruction to insert; those that are equal are shared."""
    return isa.make(mnemonic, *operands)


def part(reg: Reg, offset: int, dwords: int = 1) -> Reg:
    return Reg(reg.file, reg.index + offset, dwords)


@dataclass(frozen=True, slots=True)
class Target:
    """What a PC-relative literal refers to: exactly one field is set."""

    address: int | None = None    # an address of the original object: data, or an original function
    function: int | None = None   # the clone of the function at this original address
    block: int | None = None      # the clone of this block, in the same function
    variable: str | None = None   # a tool variable
    offset: int = 0               # bytes behind that


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """``item``'s literal is ``target`` minus the address after ``base``, or a half of that."""

    kind: FixupKind
    target: Target
    base: Item


@dataclass(slots=True, eq=False)
class Item:
    """One instruction of a clone; compared by identity. While a clone is being built ``jump`` changes, and ``inst``
    where a group is dissolved."""

    inst: Inst
    origin: Instr | None = None        # the application's instruction that this one stands for
    jump: int | Item | None = None     # a direct branch: original block address, or another item
    reference: Reference | None = None

    @property
    def inserted(self) -> bool:
        return self.origin is None


def distance_added(isa: InstructionSet, to: Reg, pc: Reg, getpc: Item, target: Target) -> list[Item]:
    """``to`` := the address of ``target``, where ``getpc`` has put the PC into ``pc``; destroys SCC."""
    return [
        Item(made(isa, op, part(to, offset), part(pc, offset), PLACEHOLDER), reference=Reference(half, target, getpc))
        for op, offset, half in (("s_add_u32", 0, FixupKind.REL32_LO), ("s_addc_u32", 1, FixupKind.REL32_HI))
    ]


@dataclass(slots=True)
class Clone:
    """A function being cloned. ``labels`` maps original block addresses to their first item."""

    source: Function
    name: str
    items: list[Item]
    labels: dict[int, Item]


@dataclass(frozen=True, slots=True)
class SourceMap:
    """Which bytes of a chunk stand for which original instruction; offsets count from the chunk's start."""

    function: Function
    chunk: str
    instructions: dict[Instr, int]
    labels: dict[int, int]         # original block address -> offset of the first item of its clone


@dataclass(frozen=True, slots=True)
class Declared:
    """Registers of the application that insertions write on purpose, by the instruction that they stand at."""

    before: dict[Instr, RegSet]
    after: dict[Instr, RegSet]


@dataclass(frozen=True, slots=True)
class Resources:
    """Registers of one kernel, as its descriptor counts them; ``waves`` is the occupancy per SIMD."""

    sgprs: int
    vgprs: int
    waves: int


@dataclass(frozen=True, slots=True)
class ClonedKernel:
    """What became of one kernel: for reports."""

    name: str
    clone: str
    sites: int
    before: Resources
    after: Resources
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class Patched:
    """What `link` needs, and what reports and the checker want to know."""

    chunks: tuple[Chunk, ...]
    kernels: tuple[NewKernel, ...]
    variables: tuple[NewVariable, ...]
    maps: tuple[SourceMap, ...]
    declared: Declared
    claim: Claim
    report: tuple[ClonedKernel, ...]
    refused: tuple[Refusal, ...] = ()
