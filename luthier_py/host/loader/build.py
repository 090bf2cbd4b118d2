"""Building the library that gives a program's children its loader, as the others are built."""

from __future__ import annotations

from pathlib import Path

from luthier_py.base.c_libraries import link_library
from luthier_py.host.native.build import build, compile_sources

LOADER_LIBRARY = "libluthier_loader.so"
HERE = Path(__file__).parent


def loader_library() -> Path:
    """A library for LD_PRELOAD; raises Unsupported when there is no C compiler."""

    def compile_all(folder: Path) -> None:
        objects = compile_sources(folder, sorted(HERE.glob("*.c")), f"-I{HERE}")
        link_library(folder / LOADER_LIBRARY, objects, "-Wl,-z,initfirst")

    return build("loader", (), dict, compile_all) / LOADER_LIBRARY
