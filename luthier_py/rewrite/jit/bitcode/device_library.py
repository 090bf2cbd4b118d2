"""AMD's device library, where it is found: ocml and ockl as text, and the constants that name their target.

In: an instruction set. Out: DeviceIrs. Invariant: floats keep denormals, infinities and NaNs, and square roots are
rounded correctly: as hooks have it without the library.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from luthier_py.base import llvm
from luthier_py.base.errors import Invalid, Unsupported
from luthier_py.isa import InstructionSet
from luthier_py.rewrite.clang import Search
from luthier_py.rewrite.clang.library import constants, version_module
from luthier_py.rewrite.tool.cpp.device_ir import DeviceIr

_FILES = "ocml.bc", "ockl.bc"
_CHOSEN = ("oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off", "oclc_correctly_rounded_sqrt_on",
           "oclc_abi_version_600")  # fmt: skip


def device_library(isa: InstructionSet) -> list[DeviceIr]:
    """Raises Unsupported where there is none."""
    folder = Search().library()
    waves = f"oclc_wavefrontsize64_{'on' if isa.wave_size == 64 else 'off'}"
    texts = constants(isa.target.name)
    told = "\n".join(texts[name] for name in (*_CHOSEN, waves, version_module(isa.target.name)))
    return [*(_parse_library(folder / file) for file in _FILES), DeviceIr.parse(told)]


@cache
def _parse_library(path: Path) -> DeviceIr:
    try:
        return DeviceIr.parse(llvm.bitcode_text(path.read_bytes()))
    except (OSError, Invalid) as error:
        raise Unsupported(f"{path}: the device library cannot be read: {error}") from error
