"""Support functions: what generated code calls, by name.

In: a name and a wave size. Out: what defines it: a function in bitcode of the same name, LLVM IR, or both.
"""

from __future__ import annotations

from luthier_py.emulator.native.atomics import atomic
from luthier_py.emulator.native.bitcode import read_bitcode
from luthier_py.emulator.native.elements import element_function
from luthier_py.emulator.native.matrix_function import matrix_function
from luthier_py.emulator.native.transcendental import transcendental
from luthier_py.emulator.vector_regions.rounding import support_function
from luthier_py.isa.semantics.algebra import Prim

_SOURCES = {
    "scheduler": "run", "beginning": "begin", "clocks": "executed own nanoseconds pause", "cycles": "time",
    "resolve": "resolve refuse", "exchange": "permute bpermute pick", "move_lanes": "move",
    "accesses": "near far flat lds private",
}  # fmt: skip
"""First words of the names that each source of C defines."""
_SOURCE_OF = {word: source for source, words in _SOURCES.items() for word in words.split()}


def definition(name: str, wave_size: int) -> tuple[bytes, str]:
    """Bitcode, and LLVM IR of what that calls, or of the function itself; support functions that the text calls have
    names without a wave size."""
    family, *rest = name.split("_")[1:]
    if family in _SOURCE_OF and "atomic" not in rest:
        return read_bitcode(_SOURCE_OF[family], wave_size), ""
    return b"", _text(name, family, wave_size)


def _text(name: str, family: str, wave_size: int) -> str:
    if family.upper() in Prim.__members__:
        return transcendental(name)
    if family == "rounded":
        return support_function(name)
    if family == "matrix":
        return matrix_function(name)
    if family == "element":
        return element_function(name, wave_size)
    _, addresses, _, *operation = name.split("_")
    return atomic(name, addresses, "_".join(operation), wave_size)
