"""What all C libraries of this house are built with: this room's sources, the protocol, and the workers' Python.

In: sources of the rooms beside this one, texts that they generate. Out: a folder with libraries (base/c_libraries).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from luthier_py.base import c_libraries
from luthier_py.base.c_libraries import compile_each, link_library, object_file
from luthier_py.host.native import protocol

__all__ = ["compile_each", "link_library", "object_file"]
HERE = Path(__file__).parent
NATIVE = HERE / "guest.c", HERE / "handles.c", HERE / "wire.c"
HOLD = HERE / "hold.c"
MAPPED = HERE / "mapped.c"
"""For libraries that exchange pages of programs, both."""
TRACED = HERE / "traced.c"
"""For libraries that tell a trace what programs do."""
RUNTIME_ROOT = HERE.parent
PACKAGE_ROOT = RUNTIME_ROOT.parent.parent
SOURCES = (".c", ".h", ".py", ".txt")


def compile_sources(folder: Path, sources: Iterable[Path], *extra: str) -> list[Path]:
    """Objects in ``folder``; headers are found beside each source, in this room and in ``folder``."""
    return c_libraries.compile_sources(folder, sources, f"-I{HERE}", *definitions(), *extra)


def compilation(folder: Path, source: Path, *extra: str) -> list[str]:
    """The compiler's arguments but for the output."""
    return c_libraries.compilation(folder, source, f"-I{HERE}", *definitions(), *extra)


def definitions() -> list[str]:
    """The Python that runs workers, and where it finds this package."""
    return [f'-DLUTHIER_PYTHON="{sys.executable}"', f'-DLUTHIER_ROOT="{PACKAGE_ROOT}"']


def build(
    kind: str, made_of: Iterable[str], texts: Callable[[], Mapping[str, str]], compile_all: Callable[[Path], None]
) -> Path:
    """The cached folder with a library. ``texts``: files that are generated from ``made_of`` and from what is in the
    rooms beside this one, and from nothing else."""
    beside = (path.read_bytes() for path in sorted(RUNTIME_ROOT.glob("*/*.*")) if path.suffix in SOURCES)
    return c_libraries.build(kind, (*made_of, *definitions(), *beside),
                             lambda: {"protocol.h": protocol.header(), **texts()}, compile_all)
