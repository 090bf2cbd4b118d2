"""Building the library that stands for the driver, as the others are built."""

from __future__ import annotations

from pathlib import Path

from luthier_py.runtime.hip import protocol as framing
from luthier_py.runtime.hip.build import ABI_MAJORS, build, compile_sources, link_library, source_paths
from luthier_py.runtime.kfd import protocol

DEVICE_LIBRARY = "libluthier_kfd.so"
HERE = Path(__file__).parent
SOURCES = "bells", "device", "events", "hold", "pages", "paths"


def device_library() -> Path:
    """A library for LD_PRELOAD; raises Unsupported when there is no C compiler."""

    def compile_all(folder: Path) -> None:
        sources = [*(HERE / f"{name}.c" for name in SOURCES), *source_paths(("wire",))]
        objects = compile_sources(folder, sources, ABI_MAJORS[-1:], f"-I{HERE}")
        link_library(folder / DEVICE_LIBRARY, objects[ABI_MAJORS[-1]])

    texts = {"kfd_protocol.h": protocol.header(), "protocol.h": framing.header()}
    return build("kfd", texts, compile_all) / DEVICE_LIBRARY
