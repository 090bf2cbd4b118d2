"""libluthier_tool.so: a tool for LD_PRELOAD.

In: the sources beside this file, those that all tools share, HIP's declarations (host/hip). Out: the library.
"""

from __future__ import annotations

from pathlib import Path

from luthier_py.base.c_libraries import link_library
from luthier_py.host import hip
from luthier_py.host.hip import table
from luthier_py.host.native.build import NATIVE, build, compile_sources
from luthier_py.host.tool import COMMON_TOOL, COMMON_TOOL_SOURCES, make_tool_defines

TOOL_LIBRARY = "libluthier_tool.so"
HERE = Path(__file__).parent
OWN = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel", "hipHostMalloc", "hipMallocHost", "hipHostFree")
"""Other names of these are the tool's, too."""


def tool_library(tool: str | None = None, options: str = "") -> Path:
    """A library for LD_PRELOAD: with a tool's name and options in it, or one that takes them from the environment."""
    baked = make_tool_defines(tool, options)
    sources = [*sorted(HERE.glob("*.c")), hip.HERE / "image.c", *COMMON_TOOL_SOURCES, *NATIVE]
    flags = f"-D{hip.ABI}={hip.ABI_MAJORS[-1]}", f"-I{HERE}", f"-I{hip.HERE}", f"-I{COMMON_TOOL}", *baked

    def compile_all(folder: Path) -> None:
        objects = compile_sources(folder, sources, *flags)
        own = [row for row in table.functions() if row.alias_of in OWN]
        link_library(folder / TOOL_LIBRARY, objects, *table.aliases(tuple(own)))

    return build("tool", baked, lambda: hip.headers(table.functions(), inside=False), compile_all) / TOOL_LIBRARY
