"""What all C libraries of this house are built with: this room's sources, the protocol, and the workers' Python.

In: sources of the rooms beside this one, texts that they generate. Out: a folder with libraries (base/c_libraries).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from luthier_py.base import c_libraries
from luthier_py.host.native import protocol

HERE = Path(__file__).parent
NATIVE = tuple(HERE / f"{name}.c" for name in ("guest", "handles", "keyed", "wire"))
HOLD = HERE / "hold.c"
MAPPED = HERE / "mapped.c"
"""For libraries that exchange pages of programs, both."""
TRACED = HERE / "traced.c"
"""For libraries that record in a trace what programs do."""
HOST = HERE.parent
PACKAGE_ROOT = HOST.parent.parent
SOURCES = ".c", ".h", ".txt"
GENERATORS = "build.py", "protocol.py", "table.py"
"""Python that writes C, or says how it is compiled."""


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
    return c_libraries.build(kind, (*made_of, *definitions(), _digest_sources()),
                             lambda: {"protocol.h": protocol.header(), **texts()}, compile_all)


@cache
def _digest_sources() -> bytes:
    """Of what is in the rooms beside this one, and decides what C is compiled."""
    paths = (path for path in sorted(HOST.rglob("*.*")) if path.suffix in SOURCES or path.name in GENERATORS)
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).digest()
