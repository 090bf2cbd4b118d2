"""Support functions: what generated code calls, by name.

In: a name and a wave size. Out: what defines it: a function in bitcode of the same name, LLVM IR, or both.
"""

from __future__ import annotations

from luthier_py.emulator.instructions.crosslane import permutation
from luthier_py.emulator.native.accesses import memory_function
from luthier_py.emulator.native.bitcode import read_bitcode
from luthier_py.emulator.native.cycle_functions import time_function
from luthier_py.emulator.native.elements import element_function
from luthier_py.emulator.native.matrix_function import matrix_function
from luthier_py.emulator.native.transcendental import transcendental
from luthier_py.emulator.vector_regions.rounding import support_function
from luthier_py.isa.semantics.algebra import Prim

_SOURCES = {
    "run": "scheduler", "begin": "beginning", "resolve": "resolve", "refuse": "resolve",
    **dict.fromkeys(("executed", "own", "nanoseconds", "pause"), "clocks"),
}  # fmt: skip
"""Of C, by the first word of names of what they define."""


def definition(name: str, wave_size: int) -> tuple[bytes, str]:
    """Bitcode, and LLVM IR of what that calls, or of the function itself; support functions that the text calls have
    names without a wave size."""
    family = name.split("_")[1]
    if family in _SOURCES:
        return read_bitcode(_SOURCES[family], wave_size), ""
    return b"", _text(name, family, wave_size)


def _text(name: str, family: str, wave_size: int) -> str:
    if family.upper() in Prim.__members__:
        return transcendental(name)
    if family in ("permute", "bpermute"):
        return permutation(name, wave_size)
    if family == "time":
        return time_function(name, wave_size)
    if family == "rounded":
        return support_function(name)
    if family == "matrix":
        return matrix_function(name)
    if family == "element":
        return element_function(name, wave_size)
    return memory_function(name, wave_size)
