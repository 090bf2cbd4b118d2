"""One target's instructions: decode, encode, print, assemble.

In: a Target and a wave size. Out: InstructionSet, the door to everything in this room.
Invariant: one InstructionSet per (target, wave size), tables loaded on first use.
"""

from __future__ import annotations

from functools import cache, cached_property

from luthier_py.errors import Invalid
from luthier_py.isa.decode import Decoder
from luthier_py.isa.instruction import Inst, OpInfo
from luthier_py.isa.table import load_table
from luthier_py.isa.target import Target
from luthier_py.isa.text import Printer


class InstructionSet:
    """Get one from :func:`instruction_set`."""

    def __init__(self, target: Target, wave_size: int) -> None:
        self.target = target
        self.wave_size = wave_size
        self._decoder = Decoder(target, wave_size, load_table(target.name, wave_size))
        self._printer = Printer(target, wave_size)

    @cached_property
    def ops(self) -> tuple[OpInfo, ...]:
        """Every row of the table."""
        return tuple(self._decoder.format(row).op for row in range(len(self._decoder.table.rows)))

    def decode(self, data: bytes | memoryview, offset: int = 0) -> Inst:
        """The instruction at ``offset``; Malformed if there is none."""
        return self._decoder.decode(data, offset)

    def text(self, inst: Inst, pc: int | None = None) -> str:
        """LLVM's text; with ``pc``, a branch shows the address that it goes to instead of its displacement."""
        text = self._printer.text(inst)
        destination = None if pc is None else inst.branch_target(pc)
        if destination is None:
            return text
        return f"{text.rsplit(' ', 1)[0]} 0x{destination:x}"


@cache
def _instruction_set(target: Target, wave_size: int) -> InstructionSet:
    return InstructionSet(target, wave_size)


def instruction_set(target: Target, wave_size: int | None = None) -> InstructionSet:
    """The instructions of ``target``; without ``wave_size``, of waves as LLVM has them by default."""
    size = wave_size or target.wave_sizes[0]
    if size not in target.wave_sizes:
        raise Invalid(f"{target.name} has no waves of {size} lanes, only {target.wave_sizes}")
    return _instruction_set(target, size)
