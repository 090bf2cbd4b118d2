"""Machine code as the proof sees it: instructions by address, each different one decoded once.

In: bytes and the ranges of them that are instructions. Out: Code. Invariant: every byte of the ranges belongs to one
instruction, and what does not decode is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from luthier_py.errors import CheckFailed, Location
from luthier_py.isa import Inst, InstructionSet, OpFlag, RegSet

VECTORS = 256
"""Number of v0 where registers of all files are numbered in a row, as bits of one integer."""
ACCUMULATORS = VECTORS + 1024
SCALARS = (1 << VECTORS) - 1


def bits_of(regs: RegSet) -> int:
    return regs.sgpr | regs.vgpr << VECTORS | regs.agpr << ACCUMULATORS


def registers_of(bits: int) -> RegSet:
    return RegSet(bits & SCALARS, bits >> VECTORS & (1 << ACCUMULATORS - VECTORS) - 1, bits >> ACCUMULATORS)


def ones(bits: int) -> list[int]:
    """Numbers of the bits that are set, ascending."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """Instructions in order of addresses. ``kinds`` says of each which of ``insts`` it is."""

    isa: InstructionSet
    pcs: list[int]
    kinds: list[int]
    insts: list[Inst]

    def __len__(self) -> int:
        return len(self.pcs)

    def inst(self, at: int) -> Inst:
        return self.insts[self.kinds[at]]

    def end(self, at: int) -> int:
        """Address behind an instruction."""
        return self.pcs[at] + self.inst(at).size_bytes

    def find(self, pc: int) -> int | None:
        """The number of the instruction at ``pc``."""
        at = bisect_left(self.pcs, pc)
        return at if at < len(self.pcs) and self.pcs[at] == pc else None

    def those(self, wanted: Callable[[Inst], bool]) -> list[int]:
        """Numbers of the instructions of some kinds."""
        chosen = {kind for kind, inst in enumerate(self.insts) if wanted(inst)}
        return [at for at, kind in enumerate(self.kinds) if kind in chosen] if chosen else []

    def flagged(self, flags: OpFlag) -> list[int]:
        return self.those(lambda inst: bool(inst.op.flags & flags))

    def location(self, name: str, at: int) -> Location:
        return Location(name, self.pcs[at], self.isa.text(self.inst(at)))


def decoded(
    isa: InstructionSet, ranges: Iterable[tuple[int, int]], read: Callable[[int, int], bytes], name: str
) -> Code:
    """The instructions of ``ranges`` (address, size), which ascend."""
    pcs: list[int] = []
    kinds: list[int] = []
    insts: list[Inst] = []
    known: dict[bytes, int] = {}
    for start, size in ranges:
        data = read(start, size)
        scan = isa.scan(data)
        offsets, sizes = scan.offsets.tolist(), scan.sizes.tolist()
        if (scan.rows < 0).any() or (offsets and offsets[-1] + sizes[-1] or 0) != size:
            bad = next((o for o, row in zip(offsets, scan.rows.tolist(), strict=True) if row < 0), size)
            raise CheckFailed("no instruction is here", Location(name, start + bad))
        pcs += [start + offset for offset in offsets]
        for offset, length in zip(offsets, sizes, strict=True):
            raw = data[offset:offset + length]
            kind = known.get(raw)
            if kind is None:
                kind = known[raw] = len(insts)
                insts.append(isa.decode(raw))
            kinds.append(kind)
    return Code(isa, pcs, kinds, insts)


def within(numbers: list[int], span: range) -> list[int]:
    """Those of ascending ``numbers`` that lie in ``span``."""
    return numbers[bisect_left(numbers, span.start):bisect_left(numbers, span.stop)]
