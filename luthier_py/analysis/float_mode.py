"""Whether floats compute under the application as hooks expect them to: to nearest even, denormals kept.

In: kernels, and the functions that they reach. Out: yes, or perhaps not. Invariant: it says yes only where no kernel
starts with another MODE and nobody writes these bits; code that is not known keeps to the ABI, which forbids it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from luthier_py.ir import Function
from luthier_py.isa import MODE, Inst, OpFlag
from luthier_py.isa.semantics import meaning
from luthier_py.isa.semantics.control import Action
from luthier_py.isa.vector_modes import FLOAT_BITS, MODE_REGISTER
from luthier_py.loader import KernelDescriptor

PLAIN_MODE = 0xF0
"""Of the float bits of MODE, rounding in 3:0 and denormals in 7:4: what hooks are compiled for, and what compute
kernels have by default (LLVM, FP_DENORM)."""


def computes_plainly(descriptors: Iterable[KernelDescriptor], functions: Iterable[Function]) -> bool:
    """Whether MODE[7:0] is ``PLAIN_MODE`` everywhere in ``functions``."""
    return all(_starts_plainly(descriptor) for descriptor in descriptors) and not any(
        _writes_field(inst) for function in functions for inst in _writers(function))


def depends_on_mode(inst: Inst) -> bool:
    return bool(inst.reads.sgpr >> MODE & 1)


def _starts_plainly(descriptor: KernelDescriptor) -> bool:
    rounding = descriptor.float_round_mode_32 | descriptor.float_round_mode_16_64 << 2
    denormals = descriptor.float_denorm_mode_32 | descriptor.float_denorm_mode_16_64 << 2
    return rounding | denormals << 4 == PLAIN_MODE


def _writers(function: Function) -> Iterator[Inst]:
    """Instructions that write MODE."""
    code = function.code
    return map(code.inst, code.where(code.distinct.masked(code.distinct.masks.writes, 1 << MODE)))


def _writes_field(inst: Inst) -> bool:
    if OpFlag.INDEXES_REGISTERS in inst.op.flags:
        return False
    if meaning(inst.op) not in (Action.SETREG, Action.SETREG_IMM):
        return True
    field = inst["simm16"].value
    return field & 63 == MODE_REGISTER and field >> 6 & 31 < FLOAT_BITS
