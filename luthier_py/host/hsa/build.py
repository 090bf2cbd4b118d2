"""The tool at the level of HSA as a library for HSA_TOOLS_LIB: built like the HIP libraries, and stored beside them.

In: the C sources of this folder and of host/tool. Out: libluthier_hsa_tool.so. Invariant: it stays in the process
that loaded it, so that its thread may run after ROCr has closed it.
"""

from __future__ import annotations

from pathlib import Path

from luthier_py.base.c_libraries import link_library
from luthier_py.host.native.build import NATIVE, build, compile_sources
from luthier_py.host.tool import COMMON_TOOL, COMMON_TOOL_SOURCES, make_tool_defines

HSA_TOOL_LIBRARY = "libluthier_hsa_tool.so"
HERE = Path(__file__).parent


def hsa_tool_library(tool: str | None = None, options: str = "") -> Path:
    """With a tool's name and options in it, or one that takes them from the environment."""
    baked = make_tool_defines(tool, options)
    sources = [*sorted(HERE.glob("*.c")), *COMMON_TOOL_SOURCES, *NATIVE]

    def compile_all(folder: Path) -> None:
        objects = compile_sources(folder, sources, *baked, f"-I{HERE}", f"-I{COMMON_TOOL}")
        link_library(folder / HSA_TOOL_LIBRARY, objects, "-Wl,-z,nodelete")

    return build("hsa-tool", baked, dict, compile_all) / HSA_TOOL_LIBRARY
