"""Whether floats compute under the application as hooks expect them to: MODE as compute kernels have it by default.

In: kernels, and the functions that they reach. Out: fields of MODE that may hold something else. Invariant: a field is
left out only where every kernel starts with what hooks expect of it and no instruction writes it; unknown code follows
the ABI, which forbids it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from luthier_py.isa import MODE, Inst, Target
from luthier_py.isa.properties.vector_modes import compute_written_mode_bits, field_bits, float_fields

if TYPE_CHECKING:
    from luthier_py.binary.loader import KernelDescriptor
    from luthier_py.program.ir import Function

PLAIN_MODE = 0x3F0
"""MODE that hooks are compiled for, and that compute kernels have by default (LLVM, SIModeRegisterDefaults): floats
round to nearest even (3:0), denormals are not flushed (7:4), DX10_CLAMP and IEEE are on (9:8), FP16_OVFL is off
(23)."""


def fields_unlike_plain(
    target: Target, descriptors: Iterable[KernelDescriptor], functions: Iterable[Function]
) -> tuple[int, ...]:
    """Fields of MODE that may not hold what ``PLAIN_MODE`` has there, somewhere in ``functions``."""
    started = (descriptor.mode(target) ^ PLAIN_MODE for descriptor in descriptors)
    written = (compute_written_mode_bits(inst) for function in functions for inst in _writers(function))
    other = reduce(or_, started, 0) | reduce(or_, written, 0)
    return tuple(field for field in float_fields(target) if field_bits(field) & other)


def depends_on_mode(inst: Inst) -> bool:
    """Whether the instruction reads MODE: what it computes, or copies, depends on rounding or on flushing of
    denormals."""
    return bool(inst.reads.sgpr >> MODE & 1)


def _writers(function: Function) -> Iterator[Inst]:
    """Instructions that write MODE."""
    code = function.code
    return map(code.inst, code.where(code.distinct.match_writes(1 << MODE)))
