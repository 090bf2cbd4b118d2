"""Numbers that scalar registers hold for certain: the offsets that hand-written code adds to the PC.

In: code and a place in it. Out: the number of a register there, and the instructions that make it.
Invariant: straight-line code from ``first`` to the place makes it of numbers alone, so every wave that comes from
``first`` to the place has it, whatever it had before; there is no call between. What is loaded, read from hardware, or
written where it is not known when, is no number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from luthier_py.base.records import dataclass, field
from luthier_py.isa import OpFlag, RegFile
from luthier_py.isa.semantics.readers.evaluate import evaluate
from luthier_py.isa.semantics.readers.numbers import UNIFORM, Known, Number, constant

if TYPE_CHECKING:
    from luthier_py.isa.columns import Columns

PATIENCE = 64  # instructions that make one offset, at most


@dataclass(slots=True)
class KnownNumbers:
    """Of code from place ``first`` on (mutable: keeps what it has found)."""

    code: Columns
    first: int
    made: dict[int, dict[int, int]] = field(default_factory=dict)  # by place what an instruction writes, in numbers

    def number(self, reg: int, at: int) -> int | None:
        """What a scalar register, or SCC, holds before the instruction at ``at``."""
        distinct, kinds = self.code.distinct, self.code.kinds
        for place in range(at - 1, self.first - 1, -1):
            if distinct.masks.writes[kinds[place]] >> reg & 1:
                return self._evaluate_at(place).get(reg)
            if distinct.op(kinds[place]).flags & OpFlag.CALL:
                return None
        return None

    def _evaluate_at(self, place: int) -> dict[int, int]:
        inst = self.code.inst(place)
        if place in self.made or len(self.made) >= PATIENCE or OpFlag.SALU not in inst.op.flags:
            return self.made.get(place, {})
        found = self.made[place] = {}

        def read(file: RegFile, index: int) -> Known:
            number = self.number(index, place) if file is RegFile.SGPR else None
            return UNIFORM if number is None else constant(number)

        for (file, index), known in evaluate(inst, read).items():
            if file is RegFile.SGPR and isinstance(known, Number) and known.constant is not None and known.uniform:
                found[index] = known.constant
        return found
