"""The HIP libraries: a runtime on the emulator.

In: the sources beside this file, the tables, those of hiprtc. Out: a folder with libamdhip64 and libhiprtc as .so.5, .6
and .7.
Invariant: sources that are the same for all versions of HIP are compiled once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from luthier_py.base.c_libraries import compile_each, link_library, object_file
from luthier_py.host import hiprtc, roctx
from luthier_py.host.native.build import HOLD, MAPPED, NATIVE, TRACED, build, compilation, compile_sources

if TYPE_CHECKING:
    from luthier_py.host.hip.table import ApiFunction

ABI_MAJORS = (5, 6, 7)
"""Of libamdhip64.so: programs built for ROCm 5, 6 and 7."""

HERE = Path(__file__).parent
ABI = "ABI_MAJOR"  # in sources that are compiled for each; all others are compiled once


def runtime_folder() -> Path:
    """A folder for LD_LIBRARY_PATH; raises Unsupported when there is no C compiler."""
    return build("hip", (), _texts, _compile_all)


def _texts() -> dict[str, str]:
    from luthier_py.host.hip import table  # not needed where the libraries are in the cache

    rows = table.functions()
    return {**headers(rows, inside=True), "checked.c": table.checks(rows), "missing.c": table.stubs(rows),
            "hip.map": table.version_script(rows), "hiprtc_protocol.h": hiprtc.header(),
            "hiprtc.map": hiprtc.VERSION_SCRIPT,
            **{f"{name}.map": script for name, script in roctx.ROCTX_LIBRARIES.items()}}  # fmt: skip


def _compile_all(folder: Path) -> None:
    from luthier_py.host.hip import table
    from luthier_py.host.worker.native import worker_library

    worker_library()  # which its worker needs, and should not have to make in the program
    compilers = compile_for_majors(folder, [*hiprtc.HIPRTC_SOURCES, *NATIVE])
    marks = compile_sources(folder, roctx.ROCTX_SOURCES)
    more = compile_sources(folder, [HOLD, MAPPED, TRACED])
    objects = compile_for_majors(folder, [*sorted(HERE.glob("*.c")), folder / "checked.c", folder / "missing.c"])
    for major in ABI_MAJORS:
        name = f"libamdhip64.so.{major}"
        script = f"-Wl,-soname,{name}", f"-Wl,--version-script={folder / 'hip.map'}"
        aliases = table.aliases(table.functions())
        link_library(folder / name, [*objects[major], *compilers[major], *more], *script, *aliases)
        name = f"libhiprtc.so.{major}"
        script = f"-Wl,-soname,{name}", f"-Wl,--version-script={folder / 'hiprtc.map'}"
        link_library(folder / name, compilers[major], *script)
    for name in roctx.ROCTX_LIBRARIES:
        script = f"-Wl,-soname,{name}", f"-Wl,--version-script={folder / name}.map"
        link_library(folder / name, [*marks, *more, *(object_file(folder, source) for source in NATIVE)], *script)
    for name, of in roctx.ROCTX_LINKS.items():
        (folder / name).symlink_to(of)
    for name in ("libamdhip64.so", "libhiprtc.so"):
        (folder / name).symlink_to(f"{name}.{ABI_MAJORS[-1]}")
    (folder / "lib").symlink_to(".")  # so that the folder can be a ROCM_PATH


def headers(rows: tuple[ApiFunction, ...], inside: bool) -> dict[str, str]:
    """Texts by file name: errors.h, api_names.h and functions.h. ``inside``: for the library's own sources, in which a
    function's name means its implementation."""
    from luthier_py.host.hip import table

    names = {"errors.h": table.errors_header(), "api_names.h": table.api_names_header()}
    return {**names, "functions.h": table.declarations(rows, inside)}


def compile_for_majors(folder: Path, sources: list[Path]) -> dict[int, list[Path]]:
    """Objects for each version of HIP, which share those of sources that are the same for all."""
    objects: dict[int, list[Path]] = {major: [] for major in ABI_MAJORS}
    jobs: dict[Path, list[str]] = {}
    for source in sources:
        differs = ABI in source.read_text()
        for major in ABI_MAJORS:
            output = object_file(folder, source, f"-{major}" if differs else "")
            jobs[output] = compilation(folder, source, f"-I{HERE}", *([f"-D{ABI}={major}"] if differs else []))
            objects[major].append(output)
    compile_each(jobs)
    return objects
