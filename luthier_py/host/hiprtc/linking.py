"""Bitcode for hiprtc's linker to a code object.

In: modules of bitcode, alone or in bundles, a target, options. Out: what ld.lld made of them, which compiles them as
one (link-time optimization, as -fgpu-rdc has it). Invariant: as in compilation; nothing is cached.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from luthier_py.base.errors import Invalid, LuthierError
from luthier_py.binary.loader import Broken, choose, members
from luthier_py.host.hiprtc.compilation import Compiled
from luthier_py.host.hiprtc.protocol import Input
from luthier_py.isa import Target, parse_target_id
from luthier_py.rewrite.clang import Search, create_working_folder, run_clang
from luthier_py.rewrite.clang.library import library_folder, version_module

MORE_OPTIONS = "HIPRTC_LINK_OPTIONS_APPEND"
"""ROCm's variable for more of them, with spaces between."""
_BITCODE = b"BC\xc0\xde"
_NO_TARGET = "hiprtc: no device to link for (LUTHIER_DEVICE)"


def link_inputs(
    target: str, options: Sequence[str], inputs: Sequence[tuple[Input, bytes]], search: Search | None = None
) -> Compiled:
    """LuthierError has the log of what cannot be linked."""
    search = search or Search()
    if not target:
        raise Invalid(_NO_TARGET)
    if not inputs:
        raise Invalid("hiprtc: nothing to link")
    processor = target.partition(":")[0]
    toolchain = search.toolchain(processor)
    with create_working_folder("hiprtc") as folder:
        library = library_folder(toolchain, processor, folder / "bitcode")
        modules = [folder / f"input-{number}.o" for number in range(len(inputs))]  # a file for the linker, by its name
        for path, (kind, data) in zip(modules, inputs, strict=True):
            path.write_bytes(data if kind is Input.BITCODE else _of_bundle(data, target))
        output = folder / "output"
        more = search.environment.get(MORE_OPTIONS, "").split()
        log = run_clang(toolchain.compiler, [
            "--target=amdgcn-amd-amdhsa", f"-mcpu={target}", "-flto", *_for_linker([*options, *more]),
            *map(str, modules), *device_library(library, parse_target_id(target).target),
            "-Wl,-plugin-opt=-amdgpu-internalize-symbols", "-o", str(output),
        ], str(folder), folder)  # fmt: skip
        if not output.is_file():
            raise LuthierError(f"{log}hiprtc: these options make no code object: {' '.join(options)}")
        return Compiled(log, output.read_bytes())


def _for_linker(options: Sequence[str]) -> list[str]:
    """LLVM's own options go to where the code is generated."""
    words: list[str] = []
    rest = iter(options)
    for option in rest:
        words.append(f"-Wl,-mllvm,{next(rest, '')}" if option == "-mllvm" else option)
    return words


def device_library(folder: Path, target: Target) -> list[str]:
    """Options that link AMD's device library, as far as it is used, as clang's driver passes them by itself."""
    wave = "on" if target.wave_sizes[0] == 64 else "off"
    names = ["ocml", "ockl", "oclc_daz_opt_off", "oclc_unsafe_math_off", "oclc_finite_only_off",
             "oclc_correctly_rounded_sqrt_on", f"oclc_wavefrontsize64_{wave}", version_module(target.name),
             "oclc_abi_version_600"]  # fmt: skip
    files = [os.path.join(folder, f"{name}.bc") for name in names]
    return ["-Wl,--start-lib", *(f"-Wl,{file}" for file in files if os.path.exists(file)), "-Wl,--end-lib"]


def _of_bundle(data: bytes, target: str) -> bytes:
    """The module that was made for this target; what is no bundle is taken as it is, as ROCm does."""
    if data.startswith(_BITCODE):
        return data
    parts = list(members(data, "bundle", _BITCODE))
    chosen = choose(parts, parse_target_id(target))
    if chosen is None:
        there = ", ".join(str(part.error) if isinstance(part, Broken) else part.target_name for part in parts)
        raise Invalid(f"hiprtc: the bundle has bitcode for {there or 'nothing'}, but the device is {target}")
    return chosen.data
