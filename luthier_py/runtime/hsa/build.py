"""The tool at the level of HSA as a library for HSA_TOOLS_LIB: built like the HIP libraries, and kept beside them.

In: the C sources of this folder and of runtime/tool. Out: libluthier_hsa_tool.so. Invariant: it stays in the process
that loaded it, so that a thread of it may run when ROCr has let go of it.
"""

from __future__ import annotations

from pathlib import Path

from luthier_py.runtime.hip import protocol
from luthier_py.runtime.hip.build import (
    COMMON_TOOL,
    baked_in,
    build,
    compile_sources,
    link_library,
)
from luthier_py.runtime.hip.build import (
    HERE as COMMON,
)

HSA_TOOL_LIBRARY = "libluthier_hsa_tool.so"
HERE = Path(__file__).parent
_NO_MAJOR = 0  # these sources do not know HIP's versions


def hsa_tool_library(tool: str | None = None, options: str = "") -> Path:
    """With a tool's name and options in it, or one that takes them from the environment."""
    baked = baked_in(tool, options)
    sources = [*sorted(HERE.glob("*.c")), *sorted(COMMON_TOOL.glob("*.c")), COMMON / "wire.c"]

    def compile_all(folder: Path) -> None:
        objects = compile_sources(folder, sources, (_NO_MAJOR,), *baked, f"-I{HERE}")
        link_library(folder / HSA_TOOL_LIBRARY, objects[_NO_MAJOR], "-Wl,-z,nodelete")

    return build("hsa-tool", {"protocol.h": protocol.header(), "settings": repr(baked)}, compile_all) / HSA_TOOL_LIBRARY
