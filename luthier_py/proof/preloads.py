"""Kernels whose arguments are preloaded, and whose clones load them themselves.

In: instructions that a clone begins with. Out: terms of what they load. Invariant: what a wave of the original finds in
its registers is what is at the same place of the kernarg segment (AMDGPUUsage, "Preloaded Kernel Arguments").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from luthier_py.binary.loader import KernelDescriptor
from luthier_py.isa import Inst
from luthier_py.isa.semantics import find_meaning
from luthier_py.isa.semantics.memory import ScalarLoad
from luthier_py.proof.code import number
from luthier_py.proof.meanings import Term

_LOADS = [ScalarLoad(dwords) for dwords in (1, 2, 4, 8, 16)]


class Arguments(NamedTuple):
    """Terms of the kernarg segment's address, and of its dwords that are preloaded, from offset ``first`` on."""

    pointer: tuple[Term, ...]
    first: int
    held: tuple[Term, ...]

    def evaluate_load(self, inst: Inst, get: Callable[[int], Term]) -> dict[int, Term]:
        """Loaded terms by register, if all that an instruction does is to load some of them; else nothing."""
        others = (each for each in inst.operands if each.name not in ("sdst", "sbase", "offset"))
        if find_meaning(inst.op) not in _LOADS or any(each.value or each.reg is not None for each in others):
            return {}
        to, base, offset = inst["sdst"].reg, inst["sbase"].reg, inst["offset"].value
        at = (offset - self.first) // 4
        if to is None or base is None or offset % 4 or at < 0 or at + to.dwords > len(self.held) or (
                tuple(get(number(base) + k) for k in range(2)) != self.pointer):
            return {}
        return {number(to) + k: self.held[at + k] for k in range(to.dwords)}


def loads_arguments(before: KernelDescriptor, after: KernelDescriptor) -> bool:
    """Whether the clone's waves do not find arguments that the original's do."""
    return before.kernarg_preload_length > 0 and not after.kernarg_preload_length
