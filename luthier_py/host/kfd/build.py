"""Building the library that stands for the driver, as the others are built."""

from __future__ import annotations

from pathlib import Path

from luthier_py.base.c_libraries import link_library
from luthier_py.host.kfd import protocol
from luthier_py.host.native.build import HOLD, MAPPED, NATIVE, build, compile_sources

DEVICE_LIBRARY = "libluthier_kfd.so"
HERE = Path(__file__).parent


def device_library() -> Path:
    """A library for LD_PRELOAD; raises Unsupported when there is no C compiler."""

    def compile_all(folder: Path) -> None:
        from luthier_py.host.worker.native import worker_library

        worker_library()  # as for HIP
        objects = compile_sources(folder, [*sorted(HERE.glob("*.c")), *NATIVE, HOLD, MAPPED], f"-I{HERE}")
        link_library(folder / DEVICE_LIBRARY, objects)

    return build("kfd", (), lambda: {"kfd_protocol.h": protocol.header()}, compile_all) / DEVICE_LIBRARY
