"""Support functions: what generated code calls, by name.

In: a name and a wave size. Out: what defines it: a function in bitcode of the same name, LLVM IR, or both.
"""

from __future__ import annotations

from luthier_py.emulator.native.atomics import atomic_function
from luthier_py.emulator.native.bitcode import read_bitcode
from luthier_py.emulator.native.elements import element_function, format_table
from luthier_py.emulator.native.gathers import gather_functions
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
    if "atomic" in rest:
        return read_bitcode("atomics", wave_size), atomic_function(name)
    if "gather" in rest or family == "pick":
        return read_bitcode(_SOURCE_OF[family], wave_size), gather_functions()
    if family in _SOURCE_OF:
        return read_bitcode(_SOURCE_OF[family], wave_size), ""
    if family == "rounded":
        return b"", support_function(name)
    if family == "matrix":
        return b"", matrix_function(name)
    if name.startswith("luthier_element_format"):
        return b"", format_table(name)
    if family == "element":
        return read_bitcode("elements", wave_size), element_function(name, wave_size)
    assert family.upper() in Prim.__members__, name
    return b"", transcendental(name)
