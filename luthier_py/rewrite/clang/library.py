"""The folder of device libraries that clang wants: those that are there, and what of it they lack.

In: a folder with ocml.bc and ockl.bc, a compiler, a processor. Out: a folder for --rocm-device-lib-path.
Invariant: it is complete, as clang requires (lib/Driver/ToolChains/ROCm.h, allGenericLibsValid): with the constants
that give the library its target and its options (ROCm-Device-Libs, doc/OCML.md), and libraries of other languages.
ROCm and Debian have all of them, other packages the two that hold code.
"""

from __future__ import annotations

from pathlib import Path

from luthier_py.base.storage import Shelf, cache_key
from luthier_py.isa import targets
from luthier_py.rewrite.clang.running import run_clang
from luthier_py.rewrite.clang.search import Toolchain

SHELF = Shelf("bitcode", 16 << 20)
_TRIPLE = 'target triple = "amdgcn-amd-amdhsa"\n'
_SWITCHES = {
    "daz_opt": "daz_opt", "unsafe_math": "unsafe_math_opt", "finite_only": "finite_only_opt",
    "correctly_rounded_sqrt": "correctly_rounded_sqrt32",
}  # fmt: skip
_ABI_VERSIONS = (400, 500, 600)  # a hundred times the version of code objects
_COMMAND = "--target=amdgcn-amd-amdhsa", "-nogpulib", "-w", "-x", "ir", "-emit-llvm", "-c"


def library_folder(toolchain: Toolchain, processor: str, folder: Path) -> Path:
    """``folder`` is filled, with links to what there is."""
    folder.mkdir()
    for path in toolchain.library.glob("*.bc"):
        (folder / path.name).symlink_to(path)
    lacking = {name: text for name, text in constants(processor).items() if not (folder / f"{name}.bc").exists()}
    keys = {name: cache_key(toolchain.identity, name, text) for name, text in lacking.items()}
    kept = {name: SHELF.read(key) for name, key in keys.items()}
    if None in kept.values():
        _assemble(toolchain.compiler, lacking, folder)
        kept = {name: (folder / f"{name}.bc").read_bytes() for name in lacking}
        for name, key in keys.items():
            SHELF.write(key, kept[name] or b"")
    for name, module in kept.items():
        (folder / f"{name}.bc").write_bytes(module or b"")
    return folder


def constants(processor: str) -> dict[str, str]:
    """Modules by their names; of processors that we do not know, without their version."""
    modules = {"opencl": "", "hip": ""}
    for state, value in (("on", 1), ("off", 0)):
        modules |= {f"oclc_{file}_{state}": _constant(name, "i8", value) for file, name in _SWITCHES.items()}
        modules[f"oclc_wavefrontsize64_{state}"] = (
            _constant("wavefrontsize64", "i8", value) + _constant("wavefrontsize_log2", "i32", 5 + value)
        )
    modules |= {f"oclc_abi_version_{abi}": _constant("ABI_version", "i32", abi) for abi in _ABI_VERSIONS}
    for row in targets():
        if row.name == processor:
            number = row.generation * 1000 + row.minor * 100 + row.stepping
            modules[version_module(processor)] = _constant("ISA_version", "i32", number)
    return {name: _TRIPLE + text for name, text in modules.items()}


def version_module(processor: str) -> str:
    """The module's name in clang's driver (ROCm.h, RocmInstallationDetector)."""
    return f"oclc_isa_version_{processor.removeprefix('gfx')}"


def _constant(name: str, kind: str, value: int) -> str:
    return f"@__oclc_{name} = linkonce_odr hidden local_unnamed_addr addrspace(4) constant {kind} {value}\n"


def _assemble(compiler: Path, modules: dict[str, str], folder: Path) -> None:
    for name, text in modules.items():
        (folder / f"{name}.ll").write_text(text)
    files = [f"{name}.ll" for name in modules]
    run_clang(compiler, [*_COMMAND, *files], str(folder), folder)
