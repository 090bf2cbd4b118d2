"""The HIP libraries: a runtime on the emulator, and a tool for LD_PRELOAD.

In: the sources beside this file, the tables. Out: a folder with libamdhip64.so.5, .6 and .7; libluthier_tool.so.
Invariant: sources that are the same for all versions of HIP are compiled once.
"""

from __future__ import annotations

from pathlib import Path

from luthier_py.runtime.hip import table
from luthier_py.runtime.native.build import NATIVE, build, compilation, compile_each, compile_sources, link_library
from luthier_py.runtime.tool import COMMON_TOOL, COMMON_TOOL_SOURCES, baked_in

ABI_MAJORS = (5, 6, 7)
"""Of libamdhip64.so: programs built for ROCm 5, 6 and 7."""

TOOL_LIBRARY = "libluthier_tool.so"
HERE = Path(__file__).parent
ABI = "ABI_MAJOR"  # in sources that are compiled for each; all others are compiled once
RUNTIME = tuple(
    "announce capture contexts device errors events executables fills graphs handles hostcalls image launches memory modules nodes "
    "operations pinned pools properties registry streams transfers work".split()
)
TOOL = ("attached", "copies", "counted", "graphed", "image", "interpose", "redirect")


def runtime_folder() -> Path:
    """A folder for LD_LIBRARY_PATH; raises Unsupported when there is no C compiler."""
    rows = table.functions()
    texts = {**headers(rows, inside=True), "checked.c": table.checks(rows), "missing.c": table.stubs(rows), "hip.map": table.version_script(rows)}

    def compile_all(folder: Path) -> None:
        objects = compile_for_majors(folder, [*source_paths(RUNTIME), *NATIVE, folder / "checked.c", folder / "missing.c"])
        for major in ABI_MAJORS:
            name = f"libamdhip64.so.{major}"
            script = f"-Wl,-soname,{name}", f"-Wl,--version-script={folder / 'hip.map'}"
            link_library(folder / name, objects[major], *script, *table.aliases(rows))
        (folder / "libamdhip64.so").symlink_to(f"libamdhip64.so.{ABI_MAJORS[-1]}")
        (folder / "lib").symlink_to(".")  # so that the folder can be a ROCM_PATH

    return build("hip", texts, compile_all)


def tool_library(tool: str | None = None, options: str = "") -> Path:
    """A library for LD_PRELOAD: with a tool's name and options in it, or one that takes them from the environment."""
    rows = table.functions()
    baked = baked_in(tool, options)
    own = [row for row in rows if row.alias_of == "hipExtModuleLaunchKernel"]

    def compile_all(folder: Path) -> None:
        flags = f"-D{ABI}={ABI_MAJORS[-1]}", f"-I{HERE}", f"-I{COMMON_TOOL}", *baked
        objects = compile_sources(folder, [*source_paths(TOOL), *COMMON_TOOL_SOURCES, *NATIVE], *flags)
        link_library(folder / TOOL_LIBRARY, objects, *table.aliases(tuple(own)))

    return build("tool", {**headers(rows, inside=False), "settings": repr(baked)}, compile_all) / TOOL_LIBRARY


def headers(rows: tuple[table.Function, ...], inside: bool) -> dict[str, str]:
    return {"errors.h": table.errors_header(), "functions.h": table.declarations(rows, inside)}


def source_paths(names: tuple[str, ...]) -> list[Path]:
    return [HERE / f"{name}.c" for name in names]


def compile_for_majors(folder: Path, sources: list[Path]) -> dict[int, list[Path]]:
    """Objects for each version of HIP, which share those of sources that are the same for all."""
    objects: dict[int, list[Path]] = {major: [] for major in ABI_MAJORS}
    jobs: dict[Path, list[str]] = {}
    for source in sources:
        differs = ABI in source.read_text()
        for major in ABI_MAJORS:
            output = folder / f"{source.stem}{f'-{major}' if differs else ''}.o"
            jobs[output] = compilation(folder, source, f"-I{HERE}", *([f"-D{ABI}={major}"] if differs else []))
            objects[major].append(output)
    compile_each(jobs)
    return objects
