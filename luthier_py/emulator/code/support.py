"""Support functions: what generated code calls, by name.

In: a name and a wave size. Out: LLVM IR that defines it.
"""

from __future__ import annotations

from luthier_py.emulator.instructions.crosslane import permutation
from luthier_py.emulator.native.accesses import memory_function
from luthier_py.emulator.native.clocks import (
    CLOCK,
    OWN_CLOCK,
    PAUSE,
    WALL_CLOCK,
    emit_executed_function,
    nanoseconds,
    pause,
)
from luthier_py.emulator.native.cycle_functions import time_function
from luthier_py.emulator.native.elements import element_function
from luthier_py.emulator.native.matrix_function import matrix_function
from luthier_py.emulator.native.transcendental import transcendental
from luthier_py.emulator.vector_regions.rounding import support_function
from luthier_py.isa.semantics.algebra import Prim


def definition(name: str, wave_size: int) -> str:
    """Those that it calls in its turn have names without a wave size."""
    family = name.split("_")[1]
    if family.upper() in Prim.__members__:
        return transcendental(name)
    if family in ("permute", "bpermute"):
        return permutation(name, wave_size)
    if name in (WALL_CLOCK, CLOCK, OWN_CLOCK):
        return (nanoseconds if name == WALL_CLOCK else emit_executed_function)(name)
    if name == PAUSE:
        return pause(name)
    if family == "time":
        return time_function(name, wave_size)
    if family == "rounded":
        return support_function(name)
    if family == "matrix":
        return matrix_function(name)
    if family == "element":
        return element_function(name, wave_size)
    return memory_function(name, wave_size)
