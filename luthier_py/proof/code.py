"""Machine code as the proof sees it: instructions by address, each different one decoded once.

In: bytes and the ranges of them that are instructions. Out: Code. Invariant: every byte of the ranges belongs to one
instruction, and what does not decode is refused.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from itertools import chain, islice, repeat
from operator import or_

import numpy as np

from luthier_py.base.errors import CheckFailed, Location
from luthier_py.base.records import dataclass
from luthier_py.isa import Inst, InstructionSet, LaneOf, OpFlag, Reg, RegSet
from luthier_py.isa.columns import Columns, read_columns
from luthier_py.isa.encoding.scan import Array
from luthier_py.proof.claim import InCell

CELLS = 2560
"""Where numbers of dwords of the tool's private memory begin: behind those of all registers."""
LANES, MOST_LANES = 4096, 64
FILLER = 0xBF800000
"""s_nop 0, as all targets have it (MI200 ISA, 13.1.5; RDNA4 ISA, 15.1.5: SOPP, operation 0)."""


def number(place: Reg | LaneOf | InCell) -> int:
    """The number of its first dword. Lanes that hold scalars have numbers of their own, behind those of registers and
    cells."""
    if isinstance(place, Reg):
        return place.number
    return lane_number(whole_number(place), place.first)


def whole_number(place: LaneOf | InCell) -> int:
    """Of that which the lanes are of."""
    return number(place.reg) if isinstance(place, LaneOf) else CELLS + place.cell


def lane_number(register: int, lane: int) -> int:
    """The number of one lane of ``register``, itself a number (of a vector register, or of a dword of private
    memory)."""
    return LANES + register * MOST_LANES + lane


def bits_of(place: Reg | LaneOf | InCell) -> int:
    """The numbers of all of its dwords, as bits."""
    return (1 << place.dwords) - 1 << number(place)


def vector_of(number: int) -> tuple[int, int]:
    """The register of a lane that ``number`` names, and the lane's number in it."""
    return divmod(number - LANES, MOST_LANES)


def describe_registers(bits: int) -> str:
    """Registers and lanes, for messages."""
    texts = [_describe_register(each) for each in ones(bits) if each >= CELLS]
    return " ".join([*map(str, RegSet(bits & (1 << CELLS) - 1).ranges()), *texts])


def _describe_register(number: int) -> str:
    if number < LANES:
        return f"dword {number - CELLS} of private memory" if number >= CELLS else str(RegSet(1 << number))
    vector, lane = vector_of(number)
    return f"{_describe_register(vector)} lane {lane}"


def ones(bits: int) -> list[int]:
    """Numbers of the bits that are set, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


class Distinct:
    """Different instructions of functions, and what was asked of each (mutable: remembers the answers)."""

    def __init__(self, insts: Sequence[Inst]) -> None:
        self.insts = insts
        self._matching: dict[tuple[object, ...], Array] = {}

    def match(self, said: Callable[..., object], *given: object) -> Array:
        """Of which ``said`` says so, called with the instruction and what is ``given``."""
        key = said, *given
        if key not in self._matching:
            answers = map(said, self.insts, *map(repeat, given))
            self._matching[key] = np.fromiter(map(bool, answers), bool, len(self.insts))
        return self._matching[key]

    @cached_property
    def flags(self) -> Array:
        """Bits of OpFlag."""
        return np.array([inst.op.flags.value for inst in self.insts], np.int64)

    @cached_property
    def named(self) -> list[int]:
        """Registers that each names, as bits."""
        return [inst.named.bits for inst in self.insts]


@dataclass(frozen=True, eq=False)
class Code:
    """Instructions in order of addresses, and the bytes that are there, ``sizes`` of each. ``kinds`` says of each which
    of ``insts`` it is, or is to be: first those with numbers ``used`` of ``distinct``, which is of all functions."""

    isa: InstructionSet
    data: bytes
    at: Array
    sizes: Array
    kind: Array
    insts: list[Inst]
    distinct: Distinct
    used: Array

    def __len__(self) -> int:
        return len(self.at)

    @cached_property
    def pcs(self) -> list[int]:
        """Their addresses."""
        found: list[int] = self.at.tolist()
        return found

    @cached_property
    def kinds(self) -> list[int]:
        """``kind`` as a list, which is faster to index."""
        found: list[int] = self.kind.tolist()
        return found

    def inst(self, at: int) -> Inst:
        """Instruction number ``at``; of instructions with the same bytes there is one object."""
        return self.insts[self.kinds[at]]

    def end(self, at: int) -> int:
        """Address behind an instruction."""
        return self.pcs[at] + int(self.sizes[at])

    def find(self, pc: int) -> int | None:
        """The number of the instruction at ``pc``."""
        at = bisect_left(self.pcs, pc)
        return at if at < len(self.pcs) and self.pcs[at] == pc else None

    def match(self, said: Callable[..., object], *given: object) -> Array:
        """Of which of ``insts`` ``said`` says so: see `Distinct.match`."""
        found = self.distinct.match(said, *given)[self.used]
        more = [bool(said(inst, *given)) for inst in self.insts[len(self.used):]]
        return np.append(found, more) if more else found

    def those(self, said: Callable[..., object], *given: object) -> list[int]:
        """Numbers of the instructions of which ``said`` says so."""
        found: list[int] = np.flatnonzero(self.match(said, *given)[self.kind]).tolist()
        return found

    @cached_property
    def named(self) -> int:
        """Registers that its instructions name, as bits."""
        known = self.distinct.named
        more = (inst.named.bits for inst in self.insts[len(self.used):])
        return reduce(or_, more, reduce(or_, map(known.__getitem__, self.used.tolist()), 0))

    @cached_property
    def _flags(self) -> Array:
        """Bits of OpFlag of ``insts``."""
        more = [inst.op.flags.value for inst in self.insts[len(self.used):]]
        return np.append(self.distinct.flags[self.used], np.array(more, np.int64))

    def find_flagged(self, flags: OpFlag) -> list[int]:
        """Numbers of the instructions that have any of ``flags``."""
        found: list[int] = np.flatnonzero((self._flags & flags.value != 0)[self.kind]).tolist()
        return found

    def location(self, name: str, at: int) -> Location:
        """The place of instruction number ``at`` of the function ``name``, with its text, for errors."""
        return Location(name, self.pcs[at], self.isa.text(self.inst(at)))


Ranges = Sequence[tuple[int, int]]  # address and size, ascending


def decode_functions(
    isa: InstructionSet, functions: Sequence[tuple[str, Ranges]], read: Callable[[int, int], bytes]
) -> list[Code]:
    """The instructions of functions, each with its name; what several have is decoded once for all of them."""
    pieces = [[(start, read(start, size)) for start, size in ranges] for _, ranges in functions]
    columns = read_columns(isa, list(chain.from_iterable(pieces)))
    rest = iter(columns)
    several = [list(islice(rest, len(own))) for own in pieces]
    for (name, _), own, each in zip(functions, pieces, several, strict=True):
        _check_whole(name, own, each)
    kinds = np.unique(np.concatenate([each.kinds for each in columns]))
    distinct = Distinct(list(map(columns[0].distinct.inst, kinds.tolist())))
    return [_join_pieces(isa, own, each, kinds, distinct) for own, each in zip(pieces, several, strict=True)]


def _check_whole(name: str, pieces: Sequence[tuple[int, bytes]], columns: Sequence[Columns]) -> None:
    for (start, data), each in zip(pieces, columns, strict=True):
        bad = each.pcs[each.rows < 0].tolist()
        if len(each) and int(each.pcs[-1]) + each.size(-1) != start + len(data):
            bad.append(int(each.pcs[-1]))
        if bad or len(data) % 4 or not len(each):
            raise CheckFailed("no instruction is here", Location(name, bad[0] if bad else start))


def _join_pieces(isa: InstructionSet, pieces: Sequence[tuple[int, bytes]], columns: Sequence[Columns], kinds: Array,
                 distinct: Distinct) -> Code:
    """``kinds``: of the columns, those that ``distinct`` has, ascending."""
    own, kind = np.unique(np.concatenate([each.kinds for each in columns]), return_inverse=True)
    used = np.searchsorted(kinds, own)
    return Code(isa, b"".join(data for _, data in pieces), np.concatenate([each.pcs for each in columns]),
                columns[0].distinct.sizes[own][kind], kind, [distinct.insts[each] for each in used.tolist()], distinct,
                used)


def within(numbers: list[int], span: range) -> list[int]:
    """Those of ascending ``numbers`` that lie in ``span``."""
    return numbers[bisect_left(numbers, span.start):bisect_left(numbers, span.stop)]


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """One function: its blocks as ranges of instruction numbers, ascending, and for each the blocks that follow it in
    the function, calls stepped over, the target of a taken branch first."""

    name: str
    address: int
    code: Code
    kernel: bool
    entries: tuple[int, ...]                # numbers of blocks
    blocks: tuple[range, ...]
    following: tuple[tuple[int, ...], ...]

    def block_of(self, at: int) -> int:
        """The number of the block that instruction number ``at`` lies in."""
        return bisect_right(self.blocks, at, key=lambda block: block.start) - 1
