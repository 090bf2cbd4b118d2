"""A large function as several host functions: the time that LLVM takes grows faster than what it compiles.

In: the blocks of a function. Out: the same, cut to at most BLOCK instructions, in parts of about PART
instructions. Invariant: every instruction is in one part, once, and in the order of addresses; nothing is
cut inside a region of indexed registers, which one block must see whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from luthier_py.base.llvm import Effort
from luthier_py.emulator.options import sizes
from luthier_py.emulator.reading.discover import CodeBlock
from luthier_py.isa.encoding.instruction import OpFlag
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.control import Indexing

_NOTICED = OpFlag.VMEM | OpFlag.SMEM | OpFlag.LDS | OpFlag.GDS | OpFlag.WAIT | OpFlag.BARRIER


def cut(blocks: list[CodeBlock], yields: bool = False) -> list[CodeBlock]:
    """The same instructions, with no block much longer than BLOCK; ``yields``: and where waves may give way."""
    return [piece for block in blocks
            for piece in (_pieces(block, yields) if yields or len(block.insts) > sizes.BLOCK else [block])]


def parts(blocks: list[CodeBlock]) -> list[list[CodeBlock]]:
    """Consecutive blocks together, as long as they have at most PART instructions."""
    found: list[list[CodeBlock]] = []
    size = sizes.PART
    for block in blocks:
        if size + len(block.insts) > sizes.PART:
            found.append([])
            size = 0
        found[-1].append(block)
        size += len(block.insts)
    return found


def effort(blocks: list[CodeBlock]) -> Effort:
    """How to compile a function at first: what is large fast, and then it runs at half the speed."""
    return Effort.FAST if sum(len(block.insts) for block in blocks) > sizes.LARGE else Effort.GENERATE


def _pieces(block: CodeBlock, yields: bool) -> Iterator[CodeBlock]:
    first, indexed = 0, False
    for place, (_, inst) in enumerate(block.insts):
        gives_way = yields and place > first and inst.op.flags & _NOTICED
        if (place - first >= sizes.BLOCK or gives_way) and not indexed:
            yield CodeBlock(block.insts[first][0], block.insts[place][0], block.insts[first:place])
            first = place
        row = find_meaning(inst.op)
        if row in (Indexing.ON, Indexing.OFF):
            indexed = row is Indexing.ON
    yield CodeBlock(block.insts[first][0], block.end, block.insts[first:])
