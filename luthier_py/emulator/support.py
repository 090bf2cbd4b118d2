"""Support functions: what generated code calls, by name.

In: a name and a wave size. Out: LLVM IR that defines it.
"""

from __future__ import annotations

from luthier_py.emulator.clocks import CLOCK, WALL_CLOCK, executed, nanoseconds
from luthier_py.emulator.crosslane import permutation
from luthier_py.emulator.cycle_functions import time_function
from luthier_py.emulator.elements import element_function
from luthier_py.emulator.matrix_function import matrix_function
from luthier_py.emulator.native import memory_function
from luthier_py.emulator.rounding import support_function
from luthier_py.emulator.transcendental import transcendental
from luthier_py.isa.semantics.algebra import Prim


def definition(name: str, wave_size: int) -> str:
    """Those that it calls in its turn have names without a wave size."""
    family = name.split("_")[1]
    if family.upper() in Prim.__members__:
        return transcendental(name)
    if family in ("permute", "bpermute"):
        return permutation(name, wave_size)
    if name in (WALL_CLOCK, CLOCK):
        return (executed if name == CLOCK else nanoseconds)(name)
    if family == "time":
        return time_function(name, wave_size)
    if family == "rounded":
        return support_function(name)
    if family == "matrix":
        return matrix_function(name)
    if family == "element":
        return element_function(name, wave_size)
    return memory_function(name, wave_size)
